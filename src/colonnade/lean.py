"""SciPy without NumPy's Fortran tools: a fifth of the time that importing takes, for what nobody uses here.

SciPy copies all that NumPy lists, and by asking for it imports `numpy.f2py`, which NumPy itself leaves until
it is needed. A process that is wholly ours, and whose start somebody waits for, shows SciPy an empty module
in its place; a later import of the real one works as usual.
"""

from __future__ import annotations

import sys
from types import ModuleType


def import_scipy() -> None:
    """Import SciPy's sparse matrices, unless they are there, without `numpy.f2py`."""
    import numpy

    names = vars(numpy)
    if "scipy.sparse" in sys.modules or "f2py" in names:
        return
    names["f2py"] = ModuleType("numpy.f2py")
    try:
        import scipy.sparse  # noqa: F401
    finally:
        del names["f2py"]
