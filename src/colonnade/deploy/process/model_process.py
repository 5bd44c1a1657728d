"""A party's models in a process of their own while rows are scored.

`python -m colonnade.deploy.process.model_process FD` is that process.

A model may be a program or a file that the party's settings name, slow, hungry or faulty, and the daemon must
answer all the while. So a process loads the share, builds its models as they were trained and computes their
outputs; its memory and time are limited like those of a training (`resource_limits`), and it ends with the
session, or with the daemon. To the daemon each is a `Model` like any other, whose `forward` takes a message
there and back: it is called from a thread.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.arrays import Matrix, Numbers
from colonnade.conversations.cascade.tensors import HEAD, OWN
from colonnade.conversations.context import GivenModels
from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.party_models import restored_models
from colonnade.deploy.process.logs import log_to_stderr
from colonnade.deploy.process.pipe import Fault
from colonnade.deploy.process.resource_limits import confine
from colonnade.deploy.settings import Settings
from colonnade.errors import ColonnadeError, ModelError, WorkerError
from colonnade.models.blackbox import Model, dense

LENGTH = 8
STOPPING_S = 2.0


class Task(msgspec.Struct, tag="task", frozen=True):
    """To the process, first of all: which share's models, for how many columns of this party's."""

    settings: Settings
    model: str
    columns: int


class Built(msgspec.Struct, tag="built", frozen=True):
    """From the process: the models are built, and have these numbers of parameters; None where there is
    none."""

    own: int | None
    head: int | None


class Rows(msgspec.Struct, tag="rows", frozen=True):
    """To the process rows for one of its models, from it the outputs: numbers of a shape."""

    part: str
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(part: str, numbers: Numbers) -> Rows:
        """Return these numbers as a message."""
        plain = np.ascontiguousarray(numbers, dtype=np.float64)
        return Rows(part, plain.shape, plain.tobytes())

    def numbers(self) -> Numbers:
        """Return the numbers in it."""
        return np.frombuffer(self.data, dtype=np.float64).reshape(self.shape)


Said = Task | Built | Rows | Fault


def say(line: socket.socket, message: Said) -> None:
    """Send a message."""
    data = msgspec.msgpack.encode(message)
    line.sendall(len(data).to_bytes(LENGTH, "little") + data)


def hear(line: socket.socket) -> Said:
    """Return the next message; EOFError if the other side is gone."""
    size = int.from_bytes(_exactly(line, LENGTH), "little")
    return msgspec.msgpack.decode(_exactly(line, size), type=Said)  # type: ignore[no-any-return]


def _exactly(line: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = line.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return data


# -- in the daemon ------------------------------------------------------------------------------------


class ModelProcess:
    """A process with the models of one share. All but `close` takes long, and belongs into a thread."""

    def __init__(self, settings: Settings, model: str, columns: int) -> None:
        self._line, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  its own interpreter, and a number
                [sys.executable, "-m", "colonnade.deploy.process.model_process", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self._limits = settings.limits
        self._task = Task(settings, model, columns)

    def models(self) -> GivenModels:
        """Return the models of the share, as they were trained."""
        match self.ask(self._task):
            case Built(own, head):
                return GivenModels(
                    None if own is None else ModelProxy(self, OWN, own),
                    None if head is None else ModelProxy(self, HEAD, head),
                )
            case other:
                raise WorkerError(f"the process of a model answers {type(other).__name__}")

    def ask(self, message: Said) -> Said:
        """Return what the process answers; its error again if it has one, WorkerError if it has ended."""
        try:
            say(self._line, message)
            answer = hear(self._line)
        except (EOFError, OSError):
            raise WorkerError(self._last_words()) from None
        if isinstance(answer, Fault):
            raise answer.raised()
        return answer

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOPPING_S)
        status = self._process.returncode
        why = "no status" if status is None else f"signal {-status}" if status < 0 else f"status {status}"
        return (
            f"the process of this party's models ended with {why}; its limits are limits.run_memory_mb = "
            f"{self._limits.run_memory_mb:g} and limits.run_cpu_s = {self._limits.run_cpu_s:g}"
        )

    def close(self) -> None:
        """End the process at once; a thread that waits for it hears of that."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._line.close()


@dataclass(frozen=True, eq=False)
class ModelProxy:
    """A model in another process, with the parameters that its share has."""

    process: ModelProcess
    part: str
    parameters: int

    def initial(self, rng: np.random.Generator) -> Numbers:
        raise WorkerError("a model that scores is trained already")

    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        """Return outputs of the rows with the parameters of the share, of which W is one copy."""
        match self.process.ask(Rows.of(self.part, dense(X))):
            case Rows() as found:
                return found.numbers()[None]
            case other:
                raise WorkerError(f"the process of a model answers {type(other).__name__}")


# -- in the process -----------------------------------------------------------------------------------


def _main(line: socket.socket) -> None:
    """Build the models, then answer until nobody asks any more."""
    task = hear(line)
    if not isinstance(task, Task):
        return
    confine(task.settings.limits)
    try:
        share = stored_shares.load(task.settings.state / "models", task.model)
        terms = share.manifest.terms
        plan = share.contract.plan(task.settings.name, task.columns, share.manifest.rows["train"])
        models = restored_models(task.settings, terms, plan, share.arrays, task.columns)
        known: dict[str, Model | None] = {OWN: models.own, HEAD: models.head}
        say(line, Built(*(None if each is None else each.parameters for each in known.values())))
        while isinstance(asked := hear(line), Rows) and (model := known[asked.part]) is not None:
            w: Any = share.arrays[asked.part]
            say(line, Rows.of(asked.part, model.forward(w[None], asked.numbers())[0]))
    except EOFError:
        pass  # the session is over
    except ColonnadeError as error:
        say(line, Fault.of(error))
    except Exception as error:  # of a model's own code
        say(line, Fault.of(ModelError(f"{task.model}: {type(error).__name__}: {error}")))


if __name__ == "__main__":
    log_to_stderr()
    with threadpool_limits(1), socket.socket(fileno=int(sys.argv[1])) as daemon, suppress(OSError):
        _main(daemon)
    os._exit(0)  # nothing that a model's code has started keeps this process
