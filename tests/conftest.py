"""What several test files share: where real data lies, and how hard hypothesis tries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from colonnade.conversations.linear.record import BACKWARD
from colonnade.run.registry import CONVERSATIONS

settings.register_profile("colonnade", deadline=None)
settings.load_profile("colonnade")


@pytest.fixture(scope="session", autouse=True)
def labels_in_clear() -> Iterator[None]:
    """Tests of the papers' algorithms mean labels in clear, as the papers do, without saying so each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            CONVERSATIONS, "backward", replace(BACKWARD, traits=BACKWARD.traits - {"blind-by-itself"})
        )
        yield


@pytest.fixture
def usual_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The labels that a job gets which does not say, as users have them."""
    monkeypatch.setitem(CONVERSATIONS, "backward", BACKWARD)


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the real data sets, named to the code under test; skips where there is none."""
    named = os.environ.get("COLONNADE_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}; set COLONNADE_DATA to the folder that holds them")
    monkeypatch.setenv("COLONNADE_DATA", str(folder))
    return folder
