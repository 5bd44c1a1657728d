"""The package is built from its source: to the same bytes anywhere, and without a compiler it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def built(folder: Path, **environment: str) -> tuple[Path, str]:
    """The wheel of the source in a new folder, and what the build said."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(SOURCE / name, folder.joinpath(name))
    ignored = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
    shutil.copytree(SOURCE / "src", folder / "src", ignore=ignored)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", "dist", "."],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel, done.stdout + done.stderr


def folders(tmp_path: Path, *names: str) -> list[Path]:
    """New folders with these names."""
    made = [tmp_path / name for name in names]
    for each in made:
        each.mkdir()
    return made


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_two_builds_in_two_folders_are_the_same_bytes(tmp_path: Path) -> None:
    one, other = folders(tmp_path, "one", "a-longer-name")
    first, _ = built(one)
    second, _ = built(other)
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert sum(name.endswith(".so") for name in archive.namelist()) == 4


def test_without_a_compiler_the_build_says_so_and_the_package_works(tmp_path: Path) -> None:
    (folder,) = folders(tmp_path, "source")
    wheel, said = built(folder, CC="no-such-compiler")
    assert said.count("was not compiled") == 4
    assert "build-essential python3-dev" in said
    with zipfile.ZipFile(wheel) as archive:
        assert not any(name.endswith(".so") for name in archive.namelist())
        archive.extractall(tmp_path / "installed")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "colonnade", "--version", "--verbose"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "not compiled, slower" in done.stdout
