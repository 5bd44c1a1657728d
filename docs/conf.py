"""How `make docs` builds the site: Sphinx reads the Markdown pages here, the commands and the code."""

from __future__ import annotations

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
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["attrs_inline", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks keep their outputs; a test runs them anew
# pages link to files of the repository beside the site, which a reader of the checkout can open
suppress_warnings = ["myst.xref_missing"]

autodoc_typehints = "description"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"Colonnade {release}"
html_show_sourcelink = False
