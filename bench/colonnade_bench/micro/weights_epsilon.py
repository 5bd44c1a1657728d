"""What an epsilon for weights of blind `vfb2` would cost, beside that of `lbfgs`: by counting, UCI credit.

    python -m colonnade_bench.micro.weights_epsilon [--epsilon 1 4 12]

A label moves theta of its row by 1 at the most, R is an owner's longest row, s(epsilon) the deviation of
Gaussian noise for a sensitivity of 1 (delta = 1e-5). Noise on weights in the end: the optimum moves by
R / (l2 rows) at the most, so each weight takes s times that. Noise in every step: of a batch's gradient a row
has R / batch, once an epoch, in an order that all know, so each step takes s sqrt(epochs) R / batch. `lbfgs`:
s sqrt(12) R / rows.
"""

from __future__ import annotations

import argparse

import numpy as np

from colonnade.job import job_from
from colonnade.privacy.gaussian import deviation_for
from colonnade.run.federate import prepare
from colonnade.run.launch import launch
from colonnade.run.resolve import compose

DELTA, PASSES = 1e-5, 12


def main() -> None:
    """Train a model, and print what noise its owners' weights would take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0, 12.0])
    given = parser.parse_args()
    plain = {
        "algorithm": "vfb2-svrg",
        "world": "local",
        "data": {"train": "uci-credit", "parties": 4, "active": 1},
        "secure": {"labels": "blind", "reveal": "owner"},
    }
    _, order = prepare(compose(job_from(plain)))
    order = order.ready()
    plan, shares = order.plan, launch(order)
    pace, l2 = plan.pace, plan.objective.l2
    owners = [party for party in plan.parties if party != plan.evaluator]
    tables = {party: order.data[party].prepare().train for party in owners}
    rows = tables[owners[0]].rows
    longest = max(float(np.linalg.norm(np.asarray(each.X), axis=1).max()) for each in tables.values())
    weights = np.concatenate([np.asarray(shares[party].weights["w"]) for party in owners])
    # a mean gradient where nothing is learnt yet: theta is one half in size, and as its columns have it
    start = max(
        float(np.linalg.norm(np.asarray(each.X), axis=0).max()) / np.sqrt(rows) / 2
        for each in tables.values()
    )
    print(f"{rows:,} rows, batch {pace.batch}, {pace.epochs} epochs, l2 {l2:.3g}, longest row {longest:.1f};")
    print(f"largest weight {np.abs(weights).max():.2f}, all of them {np.linalg.norm(weights):.2f} long,")
    moved = longest / (l2 * rows)
    print(f"a column's gradient at most {start:.2f}; one label moves an optimum by up to {moved:.2f}")
    print("\n| epsilon | on each weight | in each step, on a column's gradient | `lbfgs`, the same |")
    print("|---|---|---|---|")
    for epsilon in given.epsilon:
        s = deviation_for(epsilon, DELTA)
        step = s * np.sqrt(pace.epochs) * longest / pace.batch
        full = s * np.sqrt(PASSES) * longest / rows
        print(f"| {epsilon:g} | {s * longest / (l2 * rows):.2f} | {step:.2f} | {full:.4f} |")


if __name__ == "__main__":
    main()
