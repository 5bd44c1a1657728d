"""What a training will cost is said before: rehearsed bytes and rounds are those of the run itself."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.deploy import companies
from tests.deploy.runs.test_resuming import anew, has_gates
from tests.patience import until

from colonnade.deploy.books.journal import Ended, read_journal
from colonnade.deploy.books.spent import total
from colonnade.deploy.daemon import operators, proposal_views
from colonnade.deploy.process.estimating import Estimate, estimated, requested
from colonnade.deploy.programs import rehearsal, training
from colonnade.deploy.settings import read_settings
from colonnade.deploy.terms.contract import check_terms
from colonnade.deploy.terms.paced import paced
from colonnade.errors import JobError, Refused

SHORT: dict[str, Any] = {"train": {"epochs": 4, "batch": 32, "l2": 1e-3, "tolerance": 0.0}}
TWO: dict[str, Any] = {"algorithm": "lbfgs", "train": {"epochs": 4, "l2": 1e-3, "tolerance": 0.0}}


@pytest.mark.parametrize(
    ("names", "changes"),
    [
        (companies.NAMES, {**SHORT, "secure": {"labels": "clear"}}),
        (companies.NAMES, {**SHORT, "secure": {"labels": "blind"}}),
        (companies.NAMES[:2], {**TWO, "secure": {"labels": "blind", "reveal": "never"}}),
        (
            companies.NAMES,
            {
                "algorithm": "secureboost",
                "train": {"epochs": 3},
                "trees": {"bits": 6},
                "secure": {"labels": "blind"},
            },
        ),
    ],
)
def test_bytes_and_rounds_are_those_of_the_run(tmp_path: Path, names: Any, changes: dict[str, Any]) -> None:
    consortium, terms = companies.lay_out(tmp_path, names), companies.job(names, **changes)

    async def program(daemons: Any) -> tuple[Estimate, Any]:
        said = await daemons["bank"].proposing.estimate(terms)
        manifest = await daemons["bank"].train(terms)
        for daemon in daemons.values():
            await companies.settled(daemon)
        return said, manifest

    said, manifest = companies.together(consortium, program)
    sent, ids = 0, manifest.rows["common"] / said.rows  # the estimate is for all rows in common
    for name in names:
        written, _ = read_journal(consortium.folder(name) / "runs" / "journal.jsonl")
        ended = [each for each in written if isinstance(each, Ended)]
        sent += total(ended[0].sent)
    assert said.passes == terms.train.epochs
    made = training.describe(consortium.folder("bank") / "runs", manifest)["rounds"]
    assert made is not None
    batches = ids if terms.train.batch else 1.0  # each of a few rows, or one of all
    assert 0.7 < batches * said.rounds / made < 1.3
    assert 0.7 < ids * said.bytes / sent < 1.3


def test_who_is_asked_sees_the_cost_before_it_approves(tmp_path: Path) -> None:
    ask = 'accept = ["labels", "scores", "two-parties"]\nmin_rows = 20\napproval = "ask"'
    consortium = companies.lay_out(tmp_path, shop=ask)

    async def main() -> Estimate:
        async with companies.running(consortium, apart=True) as daemons:
            training = asyncio.ensure_future(daemons["bank"].train(companies.job(**SHORT)))
            shop = daemons["shop"]
            await until(lambda: bool(shop.approvals.estimates))
            (shown,) = proposal_views.proposals(shop)
            assert shown.estimate is not None
            assert "rounds" in shown.cost
            await operators.refuse(shop, shown.run, companies.ADA)
            with pytest.raises(Refused, match="declined"):
                await training
            return shown.estimate

    found = asyncio.run(main())
    assert found.passes == 4
    assert found.bytes > 10_000
    assert found.rows <= companies.ROWS


def test_a_rehearsal_need_not_learn_anything(tmp_path: Path) -> None:
    """With steps that are too long for the made-up rows the figures are the same; a run would say so."""
    settings = read_settings(companies.lay_out(tmp_path).config("bank"))
    model = {"kind": "mlp", "outputs": 4, "server": {"kind": "linear"}}
    said = []
    for step in (0.01, 3.0):
        terms = companies.job(algorithm="split", model=model, train={"epochs": 2, "batch": 32, "step": step})
        said.append(rehearsal._estimate(requested(settings, terms, (300, 2), None, 0.0), 0.0))
    assert said[0].bytes == pytest.approx(said[1].bytes, rel=0.01)
    assert said[0].rounds == said[1].rounds > 0


def test_a_busy_machine_is_slow_for_the_training_as_for_the_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read_settings(companies.lay_out(tmp_path).config("bank"))
    request = requested(settings, companies.job(secure={"labels": "clear"}, **SHORT), (300, 2), None, 0.0)
    found = {}
    for share in (1.0, 0.2):  # of a processor, while it rehearses
        clocks = {"perf_counter": iter([0.0, 1.0 / share]), "process_time": iter([0.0, 1.0])}
        times = {name: partial(next, ticks) for name, ticks in clocks.items()}
        monkeypatch.setattr(rehearsal, "time", SimpleNamespace(**times))
        said = rehearsal._estimate(request, 100.0)
        found[share] = said.seconds - said.waiting_s
    assert 100 < found[1.0] < 120
    assert 500 < found[0.2] < 600


def test_a_job_that_cannot_be_rehearsed_says_why(tmp_path: Path) -> None:
    consortium = companies.lay_out(tmp_path)
    terms = companies.job(
        algorithm="asyrevel-gau",
        model={"kind": "function", "name": "mine", "outputs": 1},
        train={"epochs": 2},
    )

    async def program(daemons: Any) -> None:
        settings = daemons["bank"].settings
        with pytest.raises(JobError, match="no estimate"):
            await estimated(requested(settings, terms, (300, 2), None, 0.0))

    companies.together(consortium, program)


def test_round_trips_are_measured_and_not_asked_of_version_2(tmp_path: Path) -> None:
    consortium = companies.lay_out(tmp_path)

    async def program(daemons: Any) -> None:
        bank = daemons["bank"].peers
        await until(lambda: bank.round_trip("telecom") is not None)
        assert 0 < bank.round_trip("telecom") < 5
        await asyncio.sleep(0.5)
        assert bank.round_trip("shop") is None
        assert bank.slowest(("bank", "shop", "telecom")) == bank.round_trip("telecom")

    companies.together(consortium, program, shop="0.2.0")


def test_a_run_over_a_slow_line_is_paced_and_goes_on_with_its_numbers(tmp_path: Path) -> None:
    """The proposer's daemon says what it chose; all train with it, also after the line has become fast and
    one of them was started again."""
    consortium = companies.lay_out(tmp_path)
    terms = companies.job(
        train={"epochs": 40, "l2": 1e-3, "tolerance": 0.0},
        checkpoint={"every": "epoch", "wait_s": 60.0},
        secure={"labels": "clear"},
    )

    async def program(daemons: Any) -> None:
        bank, said = daemons["bank"], list[str]()
        await until(lambda: bank.peers.slowest(companies.NAMES) > 0)
        for peer in ("shop", "telecom"):
            bank.peers.echoes[peer] = deque([0.2])
        going = asyncio.ensure_future(bank.train(terms, lambda event: said.append(event.what)))
        await until(lambda: bool(daemons["shop"].runs))
        (run,) = daemons["shop"].runs
        await until(lambda: has_gates(daemons["shop"], run))
        await daemons["shop"].close()
        for peer in ("shop", "telecom"):
            bank.peers.echoes[peer] = deque([1e-4])
        await anew(consortium, daemons, "shop")
        manifest = await going
        for daemon in daemons.values():
            await companies.settled(daemon)
        assert any(each.startswith("lines of 200 ms there and back: batches of") for each in said), said
        for name, daemon in daemons.items():
            its = daemon.serving.find(manifest.model).terms.train
            assert (its.batch, its.ahead) == (manifest.terms.train.batch, 2), name
        assert f"batches of {manifest.terms.train.batch} rows, 2 under way" in "; ".join(said)

    companies.together(consortium, program)


def test_batches_follow_the_round_trip_where_the_job_leaves_them_open() -> None:
    open_: dict[str, Any] = {"train": {"epochs": 4, "l2": 1e-3}}
    contract = check_terms(companies.job(secure={"labels": "blind"}, **open_), "job")
    same, nothing = paced(contract, 19_200, 0.0005)
    assert same is contract.terms
    assert not nothing
    near, far = (paced(contract, 19_200, trip)[0].train for trip in (0.02, 0.04))
    assert (near.batch, near.ahead) == (768, 2)
    assert (far.batch, far.ahead) == (960, 2)
    given = check_terms(companies.job(secure={"labels": "blind"}), "job")
    assert paced(given, 19_200, 0.04)[0] is given.terms
    full = check_terms(
        companies.job(algorithm="lbfgs", train={"epochs": 4}, secure={"labels": "blind"}), "job"
    )
    assert paced(full, 19_200, 0.04)[0] is full.terms
