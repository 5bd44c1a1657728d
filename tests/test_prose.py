"""Docstrings begin with a verb, sources and first pages have plain words, first pages short paragraphs."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import colonnade

SOURCE = Path(colonnade.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
NO_VERBS = frozenset(
    [
        "A",
        "All",
        "An",
        "Any",
        "At",
        "Called",
        "Each",
        "Every",
        "Everything",
        "Exactly",
        "For",
        "From",
        "How",
        "In",
        "Its",
        "No",
        "Nobody",
        "None",
        "Nothing",
        "Of",
        "On",
        "One",
        "Says",
        "Several",
        "Some",
        "That",
        "The",
        "Their",
        "There",
        "These",
        "This",
        "Those",
        "To",
        "What",
        "When",
        "Where",
        "Whether",
        "Which",
        "Who",
        "Whom",
        "Whose",
        "Why",
        "With",
    ]
)
# what a property returns is its name, and commands and contexts are described for their users
NOUNS = frozenset(
    {"property", "cached_property", "setter", "command", "group", "contextmanager", "asynccontextmanager"}
)
MANNERED = re.compile(r"\b(whoever|whomever|whatever|so many|anew|astray)\b", re.IGNORECASE)


def first_words(code: str) -> Iterator[tuple[int, str]]:
    """The line and the first word of every function's docstring, where it should be a verb."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text and not {_name(each) for each in node.decorator_list} & NOUNS:
                yield node.lineno, text.split()[0].rstrip(",.:;")


def _name(decorator: ast.expr) -> str:
    while isinstance(decorator, ast.Call):
        decorator = decorator.func
    return decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")


def mannered(code: str) -> Iterator[tuple[int, str]]:
    """The line of every text or comment with a word that plain English does without, and the word."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            for found in MANNERED.finditer(token.string):
                yield token.start[0] + token.string[: found.start()].count("\n"), found[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_docstrings_begin_with_a_verb_and_words_are_plain(file: Path) -> None:
    code = file.read_text(encoding="utf-8")
    assert [(line, word) for line, word in first_words(code) if word in NO_VERBS] == []
    assert list(mannered(code)) == []


def test_what_is_looked_for_is_found() -> None:
    code = 'def f():\n    """The rows."""\n\n@property\ndef g():\n    """How many."""\n\n# whoever asks\n'
    assert list(first_words(code)) == [(1, "The")]
    assert list(mannered(code)) == [(8, "whoever")]


FIRST_PAGES = [Path(__file__).parents[1] / page for page in ("README.md", "docs/tutorial.md")]
MANNERED_PAGES = re.compile(
    rf"{MANNERED.pattern}|\b(in every habit|heads together|of whom|whom only|foretell|as it were|hitherto)\b",
    re.IGNORECASE,
)
LONGEST = 4  # lines of a paragraph that is read at a glance


def paragraphs(page: str) -> list[str]:
    """Return what a page says in sentences: no code, tables or headings; each point of a list by itself."""
    prose = re.sub(r"^```[\s\S]*?^```$|^(?: {4}|[|#!]).*$", "", page, flags=re.M)
    return [block.strip("\n") for block in re.split(r"\n\s*\n|\n(?=- |\d+\. )", prose) if block.strip()]


@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.name)
def test_first_pages_are_read_at_a_glance(page: Path) -> None:
    text = page.read_text("utf-8")
    found = paragraphs(text)
    assert len(found) > 10
    assert [block for block in found if block.count("\n") >= LONGEST] == []
    assert MANNERED_PAGES.findall(text) == []


ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
MOST_WORDS = 140  # of a paragraph anywhere


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_plain_words_and_paragraphs_that_end(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [block for block in paragraphs(text) if len(block.split()) > MOST_WORDS] == []
    assert [found[0] for found in MANNERED_PAGES.finditer(text)] == []


def test_long_paragraphs_and_mannered_words_are_found() -> None:
    page = "# A\none\ntwo\nthree\nfour\nfive\n\n    code\n    code\n\n- a\n- b\n\n| t |\n|---|\n"
    assert [block.count("\n") for block in paragraphs(page)] == [4, 0, 0]
    assert MANNERED_PAGES.search("they put their heads together")
