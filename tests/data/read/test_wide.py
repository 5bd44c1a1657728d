"""A first line of too many fields is refused before the parser sees it, which would end the process."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from colonnade.data.read.files import load
from colonnade.data.read.header import MOST_COLUMNS
from colonnade.errors import DataError


def test_too_many_columns_are_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv.gz"
    header = ",".join(f"c{j}" for j in range(4 * MOST_COLUMNS))
    path.write_bytes(gzip.compress(f"{header}\n{'1,' * (4 * MOST_COLUMNS - 1)}1\n".encode()))
    with pytest.raises(DataError, match="first line has 400,000 fields, and at most 100,000 are read"):
        load(path)


def test_a_blank_line_above_hides_nothing_and_rows_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("\n" + "a," * MOST_COLUMNS + "b\n1\n")
    with pytest.raises(DataError, match="100,001 fields"):
        load(path)
    path.write_text("a,b\n" + "1,2\n" * (MOST_COLUMNS + 5))
    assert load(path).rows == MOST_COLUMNS + 5


TRY = """
import resource, sys
from pathlib import Path
from colonnade.data.read.files import load
from colonnade.errors import DataError
load(Path(sys.argv[1]).with_name("small.csv"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load(Path(sys.argv[1]))
except DataError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
def test_a_quotation_mark_that_is_never_closed_takes_a_few_times_the_file(tmp_path: Path) -> None:
    """The parser takes all that follows for one line; 192 MB once took 2.1 GB."""
    line = ",".join(["0.123456"] * 30) + "\n"
    header = ",".join(f"c{k}" for k in range(30)) + "\n"
    (tmp_path / "small.csv").write_text(header + line)
    path = tmp_path / "open.csv"
    path.write_text(header + 10 * line + '"' + 120_000 * line)
    found = subprocess.run(
        [sys.executable, "-c", TRY, str(path)], check=True, capture_output=True, text=True, timeout=120
    )
    kilobytes, said = found.stdout.split(" ", 1)
    assert "a quotation mark between line 12 and line" in said
    assert "is not closed; close or delete it" in said
    assert int(kilobytes) * 1024 < 10 * path.stat().st_size
