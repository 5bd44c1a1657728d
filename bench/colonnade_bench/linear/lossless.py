"""Losslessness (VFB2 Table 2, AsySQN Table 4): the federated model is as accurate as the pooled one.

NonF is the pooled optimum; where there is none, it is the first of our algorithms at a single party, with
the same step and as many epochs. AFSVRG-VP trains only the blocks of those parties that hold labels, half of
them. Every trial splits the columns anew, and the rows too where the set has no test file of its own. What a
trial gave stays in OUT/trials, since all of them take hours.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

from colonnade_bench.common import Bench, Grid, Say, kept
from colonnade_bench.linear.trials import ENDLESS, PARTIES, Trace, problem, train
from colonnade_bench.papers import WORDS, Here, stands_for

LIMIT = 0.1  # points of accuracy


@dataclass(frozen=True)
class TrialTerms:
    """How long a set is trained: until the target, or so many epochs."""

    target: float
    vfb2: Mapping[str, Any]
    asysqn: Mapping[str, Any]


WORDY = TrialTerms(1e-5, {"batch": 64, "epochs": 20}, {"batch": 128, "epochs": 20})
LARGE = TrialTerms(1e-5, {"batch": 512, "epochs": 10}, {"batch": 1024, "epochs": 10})  # untried: not here yet
USUAL = TrialTerms(2e-5, {"batch": 64, "epochs": 40}, {"batch": 256, "epochs": 40})
TERMS = {
    "uci-credit": TrialTerms(2e-5, {"batch": 32, "epochs": 60}, {"batch": 256, "epochs": 40}),
    "givemesomecredit": TrialTerms(2e-5, {"batch": 128, "epochs": 20}, {"batch": 512, "epochs": 20}),
    "news20-binary": WORDY,
    "news20.binary": WORDY,
    "rcv1": WORDY,
    "webspam": LARGE,
    "epsilon": LARGE,
    "covtype": LARGE,
    "mnist": TrialTerms(2e-5, {"batch": 128, "epochs": 20}, {"batch": 512, "epochs": 20}),
    "phishing": TrialTerms(5e-6, {"batch": 32, "epochs": 60}, {"batch": 128, "epochs": 40}),
    "cod-rna": TrialTerms(1e-6, {"batch": 256, "epochs": 20}, {"batch": 512, "epochs": 20}),
}


@dataclass(frozen=True)
class Trial:
    """One algorithm on one split of a set."""

    name: str
    algorithm: str
    regularizer: str
    seed: int
    step: float | Literal["auto"] = "auto"
    parties: int = PARTIES

    @property
    def terms(self) -> TrialTerms:
        return TERMS.get(self.name, USUAL)

    @property
    def settings(self) -> dict[str, Any]:
        """The [train] section."""
        own = self.terms.vfb2 if self.algorithm.startswith("vfb2") else self.terms.asysqn
        half = {"labels_at": 4, "epochs": 10} if self.algorithm == "afsvrg-vp" else {}
        return {**own, "regularizer": self.regularizer, "step": self.step, **half}

    def trace(self, world: str, **sections: Any) -> Trace:
        """Train until the target, or for all epochs where the problem has no minimum."""
        data = problem(self.name, q=self.parties, seed=self.seed)
        endless = (self.name, self.regularizer) in ENDLESS
        target = None if endless else self.terms.target
        return train(
            data,
            self.algorithm,
            seed=self.seed,
            world=world,
            target=target,
            train=self.settings,
            **sections,
        )

    @property
    def question(self) -> dict[str, Any]:
        """All that its answer depends on."""
        return {**asdict(self), "settings": self.settings, "target": self.terms.target}

    def run(self) -> Ended:
        """Train in the local world."""
        trace = self.trace("local")
        step = next(iter(trace.shares.values())).step
        return Ended(100 * trace.metrics["test_accuracy"], trace.gaps[-1], step)


@dataclass(frozen=True)
class Ended:
    """What a trial gave: test accuracy in per cent, the loss above the optimum, and the last step."""

    accuracy: float
    above: float
    step: float


@dataclass(frozen=True)
class Answers:
    """What trials gave, kept in files; where `new` is off, nothing is found out that is not there."""

    folder: Path
    new: bool = True

    def ended(self, trial: Trial) -> Ended:
        """What a trial gave: in an earlier run of the bench, or now."""
        words = [trial.name, trial.algorithm, trial.regularizer, str(trial.seed)]
        name = "-".join(words) + ("" if trial.parties > 1 else "-alone")
        return Ended(**self.kept(name, trial.question, lambda: asdict(trial.run())))

    def pooled(self, like: Trial) -> float:
        """The accuracy in per cent of a model trained where all columns lie together (NonF)."""
        if (like.name, like.regularizer) in ENDLESS:
            return self.ended(replace(like, parties=1, step=self.ended(like).step)).accuracy
        question = [like.name, like.regularizer, like.seed]
        name = f"{like.name}-NonF-{like.regularizer}-{like.seed}"
        data = partial(problem, like.name, seed=like.seed)
        return 100 * float(self.kept(name, question, lambda: data().optimum(like.regularizer).accuracy))

    def guess(self, like: Trial) -> float:
        """The accuracy in per cent of guessing the commoner label."""
        data = partial(problem, like.name, seed=like.seed)
        name, question = f"{like.name}-guess-{like.seed}", [like.name, like.seed]
        return 100 * float(self.kept(name, question, lambda: data().majority))

    def kept(self, name: str, question: Any, answer: Callable[[], Any]) -> Any:
        """What is known under this name, or found out now where that is allowed."""
        return kept(self.folder / "trials" / f"{name}.json", question, answer if self.new else None)


@dataclass(frozen=True)
class Compared:
    """What every algorithm reached on the splits of one problem, and what it is compared with.

    Accuracies are in per cent, one of every split: of NonF, AFSVRG-VP and guessing the commoner label.
    """

    nonf: list[float]
    half: list[float]
    guess: list[float]
    ours: dict[str, list[Ended]]

    @staticmethod
    def of(splits: Sequence[Trial], algorithms: Sequence[str], answers: Answers) -> Compared:
        """Runs every trial that has no answer yet."""
        return Compared(
            [answers.pooled(trial) for trial in splits],
            [answers.ended(replace(trial, algorithm="afsvrg-vp")).accuracy for trial in splits],
            [answers.guess(trial) for trial in splits],
            {
                algorithm: [answers.ended(replace(trial, algorithm=algorithm)) for trial in splits]
                for algorithm in algorithms
            },
        )

    @property
    def reached(self) -> list[list[float]]:
        """The accuracies of every algorithm."""
        return [[each.accuracy for each in all_] for all_ in self.ours.values()]

    @property
    def gap(self) -> float:
        """The largest difference between the means of an algorithm and of NonF."""
        return max(abs(statistics.mean(each) - statistics.mean(self.nonf)) for each in self.reached)

    def cells(self) -> list[str]:
        """The part of a row between its set and the paper's figures."""
        reached, gap = self.reached, self.gap
        worst = max(abs(a - b) for each in reached for a, b in zip(each, self.nonf, strict=True))
        above = max(each.above for all_ in self.ours.values() for each in all_)
        cells = [spread(self.nonf), spread(self.half), *(spread(each) for each in reached)]
        cells += [f"{gap:.3f}", "yes" if gap <= LIMIT else "NO", f"{worst:.3f}", f"{above:.1e}"]
        return [*cells, spread(self.guess)]


@dataclass(frozen=True)
class Lossless:
    """The table: which sets, algorithms and problems, how many splits, and the paper's figures."""

    sets: Here
    algorithms: Sequence[str]
    regularizers: Sequence[str]
    trials: int
    paper: Mapping[tuple[str, str], tuple[float, float | None]]

    def pieces(self) -> list[str]:
        """A piece for every split of every problem; first the first split of all, then the second."""
        problems = list(product(self.sets.found, self.regularizers))
        return [f"lossless:{name}:{how}:{seed}" for seed in range(self.trials) for name, how in problems]

    def add(self, bench: Bench, say: Say, out: Path, which: Sequence[str] = ()) -> None:
        """Add the table, which is written whenever a set is done; or keep the answers of one split.

        With `kept` for `which` a row has the splits whose answers are there, and nothing is run.
        """
        match which:
            case [name, regularizer, seed]:
                trial = Trial(name, self.algorithms[0], regularizer, int(seed))
                Compared.of([trial], self.algorithms, Answers(out))
            case ["kept"]:
                self._tabulate(bench, say, out, Answers(out, new=False))
            case _:
                self._tabulate(bench, say, out, Answers(out))

    def _tabulate(self, bench: Bench, say: Say, out: Path, answers: Answers) -> None:
        columns = ["set", "problem", "splits", "NonF", "AFSVRG-VP", *self.algorithms]
        columns += ["largest gap", f"within {LIMIT}", "largest gap of a trial", "loss above the optimum"]
        columns += ["commoner label", "paper: NonF and ours", "paper: AFSVRG-VP"]
        rows: list[list[Any]] = []
        bench.grids.append(Grid("Losslessness", columns, rows, _note(*self.sets)))
        for name, regularizer in product(self.sets.found, self.regularizers):
            splits = self._splits(name, regularizer, answers)
            if not splits:
                continue
            compared = Compared.of(splits, self.algorithms, answers)
            cells = compared.cells()
            theirs = self.paper.get((stands_for(name), regularizer), (None, None))
            rows.append([name, regularizer, len(splits), *cells, *theirs])
            say(
                f"losslessness, {name}, {regularizer}: NonF {cells[0]}, AFSVRG-VP {cells[1]}, "
                f"gap {compared.gap:.3f}"
            )
            if answers.new:
                bench.write(out)

    def _splits(self, name: str, regularizer: str, answers: Answers) -> list[Trial]:
        """The splits of a problem; only those whose answers are known, where nothing may be run."""
        splits = [Trial(name, self.algorithms[0], regularizer, seed) for seed in range(self.trials)]
        return splits if answers.new else [trial for trial in splits if self._known(trial, answers)]

    def _known(self, trial: Trial, answers: Answers) -> bool:
        try:
            Compared.of([trial], self.algorithms, answers)
        except LookupError:
            return False
        return True


def _note(found: Sequence[str], missing: Sequence[str]) -> str:
    stand_ins = "".join(f"{name} {WORDS[name]}. " for name in found if name in WORDS)
    return (
        "Test accuracy in per cent, mean and standard deviation over the splits, 8 parties, 3 of them "
        f"with the label (AFSVRG-VP: 4; AsySQN: all). Gaps are in points, the first between means. "
        f"Where NonF hardly beats the commoner label, accuracy proves little: see the loss. {stand_ins}"
        "The nonconvex problem on news20 has no minimum: NonF is our first algorithm at one party there, and "
        f"the loss is counted from 0. Sets of the papers that are not here: {', '.join(missing) or 'none'}."
    )


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation in words.

    >>> spread([80.0, 81.0]), spread([80.0])
    ('80.50 ± 0.71', '80.00')
    """
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
