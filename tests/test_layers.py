"""The layer rule: a module imports only from layers above it, so that every part can be read on its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import colonnade
from colonnade.losses import LOSSES
from colonnade.optim.estimators import ESTIMATORS
from colonnade.secure.sums import SUMS

ROOT = Path(colonnade.__file__).parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "arrays", "lean"),
    ("choices",),
    ("losses",),
    ("job", "messages", "disk", "plain", "posix", "state"),
    ("regularizers", "result", "search", "test_scores", "timeline", "findings"),
    ("metrics",),
    ("intervals", "data", "shares", "records"),
    ("worth",),
    ("models", "trees", "describe"),
    ("optim",),
    ("privacy",),
    ("compress",),
    ("engines",),
    ("openings",),
    ("baselines", "net"),
    ("secure",),
    ("conversations",),
    ("run",),
    ("credit",),
    ("report", "attacks"),
    ("estimators",),
    ("deploy",),
    ("client",),
    ("demo", "example"),
    ("cli",),
    ("__main__",),
)
# and within `run`, from the table of conversations down to files -> result
RUN_LAYERS: tuple[tuple[str, ...], ...] = (
    ("registry", "traffic"),
    ("blind",),
    ("rules", "notes"),
    ("resolve",),
    ("compared",),
    ("party",),
    ("coalitions",),
    ("world",),
    ("woe_party",),
    ("party_process",),
    ("woe_process",),
    ("garbage",),
    ("fork_server",),
    ("inprocess", "processes"),
    ("mpi",),
    ("rehearse",),
    ("woe", "gather_result"),
    ("launch",),
    ("federate",),
    ("describe",),
    ("families",),
    ("search_space", "held_back"),
    ("tune",),
    ("run_shares",),
    ("forget",),
    ("offline", "examine"),
)
# the sub-packages of `data`, `deploy` and the linear conversations, and the files beside them, each a layer
STREETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "data": (
        ("table", "problems"),
        ("read",),
        ("prepare",),
        ("datasets", "large"),
        ("split",),
    ),
    "deploy": (
        (
            "agreed",
            "people_settings",
            "telemetry_settings",
        ),
        ("settings", "server_tls", "tokens"),
        ("expiry",),
        ("terms",),
        ("rows",),
        ("books",),
        ("models",),
        ("policy",),
        ("session",),
        ("process",),
        ("programs",),
        ("negotiate",),
        ("runs",),
        ("daemon",),
        ("telemetry",),
        ("http",),
        ("main",),
    ),
    "conversations/linear": (
        ("settings",),
        ("tune", "block", "step_sizes", "timetable"),
        ("costs", "snapshot", "quasi_newton"),
        ("noisy",),
        ("encrypted",),
        ("parted",),
        ("parties",),
        ("openings", "job_choices", "algorithm"),
        ("encrypted_openings", "blind_openings", "converse", "converse_full"),
        ("record",),
        ("full_record", "pull_record"),
    ),
}
RUN_RANK = {name: rank for rank, layer in enumerate(RUN_LAYERS) for name in layer}
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

STORES = {"disk", "result", "search", "shares", "test_scores", "timeline", "findings"}
TOUCH_DISK = STORES | {
    "job",
    "data",
    "engines",
    "net",
    "run",
    "deploy",
    "report",
    "demo",
    "example",
    "cli",
    "client",
}
DISK = {"read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "rmtree", "savez", "copy2"}

MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def part_of(path: Path) -> str:
    """The part of the package that a file belongs to: its folder, or itself."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports(path: Path) -> set[str]:
    """The modules that a file imports, wherever in the file it does so."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found.update(name.name for name in names)
            case ast.ImportFrom(module="colonnade", names=names):
                found.update(f"colonnade.{name.name}" for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module)
            case ast.ImportFrom():
                raise AssertionError(f"{path}: a relative import hides which layer it reaches")
    return found


def parts_imported(path: Path) -> set[str]:
    found = {name.split(".")[1] for name in imports(path) if name.startswith("colonnade.")}
    return found - {part_of(path), "__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_layers_above_it(path: Path) -> None:
    part = part_of(path)
    assert part in RANK, f"{part} has no layer yet: give it one in LAYERS"
    below = {other for other in parts_imported(path) if RANK[other] >= RANK[part]}
    assert not below, f"{part} is above or beside {sorted(below)} and must not import it"


@pytest.mark.parametrize("path", sorted((ROOT / "run").glob("[a-z]*.py")), ids=lambda path: str(path.name))
def test_within_run_a_module_imports_only_from_those_above_it(path: Path) -> None:
    found = {name.split(".")[2] for name in imports(path) if name.startswith("colonnade.run.")}
    below = {other for other in found if RUN_RANK[other] >= RUN_RANK[path.stem]}
    assert not below, f"{path.stem} is above or beside {sorted(below)} and must not import it"


@pytest.mark.parametrize("part", STREETS)
def test_sub_packages_import_only_from_those_above_them(part: str) -> None:
    ranks = {name: rank for rank, layer in enumerate(STREETS[part]) for name in layer}
    folder, dotted = ROOT / part, f"colonnade.{part}.".replace("/", ".")
    for path in sorted(folder.rglob("*.py")):
        street = path.relative_to(folder).with_suffix("").parts[0]
        if street == "__init__":
            continue
        assert street in ranks, f"{part}/{street} has no layer yet: give it one in STREETS"
        found = {name.removeprefix(dotted).split(".")[0] for name in imports(path) if name.startswith(dotted)}
        below = {other for other in found - {street} if ranks[other] >= ranks[street]}
        assert not below, (
            f"{path.relative_to(ROOT)} is above or beside {sorted(below)} and must not import it"
        )


SHARED = {
    "data": set[str](),
    "deploy": set[str](),
    "net": set[str](),
    "conversations": {"pacing"},
    "secure": set[str](),
}


@pytest.mark.parametrize("part", SHARED)
def test_no_two_packages_know_each_other(part: str) -> None:
    """Files beside sub-packages are what these share, and know none of them, but for the program itself."""
    below = {path.parent.name for path in (ROOT / part).glob("*/__init__.py")} - SHARED[part]
    for path in (ROOT / part).glob("*.py"):
        dotted = f"colonnade.{part}."
        found = {name.removeprefix(dotted).split(".")[0] for name in imports(path) if name.startswith(dotted)}
        assert not found & below or path == ROOT / "deploy/main.py", f"{path.name}: {sorted(found & below)}"


def test_pacing_knows_no_conversation() -> None:
    """Rounds of several label holders are one idea, whatever is said in them."""
    folder = ROOT / "conversations"
    others = {path.parent.name for path in folder.glob("*/__init__.py")} - {"pacing"}
    for path in (folder / "pacing").glob("*.py"):
        known = {name.split(".")[2] for name in imports(path) if name.startswith("colonnade.conversations.")}
        assert not known & others, f"{path.name}: {sorted(known & others)}"


def test_every_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert not {name: found for name, found in homes.items() if len(found) > 1}


def test_no_two_conversations_know_each_other() -> None:
    folder = ROOT / "conversations"
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    known = {
        package: {
            name.split(".")[2]
            for path in (folder / package).rglob("*.py")
            for name in imports(path)
            if name.startswith("colonnade.conversations.")
        }
        & packages
        for package in packages
    }
    circles = {(a, b) for a in packages for b in known[a] if a < b and a in known[b]}
    assert not circles


def test_nobody_outside_the_records_asks_which_conversation_it_has() -> None:
    names = {"backward", "pull", "kernel", "gram", "cascade", "exchange", "boost"}
    for path in MODULES:
        if part_of(path) == "conversations":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                assert not words & names, f"{path.relative_to(ROOT)}:{node.lineno}"
            if isinstance(node, ast.MatchValue) and isinstance(node.value, ast.Constant):
                assert node.value.value not in names, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_nobody_outside_the_losses_asks_which_loss_it_has() -> None:
    names = set(LOSSES)
    for path in MODULES:
        if part_of(path) == "losses":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Compare() | ast.MatchValue() | ast.Subscript():
                    words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                    assert not words & names, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_nobody_outside_the_estimators_asks_which_estimator_it_has() -> None:
    """`sgd` is an optimizer of networks, too, and these are asked for by name."""
    names = set(ESTIMATORS) - {"sgd"}
    for path in MODULES:
        if part_of(path) in {"optim", "job"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Compare() | ast.MatchValue() | ast.Subscript():
                    words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                    assert not words & names, f"{path.relative_to(ROOT)}:{node.lineno}"


SECURE_SUM = re.compile(r"\bsecure[._]sum\b")  # "tree" and "plain" are words of other keys as well


def test_nobody_asks_which_sum_it_has() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.Match) and SECURE_SUM.search(ast.unparse(node)):
                words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                assert not words & set(SUMS), f"{path.relative_to(ROOT)}:{node.lineno}"


def test_every_part_of_the_package_has_exactly_one_layer() -> None:
    names = [name for layer in LAYERS for name in layer]
    assert len(names) == len(set(names))
    assert {part_of(path) for path in MODULES} <= set(names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_edges_touch_the_disk(path: Path) -> None:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    used = {call.attr for call in calls if isinstance(call, ast.Attribute) and call.attr in DISK}
    used |= {call.id for call in calls if isinstance(call, ast.Name) and call.id == "open"}
    assert not used or part_of(path) in TOUCH_DISK, f"{sorted(used)} in {path.relative_to(ROOT)}"


@pytest.mark.parametrize("part", ["losses", "regularizers", "metrics", "optim", "baselines"])
def test_the_mathematics_knows_no_network_and_no_event_loop(part: str) -> None:
    for path in MODULES:
        if part_of(path) == part:
            assert not imports(path) & {"asyncio", "socket", "ssl", "threading", "concurrent.futures"}


def test_nothing_is_ever_pickled() -> None:
    for path in MODULES:
        assert not imports(path) & {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
