"""What can be tested here: what needs an extra or a package that is not installed is skipped, and says so.

On a Python for which a package has no wheel yet, all other tests must run. So a failure that names an absent
package, or the extra that would bring it, is reported as skipped; where all are installed nothing is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from importlib.util import find_spec

import pytest

EXTRAS = {
    "torch": "torch",
    "serve": "aiohttp",
    "privacy": "dp_accounting",
    "export": "onnx",
    "mlflow": "mlflow",
    "tune": "optuna",
    "excel": "openpyxl",
    "postgresql": "adbc_driver_postgresql",
    "sqlite": "adbc_driver_sqlite",
    "odbc": "arrow_odbc",
    "delta": "deltalake",
    "iceberg": "pyiceberg",
    "images": "PIL",
}
DEVELOPMENT = ["onnxruntime", "skops", "pandas", "polars", "safetensors"]
_NAMED = re.compile(r"No module named '(\w+)|colonnade\[(\w+)\]|cannot import name '(torch)'")

ABSENT = {package for package in [*EXTRAS.values(), *DEVELOPMENT] if find_spec(package) is None}


def absent_package(failure: str) -> str | None:
    """Return the package that a failure names, if it is one that is not installed."""
    for module, extra, name in _NAMED.findall(failure):
        package = EXTRAS.get(extra, module or name)
        if package in ABSENT:
            return str(package)
    return None


def _skip_if_absent(report: pytest.CollectReport | pytest.TestReport) -> None:
    package = absent_package(str(report.longrepr)) if report.failed and ABSENT else None
    if package:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: {package} is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a file that cannot be imported without an absent package."""
    report = yield
    if report.failed:  # or the next import would find half a module, and fail with another error
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) == str(collector.path):
                del sys.modules[name]
    _skip_if_absent(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that fails for want of an absent package."""
    report = yield
    _skip_if_absent(report)
    return report
