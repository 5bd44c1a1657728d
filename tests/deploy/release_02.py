"""Release 0.2.0 as it was, beside this tree: its package out of the history, to be run as a daemon.

What it needs and this tree no longer has is stood in for: the same C library of the curve lies under another
name.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

COMMIT = "3050757cc9fb1e8456e67e9395e02c1cbccd9249"
REPOSITORY = Path(__file__).parents[2]

CURVE = {
    "__init__.py": "class PublicKey: pass\n",  # of weight of evidence, which no test here asks for
    "_libsecp256k1.py": "from btclib_libsecp256k1 import ffi, lib\n",
    "context.py": (
        "from btclib_libsecp256k1 import lib\n"
        "class _Context: ctx = lib.secp256k1_context_create(1)\n"
        "GLOBAL_CONTEXT = _Context()\n"
    ),
}


def unpack(root: Path) -> str:
    """Write the package of 0.2.0 under a folder, and return what PYTHONPATH is for it."""
    git = shutil.which("git") or pytest.skip("git is not here, nor the history with release 0.2.0")
    words = [git, "archive", COMMIT, "src"]
    archive = subprocess.run(words, cwd=REPOSITORY, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip(f"the history with release 0.2.0 ({COMMIT[:8]}) is not here")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(root, filter="data")
    curve = root / "src" / "coincurve"
    curve.mkdir()
    for name, text in CURVE.items():
        (curve / name).write_text(text)
    return str(root / "src")
