"""Which stored model answers to a name: the one that was promoted last, also after trainings and restarts.

    runs/serving.json    {"credit": [{"model": "credit-5a1c20b0", "when": ..., "who": ...}, ...]}

The last entry of a name is in use; a promotion adds one and a rollback takes one away. The journal keeps
both. A name that nothing was promoted for stands for its newest model, and the prediction service promotes
that when it first uses it, so that from then on only an operator changes what it answers with.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.stored_shares import Manifest, StoredShare
from colonnade.disk import replace_file
from colonnade.errors import JobError, ShareError


class Promotion(msgspec.Struct, frozen=True):
    """A model that was put to use: which, when, by whom."""

    model: str
    when: str
    who: str


History = dict[str, list[Promotion]]
"""Every name's promotions, the oldest first; the last one is in use."""


class Serving:
    """The models that names stand for at one party; `listeners` are called when that changes."""

    def __init__(self, state: Path) -> None:
        self._path, self.models = state / "serving.json", state / "models"
        self.listeners: list[Callable[[], None]] = []

    def history(self) -> History:
        """Return every name's promotions that were not rolled back, the oldest first."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=History)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise ShareError(f"{self._path}: cannot be read: {error}; restore a backup") from error

    def promoted(self, name: str) -> str | None:
        """Return the model that was promoted for a name, if any was."""
        past = self.history().get(name)
        return past[-1].model if past else None

    def find(self, model: str) -> Manifest:
        """Return the manifest of this model, or of the one its name stands for; ShareError if there is
        none."""
        chosen = self.promoted(model)
        if chosen is None:
            return stored_shares.find(self.models, model)
        try:
            return stored_shares.find(self.models, chosen)
        except ShareError as error:
            raise ShareError(
                f"{chosen} was promoted for {model} and is not here; restore it, or promote another ({error})"
            ) from error

    def load(self, model: str) -> StoredShare:
        """Return the share of this model, or of the one that this name stands for."""
        return stored_shares.load(self.models, self.find(model).model)

    def promote(self, manifest: Manifest, who: str) -> Promotion:
        """Let the name of a model stand for it from now on."""
        entry, past = Promotion(manifest.model, stored_shares.now(), who), self.history()
        name = manifest.terms.name
        past[name] = [*past.get(name, []), entry]
        self._write(past)
        return entry

    def before(self, name: str) -> str:
        """Return the model that a rollback would go to; JobError if there is none."""
        past = self.history().get(name, [])
        if len(past) < 2:
            raise JobError(f"no model was in use for {name} before {past[-1].model if past else 'now'}")
        return past[-2].model

    def rollback(self, name: str) -> None:
        """Let a name stand for the model before the last promotion."""
        self.before(name)
        past = self.history()
        past[name].pop()
        self._write(past)

    def _write(self, past: History) -> None:
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(past), indent=2))
        for listener in self.listeners:
            listener()
