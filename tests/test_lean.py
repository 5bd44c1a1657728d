"""What a party does not need is not imported: NumPy's Fortran tools, and encryption that its run has not."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from colonnade.lean import import_scipy
import_scipy()
assert "scipy.sparse" in sys.modules and "numpy.f2py" not in sys.modules
import numpy.f2py
assert callable(numpy.f2py.get_include)
"""


def test_scipy_is_there_and_fortran_only_when_it_is_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert not done.returncode, done.stderr


STARTS = """
import sys
import colonnade.run.party_process, colonnade.run.woe_party
from colonnade.run.registry import CONVERSATIONS
assert CONVERSATIONS["backward"]
assert not [name for name in sys.modules if name.startswith("colonnade.secure.lattice")]
"""


def test_a_party_of_batches_starts_without_the_encryption_that_it_does_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", STARTS], capture_output=True, text=True)
    assert not done.returncode, done.stderr


WRITES = """
import sys
import colonnade.cli.run, colonnade.report.sheet
assert "colonnade.credit" in sys.modules
assert "scipy.special" not in sys.modules
"""


def test_a_run_that_writes_its_sheet_loads_no_special_functions() -> None:
    done = subprocess.run([sys.executable, "-c", WRITES], capture_output=True, text=True)
    assert not done.returncode, done.stderr
