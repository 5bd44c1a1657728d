"""The daemon as a process: start it and its servers, wait for a signal, and end all of them in order."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from colonnade.deploy.daemon import control, operators
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http import monitor
from colonnade.deploy.people_settings import Control
from colonnade.deploy.process.logs import log_as, log_to_stderr
from colonnade.deploy.process.memory import start_tidy, stay_tidy
from colonnade.deploy.settings import Serve, Settings, read_settings
from colonnade.deploy.telemetry.traces import Tracer
from colonnade.errors import ColonnadeError, JobError

if TYPE_CHECKING:
    from colonnade.deploy.http.control_server import ControlServer
    from colonnade.deploy.http.pages.site import Site
    from colonnade.deploy.http.service import Service


MOST_FILES = 65536
DELETE_S = 3600.0  # between two looks for models that are too old


def run_daemon(settings: Settings, file: Path) -> None:
    """Run a party's daemon in this process until it gets SIGINT or SIGTERM.

    At SIGHUP it reads the file of its settings again.
    """
    log_as(settings.name, settings.telemetry.log, settings.telemetry.level)
    log_to_stderr()
    _allow_files()
    start_tidy()
    # small products are faster on one core than handed to a pool of them
    with threadpool_limits(1):
        asyncio.run(_main(settings, file))


def _allow_files() -> None:
    """Let this process have as many connections and files open as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # as many as there are, then
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, MOST_FILES)), hard))


async def _main(settings: Settings, file: Path) -> None:
    """Start the daemon and its servers, and end them in the opposite order after a signal."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        stack.callback(asyncio.ensure_future(stay_tidy()).cancel)
        daemon = Daemon(settings, apart=True, reread=partial(read_settings, file))
        if settings.telemetry.traces is not None:
            tracer = Tracer(settings.name, settings.telemetry.traces)
            daemon.books.watchers.append(tracer.watch)
            stack.push_async_callback(tracer.close)
        await daemon.open()
        stack.push_async_callback(daemon.close)
        commands = await control.serve(daemon)
        stack.callback(settings.socket.unlink, missing_ok=True)
        stack.callback(commands.close)
        if settings.monitor is not None and settings.monitor_token_file is not None:
            site = _site(daemon)
            await site.open()
            stack.push_async_callback(site.close)
        elif settings.monitor is not None:
            stack.callback((await monitor.serve(daemon)).close)
        if settings.telemetry.listen is not None:
            stack.callback((await monitor.serve_telemetry(daemon)).close)
        if settings.control is not None:
            control_server = _control(daemon, settings.control)
            await control_server.open()
            stack.push_async_callback(control_server.close)
        if settings.serve is not None:
            service = _service(daemon, settings.serve)
            await service.open()
            stack.push_async_callback(service.close)
        stack.callback(asyncio.ensure_future(_delete_old(daemon)).cancel)
        loop.add_signal_handler(signal.SIGHUP, lambda: daemon.books.spawn(_reload(daemon)))
        await ended.wait()
        logging.getLogger("colonnade.party").info("stopping")


async def _delete_old(daemon: Daemon) -> None:
    """Delete what is older than the settings keep it, again and again."""
    while True:
        try:
            await operators.delete_old(daemon)
        except (ColonnadeError, OSError) as error:
            logging.getLogger("colonnade.party").warning("old models stay: %s", error)
        await asyncio.sleep(DELETE_S)


async def _reload(daemon: Daemon) -> None:
    """Read the settings again; where that cannot be done the log says why, and everything stays as it is."""
    try:
        await daemon.reload()
    except ColonnadeError as error:
        logging.getLogger("colonnade.party").warning("settings stay as they are: %s", error)


def _site(daemon: Daemon) -> Site:
    """Return the daemon's page; JobError if what it needs is not installed."""
    try:
        from colonnade.deploy.http.pages.site import Site
    except ModuleNotFoundError as error:
        text = f"monitor_token_file: needs {error.name}; install it with `pip install 'colonnade[serve]'`"
        raise JobError(text) from error
    return Site(daemon)


def _control(daemon: Daemon, given: Control) -> ControlServer:
    """Return the server of the daemon's verbs; JobError if what it needs is not installed."""
    try:
        from colonnade.deploy.http.control_server import ControlServer
    except ModuleNotFoundError as error:
        text = f"control: needs {error.name}; install it with `pip install 'colonnade[serve]'`"
        raise JobError(text) from error
    return ControlServer(daemon, given)


def _service(daemon: Daemon, serve: Serve) -> Service:
    """Return the prediction service; JobError if what it needs is not installed."""
    try:
        from colonnade.deploy.http.service import Service
    except ModuleNotFoundError as error:
        text = f"serve: needs {error.name}; install it with `pip install 'colonnade[serve]'`"
        raise JobError(text) from error
    return Service(daemon, serve)
