"""A process that has imported all that a party needs and becomes one by forking: every party starts at once.

    python -m colonnade.run.fork_server LINE

Importing takes a party's process longer than a short training. So one process imports, while the one that
launches the run still reads files, and a party is a fork of it: a process of its own with its own folder,
which holds nobody's columns, as the fork server never sees any. It ends when the line to the process that
started it closes.

A process that asks for a party sends its folder and three descriptors: the party's standard input and output,
and where the fork server writes the party's number and, when it has ended, its exit code.
"""

from __future__ import annotations

import atexit
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Protocol

import msgspec

from colonnade.lean import import_scipy
from colonnade.run.garbage import YOUNG

SUPPORTED = sys.platform == "linux"  # elsewhere, what was imported may not survive a fork
REQUEST_LIMIT = 2**20
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Eight parties on one machine must not each bring a pool of threads for small products."""


class Running(Protocol):
    """A party's process, as `subprocess.Popen` has it."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Request(msgspec.Struct, frozen=True):
    """Asks for a process that runs the `main` of a module on a folder, as if it was started there."""

    module: str
    folder: str
    log: str
    cwd: str
    environment: dict[str, str]


class ForkServer:
    """A process that forks into parties, as its starter sees it; it begins to import at once."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._turn = threading.Lock()
        self._line, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
                [sys.executable, "-m", "colonnade.run.fork_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **SINGLE_THREADED},
                start_new_session=True,  # an interrupt at the terminal is for its parent
            )

    def start(self, module: str, folder: Path, log: Path) -> Forked:
        """Start a party; its standard error goes to the log."""
        request = Request(module, str(folder), str(log), str(Path.cwd()), {**os.environ, **SINGLE_THREADED})
        (their_in, our_in), (our_out, their_out), (status, told) = os.pipe(), os.pipe(), os.pipe()
        party = Forked(os.fdopen(our_in, "wb"), os.fdopen(our_out, "rb"), status)
        with self._turn:  # one request at a time, or a party would inherit the descriptors of another
            try:
                packed = msgspec.json.encode(request) + b"\n"
                socket.send_fds(self._line, [packed], [their_in, their_out, told])
            finally:
                for theirs in (their_in, their_out, told):
                    os.close(theirs)
            party.begun()
        return party

    def close(self) -> None:
        """End the fork server; parties that it has started go on."""
        self._line.close()
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()


_warm: list[ForkServer] = []  # none, or the one of this process


def warm() -> ForkServer:
    """Return the fork server of this process, started if there is none; call it before parties are needed."""
    if _warm and (_warm[0].owner != os.getpid() or _warm[0].process.poll() is not None):
        cool()
    if not _warm:
        _warm.append(ForkServer())
    return _warm[0]


@atexit.register
def cool() -> None:
    """End the fork server of this process, if there is one."""
    while _warm:
        _warm.pop().close()


class Forked:
    """A process that a fork server has started."""

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes], status: int) -> None:
        self.stdin: IO[bytes] | None = stdin
        self.stdout: IO[bytes] | None = stdout
        self.pid = 0
        self.returncode: int | None = None
        self._status = status
        self._words = b""
        self._reading = threading.Lock()

    def __del__(self) -> None:
        os.close(self._status)

    def begun(self) -> None:
        """Wait until the process is there."""
        while b"\n" not in self._words:
            if not self._read():
                raise ChildProcessError("the process from which parties are started has ended")
        self.pid = int(self._words.split(b"\n")[0])

    def _read(self) -> bool:
        """Take in what the fork server says next; False if it says no more."""
        words = os.read(self._status, 64)
        self._words += words
        return bool(words)

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a party", timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            with self._reading:
                while self._read():
                    pass
                codes = self._words.split(b"\n")[1:-1]
                self.returncode = int(codes[0]) if codes else -signal.SIGKILL  # so was the fork server itself
        return self.returncode

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


# -- in the fork server's own process ---------------------------------------------------------------------


class _Children:
    """The parties that a fork server has started and that have not ended, and where to say that one has."""

    def __init__(self) -> None:
        self._told: dict[int, int] = {}
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())

    def fork(self, told: int) -> int:
        """Fork; 0 in the child, which has none of its siblings' descriptors."""
        with _undisturbed():
            pid = os.fork()
            if pid:
                self._told[pid] = told
                os.write(told, b"%d\n" % pid)
            else:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in self._told.values():
                    os.close(other)
        return pid

    def _reap(self) -> None:
        """Say of every child that has ended how it did; this may be called in the middle of itself."""
        with suppress(ChildProcessError):  # there are none
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                told = self._told.pop(pid)
                with suppress(BrokenPipeError):  # nobody asks any more
                    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
                os.close(told)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no child end unnoticed while it is being written down."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def _requests(line: socket.socket) -> Iterator[tuple[Request, list[int]]]:
    """Yield every request, and the descriptors that come with it, until the line closes."""
    words, descriptors = b"", list[int]()
    while True:
        said, sent, _, _ = socket.recv_fds(line, REQUEST_LIMIT, 3)
        words, descriptors = words + said, descriptors + sent
        if not said:
            return
        while b"\n" in words:
            packed, words = words.split(b"\n", 1)
            yield msgspec.json.decode(packed, type=Request), descriptors[:3]
            descriptors = descriptors[3:]


def _become(request: Request, descriptors: list[int]) -> int:
    """Run the party that was asked for in this process, to its end; returns its exit code."""
    os.chdir(request.cwd)  # first: all paths may be relative to it, and the fork server began elsewhere
    with Path(request.log).open("wb") as log:
        for ours, theirs in enumerate((*descriptors[:2], log.fileno())):
            os.dup2(theirs, ours)
    for descriptor in descriptors:
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request.environment)
    code: int = import_module(request.module).main(Path(request.folder))
    return code


def main(line: socket.socket) -> None:
    """Import, then start every party that is asked for."""
    import_scipy()
    import scipy.special  # noqa: F401  every holder of labels would import it in the middle of its first round

    import colonnade.conversations.linear.pull_record
    import colonnade.conversations.linear.record
    import colonnade.run.party_process  # noqa: F401
    from colonnade.job.section import Section, fields_of
    from colonnade.messages import Message
    from colonnade.net.meter import arrays_of

    for message in Message.__subclasses__():  # once here, and not at every party
        arrays_of(message)
    for section in Section.__subclasses__():
        fields_of(section)
    gc.collect()
    gc.freeze()  # what is there already is nobody's garbage, and need not be copied to be looked at
    gc.set_threshold(YOUNG)
    children = _Children()
    for request, descriptors in _requests(line):
        if children.fork(descriptors[2]):
            for descriptor in descriptors[:2]:
                os.close(descriptor)
            continue
        line.close()
        code = 1
        try:
            code = _become(request, descriptors)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as our_line:
        main(our_line)
