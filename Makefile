# Two commands set up everything from a bare checkout: `make demo` and `make test`.
# They need Python 3.11+ and make; everything else goes into .venv inside the checkout.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test test-slow check docs wheel clean

demo: .venv/.ready      ## four organisations, four processes, one model
	$(BIN)/colonnade demo --out runs/demo

test: .venv/.ready-dev  ## the tests
	$(BIN)/pytest -n 2

test-slow: .venv/.ready-dev ## the long ones: many seeds, many processes
	$(BIN)/pytest -n 2 -m slow

check: .venv/.ready-dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/.ready-dev  ## the site, in docs/_build
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build

wheel: .venv/.ready-dev ## build the package, install it afresh, try it from two CSV files to a report
	rm -rf dist build/wheel
	$(BIN)/python -m build --quiet --outdir dist .
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	.ci/try-wheel build/wheel/bin

.venv/.ready: pyproject.toml setup.py bench/pyproject.toml constraints.txt $(wildcard src/colonnade/*.h src/colonnade/*/_*.c)
	$(PYTHON) -c 'import sys; sys.exit("Colonnade needs Python 3.11 or newer; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(INSTALL) . --editable ./bench
	touch $@

.venv/.ready-dev: .venv/.ready
	$(INSTALL) '.[dev,docs,excel,export,mlflow,privacy,serve,torch,tune]' --editable ./bench
	$(INSTALL) '.[mpi]' || echo "no MPI could be installed: its tests are skipped"
	touch $@

clean:
	rm -rf .venv build dist docs/_build docs/jupyter_execute src/*.egg-info runs
