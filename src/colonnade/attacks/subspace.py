"""The others' columns from the space that they span, which those that measure a linear model learn.

A measurement tells the label holder z = X w of all rows. Weights differ from one measurement to the next, so
after as many measurements as there are columns every column is a combination of what was told: X is known up
to one matrix, the same for all rows. (A knows theta and the steps as well, and so how w moves: that makes the
matrix a rotation. It is not needed here.) The matrix itself is found where columns are not Gaussian:

    independent   directions whose values are as little normal as they can be (FastICA, Hyvarinen 1999)
    yes and no    columns of two values: cut a direction in two, take the nearest vector of the space, again;
                  where nothing changes any more and the space holds the cut itself, it is a column, or a
                  union of columns. The attacker sees by itself that it is right.

A rotation of the columns changes nothing here: the space is the same.

Sees: the totals of measurements that one party gets, its own columns, and the job.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from colonnade.arrays import Floats, Numbers
from colonnade.attacks.case import Case, UnnamedColumns
from colonnade.messages import Topic, topic_of

FAINT = 1e-7  # of the strongest direction: fainter ones are rounding
HELD = 1e-3  # part of a cut that may lie outside of the space
CUTS = 40  # times that a direction is cut in two
TURNS = 60  # of the search for independent directions
SEED = 7


def columns_from_measurements(case: Case) -> UnnamedColumns:
    """Return what the attack takes the others' columns to be: of two values first, then the independent
    ones."""
    told = measured(case)
    # totals of blind measurements are those of the others alone
    own = np.zeros((case.rows, 0)) if opened(case) else _dense(case.own.X)
    space = space_of(np.hstack([own, told]))
    rng = np.random.default_rng(SEED)
    found: dict[bytes, Floats] = {}
    directions = []
    for bend in ("tanh", "square"):
        V = space @ independent(space, rng, bend)
        directions.append(V)
        for cut in yes_or_no(space, V):
            found.setdefault(min(cut.tobytes(), (~cut).tobytes()), cut.astype(np.float64))
    return UnnamedColumns(np.column_stack([*found.values(), *directions]), cuts=len(found))


def measured(case: Case) -> Floats:
    """Return the scores of all training rows in every measurement, a column each; a scale apart."""
    return np.column_stack([*_blind(case)] if opened(case) else [*_clear(case)])


def opened(case: Case) -> bool:
    """Return whether a blind run's measurements open the others' scores; where they are hidden all are
    clear."""
    blind = case.plan.blind
    return blind is not None and blind.hidden is None and blind.noisy is None


def _clear(case: Case) -> Iterator[Numbers]:
    for tag, total in case.transcript.totals:
        noisy = case.plan.blind is not None and case.plan.blind.noisy is not None
        topic = Topic.TRAIN if noisy else Topic.EVALUATE  # noisy: every pass, and the model in the end
        if topic_of(tag) == topic and total.size > case.rows - noisy:
            yield total.ravel()[: case.rows]


def _blind(case: Case) -> Iterator[Numbers]:
    """Yield the totals of blind measurements, which come in stretches, one word for every vector and row."""
    for words in exact(case):
        yield from words.astype(np.float64)


def exact(case: Case) -> Iterator[Numbers]:
    """Yield the whole numbers that a blind run's measurements tell, [vectors, rows]: no rounding at all."""
    stretches: list[Numbers] = []
    for tag, total in case.transcript.totals:
        if topic_of(tag) != Topic.EVALUATE or total.dtype != np.uint64 or total.ndim != 2:
            continue
        if stretches and len(total) != len(stretches[0]):
            stretches = []
        stretches.append(total.view(np.int64))
        size = sum(each.shape[1] for each in stretches)
        if size >= case.rows:
            if size == case.rows:
                yield np.concatenate(stretches, axis=1)
            stretches = []


def space_of(columns: Floats) -> Floats:
    """Return uncorrelated columns of unit variance that span the same space."""
    centred = columns - columns.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    centred = centred[:, lengths > 0] / lengths[lengths > 0]
    U, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    kept: Floats = U[:, sizes > FAINT * sizes[:1]] * np.sqrt(len(columns))
    return kept


def independent(space: Floats, rng: np.random.Generator, bend: str) -> Floats:
    """Return the orthogonal matrix that turns the space into directions that are as little normal as they can
    be."""
    n, rank = space.shape
    U = space.astype(np.float32)
    W = np.linalg.qr(rng.standard_normal((rank, rank)))[0]
    for _ in range(TURNS):
        Y = U @ W.astype(np.float32)
        bent = np.tanh(Y) if bend == "tanh" else Y * Y
        slope = (1 - bent * bent).mean(axis=0) if bend == "tanh" else np.zeros(rank)
        left, _, right = np.linalg.svd((U.T @ bent).astype(np.float64) / n - W * slope)
        before, W = W, left @ right
        if np.abs(np.abs(np.sum(W * before, axis=0)) - 1).max() < 1e-6:
            break
    return W


def yes_or_no(space: Floats, V: Floats) -> Iterator[Numbers]:
    """Yield vectors of two values that the space holds, found from directions; True where it is the
    larger."""
    n = len(space)
    cuts = np.zeros(V.shape, dtype=bool)
    for _ in range(CUTS):
        before, cuts = cuts, np.column_stack([each > _middle(each) for each in V.T])
        centred = cuts - cuts.mean(axis=0)
        V = space @ (space.T @ centred) / n
        if np.array_equal(before, cuts):
            break
    outside = 1 - np.sum(V * V, axis=0) / np.maximum(np.sum(centred * centred, axis=0), 1e-9)
    yield from cuts.T[outside < HELD]


def _middle(values: Floats) -> float:
    """Return where to cut values in two so that the halves are as far apart as can be."""
    ranked = np.sort(values)
    n, k = len(ranked), np.arange(1, len(ranked))
    sums = np.cumsum(ranked)
    at = int(np.argmax((sums[:-1] - k * sums[-1] / n) ** 2 / (k * (n - k))))
    return float(ranked[at] + ranked[at + 1]) / 2


def _dense(X: Numbers) -> Floats:
    dense: Floats = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return dense
