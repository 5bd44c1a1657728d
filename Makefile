# Two commands set up everything from a bare checkout: `make demo` and `make test`.
# They need Python 3.11+ and make; everything else goes into .venv inside the checkout.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test check clean

demo: .venv/.ready      ## four organisations, four processes, one model
	$(BIN)/colonnade demo --out runs/demo

test: .venv/.ready-dev  ## every test
	$(BIN)/pytest -n 2

check: .venv/.ready-dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/.ready: pyproject.toml bench/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Colonnade needs Python 3.11 or newer; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(INSTALL) . --editable ./bench
	touch $@

.venv/.ready-dev: .venv/.ready
	$(INSTALL) '.[dev,privacy,serve,torch]' --editable ./bench
	touch $@

clean:
	rm -rf .venv build dist src/*.egg-info runs
