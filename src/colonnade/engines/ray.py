"""Workers as actors of a Ray cluster: one that `ray start` made, or one that is started here for the run.

RAY_ADDRESS names the cluster (`ray start --head` prints it). Actors are placed where Ray has a processor
free; messages between a party and its own actors are Ray's, of plain arrays and numbers, and no other party
hears them. An actor that dies is an error that says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from colonnade.engines.remote import Holder, Shards, Verb
from colonnade.errors import EngineError


class Actors:
    """A `Crew` of actors."""

    def __init__(self, workers: int) -> None:
        self._ray = _started(workers)
        environment = {"env_vars": {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}}
        actor = self._ray.remote(num_cpus=1, runtime_env=environment)(Holder)
        self._actors = [actor.remote() for _ in range(workers)]
        self.size = workers

    def ask(self, verb: Verb, arguments: Mapping[int, tuple[object, ...]]) -> Shards:
        if not self.size:  # closed: what is forgotten now is forgotten already
            return {}
        waiting = [getattr(self._actors[worker], verb).remote(*each) for worker, each in arguments.items()]
        try:
            found: Shards = {}
            for part in self._ray.get(waiting):
                found |= part
        except self._ray.exceptions.RayActorError as error:
            cause = str(error).splitlines()[0]
            raise EngineError(f"engine.kind = 'ray': a worker died ({cause}); look at Ray's log") from None
        return found

    def close(self) -> None:
        self.size = 0
        for actor in self._actors:
            self._ray.kill(actor)


def _started(workers: int) -> Any:
    """Ray, connected to its cluster; an error that says what is missing."""
    try:
        import ray
    except ImportError:
        raise EngineError("engine.kind = 'ray': needs Ray; pip install 'colonnade[ray]'") from None
    if not ray.is_initialized():
        there = os.environ.get("RAY_ADDRESS")
        own: dict[str, Any] = {} if there else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=there, log_to_driver=False, configure_logging=False, **own)
    return ray
