"""What reading a table of a database takes beside the same rows as a Parquet file.

    python -m colonnade_bench.micro.sources 'postgresql://user@host/db#table'

Processor time of this process, not of the server, the least of some readings of each in turn, each in a
process of its own: from the source to the columns, ids and labels that a run starts from.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

READINGS = 5
ONE = """
import resource, sys, time
from colonnade.data.read.files import load
import pyarrow.parquet, pyarrow.dataset, adbc_driver_manager
def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
begin = spent()
raw = load(sys.argv[1])
print(spent() - begin, raw.rows, len(raw.columns))
"""


def main(address: str) -> None:
    """Print the time for the table and for the file."""
    import pyarrow.parquet as pq

    from colonnade import read_table

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        pq.write_table(read_table(address), file)
        taken: dict[str, list[float]] = {address: [], str(file): []}
        for _ in range(READINGS):
            for source, seconds in taken.items():
                command = [sys.executable, "-c", ONE, source]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                spent, rows, columns = done.stdout.split()
                seconds.append(float(spent))
    table, parquet = (min(seconds) for seconds in taken.values())
    print(f"{int(rows):,} rows, {columns} columns: table {table:.2f} s, Parquet {parquet:.2f} s", end=", ")
    print(f"{table / parquet:.2f} times")


if __name__ == "__main__":
    main(sys.argv[1])
