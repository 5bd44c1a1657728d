"""What parties are worth: the order of their values beside pooled retraining, and what it takes over TLS.

    python -m colonnade_bench.micro.value [--splits 20] [--labels clear blind] [--dataset uci-credit]

Columns and rows are split anew by each seed, over four parties and a fifth whose five columns are noise.
Pooled retraining is scikit-learn's logistic regression on the columns of every coalition, and its values are
the definition: the mean over all orders of parties. An order is the same if all four real parties come in it
alike; where it is not, the parties that changed places are told with the difference of their values.

    python -m colonnade_bench.micro.value --noise --splits 40 [--labels clear]

How often the interval of the party of noise contains 0, and what its columns cost: k of them raise the
loss of n training rows by k / (2n) in the mean. Nothing is retrained.

    python -m colonnade_bench.micro.value --before

Information values before training: exact, and as companies tell them, with the bound that follows from each,
beside the AUC of test rows that each party's columns reach alone.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations, permutations
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from colonnade.conversations.woe import told_ivs
from colonnade.data.table import INTERCEPT, Table
from colonnade.describe.prospects import in_steps, most_auc, step_of
from colonnade.job import Job, Woe, job_from
from colonnade.privacy.counts import USUAL, CountNoise
from colonnade.result import Estimate, Worth
from colonnade.run.federate import Tables, federate, prepare, run_tables, weigh_columns_of
from colonnade.run.resolve import compose

NOISE = "noise"
METRICS = ("test_auc", "test_loss")


def main() -> None:
    """Print how often orders are the same, how often noise is worth nothing, and the seconds over TLS."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--labels", nargs="*", default=["clear", "blind"], choices=["clear", "blind"])
    parser.add_argument("--dataset", default="uci-credit")
    parser.add_argument("--before", action="store_true")
    parser.add_argument("--noise", action="store_true")
    given = parser.parse_args()
    if given.noise:
        for labels in given.labels:
            worth_of_noise(given.dataset, labels, given.splits)
        return
    if given.before:
        before(given.dataset)
        return
    for labels in given.labels:
        same, apart, nothing, total = 0, [], dict.fromkeys(METRICS, 0), 0
        for seed in range(given.splits):
            job = job_of(given.dataset, seed, labels)
            tables = with_noise(job)
            worth = run_tables(job, tables).result.worth
            if worth is None:
                raise RuntimeError("a run without the worth of its parties")
            exact = retrained(tables, job)
            for metric in METRICS:
                total += 1
                wrong = places(worth, exact, metric)
                same += not wrong
                apart += wrong
                _, low, high = worth.values[NOISE][metric]
                nothing[metric] += low <= 0 <= high
        print(f"{labels}: {same} of {total} orders are those of pooled retraining", flush=True)
        for line in apart:
            print(f"  {line}")
        for metric, times in nothing.items():
            print(f"  noise is worth 0 within its interval in {times} of {given.splits} splits ({metric})")
    job = job_from(plain(given.dataset, 0, "blind") | {"world": "network"})
    began = time.perf_counter()
    done = federate(job)
    trainings = 0 if done.result.worth is None else done.result.worth.trainings
    print(
        f"four processes over TLS, blind: {trainings} trainings, {time.perf_counter() - began:.1f} s in all"
    )


def worth_of_noise(dataset: str, labels: str, splits: int) -> None:
    """Print what columns of noise are worth, and how often their intervals contain 0 and what they cost."""
    found: dict[str, list[Estimate]] = {metric: [] for metric in METRICS}
    cost = 0.0
    for seed in range(splits):
        job = job_of(dataset, seed, labels)
        tables = with_noise(job)
        worth = run_tables(job, tables).result.worth
        if worth is None:
            raise RuntimeError("a run without the worth of its parties")
        cost = len(tables.train[NOISE].columns) / (2 * tables.train[NOISE].rows)
        for metric in METRICS:
            found[metric].append(worth.values[NOISE][metric])
    for metric, values in found.items():
        mean = float(np.mean([value for value, _, _ in values]))
        nothing = sum(low <= 0 <= high for _, low, high in values)
        line = f"{labels}, {metric}: {mean:.2g} in the mean; 0 is within {nothing} of {splits} intervals"
        if metric == "test_loss":
            line += f", the cost {cost:.2g} within {sum(low <= cost <= high for _, low, high in values)}"
        print(line, flush=True)


def before(dataset: str) -> None:
    """Print what parties' columns may be worth, exactly and as it is told, and what they reach alone."""
    made = plain(dataset, 0, "clear")
    exact = weigh_columns_of(job_from(made))
    loud = Woe(noise=USUAL)
    noisy = weigh_columns_of(job_from(made | {"woe": {"noise": USUAL}}))
    alone = retrained_alone(with_noise(job_from(made)))
    print("| party | columns | IV | as told | AUC at most | AUC of test rows, alone |")
    print("|---|---|---|---|---|---|")
    for party, found in exact.items():
        told = [each.iv for each in noisy[party].columns]
        if counts := noisy[party].counts.get(party):  # at the label holder, which knows its own exactly
            told = told_ivs(counts, CountNoise(USUAL), loud)
        rows = sum(exact[next(iter(exact))].counts[party][0].rows)
        steps = in_steps(sum(told), rows) * step_of(rows)
        iv = sum(each.iv for each in found.columns)
        print(
            f"| {party} | {len(told)} | {iv:.4f} | {steps:.4f} | {most_auc(steps):.4f} | {alone[party]:.4f} |"
        )


def retrained_alone(tables: Tables) -> dict[str, float]:
    """Return the AUC of test rows that scikit-learn reaches on every party's own columns."""
    test, holder = tables.test or {}, tables.active[0]
    y, unseen = tables.train[holder].y, test[holder].y
    if y is None or unseen is None:
        raise RuntimeError("no labels")
    return {
        party: float(roc_auc_score(unseen, scores_of([table], [test[party]], y)))
        for party, table in tables.train.items()
    }


def scores_of(train: list[Table], test: list[Table], y: Any) -> Any:
    """Return the probabilities of test rows by scikit-learn's logistic regression on these columns."""
    fit = LogisticRegression(C=1 / (1e-4 * len(y)), solver="newton-cholesky", tol=1e-8)
    fit.fit(np.hstack([own(each) for each in train]), y)
    return fit.predict_proba(np.hstack([own(each) for each in test]))[:, 1]


def plain(dataset: str, seed: int, labels: str) -> dict[str, Any]:
    """Return a job as plain data."""
    data = {"train": dataset, "parties": 4, "active": 1}
    base = {"algorithm": "lbfgs", "seed": seed, "value": True, "compare": False, "data": data}
    return {**base, "secure": {"labels": labels}, "train": {"l2": 1e-4}}


def job_of(dataset: str, seed: int, labels: str) -> Job:
    """Return a job in this process."""
    return job_from(plain(dataset, seed, labels))


def with_noise(job: Job) -> Tables:
    """Return all parties' prepared columns, and those of a party of noise."""
    _, order = prepare(compose(job))
    prepared = {party: data.prepare() for party, data in order.data.items()}
    rng = np.random.default_rng([job.seed, 1])
    train = {party: each.train for party, each in prepared.items()}
    test = {party: each.test for party, each in prepared.items() if each.test is not None}
    names = tuple(f"noise{k}" for k in range(5))
    for tables in (train, test):
        rows = next(iter(tables.values())).rows
        tables[NOISE] = Table(NOISE, names, rng.normal(size=(rows, len(names))))
    return Tables(job.data.train or "", train, test, (next(iter(train)),))


def retrained(tables: Tables, job: Job) -> dict[str, dict[str, float]]:
    """Return every real party's value by scikit-learn, and by the definition."""
    parties = [party for party in tables.train if party != NOISE]
    holder, test = tables.train[tables.active[0]], tables.test or {}
    y, unseen = holder.y, test[tables.active[0]].y
    if y is None or unseen is None:
        raise RuntimeError("no labels")
    value: dict[frozenset[str], dict[str, float]] = {}
    for size in range(len(parties) + 1):
        for coalition in combinations(parties, size):
            p = np.full(len(unseen), np.mean(y > 0))
            if coalition:
                p = scores_of(
                    [tables.train[each] for each in coalition], [test[each] for each in coalition], y
                )
            p = np.clip(p, 1e-12, 1 - 1e-12)
            loss = -np.mean(np.where(unseen > 0, np.log(p), np.log(1 - p)))
            value[frozenset(coalition)] = {"test_auc": float(roc_auc_score(unseen, p)), "test_loss": loss}
    orders = list(permutations(parties))
    return {
        party: {
            metric: float(np.mean([added(order, party, value, metric) for order in orders]))
            for metric in METRICS
        }
        for party in parties
    }


def added(
    order: tuple[str, ...], party: str, value: dict[frozenset[str], dict[str, float]], metric: str
) -> float:
    """Return what a party adds where parties come in this order."""
    before = frozenset(order[: order.index(party)])
    return value[before | {party}][metric] - value[before][metric]


def own(table: Table) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a party's columns without the intercept, which scikit-learn has by itself."""
    kept = [k for k, name in enumerate(table.columns) if name != INTERCEPT]
    X = table.X[:, kept]
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)


def places(worth: Worth, exact: dict[str, dict[str, float]], metric: str) -> list[str]:
    """Return which real parties changed places, in words; none where the order is the same."""
    ours = sorted(exact, key=lambda party: worth.values[party][metric][0])
    theirs = sorted(exact, key=lambda party: exact[party][metric])
    found = []
    for one, other in combinations(theirs, 2):
        if ours.index(one) > ours.index(other):
            gap = exact[other][metric] - exact[one][metric]
            _, low, high = worth.values[one][metric]
            found.append(
                f"{metric}: {one} and {other} are {gap:.2g} apart, intervals {(high - low):.2g} wide"
            )
    return found


if __name__ == "__main__":
    main()
