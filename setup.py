"""The compiled files of the package; everything else that describes it is in pyproject.toml."""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# one file for Python 3.11 and all that follow; a Python without the interpreter lock has no such interface
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
HEADERS = sorted(str(path) for path in Path("src/colonnade").glob("*.h"))


class BuildIfPossible(build_ext):
    """Compiles what can be compiled, and says what it means that something could not be."""

    def build_extension(self, ext: Extension) -> None:
        """Compile one file; where that fails the package is whole without it."""
        try:
            super().build_extension(ext)
        except Exception as error:
            print(
                f"colonnade: {ext.name} was not compiled ({error}). The package works without it, "
                "more slowly: NumPy and Python do the same. For the quick way install a C compiler and "
                "Python's headers (Debian: build-essential python3-dev) and install colonnade again; "
                "`colonnade --version --verbose` says which way it is.",
                file=sys.stderr,
            )


def compiled(module: str) -> Extension:
    """Describe a module in C, without which NumPy does its work."""
    source = Path("src/colonnade", *module.split(".")).with_suffix(".c")
    return Extension(
        f"colonnade.{module}",
        sources=[str(source)],
        depends=[*HEADERS, *sorted(str(path) for path in source.parent.glob("*.h"))],
        # no product joined with its sum: the same numbers to the last bit, compiled or not; and no debugging
        # symbols, which name the folder of the build: the same source gives the same bytes
        extra_compile_args=["-O3", "-g0", "-Wno-psabi", "-ffp-contract=off"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
        py_limited_api=STABLE,
        optional=True,
    )


setup(
    ext_modules=[
        compiled("models._rows"),
        compiled("net._line"),
        compiled("secure._words"),
        compiled("secure.lattice._lattice"),
    ],
    cmdclass={"build_ext": BuildIfPossible},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
