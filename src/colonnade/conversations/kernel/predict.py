"""Scores of new rows by a kernel model whose features and columns lie with several parties.

For a stretch of rows every party sends its part of the projections on each owner's features into the secure
sum; the owner turns the total into f_l(x) = sum over its features of alpha phi(x). The f_l of all owners are
then summed to the party that is to know the score. An owner tells the others when it has a stretch, so nobody
floods it.

What each side learns: an owner learns omega'x + b of the new rows for its features, up to whole
turns, which says how alike two rows are, and with shared directions their columns; the asker learns
the score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from colonnade.arrays import Arrays, Floats, Matrix, Rows, Words
from colonnade.conversations.kernel.phases import pack, unpack
from colonnade.conversations.predict import HERE, Holding, Session, Workplace
from colonnade.job import Job
from colonnade.messages import Announce
from colonnade.models.random_features import RandomFeatures, phi
from colonnade.net.expect import NOTHING
from colonnade.net.network import Network
from colonnade.secure.protocol import SecureSum

CHUNK = 2**19  # numbers of a message
BITS = 32  # of a projection: scores are the same wherever they are computed
IN_FLIGHT = 2  # stretches that an owner has not confirmed yet


@dataclass(frozen=True, eq=False)
class KernelShare:
    """What one party keeps of a kernel model: its part of every owner's features, its own coefficients."""

    features: dict[str, RandomFeatures]
    alpha: Floats | None  # None at a party without labels
    outputs: tuple[int, ...] = ()

    def arrays(self) -> dict[str, Floats]:
        """Return the share as named arrays, as an .npz file stores them."""
        stored = {"outputs": np.array(self.outputs, dtype=np.float64)}
        if self.alpha is not None:
            stored["alpha"] = self.alpha
        for owner, part in self.features.items():
            stored[f"omega.{owner}"], stored[f"b.{owner}"] = part.omega, part.b
        return stored

    @staticmethod
    def from_arrays(stored: Arrays) -> KernelShare:
        """Return a share from the arrays that `arrays` made."""
        owners = [name.removeprefix("omega.") for name in stored if name.startswith("omega.")]
        features = {owner: RandomFeatures(stored[f"omega.{owner}"], stored[f"b.{owner}"]) for owner in owners}
        return KernelShare(features, stored.get("alpha"), tuple(int(k) for k in stored["outputs"]))


async def score_share(
    share: KernelShare,
    X: Matrix,
    *,
    net: Network,
    secure: SecureSum,
    next_tag: Callable[[], int],
    workplace: Workplace = HERE,
) -> Floats:
    """Return f_l of the rows of X, zero at a party without coefficients; all parties call this together."""
    n = int(X.shape[0])
    f: Floats = np.zeros((n, *share.outputs))
    most = max(1, *(part.count for part in share.features.values()))
    size = max(1, CHUNK // most)
    waiting: list[tuple[str, int]] = []
    for start in range(0, n, size):
        rows = X[start : start + size]
        for owner, part in share.features.items():
            tag, shape = next_tag(), (int(rows.shape[0]), part.count)
            piece = await workplace.do(partial(_packed, part, rows))
            if owner == net.me and (alpha := share.alpha) is not None:
                total = await secure.collect(piece, tag=tag)
                f[start : start + size] = await workplace.do(partial(_scores, total, shape, alpha))
                await net.broadcast(Announce(tag, np.empty(0)))
            else:
                await secure.give(piece, root=owner, tag=tag)
                waiting.append((owner, tag))
        while len(waiting) > IN_FLIGHT * len(share.features):
            await net.recv(Announce, *waiting.pop(0), values=NOTHING)
    for owner, tag in waiting:
        await net.recv(Announce, owner, tag, values=NOTHING)
    return f


def _packed(features: RandomFeatures, rows: Matrix) -> Words:
    """Return this party's part of the projections of rows, as words."""
    return pack(features.project(rows), BITS)


def _scores(total: Words, shape: tuple[int, int], alpha: Floats) -> Floats:
    """Return f of rows from the totals of their projections."""
    f: Floats = phi(unpack(total, shape, BITS)) @ alpha
    return f


@dataclass(frozen=True, eq=False)
class KernelScorer:
    """A kernel share and this party's columns of the rows it may be asked for."""

    share: KernelShare
    X: Matrix

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        f = await score_share(
            self.share,
            self.X[rows],
            net=session.net,
            secure=session.secure,
            next_tag=session.next_tag,
            workplace=session.workplace,
        )
        return await session.total(f)


class KernelShares:
    """Shares of a kernel machine: random features, and at their owners coefficients."""

    name = "kernel"

    def is_sum(self, job: Job) -> bool:
        return False

    def scorer(self, holding: Holding) -> KernelScorer:
        return KernelScorer(KernelShare.from_arrays(holding.arrays), holding.X)

    def together(self, holdings: Mapping[str, Holding]) -> Floats:
        """Return the scores of all rows, computed a stretch at a time."""
        columns = {name: held.X for name, held in holdings.items()}
        held = {name: KernelShare.from_arrays(each.arrays) for name, each in holdings.items()}
        alphas = {name: share.alpha for name, share in held.items() if share.alpha is not None}
        n = int(next(iter(columns.values())).shape[0])
        f: Floats = np.zeros((n, *next(iter(held.values())).outputs))
        for owner, alpha in alphas.items():
            size = max(1, CHUNK // max(1, len(alpha)))
            for start in range(0, n, size):
                stretch = slice(start, start + size)
                parts = [held[name].features[owner].project(X[stretch]) for name, X in columns.items()]
                f[stretch] += phi(np.sum(parts, axis=0)) @ alpha
        return f
