"""Made-up sets of many shapes, each hard for a quasi-Newton direction in another way.

Tall and wide, tiny, ill-scaled, correlated, one-hot, with heavy tails, rare positives, rows far away, noisy
labels or labels that a plane separates; numbers and several classes too. What they have in common is how
little a sample of their rows may tell about all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from colonnade.arrays import Floats, Matrix
from colonnade.data.table import Table
from colonnade.run.federate import Tables

Draw = tuple[Matrix, Floats]


def _labels(rng: np.random.Generator, z: Floats) -> Floats:
    """Labels -1 and 1 whose log-odds are z."""
    return np.where(rng.random(len(z)) < 1 / (1 + np.exp(-z)), 1.0, -1.0)


def _normal(rng: np.random.Generator, rows: int, columns: int) -> tuple[Floats, Floats]:
    X = rng.standard_normal((rows, columns))
    z: Floats = X @ rng.standard_normal(columns)
    return X, z


def _tall(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 1_000, 5)
    return X, _labels(rng, z)


def _wide(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 120, 200)
    return X, _labels(rng, z / 5)


def _tiny(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 40, 4)
    return X, _labels(rng, 2 * z)


def _small(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 200, 12)
    return X, _labels(rng, z)


def _ill_scaled(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 240, 12)
    return X * np.geomspace(0.01, 30.0, 12), _labels(rng, z)


def _shifted(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 240, 12)
    return X + 4.0, _labels(rng, z)


def _correlated(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 240, 6)
    again = X + 0.02 * rng.standard_normal(X.shape)
    return np.hstack([X, again, X.sum(axis=1, keepdims=True)]), _labels(rng, z)


def _low_rank(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 240, 4)
    return X @ rng.standard_normal((4, 24)) + 0.05 * rng.standard_normal((240, 24)), _labels(rng, z)


def _noisy(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 240, 16)
    return X, np.where(rng.random(240) < 0.45, -1.0, 1.0) * np.where(z > 0, 1.0, -1.0)


def _separable(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 240, 8)
    return X, np.where(z > 0, 1.0, -1.0)


def _rare(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 800, 8)
    X[:, 0] = 1.0
    return X, _labels(rng, z - 5.0)


def _heavy_tails(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 240, 8)
    return np.sign(X) * np.expm1(1.5 * np.abs(X)), _labels(rng, z)


def _far_rows(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 800, 8)
    X[rng.choice(800, 4, replace=False), 3] = 150.0
    return X, _labels(rng, z)


def _one_hot(rng: np.random.Generator) -> Draw:
    kinds = [np.eye(k)[np.minimum(rng.geometric(0.3, 800) - 1, k - 1)] for k in (3, 8, 20)]
    X = np.hstack(kinds)
    return csr_array(X), _labels(rng, X @ rng.standard_normal(X.shape[1]))


def _sparse(rng: np.random.Generator) -> Draw:
    X, _ = _normal(rng, 240, 200)
    X[rng.random(X.shape) > 0.03] = 0.0
    return csr_array(X), _labels(rng, 2 * X @ rng.standard_normal(200))


def _number(rng: np.random.Generator) -> Draw:
    X, z = _normal(rng, 240, 10)
    return X * np.geomspace(0.1, 3.0, 10), z + rng.standard_normal(240)


def _classes(rng: np.random.Generator) -> Draw:
    X, _ = _normal(rng, 240, 10)
    scores = X @ rng.standard_normal((10, 4)) + rng.gumbel(size=(240, 4))
    return X, scores.argmax(axis=1).astype(np.float64)


# shape: how it is drawn, and the loss it is for
SHAPES: dict[str, tuple[Callable[[np.random.Generator], Draw], str]] = {
    "tall": (_tall, "logistic"),
    "wide": (_wide, "logistic"),
    "tiny": (_tiny, "logistic"),
    "small": (_small, "logistic"),
    "ill-scaled": (_ill_scaled, "logistic"),
    "shifted": (_shifted, "logistic"),
    "correlated": (_correlated, "logistic"),
    "low rank": (_low_rank, "logistic"),
    "noisy labels": (_noisy, "logistic"),
    "separable": (_separable, "logistic"),
    "rare positives": (_rare, "logistic"),
    "heavy tails": (_heavy_tails, "logistic"),
    "far rows": (_far_rows, "logistic"),
    "one-hot": (_one_hot, "logistic"),
    "sparse": (_sparse, "logistic"),
    "number": (_number, "squared"),
    "classes": (_classes, "softmax"),
}


def made_up(shape: str, seed: int, parties: int = 4, active: int = 2) -> tuple[Tables, str]:
    """A set of a shape, its columns dealt to parties in turn, and the loss that it is for."""
    draw, loss = SHAPES[shape]
    X, y = draw(np.random.default_rng([seed, list(SHAPES).index(shape)]))
    names = [f"party-{k + 1}" for k in range(parties)]
    blocks = np.array_split(np.arange(X.shape[1]), parties)
    train = {
        name: Table(
            shape,
            tuple(f"x{j}" for j in block),
            X[:, block] if isinstance(X, csr_array) else np.ascontiguousarray(X[:, block]),
            y if k < active else None,
        )
        for k, (name, block) in enumerate(zip(names, blocks, strict=True))
    }
    return Tables(shape, train, None, tuple(names[:active])), loss
