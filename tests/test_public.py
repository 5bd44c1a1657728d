"""What `import colonnade` offers, and what importing its parts does not load."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import colonnade

SOURCE = Path(colonnade.__file__).parent
# libraries that take long to load: a party that does not use them must not wait for them
HEAVY = ("sklearn", "matplotlib", "torch", "dp_accounting", "scipy.optimize", "scipy.stats", "scipy.spatial")
# these files are there for a library that they name, and are imported only where it is wanted
NEEDING = {
    "models/backend.py": "torch",
    "models/cuda_graph.py": "torch",
    "models/network.py": "torch",
    "optim/torch_optimizer.py": "torch",
    "privacy/accountant.py": "dp_accounting",
}
PARTS = ("losses", "metrics", "regularizers", "result", "models", "optim", "privacy", "compress", "baselines")


def loaded_by(code: str) -> set[str]:
    """The heavy libraries that a fresh Python has after this code."""
    code += f"\nimport sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_dir_shows_exactly_what_there_is_to_use() -> None:
    assert dir(colonnade) == sorted(colonnade.__all__)
    assert dir(colonnade) == [
        "ColonnadeError",
        "Function",
        "VerticalClassifier",
        "VerticalRegressor",
        "__version__",
        "compare",
        "federate",
        "job_from",
        "read_job",
        "read_result",
        "read_table",
        "split_columns",
    ]


@pytest.mark.parametrize("name", colonnade.__all__)
def test_every_name_is_there(name: str) -> None:
    found = getattr(colonnade, name)
    assert name == "__version__" or found.__name__ == name


def test_a_name_that_does_not_exist_is_refused_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'colonnade' has no attribute 'VerticalClasifier'"):
        _ = colonnade.VerticalClasifier  # type: ignore[attr-defined]


def test_to_import_and_look_around_loads_nothing_heavy() -> None:
    assert loaded_by("import colonnade; dir(colonnade)") == set()
    assert loaded_by("from colonnade import ColonnadeError, read_job, read_result") == set()


def test_the_mathematics_of_a_party_loads_only_what_it_uses() -> None:
    paths = [path for part in PARTS for path in sorted(SOURCE.glob(f"{part}*/**/*.py"))]
    paths += [SOURCE / f"{part}.py" for part in PARTS if (SOURCE / f"{part}.py").exists()]
    names = [path.relative_to(SOURCE).as_posix() for path in paths]
    light = [f"colonnade.{name[:-3].replace('/', '.')}" for name in names if name not in NEEDING]
    assert len(light) > 25
    assert loaded_by("\n".join(f"import {name.removesuffix('.__init__')}" for name in light)) == set()


@pytest.mark.parametrize("path", NEEDING)
def test_files_that_need_a_library_exist(path: str) -> None:
    importlib.import_module(f"colonnade.{path[:-3].replace('/', '.')}")


def test_a_party_s_process_loads_nothing_that_its_plan_does_not_need() -> None:
    assert loaded_by("import colonnade.run.party_process") == set()
