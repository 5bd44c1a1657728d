"""Environments of other programs: made once, kept, and asked which versions they have.

Nothing of them is a dependency: each is a virtual environment in the cache of the user, or in the folder that
COLONNADE_PEERS names, into which pip installs the packages by name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colonnade_bench.common import Say

VERSIONS = """
import importlib.metadata as known, json, platform, sys
found = {name: known.version(name) for name in sys.argv[1:]}
print(json.dumps({"Python": platform.python_version(), **found}))
"""


class NotInstalled(RuntimeError):
    """A program has no wheel for this Python, or cannot be had from here."""


@dataclass(frozen=True)
class Environment:
    """A program's packages and its interpreter."""

    name: str
    packages: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where it lies."""
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        root = os.environ.get("COLONNADE_PEERS") or cache / "colonnade" / "peers"
        return Path(root) / f"{self.name}-{sys.version_info.major}.{sys.version_info.minor}"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / "python"

    def made(self, say: Say) -> Mapping[str, str]:
        """Install what is not there yet; return the versions of Python and of its packages."""
        ready = self.folder / "ready"
        if not ready.is_file():
            say(f"{self.name}: installing {', '.join(self.packages)} into {self.folder}")
            _run([sys.executable, "-m", "venv", "--clear", str(self.folder)], self.name)
            pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run([*pip, "--only-binary=:all:", *self.packages], self.name)
            ready.touch()
        found: dict[str, str] = json.loads(
            _run([str(self.python), "-c", VERSIONS, *self.packages], self.name)
        )
        return found

    def run(self, script: str, *words: str) -> Any:
        """Run a script with its interpreter, on one thread; its last line is JSON."""
        said = _run([str(self.python), "-c", script, *words], self.name)
        return json.loads(said.strip().splitlines()[-1])


def _run(command: Sequence[str], name: str) -> str:
    """Return what a command prints; NotInstalled with its last words if it fails."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads}, check=False)  # noqa: S603
    if done.returncode:
        words = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise NotInstalled(f"{name}: {words[0][:200]}")
    return done.stdout
