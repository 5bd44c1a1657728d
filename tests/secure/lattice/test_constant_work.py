"""No branch and no index of the compiled code depends on a secret, as Valgrind finds."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import colonnade.secure.lattice

SOURCE = Path(colonnade.secure.lattice.__file__).parent
NEEDED = shutil.which("gcc"), shutil.which("valgrind"), Path("/usr/include/valgrind/memcheck.h").is_file()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not all(NEEDED):
        pytest.skip("gcc, valgrind or its headers are not installed")
    made = tmp_path_factory.mktemp("constant") / "work"
    options = ["-O3", "-Wno-psabi", "-ffp-contract=off"]
    paths = [f"-I{SOURCE}", f"-I{sysconfig.get_path('include')}"]
    # Python's functions are never called: they need not be there
    linked = ["-Wl,--unresolved-symbols=ignore-all", "-no-pie"]
    source = Path(__file__).with_name("constant_work.c")
    subprocess.run(["gcc", *options, *paths, str(source), *linked, "-o", str(made)], check=True)  # noqa: S607
    return made


def errors_of(program: Path, *arguments: str) -> int:
    tool = ["valgrind", "--error-exitcode=9", "--quiet", str(program), *arguments]
    return subprocess.run(tool, capture_output=True, check=False).returncode


def test_no_branch_and_no_index_depends_on_a_secret(program: Path) -> None:
    assert errors_of(program) == 0


def test_a_branch_that_depends_on_a_secret_would_be_seen(program: Path) -> None:
    assert errors_of(program, "branch") == 9
