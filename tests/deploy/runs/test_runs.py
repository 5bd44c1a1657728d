"""Runs between daemons: from files to a model and scores, and every way a run is refused or ends early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.companies import NAMES, connected, job, lay_out, running, settle, settled, together
from tests.deploy.consortium import write_csv
from tests.deploy.joined import ids_of, join, pooled
from tests.patience import until

from colonnade.deploy.books.journal import Comparison, read_journal
from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.negotiate import proposals
from colonnade.deploy.runs import answering, proposing
from colonnade.deploy.session.session import Event
from colonnade.errors import (
    Aborted,
    ChangedIds,
    ColonnadeError,
    DataError,
    EmptyIntersection,
    JobError,
    PeerUnreachable,
)
from colonnade.job import Job
from colonnade.run.resolve import Composition, compose

ACCEPT = 'accept = ["labels", "scores", "two-parties", "similarity", "outputs"]\n'


def models(daemon: Daemon) -> Path:
    return daemon.settings.state / "models"


def files(root: Path) -> dict[str, Path]:
    return {name: root / name / "customers.csv" for name in NAMES}


async def scores_of(daemon: Daemon, ids: list[str], data: str | None = None) -> Any:
    return await verbs._predict(daemon, commands.PredictRequest("repaid", [ids], data), lambda event: None)


def test_a_party_that_reads_for_long_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it still reads, more often than patience ends."""
    considered = proposals.consider

    async def slowly(*given: Any) -> Any:
        await asyncio.sleep(3.0)
        return await considered(*given)

    monkeypatch.setattr(answering, "consider", slowly)
    monkeypatch.setattr(answering, "READING_S", 0.2)
    monkeypatch.setattr(proposing, "ANSWER_S", 2.5)
    seen: list[Event] = []

    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(job(train={"epochs": 1, "batch": 32}), seen.append)
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        return manifest

    assert together(lay_out(tmp_path), program).rows["common"]
    assert {"shop still reads its data", "telecom still reads its data"} <= {event.what for event in seen}


def test_four_files_to_a_model_that_equals_the_pooled_one(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    terms = job(split={"test": 0.25, "validation": 0.1}, train={"epochs": 40, "batch": 32, "l2": 1e-2})
    seen: list[Event] = []

    async def program(daemons: dict[str, Daemon]) -> tuple[Any, Any]:
        manifest = await daemons["bank"].train(terms, seen.append)
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        applicants = ids_of(tmp_path / "bank" / "applicants.csv", "id")
        return manifest, await scores_of(daemons["bank"], [*applicants[:20], "C99999"], "applicants")

    manifest, found = together(consortium, program)
    expected = join(files(tmp_path), "id", terms)
    assert manifest.rows["common"] == len(expected.ids)
    assert manifest.alignment == expected.digest  # the same rows, in the same order
    pooled_metrics, _ = pooled(files(tmp_path), "id", ("bank", "repaid"), terms, expected)
    assert abs(manifest.metrics["objective"] - pooled_metrics["objective"]) < 1e-3
    assert abs(manifest.metrics["test_auc"] - pooled_metrics["test_auc"]) < 5e-3
    assert "validation_accuracy" in manifest.metrics
    for name in NAMES:
        share = stored_shares.load(tmp_path / name / "runs" / "models", "repaid")
        assert share.manifest.alignment == expected.digest
        assert (share.manifest.labels is not None) == (name == "bank")
        assert bool(share.manifest.metrics) == (name == "bank")
    assert {event.what for event in seen} >= {"asking", "aligning", "aligned", "training"}
    assert any(event.loss is not None for event in seen)
    assert [row is None for row in found["rows"]] == [False] * 20 + [True]
    assert found["rows"][0]["label"] in ("yes", "no")
    _scores_are_those_of_the_joined_rows(tmp_path, found)


def test_versions_that_differ_in_the_last_number_train_together(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, ("bank", "shop"))

    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(job(("bank", "shop")))
        await settled(daemons["shop"])
        return manifest

    manifest = together(consortium, program, bank="0.1.0", shop="0.1.7")
    assert manifest.metrics["test_auc"] > 0.8


def test_a_job_is_checked_once_at_every_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the terms make is kept for the whole run; a stored share's were checked when it was trained."""
    consortium, terms, ids = lay_out(tmp_path), job(), ids_of(tmp_path / "bank" / "applicants.csv", "id")
    composed: list[Job] = []

    def counted(asked: Job) -> Composition:
        composed.append(asked)
        return compose(asked)

    monkeypatch.setattr("colonnade.deploy.terms.contract.compose", counted)

    async def program(daemons: dict[str, Daemon]) -> tuple[int, int]:
        await daemons["bank"].train(terms)
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        trained = len(composed)
        await scores_of(daemons["bank"], ids[:20], "applicants")
        return trained, len(composed) - trained

    assert together(consortium, program) == (len(NAMES), 0)


def _scores_are_those_of_the_joined_rows(root: Path, found: Any) -> None:
    """Every party's share applied to its own columns, added up in one place."""
    wanted = ids_of(root / "bank" / "applicants.csv", "id")[:20]
    total = np.zeros(20)
    from colonnade.data.read.files import load

    for name in NAMES:
        share = stored_shares.load(root / name / "runs" / "models", "repaid")
        raw = load(root / name / "applicants.csv", id="id")
        assert raw.ids is not None
        place = {each: k for k, each in enumerate(raw.ids)}
        table = share.preparation.transform(raw.take(np.array([place[each] for each in wanted])))
        total += table.X @ share.arrays["w"]
    assert np.allclose([row["score"] for row in found["rows"][:20]], total, atol=1e-8)


@pytest.mark.parametrize("algorithm", ["vfb-saga", "asysqn-sgd", "fdskl-capped"])
def test_other_algorithms_train_and_score(tmp_path: Path, algorithm: str) -> None:
    """Those that know the label everywhere have it in every file."""
    names = ("bank", "shop")
    everywhere = algorithm.startswith("asysqn")
    consortium = lay_out(tmp_path, names)
    parties = {name: {"data": "customers", "label": everywhere or name == "bank"} for name in names}
    if everywhere:
        label = dict(
            zip(
                ids_of(tmp_path / "bank/customers.csv", "id"),
                _column(tmp_path / "bank/customers.csv", "repaid"),
                strict=True,
            )
        )
        path = tmp_path / "shop" / "customers.csv"
        held = [
            (i, v) for i, v in zip(ids_of(path, "id"), _column(path, "visits"), strict=True) if i in label
        ]
        write_csv(
            path,
            [i for i, _ in held],
            {"visits": [v for _, v in held], "repaid": [label[i] for i, _ in held]},
        )
        text = (
            consortium.config("shop").read_text().replace('id = "id"\n', 'id = "id"\nlabel = "repaid"\n', 1)
        )
        consortium.config("shop").write_text(text)

    async def program(daemons: dict[str, Daemon]) -> Any:
        terms = job(names, algorithm=algorithm, parties=parties, train={"epochs": 4, "batch": 32, "l2": 1e-3})
        manifest = await daemons["shop"].train(terms)
        await settled(daemons["bank"])
        asked = await scores_of(daemons["bank"], ids_of(tmp_path / "bank/applicants.csv", "id"), "applicants")
        return manifest, asked

    _, found = together(consortium, program)
    assert all(np.isfinite(row["score"]) for row in found["rows"])


def _column(path: Path, name: str) -> list[str]:
    return ids_of(path, name)


# -- runs that end early --------------------------------------------------------------------------------


def test_too_few_common_rows_and_changed_ids(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ACCEPT + "min_rows = 5000")

    async def few(daemons: dict[str, Daemon]) -> None:
        with pytest.raises(EmptyIntersection, match=r"brings .* ids, 5000 common ones are demanded"):
            await daemons["bank"].train(job())
        await settled(daemons["shop"])
        assert "5000 common ones are demanded" in "; ".join(daemons["shop"].journal.latest)

    together(consortium, few)
    for name in consortium.names:
        settle(consortium, name, ACCEPT + 'min_rows = 20\nchanged = "accept"')

    async def twice(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job())
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        path = tmp_path / "shop" / "customers.csv"
        path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")  # one customer less
        with pytest.raises((ChangedIds, Aborted), match="shop brings other ids than the time before"):
            await daemons["bank"].train(job())
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        accepted = await daemons["bank"].train(job(align={"changed": "accept"}))
        assert accepted.metrics

    together(consortium, twice)


def test_rows_are_forgotten_by_several_at_once_and_the_journal_counts_them(tmp_path: Path) -> None:
    """Fewer than the shop's limit end the run before any id is compared; the bank does not hear how many."""
    consortium = lay_out(tmp_path)
    for name in consortium.names:
        more = "[limits]\nforgotten_ids = 5\n" if name == "shop" else ""
        settle(consortium, name, ACCEPT + 'min_rows = 20\nchanged = "accept"', more)
    path = tmp_path / "shop" / "customers.csv"
    terms = job(align={"changed": "accept"})

    def left_out(rows: Sequence[str]) -> None:
        head, *lines = everybody
        path.write_text("\n".join([head, *(line for line in lines if line.split(",")[0] not in rows)]) + "\n")

    async def program(daemons: dict[str, Daemon]) -> str:
        async def ended() -> None:
            for daemon in daemons.values():
                await settled(daemon)

        await daemons["bank"].train(terms)
        await ended()
        left_out(trained[:4])
        with pytest.raises(ColonnadeError) as told:
            await daemons["bank"].train(terms)
        await ended()
        assert "4 rows of the last model left the table" in "; ".join(daemons["shop"].journal.latest)
        left_out(trained[:5])
        await daemons["bank"].train(terms)
        await ended()
        return str(told.value)

    everybody = path.read_text().splitlines()
    trained = sorted(set.intersection(*(set(ids_of(each, "id")) for each in files(tmp_path).values())))
    told = together(consortium, program)
    assert "its data cannot be used" in told
    assert "4 rows" not in told
    kept = tmp_path / "shop" / "runs" / "memory" / "customers.rows"
    assert kept.stat().st_size == 8 * (len(trained) - 5)
    assert kept.stat().st_mode & 0o077 == 0
    assert not (tmp_path / "bank" / "runs" / "memory" / "customers.rows").exists()
    written, _ = read_journal(tmp_path / "shop" / "runs" / "journal.jsonl")
    compared = [each for each in written if isinstance(each, Comparison) and each.peer == "bank"]
    assert [each.forgotten for each in compared] == [0, 5]


def scores_by_visits(
    applicants: Path, ids: list[str], visits: Sequence[str], *, separator: str = ","
) -> Callable[[dict[str, Daemon]], Awaitable[list[list[float]]]]:
    """Trains, then scores the same applicants once for every way to write the shop's only column."""

    def write(each: str) -> None:
        rows = [separator.join(row) for row in [("id", "visits"), *((one, each) for one in ids)]]
        applicants.write_text("\n".join(rows) + "\n")

    async def program(daemons: dict[str, Daemon]) -> list[list[float]]:
        await daemons["bank"].train(job())
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        found = []
        for each in visits:
            write(each)
            scored = await scores_of(daemons["bank"], ids, "applicants")
            found.append([row["score"] for row in scored["rows"]])
        return found

    return program


def test_numbers_of_new_rows_mean_what_they_meant_in_training(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    customers, applicants = (tmp_path / "shop" / f"{name}.csv" for name in ("customers", "applicants"))
    customers.write_text(customers.read_text().replace(",", ";").replace(".", ","))
    ids = ids_of(applicants, "id")

    visits = ("1,234", "1.2340")  # the first may be a thousand, the second may not
    one, other = together(consortium, scores_by_visits(applicants, ids, visits, separator=";"))
    assert one == pytest.approx(other, abs=1e-9)


def test_a_party_whose_columns_teach_nothing_takes_part_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    consortium = lay_out(tmp_path)
    customers = tmp_path / "shop" / "customers.csv"
    customers.write_text("\n".join(["id,visits", *(f"{one},3" for one in ids_of(customers, "id"))]) + "\n")
    applicants = ids_of(tmp_path / "shop" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> Any:
        await daemons["bank"].train(job())
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        share = stored_shares.load(models(daemons["shop"]), "repaid")
        return share.arrays["w"], await scores_of(daemons["bank"], applicants, "applicants")

    weights, scored = together(consortium, program)
    assert not weights.any()
    assert len({row["score"] for row in scored["rows"]}) > 1
    assert "every column (visits) is constant in the training rows" in caplog.text


def test_dates_of_new_rows_are_read_as_those_of_training_were(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    customers, applicants = (tmp_path / "shop" / f"{name}.csv" for name in ("customers", "applicants"))
    known, new = ids_of(customers, "id"), ids_of(applicants, "id")
    days = np.datetime64("2020-01-01") + np.arange(len(known)) % 300
    lines = [f"{one},{str(day).replace('-', '')}" for one, day in zip(known, days, strict=True)]
    customers.write_text("\n".join(["id,visits", *lines]) + "\n")

    days_written = ("20200413", "2020-04-13")  # one number alone could be anything
    one, other = together(consortium, scores_by_visits(applicants, new, days_written))
    assert one == pytest.approx(other, abs=1e-9)


def test_stopping_at_one_party_ends_the_run_at_all(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        long = job(train={"epochs": 9000, "batch": 32, "l2": 1e-3, "tolerance": 0.0})
        proposed = asyncio.ensure_future(daemons["bank"].train(long))
        await until(lambda: any(run.state == "running" for run in daemons["telecom"].runs.values()))
        await asyncio.sleep(1.0)
        await daemons["telecom"].close()  # what its operator's Ctrl-C does
        with pytest.raises(ColonnadeError) as told:
            await asyncio.wait_for(proposed, 60)
        await settled(daemons["shop"])
        return [str(told.value), "; ".join(daemons["shop"].journal.latest)]

    for text in together(consortium, program):
        assert "telecom" in text
        assert "stopped by its operator" in text or "away" in text


def test_a_daemon_that_was_restarted_is_met_again(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def main() -> Any:
        from colonnade.deploy.settings import read_settings

        async with running(consortium) as daemons:
            await daemons["shop"].close()
            daemons["shop"] = Daemon(read_settings(consortium.config("shop")))
            await daemons["shop"].open()
            await connected(daemons)
            return await daemons["shop"].train(job())

    assert asyncio.run(main()).metrics == {}  # the shop holds no label, so it knows no metrics


@pytest.mark.parametrize("algorithm", ["vfb2-svrg", "asyrevel-gau"])
def test_scoring_while_a_party_is_away(tmp_path: Path, algorithm: str) -> None:
    consortium = lay_out(tmp_path, shop=ACCEPT + "min_rows = 20\ndegraded = true")

    async def program(daemons: dict[str, Daemon]) -> tuple[Any, Any, str]:
        await daemons["bank"].train(job(name="strict"))
        await daemons["bank"].train(job(algorithm=algorithm, use={"degraded": True}))
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        applicants = ids_of(tmp_path / "bank" / "applicants.csv", "id")
        whole = await scores_of(daemons["bank"], applicants, "applicants")
        with pytest.raises(JobError, match="holds no label"):
            await scores_of(daemons["shop"], applicants, "applicants")
        with pytest.raises(DataError, match="none of the ids to score is in it"):
            await scores_of(daemons["bank"], ["C99999"], "applicants")
        await daemons["telecom"].close()
        await until(lambda: all("telecom" not in daemons[n].peers.controls for n in ("bank", "shop")))
        part = await scores_of(daemons["bank"], applicants, "applicants")
        with pytest.raises(PeerUnreachable) as told:
            await verbs._predict(
                daemons["bank"], commands.PredictRequest("strict", [applicants], "applicants"), lambda e: None
            )
        return whole, part, str(told.value)

    whole, part, told = together(consortium, program)
    assert whole["degraded"] == []
    assert part["degraded"] == ["telecom"]
    one, other = ([row["score"] for row in found["rows"]] for found in (whole, part))
    assert 0.5 < np.corrcoef(one, other)[0, 1] < 0.999  # close to, and not, the whole model
    assert "telecom is away" in told
    assert "needs all its parties" in told
