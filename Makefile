# Two commands set up everything from a bare checkout: `make demo` and `make test`.
# They need Python 3.11+ and make; everything else goes into .venv inside the checkout.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

# files in a wheel carry the date of the last commit, not of the day it was built
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)

.PHONY: demo test test-slow test-pythons resolve audit-deps check sanitize docs wheel container-try clean

demo: .venv/.ready      ## four organisations, four processes, one model
	$(BIN)/colonnade demo --out runs/demo

test: .venv/.ready-dev  ## the tests
	$(BIN)/pytest -n 2

test-slow: .venv/.ready-dev ## the long ones: many seeds, many processes
	$(BIN)/pytest -n 2 -m slow

test-pythons:           ## the tests on other Pythons: those of PYTHONS that are on this machine
	.ci/test-pythons

resolve: .venv/.ready-dev ## for which Pythons and machines all that is needed has a wheel
	$(BIN)/python .ci/resolve-wheels

audit-deps: .venv/.ready ## known weaknesses of what is installed, where a service of advisories can be reached
	.ci/audit-deps $(BIN)

check: .venv/.ready-dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

sanitize: .venv/.ready-dev ## the tests of what is compiled, its C code under the address and undefined-behaviour sanitizers
	.ci/sanitize $(BIN)

docs: .venv/.ready-dev  ## the site, in docs/_build
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build

wheel: .venv/.ready-dev ## build the package, install it afresh, try it from two CSV files to a report
	rm -rf dist build/wheel build/linux
	$(BIN)/python -m build --quiet --outdir build/linux .
	.ci/label-wheel $(BIN) build/linux dist
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	.ci/try-wheel build/wheel/bin

container-try:          ## the Containerfile's steps in a clean Debian, and three parties in what they make (as root)
	.ci/try-container

.venv/.ready: pyproject.toml setup.py constraints.txt $(wildcard src/colonnade/*.h src/colonnade/*/_*.c src/colonnade/*/*/*.[ch])
	$(PYTHON) -c 'import sys; sys.exit("Colonnade needs Python 3.11 or newer; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else 0'
	@echo "installing Colonnade and what it needs into .venv (a minute; nothing outside this folder changes)"
	$(PYTHON) -m venv .venv
	@echo "  numpy, scipy, scikit-learn, pyarrow, cryptography and others; the C files are compiled where a compiler is"
	$(INSTALL) .
	touch $@

.venv/.ready-dev: .venv/.ready bench/pyproject.toml
	@echo "installing what the tests need, too: torch, mlflow, optuna and others (some minutes)"
	$(INSTALL) '.[dev,docs,excel,export,images,mlflow,privacy,serve,torch,tune]' --editable ./bench
	$(INSTALL) '.[mpi]' || echo "no MPI could be installed: its tests are skipped"
	touch $@

clean:
	rm -rf .venv build dist docs/_build docs/jupyter_execute src/*.egg-info runs
