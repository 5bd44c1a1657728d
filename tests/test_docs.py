"""The documentation names what exists: files, modules, commands, options, keys, algorithms; examples run."""

from __future__ import annotations

import argparse
import doctest
import importlib
import importlib.util
import re
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from tests.oracles.tables import random_tables
from tests.test_layers import RANK, RUN_RANK

import colonnade
import colonnade_bench
from colonnade.cli import main
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.policy.policy import check_training
from colonnade.deploy.settings import Settings, read_settings
from colonnade.deploy.terms.contract import check_terms, read_terms
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import JobError
from colonnade.job import Job, Section, job_from, read_job, refuse_unknown
from colonnade.job.files import GONE
from colonnade.job.presets import PRESETS
from colonnade.job.vocabulary import for_run, for_train
from colonnade.run.federate import run_tables
from colonnade.run.resolve import compose
from colonnade.run.run_shares import RunManifest
from colonnade.shares import ShareManifest
from colonnade_bench.czofo.cases import CASES, cases_of

ROOT = Path(__file__).parents[1]
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")} - {*ROOT.glob("docs/_build/**/*.md")})
TEXTS = {page: page.read_text("utf-8") for page in PAGES}
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

FILES = [*ROOT.glob("src/colonnade/**/*.py"), *ROOT.glob("src/colonnade/**/*.c")]
SOURCE = [path.relative_to(ROOT / "src/colonnade").as_posix() for path in FILES]
CODE = [path.read_text("utf-8") for path in ROOT.glob("src/colonnade/**/*.py")]
# named in the changelog's history, which keeps the names of its day
CHANGELOG = ROOT / "CHANGELOG.md"


def words(page: Path) -> list[str]:
    """What stands between backquotes."""
    return re.findall(r"`([^`\n]+)`", TEXTS[page])


def code(page: Path) -> list[str]:
    """The blocks of code: lines set in by four spaces, a line apart from the text above."""
    return [block[0] for block in re.finditer(r"(?:^ {4}\S.*\n(?:^(?: {4}.*)?\n)*)", TEXTS[page], re.M)]


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXTS[page]):
        assert (page.parent / target).exists(), target


@every_page
def test_files_that_are_named_exist(page: Path) -> None:
    if page == CHANGELOG:
        return
    for word in words(page):
        for name in re.findall(r"^(?:python )?([\w/.-]+\.(?:py|md|c|service))(?:::\w+)?\b", word):
            known = (ROOT / name).exists() or any(f"/{path}".endswith(f"/{name}") for path in SOURCE)
            assert known or (page.parent / name).exists(), word
    for name in re.findall(r"\b(?:tests|docs|bench|examples)/[\w/.-]*\w", TEXTS[page]):
        assert (ROOT / name).exists() or name == "docs/_build", name  # which `make docs` makes


def test_every_figure_of_the_readme_names_its_command() -> None:
    _, figures = TEXTS[ROOT / "README.md"].split("## Figures")
    rows = [line.strip("| ").split(" | ") for line in figures.split("## ")[0].splitlines() if line[:1] == "|"]
    assert len(rows) > 5
    for *_, command in rows[2:]:
        assert re.fullmatch(r"`(colonnade|python -m colonnade_bench)\b.*`|the same", command), command


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>> " in TEXTS[page]], ids=lambda page: str(page.relative_to(ROOT))
)
def test_examples_in_python_do_what_they_show(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testfile(str(page), module_relative=False)
    assert done.attempted
    assert not done.failed


@every_page
def test_modules_that_are_named_exist(page: Path) -> None:
    if page == CHANGELOG:
        return
    for name in re.findall(r"`colonnade\.([\w.]+)`", TEXTS[page]):
        module, _, attribute = f"colonnade.{name}".rpartition(".")
        try:
            importlib.import_module(f"colonnade.{name}")
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(module), attribute), name


@every_page
def test_commands_and_their_options_exist(page: Path) -> None:
    """Also `colonnade party / train`, which is two commands."""
    for line in re.findall(r"(?:^ {4}|`|/)colonnade ([a-z][^`\n#]*)", TEXTS[page], re.M):
        first, *rest = re.split(r"  |\n", line)[0].split()
        names = [first, *(word for word in rest if word.isalpha())] if "/" in rest else [first]
        for name in names:
            command = main.commands.get(name)
            if isinstance(command, click.Group) and rest:
                command = command.commands.get(rest[0])
            assert command is not None, line
            options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
            assert {word for word in rest if word.startswith("-")} <= options, line


class Accepted(Exception):
    """The arguments of a command were parsed."""


def benches(page: Path) -> list[list[str]]:
    """The words of every command of a bench that the page quotes, also over two lines."""
    quoted = re.findall(r"`((?:colonnade bench|python -m colonnade_bench)[^`]*)`", TEXTS[page])
    return [shlex.split(command.replace("\n", " ")) for command in quoted]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name == "algorithms"], ids=lambda page: page.stem
)
def test_benches_take_the_arguments_that_are_quoted(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are parsed, and nothing is run."""
    parse = argparse.ArgumentParser.parse_args

    def parsed(self: argparse.ArgumentParser) -> None:
        parse(self)
        raise Accepted

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    for first, *words in benches(page):
        if first == "colonnade":
            check_bench(words[1:])
            continue
        name, *arguments = words[1:]
        module = importlib.import_module(name)
        if hasattr(module, "argparse"):
            monkeypatch.setattr(sys, "argv", [name, *arguments])
            with pytest.raises(Accepted):
                module.main()
        elif arguments:
            module.main.make_context(name, arguments)


def check_bench(words: list[str]) -> None:
    """`colonnade bench` knows the bench, the bench its options and parts, and VFL-CZOFO's its cases."""
    given = main.commands["bench"].make_context("bench", words).params
    name, only = given["name"], given["only"]
    bench = importlib.import_module(colonnade_bench.BENCHES[name])
    own = {key for key, value in given.items() if value} - {"name", "out", "jobs", "resume"}
    assert own <= set(signature(bench.run).parameters), words
    for part, *cases in (piece.split(":") for piece in only):
        assert part in bench.PARTS, words
        if name == "czofo" and part in CASES:
            assert set(cases) <= {case.name for case in cases_of(part, quick=False)}, words


def jobs(page: Path) -> list[dict[str, Any]]:
    found = []
    for block in code(page):
        try:
            plain = tomllib.loads("\n".join(line[4:] for line in block.splitlines()))
        except tomllib.TOMLDecodeError:
            continue
        found.append(plain)
    return found


Reader = Callable[[dict[str, Any], str], dict[str, Any]]
KINDS: tuple[type[Section], ...] = (Job, Terms, Settings)


def keys(kind: type[msgspec.Struct]) -> dict[str, set[str]]:
    """The sections below a struct, by name, with their keys."""
    found: dict[str, set[str]] = {}
    for field in msgspec.structs.fields(kind):
        for inner in re.findall(r"<class '(colonnade\.[\w.]+)'>|(colonnade\.[\w.]+)", repr(field.type)):
            module, _, name = (inner[0] or inner[1]).rpartition(".")
            section = getattr(importlib.import_module(module), name)
            found.setdefault(field.name, set()).update(section.__struct_fields__)
            for deeper, names in keys(section).items():
                found.setdefault(deeper, set()).update(names)
    return found


@every_page
def test_keys_of_jobs_and_settings_exist(page: Path) -> None:
    """Every block that is TOML is a part of a job, of a job between companies, or of a party's settings."""
    for plain in jobs(page):
        complaints = []
        words: tuple[tuple[type[Section], Reader], ...] = (
            (Job, for_run),
            (Terms, for_train),
            (Settings, lambda plain, where: plain),
        )
        for kind, read in words:
            try:
                refuse_unknown(read(plain, page.name), kind, page.name)
            except JobError as error:
                complaints.append(str(error))
        assert len(complaints) < len(KINDS), complaints


@every_page
def test_keys_in_the_text_exist(page: Path) -> None:
    """`train.batch` names a section and a key that it has; `batch = 256` a key of some section."""
    if page == CHANGELOG:
        return
    sections: dict[str, set[str]] = {}
    for kind in KINDS:
        for section, names in {**keys(kind), "": set(kind.__struct_fields__)}.items():
            sections.setdefault(section, set()).update(names)
    for section, _, key in (gone.partition(".") for gone in GONE):
        sections[section].add(key)
    sections["data"].add("validation_fraction")
    for section, key in re.findall(r"`(\w+)\.(\w+)(?: = [^`]*)?`", TEXTS[page]):
        assert section not in sections or key in {"py", *sections[section]}, f"{section}.{key}"
    for key in re.findall(r"`([a-z_]{3,}) = [^`]+`", TEXTS[page]):
        assert any(key in names for names in sections.values()), key


def test_the_files_of_the_examples_are_read_without_complaint() -> None:
    examples = ROOT / "examples"
    for job in (examples / "black_box" / "job.toml", examples / "straggler.toml", examples / "a9a.toml"):
        compose(read_job(job))
    terms = read_terms(examples / "deploy" / "credit.toml")
    for party, member in terms.parties.items():
        settings = read_settings(examples / "deploy" / f"{party}.toml")
        assert settings.name == party
        assert settings.peers.keys() == terms.parties.keys() - {party}
        assert member.data in settings.data
        proposer = min(settings.peers)
        check_training(settings, proposer, check_terms(terms, "job"))


def test_every_algorithm_has_a_page() -> None:
    text = "".join(text for page, text in TEXTS.items() if page.parent.name == "algorithms")
    patterns = [re.escape(word).replace(r"\*", r"[\w-]*") for word in re.findall(r"`([a-z0-9*-]+)`", text)]
    for name in PRESETS:
        assert any(re.fullmatch(pattern, name) for pattern in patterns), name


def test_the_map_has_every_part_in_the_order_of_the_layers() -> None:
    """Words of a line of the map up to the first gap of three spaces are parts of the package."""
    text = TEXTS[ROOT / "docs" / "architecture.md"].partition("## Layers")[2].partition("## ")[0]
    whole, _, within_run = text.partition("Within `run/`")
    for part, ranks in ((whole, RANK), (within_run, RUN_RANK)):
        lines = re.findall(r"^ {4}(\S.*?) {3}", part, re.M)
        named = [word.rstrip("/") for line in lines for word in line.split()]
        assert sorted(named) == sorted(ranks)
        assert [ranks[name] for name in named] == sorted(ranks[name] for name in named)


@pytest.mark.parametrize("part", ["data", "deploy"])
def test_the_trees_of_the_map_have_every_file(part: str) -> None:
    """A line for every sub-package and file, and none for one that is not there."""
    text = (
        TEXTS[ROOT / "docs" / "architecture.md"].partition(f"What lies in `{part}/`")[2].partition("## ")[0]
    )
    named, folder = [], ""
    for indent, name in re.findall(r"^( {4}(?: {2})?)([\w/]+(?:\.py|/)) ", text, re.M):
        if len(indent) == 4 and name.endswith("/"):
            folder = name
        else:
            named.append(name if len(indent) == 4 else folder + name)
    there = [path for path in SOURCE if path.startswith(f"{part}/") and not path.endswith("__init__.py")]
    assert sorted(named) == sorted(there)


def test_paths_of_the_architecture_exist() -> None:
    """Also those that stand in a block, without quotes."""
    for name in re.findall(
        r"(?<![\w/.])((?:\w+/)+\w+\.(?:py|c))\b", TEXTS[ROOT / "docs" / "architecture.md"]
    ):
        assert (ROOT / name).exists() or any(f"/{path}".endswith(f"/{name}") for path in SOURCE), name


def test_files_that_a_change_touches_exist() -> None:
    """The table of changes names files and functions as they are."""
    text = (
        TEXTS[ROOT / "docs" / "architecture.md"].partition("## If you want to change")[2].partition("## ")[0]
    )
    rows = [row.split("|")[2] for row in text.splitlines() if row.startswith("| ")][1:]
    assert len(rows) >= 12
    for row in rows:
        named = re.findall(r"`([^`]+)`", row)
        assert named, row
        for name in named:
            found = [path for path in SOURCE if f"/{path}".endswith(f"/{name}") or path.startswith(name)]
            # a function of the file, or a field of the record, that the row names
            defined = any(re.search(rf"\bdef {name}\b|^    {name}: ", code, re.M) for code in CODE)
            assert found or (ROOT / name).exists() or (name.isidentifier() and defined), name


def test_the_reference_of_python_has_what_there_is_to_use() -> None:
    text = TEXTS[ROOT / "docs" / "reference" / "python.md"]
    shown = set(re.findall(r":: colonnade\.(\w+)$", text, re.M))
    assert shown == set(colonnade.__all__) - {"__version__"}


@pytest.mark.parametrize("kind", [Manifest, RunManifest])
def test_every_field_of_a_stored_share_is_told(kind: type[ShareManifest]) -> None:
    text = TEXTS[ROOT / "docs" / "model-shares.md"]
    assert [name for name in kind.__struct_fields__ if f"`{name}`" not in text] == []


def test_pictures_are_small_and_shown() -> None:
    pictures = [path for path in (ROOT / "docs" / "images").iterdir() if path.suffix in {".png", ".svg"}]
    shown = "".join(TEXTS.values())
    assert all(f"images/{path.name})" in shown for path in pictures)
    assert max(path.stat().st_size for path in pictures) < 150_000


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    text = TEXTS[ROOT / "docs" / "dependencies.md"]
    for name in {re.split(r"[<>=\[]", each)[0] for each in needed}:
        word = name.removeprefix("pytest-")  # plug-ins stand behind it in brackets
        assert re.search(rf"\b{re.escape(word)}\b", text), name


def test_sequence_diagrams_are_what_their_script_draws() -> None:
    images = ROOT / "docs" / "images"
    spec = importlib.util.spec_from_file_location("conversations", images / "conversations.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["conversations"] = script
    spec.loader.exec_module(script)
    drawn = {name: diagram.svg() for name, diagram in script.DIAGRAMS.items()}
    stored = {file.stem: file.read_text() for file in (images / "conversations").glob("*.svg")}
    assert drawn == stored
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    assert [name for name in drawn if f"images/conversations/{name}.svg)" not in pages] == []


@pytest.mark.parametrize("page", ["vfb2", "asysqn", "asyrevel", "fdskl", "czofo"])
def test_the_paper_s_lines_of_a_page_are_a_job_of_which_every_key_counts(page: str) -> None:
    text = (ROOT / "docs" / "algorithms" / f"{page}.md").read_text("utf-8")
    (block,) = re.findall(r"\bstands\s+for\s(?:[^\n]+\n)+\n((?:    [^\n]+\n)+)", text)
    job = {**tomllib.loads(textwrap.dedent(block)), "world": "simulated"}
    job["train"]["epochs"] = 3
    tables = random_tables(parties=3, active=2, rows=60, columns=6)
    read = job_from({**job, "data": {"train": "random", "parties": 3, "active": 2}})
    assert compose(read).unused() == {}
    assert run_tables(read, tables).result.metrics["train_loss"] < 0.7
