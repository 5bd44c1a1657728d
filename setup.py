"""The one compiled file of the package; everything else that describes it is in pyproject.toml."""

from setuptools import Extension, setup

WORDS = Extension(
    "colonnade.secure._words",
    sources=["src/colonnade/secure/_words.c"],
    extra_compile_args=["-O3", "-Wno-psabi"],
    py_limited_api=True,  # one file for Python 3.11 and all that follow
    optional=True,  # without a compiler NumPy does its work (secure/words.py)
)

setup(ext_modules=[WORDS], options={"bdist_wheel": {"py_limited_api": "cp311"}})
