"""Every job of a bench says whether labels are shown, so that no table moves with a default."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import colonnade_bench

ROOT = Path(colonnade_bench.__file__).parent


def makes_jobs(tree: ast.AST) -> bool:
    """Whether a module makes a job of words."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(call, ast.Name) and call.id == "job_from" for call in calls)


def says_labels(tree: ast.AST) -> bool:
    """Whether the key is there: in a table, in an assignment to one, or as a name of such a table."""
    for node in ast.walk(tree):
        keys = (
            node.keys
            if isinstance(node, ast.Dict)
            else [node.slice]
            if isinstance(node, ast.Subscript)
            else []
        )
        if any(isinstance(key, ast.Constant) and key.value == "labels" for key in keys):
            return True
        if isinstance(node, ast.Name) and node.id == "CLEAR":
            return True
        if isinstance(node, ast.keyword) and node.arg == "labels":
            return True
    return False


MODULES = [path for path in sorted(ROOT.rglob("*.py")) if makes_jobs(ast.parse(path.read_text("utf-8")))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_jobs_of_a_bench_say_whether_labels_are_shown(path: Path) -> None:
    assert says_labels(ast.parse(path.read_text("utf-8"))), 'say secure = {"labels": ...}'


def test_there_are_such_modules() -> None:
    assert len(MODULES) > 20
