"""How `make docs` builds the site: Sphinx reads the Markdown pages here, the commands and the code."""

from __future__ import annotations

import click
from sphinx.application import Sphinx

import colonnade

project = "Colonnade"
author = "The Colonnade authors"
copyright = "2026, the Colonnade authors"  # noqa: A001
release = version = colonnade.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",  # its files lie in the site, which is read without a network
]
exclude_patterns = ["_build", "jupyter_execute"]  # what a build leaves behind
myst_enable_extensions = ["attrs_inline", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks keep their outputs; a test runs them anew

smartquotes = False  # --out is no dash
default_role = "code"  # docstrings have `names` as the pages have them
highlight_language = "none"  # of help texts; examples in Python are recognised
autodoc_typehints = "description"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"Colonnade {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]


def examples_are_code(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """A command's help has its examples as lines that are not joined; on the page they are code."""
    found: list[str] = []
    for line in lines:
        if line.startswith("| "):
            found += [*([] if found and found[-1].startswith("    ") else ["::", ""]), f"    {line[2:]}"]
        else:
            found.append(line)
    lines[:] = found


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("sphinx-click-process-description", examples_are_code)
