"""The version, what it runs on, and that asking for it imports nothing that takes long."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

import colonnade
from colonnade.cli import main, version

SLOW = ("numpy", "scipy", "sklearn", "pyarrow", "cryptography", "asyncio")


@pytest.mark.parametrize("options", [["--version", "--verbose"], ["--verbose", "--version"]])
def test_verbose_says_what_is_compiled(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "is_compiled", lambda module: module == "net._line")
    done = CliRunner().invoke(main, options)
    assert done.exit_code == 0
    assert f"colonnade {colonnade.__version__}" in done.output
    assert "net._line: compiled" in done.output
    assert "secure._words: not compiled, slower" in done.output


def test_the_version_alone_is_one_line() -> None:
    done = CliRunner().invoke(main, ["--version"])
    assert (done.exit_code, done.output) == (0, f"colonnade {colonnade.__version__}\n")


def test_a_module_that_is_not_there_is_not_compiled() -> None:
    assert not version.is_compiled("net._nothing")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_nothing_slow(option: str) -> None:
    program = f"""
import sys
sys.argv = ["colonnade", {option!r}]
from colonnade.cli import main
try:
    main()
except SystemExit:
    pass
found = [name for name in {SLOW!r} if name in sys.modules]
sys.exit(f"imported: {{found}}" if found else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not done.returncode, done.stderr
