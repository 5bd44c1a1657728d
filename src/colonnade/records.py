"""A party's checkpoints of one run on its disk: a file for each gate, of which the last common and the newest
stay.

    FOLDER/000000000127.gate    a line that says what it is, a line of JSON, and the state (`plain`)
    FOLDER/noise.note           the same with what belongs to the run and to no gate of it

A file says which job and which data it belongs to, and is checked when it is read. One that is torn or
damaged does not count, and the one before it does; one of another job or of other data is refused, since
a run that goes on from it would get another model unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from colonnade import __version__
from colonnade.disk import Disk
from colonnade.errors import CheckpointError, ShareError
from colonnade.plain import unpack

FORMAT = 1
_FIRST = b"colonnade checkpoint\n"
_SUFFIX, _NOTE = ".gate", ".note"


class CheckpointHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint says of itself."""

    format: int = FORMAT
    version: str = __version__
    party: str
    job: str  # a digest of what the parties agreed on
    data: str  # a digest of this party's columns and labels
    gate: int
    session: int  # in which it was stored: states of two sessions at one gate need not fit together
    state: str  # sha256 of what follows


@dataclass(frozen=True)
class Records:
    """The checkpoints of one party in one run. `data` gives the digest of its columns, once it is asked."""

    folder: Path
    disk: Disk
    party: str
    job: str
    data: Callable[[], str]

    def write(self, gate: int, session: int, body: bytes, keep: Collection[int]) -> None:
        """Store the state at a gate, as `plain` packs it; of the others only those to `keep` stay."""
        self._store(self.folder / f"{gate:012d}{_SUFFIX}", gate, session, body)
        for other, path in self._files().items():
            if other != gate and other not in keep:
                self.disk.remove(path)

    def gates(self) -> list[tuple[int, int]]:
        """Return the gates whose state is whole, each with its session.

        CheckpointError if a file belongs to another job or to other data.
        """
        found = []
        for gate, path in self._files().items():
            header = self._header(path)
            if header is not None and header.gate == gate:
                found.append((gate, header.session))
        return found

    def read(self, gate: int) -> Any:
        """Return the state at a gate."""
        content = self.disk.read(self.folder / f"{gate:012d}{_SUFFIX}")
        return unpack(content.split(b"\n", 2)[2])

    def note(self, name: str, body: bytes) -> None:
        """Store something that belongs to no gate, but to the run; it takes the place of what was there."""
        self._store(self.folder / f"{name}{_NOTE}", 0, 0, body)

    def noted(self, name: str) -> bytes | None:
        """Return what was stored under this name; CheckpointError if it is damaged, or another job's or
        data's."""
        path = self.folder / f"{name}{_NOTE}"
        if path.name not in self.disk.names(self.folder):
            return None
        if self._header(path) is None:
            raise CheckpointError(f"{path}: is damaged; start again without --resume")
        return self.disk.read(path).split(b"\n", 2)[2]

    def clear(self) -> None:
        """Forget all states: the run begins from its start."""
        for path in self._files().values():
            self.disk.remove(path)

    def forget(self) -> None:
        """Forget everything: this is another run, or it is over."""
        self.clear()
        for name in self.disk.names(self.folder):
            if name.endswith(_NOTE):
                self.disk.remove(self.folder / name)

    def _store(self, path: Path, gate: int, session: int, body: bytes) -> None:
        header = CheckpointHeader(
            party=self.party,
            job=self.job,
            data=self.data(),
            gate=gate,
            session=session,
            state=hashlib.sha256(body).hexdigest(),
        )
        self.disk.replace(path, b"".join((_FIRST, msgspec.json.encode(header), b"\n", body)))

    def _files(self) -> dict[int, Path]:
        names = [name for name in self.disk.names(self.folder) if name.endswith(_SUFFIX)]
        return {int(name.removesuffix(_SUFFIX)): self.folder / name for name in names if name[0].isdigit()}

    def _header(self, path: Path) -> CheckpointHeader | None:
        """Return what a file says of itself; None if it is not whole, CheckpointError if it is of another
        run."""
        try:
            content = self.disk.read(path)
        except ShareError:
            return None
        parts = content.split(b"\n", 2)
        if not content.startswith(_FIRST) or len(parts) != 3:
            return None
        try:
            header = msgspec.json.decode(parts[1], type=CheckpointHeader)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        whole = hashlib.sha256(parts[2]).hexdigest() == header.state
        if whole and header.format != FORMAT:
            raise CheckpointError(
                f"{path}: is a checkpoint of format {header.format}, this version reads {FORMAT}; go on with "
                f"Colonnade {header.version}, or start again without --resume"
            )
        if whole and (header.job != self.job or header.party != self.party):
            raise CheckpointError(
                f"{path}: is of another job; change the job back, or start again without --resume"
            )
        if whole and header.data != self.data():
            raise CheckpointError(
                f"{path}: is of other data than there is now; bring the data back, or start again without "
                "--resume"
            )
        return header if whole else None
