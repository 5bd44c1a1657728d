"""The daemon as a process: start everything, wait for a signal, end everything in order."""

from __future__ import annotations

import asyncio
import logging
import signal

from threadpoolctl import threadpool_limits

from colonnade.deploy import control, monitor
from colonnade.deploy.daemon import Daemon
from colonnade.deploy.settings import Settings
from colonnade.errors import JobError


def run_daemon(settings: Settings) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # small products are faster on one core than handed to a pool of them
    with threadpool_limits(1):
        asyncio.run(_main(settings))


async def _main(settings: Settings) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    daemon = Daemon(settings)
    await daemon.open()
    commands = await control.serve(daemon)
    health = await monitor.serve(daemon) if settings.monitor else None
    service = None
    if settings.serve is not None:
        try:
            from colonnade.deploy.service import Service
        except ModuleNotFoundError as error:
            text = f"serve: needs {error.name}; install it with `pip install 'colonnade[serve]'`"
            raise JobError(text) from error
        service = Service(daemon, settings.serve)
        await service.open()
    try:
        await ended.wait()
        logging.getLogger("colonnade.party").info("stopping")
    finally:
        commands.close()
        if health is not None:
            health.close()
        if service is not None:
            await service.close()
        await daemon.close()
        settings.socket.unlink(missing_ok=True)
