"""Kill -9 between companies: their trainings go on to the weights of a run that nobody disturbed.

For every conversation three daemons train a model. Once every company has a checkpoint all daemons are killed
and what they have on disk is copied: from there one run goes on alone, and says what is expected. Then the
same run goes on from the copy again and again, and each time something is struck down:

    process     the process in which a company trains
    daemon      a company's daemon, which is started again at once
    proposer    the daemon of the company that proposed the run
    storing     a company's daemon, as soon as its share is written and does not count yet
    away        a company's daemon, which stays away for a while
    aligning    a process or a daemon of a new run, while common rows are being found

The moments are drawn from the time that the undisturbed run took. A new run has secrets of its own where a
conversation has any; there is nothing then that its weights could equal, and they have to be finite.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from colonnade.arrays import Arrays
from colonnade.deploy.terms.contract import check_terms
from colonnade.deploy.terms.terms import Terms
from colonnade_bench.faults.cases import BLIND, CLEAR, Case, Fate
from colonnade_bench.faults.companies import NAMES, Companies, wait_for

CASES = (
    Case("vfb-saga", sections={"secure": CLEAR}),
    Case("vfb-sgd", sections={"secure": CLEAR, "train": {"direction": "lbfgs"}}),
    Case("fd-svrg"),
    Case("lbfgs", sections={"secure": CLEAR}),
    Case("vfb2-sgd", sections={"secure": BLIND, "train": {"ahead": 1}}),
    Case("fdskl", sections={"train": {"epochs": 10}}),
    Case("secureboost", sections={"secure": CLEAR}),
    Case("secureboost", sections={"secure": BLIND}),
    Case("boosted-sum", sections={"secure": CLEAR}),
    Case("split"),
    Case("synrevel-gau"),
    Case("czofo", exact=False),
    Case("c-vfl"),
    Case("vfb-saga", sections={"secure": CLEAR, "privacy": {"mechanism": "labels", "epsilon": 2.0}}),
    Case("split", sections={"privacy": {"mechanism": "gradient", "epsilon": 4.0}}),
    Case("synrevel-gau", exact=False, sections={"privacy": {"mechanism": "scalar", "epsilon": 4.0}}),
)
LABELS_EVERYWHERE = ("fd-svrg",)
STRIKES = ("process", "daemon", "proposer", "storing", "away", "aligning")
AWAY_S = 15.0
WAIT_S = 90.0  # how long the job lets a company be away


@dataclass
class Struck(Fate):
    """What became of one run between daemons, of which one, or a process of it, was to be struck down."""

    strike: str = ""  # one of `STRIKES`
    cuts: list[str] = field(default_factory=list)  # why, as the companies' journals say it
    seconds: float = 0.0  # from the strike to the end of the run


@dataclass
class Scene:
    """A case between daemons: where its runs begin again, how they end, and how long that takes."""

    case: Case
    companies: Companies
    saved: Path
    terms: Terms
    model: str = ""
    expected: dict[str, Arrays] = field(default_factory=dict)
    align_s: float = 0.0  # from the beginning of a run until all know the common rows
    life_s: float = 0.0  # from the first process of a training that goes on to its end


def strike_runs(
    say: Callable[[str], None],
    cases: Iterable[Case] = CASES,
    strikes: Iterable[str] = STRIKES,
    *,
    seed: int = 0,
) -> list[Struck]:
    """Strike every case in every way; says a line for each case, and one for each run that ends wrong."""
    found, rng = list[Struck](), np.random.default_rng([seed, 0xDAE])
    for number, case in enumerate(cases):
        with tempfile.TemporaryDirectory(prefix="colonnade-daemons-") as name:
            folder = Path(name)
            with Companies(folder / "parties") as companies:
                scene = _left_alone(case, companies, folder / "saved")
                mine = [
                    _surely_struck(scene, strike, NAMES[1 + (number + turn) % 2], rng)
                    for turn, strike in enumerate(strikes)
                ]
        for each in mine:
            if each.outcome != "equal":
                say(f"  {case.name}, {each.strike} of {each.party}: {each.outcome}")
        slowest = max((each.seconds for each in mine if each.strike != "away"), default=0.0)
        struck, equal = sum(each.struck for each in mine), sum(each.outcome == "equal" for each in mine)
        say(f"{case.name}: {struck} of {len(mine)} struck, {equal} equal, at most {slowest:.1f} s later")
        found += mine
    return found


def terms_of(case: Case) -> Terms:
    """The job of a case between companies, with a checkpoint after every epoch."""
    train = {"epochs": 40, "loss": "logistic", **case.sections.get("train", {})}
    if case.algorithm not in ("lbfgs", "secureboost", "boosted-sum"):
        train = {"batch": 16, "step": 0.1, **train}
    all_know = case.algorithm in LABELS_EVERYWHERE
    plain = {
        "name": "repaid",
        "algorithm": case.algorithm,
        "parties": {
            name: {"data": "labelled" if all_know else "customers", "label": all_know or name == NAMES[0]}
            for name in NAMES
        },
        "network": {"deadline_s": 30.0},
        "checkpoint": {"every": "epoch", "wait_s": WAIT_S},
        **case.sections,
        "train": train,
    }
    terms = msgspec.convert(plain, Terms)
    check_terms(terms, "job")
    return terms


def _left_alone(case: Case, companies: Companies, saved: Path) -> Scene:
    """A case whose run nobody disturbs but by killing all daemons at once, when all have a checkpoint."""
    scene = Scene(case, companies, saved, terms_of(case))
    begun = time.monotonic()
    companies.propose(scene.terms)
    _expect(companies, lambda: companies.all_have("unfinished/*/aligned.npz"), "alignment")
    scene.align_s = time.monotonic() - begun
    _expect(companies, lambda: companies.all_have("unfinished/*/checkpoints/*.gate"), "a checkpoint")
    companies.kill(*NAMES)
    (run,) = {path.name for path in companies.files("bank", "unfinished/*")}
    scene.model = f"{scene.terms.name}-{run}"
    companies.save(saved)
    companies.start(*NAMES)
    _expect(companies, lambda: any(map(companies.worker, NAMES)), "a process")
    begun = time.monotonic()
    _expect(companies, companies.over, "the end")
    scene.life_s = time.monotonic() - begun
    scene.expected = companies.weights(scene.model)
    if len(scene.expected) < len(NAMES):
        raise RuntimeError(f"{case.name} does not go on: {companies.last_words()}")
    return scene


def _expect(companies: Companies, true: Callable[[], bool], what: str) -> None:
    if not wait_for(true):
        raise RuntimeError(f"there is never {what}: {companies.last_words()}")


def _surely_struck(scene: Scene, strike: str, party: str, rng: np.random.Generator) -> Struck:
    """One run in which something is struck down, earlier if it was over before that."""
    for latest in (0.9, 0.5, 0.2):
        found = _struck(scene, strike, party, float(rng.uniform(0, latest)))
        if found.struck or found.outcome != "equal":
            break
    return found


def _struck(scene: Scene, strike: str, party: str, moment: float) -> Struck:
    """One run in which something is struck down at a moment of its life, from 0 to 1."""
    companies, anew = scene.companies, strike == "aligning"
    party = NAMES[0] if strike == "proposer" else party
    result = Struck(scene.case.name, party, strike=strike)
    companies.restore(scene.saved)
    model = scene.model
    if anew:
        _expect(companies, companies.over, "the end")
        before, known = len(companies.cuts()), set(companies.files(party, "unfinished/*"))
        companies.propose(scene.terms)
        _expect(companies, lambda: bool(set(companies.files(party, "unfinished/*")) - known), "a new run")
        (new,) = set(companies.files(party, "unfinished/*")) - known
        model = f"{scene.terms.name}-{new.name}"
    else:
        before = len(companies.cuts())
    result.struck = _strike(scene, strike, party, moment, model)
    begun = time.monotonic()
    if not wait_for(companies.over):
        result.outcome = f"hangs: {companies.last_words()}"
    else:
        result.seconds = time.monotonic() - begun
        found = companies.weights(model)
        result.outcome = _difference(scene, found, anew=anew) or "equal"
        if len(found) < len(NAMES):
            result.outcome += f": {companies.last_words()}"
    result.cuts = companies.cuts()[before:]
    return result


def _strike(scene: Scene, strike: str, party: str, moment: float, model: str) -> bool:
    """Strike at a moment of the run; False if the run was over before it."""
    companies = scene.companies
    if strike == "storing":
        drafted = (f"models/.{model}.part/manifest.json", f"models/{model}")
        wait_for(lambda: any(companies.files(party, each) for each in drafted), look_s=0.001)
    elif strike == "aligning":
        time.sleep(moment * scene.align_s)
    else:
        wait_for(lambda: bool(companies.worker(party)) or companies.over())
        time.sleep(moment * scene.life_s)
    if companies.over():
        return False
    if strike == "process" or (strike == "aligning" and party == NAMES[1]):
        return companies.kill_worker(party)
    companies.kill(party)
    time.sleep(AWAY_S if strike == "away" else 0.5)
    companies.start(party)
    return True


def _difference(scene: Scene, found: dict[str, Arrays], *, anew: bool) -> str:
    """In what shares differ from those of the run that nobody disturbed."""
    case = scene.case
    secret = case.blind or case.private or case.algorithm.startswith("fdskl")
    for name, arrays in scene.expected.items():
        if name not in found:
            return f"{name} has no share"
        for key, array in arrays.items():
            told = found[name].get(key, np.empty(0))
            if not case.exact or (anew and secret):
                alike = array.shape == told.shape and bool(np.isfinite(told).all())
            elif case.blind and "w" in arrays and name != NAMES[0]:
                alike = np.allclose(array, told, atol=1e-5)  # owners have random low bits
            else:
                alike = np.array_equal(array, told)
            if not alike:
                return f"{name} has another {key}"
    return ""
