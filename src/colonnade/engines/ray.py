"""Workers as actors of a Ray cluster: one that `ray start` made, or one that is started here for the run.

RAY_ADDRESS names the cluster (`ray start --head` prints it). There actors are placed where Ray has a
processor free; in one that is started here they share what there is, as parties of one process do. Messages
between a party and its own actors are Ray's, of plain arrays and numbers, and no other party hears them. An
actor that dies, or that Ray finds no place for, is an error that says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from colonnade.engines.remote import ShardHolder, Shards, Verb
from colonnade.errors import EngineError

PLACED_S = 120.0  # how long a busy cluster may take to find a place for every actor


class Actors:
    """A `WorkerGroup` of actors."""

    def __init__(self, workers: int) -> None:
        there = os.environ.get("RAY_ADDRESS")
        self._ray = _started(there, workers)
        environment = {"env_vars": {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}}
        actor = self._ray.remote(num_cpus=1 if there else 0, runtime_env=environment)(ShardHolder)
        self._actors = [actor.remote() for _ in range(workers)]
        self.size = workers
        try:
            self._ray.get([each.__ray_ready__.remote() for each in self._actors], timeout=PLACED_S)
        except self._ray.exceptions.GetTimeoutError:
            self.close()
            raise EngineError(
                f"engine.kind = 'ray': no place for {workers} workers after {PLACED_S:g} s; see `ray status` "
                "and ask for no more than there are processors free (engine.workers)"
            ) from None

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


def _started(there: str | None, workers: int) -> Any:
    """Return Ray, connected to its cluster; an EngineError says what is missing."""
    try:
        import ray
    except ImportError:
        raise EngineError("engine.kind = 'ray': needs Ray; pip install 'colonnade[ray]'") from None
    if not ray.is_initialized():
        own: dict[str, Any] = {} if there else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=there, log_to_driver=False, configure_logging=False, **own)
    return ray
