"""A model that is another program, in any language, spoken to in lines of text.

The program reads from standard input and writes to standard output; docs/black-box-models.md has the
whole protocol. In short:

    we write    start COLUMNS
    it writes   PARAMETERS OUTPUTS
    we write    forward VECTORS ROWS, then one line per parameter vector, then one line per row
    it writes   one line of OUTPUTS numbers per row, for the first vector, then the second, ...

Numbers are written so that they read back exactly. When standard input closes, the program ends. It sees
this party's columns and parameters, so it is as trusted as the party itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import weakref
from collections.abc import Sequence
from typing import IO, cast

import numpy as np

from colonnade.arrays import Matrix, Numbers
from colonnade.errors import DataError, ModelError
from colonnade.models.blackbox import dense


class Program:
    """A model that is evaluated by a program, which is started once and kept for all calls."""

    def __init__(self, command: Sequence[str], columns: int, *, patience: float = 30.0) -> None:
        self.command = list(command)
        self._patience = patience
        self._unread = b""
        try:
            self._process = subprocess.Popen(  # noqa: S603  the job names the program, its owner runs it
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise DataError(f"model: cannot start {self.command[0]!r}: {error.strerror}") from error
        weakref.finalize(self, _end, self._process)
        # there are pipes, as they were asked for
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        answer = self._ask(f"start {columns}\n".encode(), 1)[0].split()
        try:
            self.parameters, self.outputs = (int(word) for word in answer)
        except ValueError:
            raise self._failed(f"answered {b' '.join(answer)!r} where PARAMETERS OUTPUTS was due") from None

    def initial(self, rng: np.random.Generator) -> Numbers:
        return np.zeros(self.parameters)

    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        rows = dense(X)
        text = [f"forward {len(W)} {len(rows)}", *map(_line, W), *map(_line, rows), ""]
        lines = self._ask("\n".join(text).encode(), len(W) * len(rows))
        try:
            found = np.array([[float(word) for word in line.split()] for line in lines])
        except ValueError:
            raise self._failed("wrote a line that is not numbers, or not as many as in the others") from None
        if found.shape != (len(lines), self.outputs) or not np.isfinite(found).all():
            raise self._failed(f"must write {self.outputs} finite numbers a line")
        return found.reshape(len(W), len(rows), self.outputs)

    def close(self) -> None:
        """End the program."""
        _end(self._process)

    def _ask(self, question: bytes, lines: int) -> list[bytes]:
        """Return the program's answer to a question, as this many lines.

        It is written and read at the same time: a program may answer before it has read everything.
        """
        stdin, stdout = self._stdin, self._stdout

        def write() -> None:
            # a program that is gone shows in what it did not answer
            with contextlib.suppress(OSError, ValueError):
                stdin.write(question)
                stdin.flush()

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        pieces, seen = [self._unread], self._unread.count(b"\n")
        while seen < lines:
            if not select.select([stdout], [], [], self._patience)[0]:
                raise self._failed(f"wrote nothing for {self._patience:g} s; does it flush its output?")
            piece = os.read(stdout.fileno(), 1 << 16)
            if not piece:
                raise self._failed(f"ended with status {self._process.wait()}")
            seen += piece.count(b"\n")
            pieces.append(piece)
        writer.join()
        found = b"".join(pieces).split(b"\n")
        self._unread = b"\n".join(found[lines:])
        return found[:lines]

    def _failed(self, what: str) -> ModelError:
        return ModelError(f"model {' '.join(self.command)}: the program {what}")


def _line(numbers: Numbers) -> str:
    return " ".join(map(repr, numbers.tolist()))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the program's pipes, wait for its end, and kill it if it does not come."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
