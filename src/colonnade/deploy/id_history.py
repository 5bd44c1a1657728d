"""What a party remembers between runs: a salt of its own, and its peers' commitments to their ids.

A peer whose set of ids differs by one from the time before could tell, from the two intersections, whether
the others hold that id. So the commitments of the last run with the same partners are kept and compared.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from colonnade.deploy.terms import Member


class IdHistory:
    """The folder with the salt and the commitments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def salt(self) -> bytes:
        """This party's salt, made at its first use."""
        path = self._folder / "salt"
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(os.urandom(32))
        return path.read_bytes()

    def scope(self, parties: Mapping[str, Member]) -> str:
        """A name for these parties with these entries of their catalogues; runs of one name are compared."""
        text = json.dumps({party: member.data for party, member in sorted(parties.items())})
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def recall(self, scope: str) -> dict[str, bytes]:
        """The peers' commitments in the last run of this scope; empty if there was none."""
        path = self._folder / f"{scope}.json"
        if not path.exists():
            return {}
        return {peer: bytes.fromhex(text) for peer, text in json.loads(path.read_text()).items()}

    def remember(self, scope: str, commitments: Mapping[str, bytes]) -> None:
        """Keep the peers' commitments for the next run of this scope."""
        draft = self._folder / f"{scope}.part"
        draft.write_text(json.dumps({peer: value.hex() for peer, value in commitments.items()}))
        draft.replace(self._folder / f"{scope}.json")
