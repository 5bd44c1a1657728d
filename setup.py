"""The compiled files of the package; everything else that describes it is in pyproject.toml."""

from setuptools import Extension, setup


def compiled(module: str) -> Extension:
    """A module in C, one file for Python 3.11 and all that follow; without a compiler NumPy does its work."""
    return Extension(
        f"colonnade.{module}",
        sources=[f"src/colonnade/{module.replace('.', '/')}.c"],
        depends=["src/colonnade/buffers.h"],
        # no product joined with its sum: the same numbers to the last bit, compiled or not
        extra_compile_args=["-O3", "-Wno-psabi", "-ffp-contract=off"],
        py_limited_api=True,
        optional=True,
    )


setup(
    ext_modules=[compiled("models._rows"), compiled("net._line"), compiled("secure._words")],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
