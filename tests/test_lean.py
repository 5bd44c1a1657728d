"""SciPy is imported without NumPy's Fortran tools, which are there for whoever wants them later."""

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
