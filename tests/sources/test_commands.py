"""From tables to a report in two commands, and from there to scores in a table or an object, all or none."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyarrow import fs
from tests.servers import Server
from tests.sources.test_objects import uploaded

from colonnade.cli import main
from colonnade.data.read.files import load


def colonnade(*words: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, words)))


def ran(*words: str | Path) -> Result:
    done = colonnade(*words)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def buyers(s3: str, customers: Any, tmp_path: Path) -> str:
    """What a shop knows of the same people, as an object."""
    bought = pa.array([(int(row[1:]) * 7) % 50 for row in customers["id"].to_pylist()])
    pq.write_table(pa.table({"id": customers["id"], "bought": bought}), tmp_path / "buyers.parquet")
    return uploaded(s3, "buyers.parquet", tmp_path / "buyers.parquet")


def test_from_a_table_and_an_object_to_a_report(postgres: Server, buyers: str) -> None:
    table = postgres.address("customers")
    ran("new", table, buyers, "--label", "bad", "--id", "id")
    said = ran("run", "job.toml", "--check").output
    assert "400 rows, 4 columns" in said
    assert "gaps: income (45 rows)" in said
    assert "PostgreSQL expects" in said
    assert "nothing stops this run" in said
    ran("run", "job.toml", "--report")
    assert Path("runs/job/report.html").is_file()
    found = json.loads(Path("runs/job/result.json").read_bytes())
    assert set(found["data"]["digests"]) == {"customers", "buyers"}
    assert found["metrics"]["test_accuracy"] > 0.7

    # the scores of all rows, as a table and as an object
    files = [f"--file=customers={table}", f"--file=buyers={buyers}"]
    scores = postgres.address("scores")
    ran("predict", "runs/job", *files, "--out", scores)
    assert load(scores, id="id").rows == 400
    ran("predict", "runs/job", *files, "--out", scores)
    assert postgres.sql("select count(*) from scores").split()[2] == "800"  # rows are added
    target = buyers.replace("buyers.parquet", "scores.parquet")
    ran("predict", "runs/job", *files, "--out", target)
    assert load(target, id="id").columns == ("score", "probability", "predicted")
    postgres.sql("drop table scores")


def test_scores_are_written_whole_or_not_at_all(sqlite: str, postgres: Server, s3: str) -> None:
    ran("new", f"{sqlite}#customers", "--label", "bad", "--parties", "2")
    ran("run", "job.toml")
    postgres.sql("create table narrow (id text)")
    postgres.sql("grant all on narrow to bank")
    for out, said in {
        postgres.address("narrow"): "column",
        postgres.address("select 1"): "scores go to a table",
        f"s3://none/scores.csv?{s3}": "there is no none",
        f"s3://shop/scores.xlsx?{s3}": "as .csv or .parquet",
        "mariadb://127.0.0.1/risk#scores": "scores go to",
    }.items():
        done = colonnade("predict", "runs/job", f"{sqlite}#customers", "--out", out)
        assert done.exit_code == 2, done.output
        assert said in done.output
    assert postgres.sql("select count(*) from narrow").split()[2] == "0"
    postgres.sql("drop table narrow")
    store, _ = fs.FileSystem.from_uri(f"s3://shop?{s3}")
    assert store.get_file_info("shop/scores.csv").type == fs.FileType.NotFound
    ran("predict", "runs/job", f"{sqlite}#customers", "--out", f"{sqlite}#scores")
    assert load(f"{sqlite}#scores").rows == 400


def test_a_row_that_changed_between_two_runs_is_noticed(sqlite: str) -> None:
    ran("new", f"{sqlite}#customers", "--label", "bad", "--parties", "2")
    ran("run", "job.toml")
    assert "has changed" not in ran("run", "job.toml").output
    with sqlite3.connect(sqlite.removeprefix("sqlite:")) as connection:
        connection.execute("update customers set age = age + 1 where id = 'C0007'")
    connection.close()
    assert "party-0: its data has changed since the run that was in runs/job" in ran("run", "job.toml").output


@pytest.mark.parametrize("memory", ["4GB", "100MB"])
def test_a_server_that_is_killed_is_one_line_and_leaves_nothing(memory: str, tmp_path: Path) -> None:
    from tests import servers

    with servers.postgres() as server:
        columns = ", ".join(f"random() as x{k}" for k in range(20))
        # the last rows take longer than anybody waits, so that the server dies in the middle; a count of rows
        # does not call what is stable
        server.sql(
            "create function late(g int) returns boolean language plpgsql stable as $$ begin if g > 150000 "
            "then perform pg_sleep(60); end if; return false; end $$"
        )
        server.sql(
            f"create table many as select g, g % 2 as y, {columns} from generate_series(1, 200000) g; "
            "create view long as select *, late(g) from many"
        )
        server.sql("grant select on long to bank")
        Path("job.toml").write_text(
            f'algorithm = "lbfgs"\n[data]\ntrain = "{server.address("long")}"\nparties = 2\nlabel = "y"\n'
            f'memory = "{memory}"\n',
            "utf-8",
        )
        command = [sys.executable, "-m", "colonnade", "run", "job.toml"]
        environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
        (tmp_path / "tmp").mkdir()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            copying = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
            while "1" not in server.sql(copying).split()[2]:
                assert process.poll() is None
            os.killpg(server.process.pid, signal.SIGKILL)
            _, said = process.communicate(timeout=60)
    assert process.returncode == 2, said
    lines = [line for line in said.splitlines() if line.startswith("colonnade:")]
    assert len(lines) == 1
    assert server.address("long") in lines[0]
    assert "Traceback" not in said
    assert not Path("runs").exists()
    assert list((tmp_path / "tmp").iterdir()) == []
