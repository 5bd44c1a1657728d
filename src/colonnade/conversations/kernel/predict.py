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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from colonnade.arrays import Arrays, Floats, Matrix, Rows, Words
from colonnade.conversations.kernel.phases import project, unpack
from colonnade.conversations.predict import HERE, Holding, Session, Workplace
from colonnade.errors import ShareError
from colonnade.job import Job
from colonnade.messages import Announce
from colonnade.models.random_features import KERNELS, FeaturePart, RandomFeatures, SeededFeatures, phi
from colonnade.net.expect import NOTHING
from colonnade.net.network import Network
from colonnade.openings.opening import Opening
from colonnade.openings.scoring import ScoringRequest
from colonnade.secure.protocol import SecureSum

CHUNK = 2**19  # numbers of a message
BITS = 32  # of a projection: scores are the same wherever they are computed
IN_FLIGHT = 2  # stretches that an owner has not confirmed yet
FEW = 256  # seeded features of a message about many rows
KINDS = tuple(KERNELS)  # a share has the place of its kernel's kind here


@dataclass(frozen=True, eq=False)
class KernelShare:
    """What one party keeps of a kernel model: its part of every owner's features, its own coefficients."""

    features: Mapping[str, FeaturePart]
    alpha: Floats | None  # None at a party without labels
    outputs: tuple[int, ...] = ()

    def arrays(self) -> Arrays:
        """Return the share as named arrays, as an .npz file stores them: directions, or their seeds."""
        stored: Arrays = {"outputs": np.array(self.outputs, dtype=np.float64)}
        if self.alpha is not None:
            stored["alpha"] = self.alpha
        for owner, part in self.features.items():
            if isinstance(part, SeededFeatures):
                stored |= {f"seeds.{owner}": part.seeds, f"adds.{owner}": part.adds}
                shape = [KINDS.index(part.kind), part.sigma, part.width, part.block]
                stored[f"kernel.{owner}"] = np.array(shape, dtype=np.float64)
            else:
                stored |= {f"omega.{owner}": part.omega, f"b.{owner}": part.b}
        return stored

    @staticmethod
    def from_arrays(stored: Arrays) -> KernelShare:
        """Return a share from the arrays that `arrays` made."""
        features: dict[str, FeaturePart] = {}
        for name in stored:
            sort, _, owner = name.partition(".")
            if sort == "omega":
                features[owner] = RandomFeatures(stored[name], stored[f"b.{owner}"])
            elif sort == "kernel":
                kind, sigma, width, block = stored[name].tolist()
                seeds, adds = stored[f"seeds.{owner}"], stored[f"adds.{owner}"]
                features[owner] = SeededFeatures(KINDS[int(kind)], sigma, int(width), int(block), seeds, adds)
        return KernelShare(features, stored.get("alpha"), tuple(int(k) for k in stored["outputs"]))

    def rows_at_once(self, rows: int) -> int:
        """Return how many of some rows are scored at a time."""
        most = max(
            1, *(min(part.count, self.features_at_once(part, rows)) for part in self.features.values())
        )
        return max(1, CHUNK // most)

    @staticmethod
    def features_at_once(part: FeaturePart, rows: int) -> int:
        """Return how many features some rows are projected on at a time.

        Seeded ones are drawn again for every stretch of rows, so there are few of them and many rows.
        """
        return max(1, part.count) if isinstance(part, RandomFeatures) else max(FEW, CHUNK // max(1, rows))


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
    size = share.rows_at_once(n)
    waiting: list[tuple[str, int]] = []
    for start in range(0, n, size):
        rows = X[start : start + size]
        for owner, piece, first in _pieces(share, n):
            tag, shape = next_tag(), (int(rows.shape[0]), piece.count)
            words = await workplace.do(partial(project, piece, rows, BITS))
            if owner == net.me and share.alpha is not None:
                total = await secure.collect(words, tag=tag)
                alpha = share.alpha[first : first + piece.count]
                f[start : start + size] += await workplace.do(partial(_scores, total, shape, alpha))
                await net.broadcast(Announce(tag, np.empty(0)))
            else:
                await secure.give(words, root=owner, tag=tag)
                waiting.append((owner, tag))
            while len(waiting) > IN_FLIGHT * len(share.features):
                await net.recv(Announce, *waiting.pop(0), values=NOTHING)
    for owner, tag in waiting:
        await net.recv(Announce, owner, tag, values=NOTHING)
    return f


def _pieces(share: KernelShare, rows: int) -> Iterator[tuple[str, RandomFeatures, int]]:
    """Yield every owner's features piece by piece, and which of the owner's is the first of a piece."""
    for owner, part in share.features.items():
        first = 0
        for piece in part.pieces(share.features_at_once(part, rows)):
            yield owner, piece, first
            first += piece.count


def _scores(total: Words, shape: tuple[int, int], alpha: Floats) -> Floats:
    """Return f of rows from the totals of their projections."""
    f: Floats = phi(unpack(total, shape, BITS)) @ alpha
    return f


@dataclass(frozen=True, eq=False)
class KernelScorer:
    """A kernel share and this party's columns of the rows it may be asked for."""

    overlaps: ClassVar[bool] = False

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

    def opens(self, request: ScoringRequest) -> list[Opening]:
        """Return the projections that go to each owner of features, and the scores."""
        share, n = self.share, request.rows
        found = [request.total(n * int(np.prod(share.outputs, dtype=int)))]
        size = share.rows_at_once(n)
        for owner, part in share.features.items():
            words = 0
            for start in range(0, n, size):
                rows = min(size, n - start)
                for width in part.widths(share.features_at_once(part, n)):
                    words += -(-rows * width * BITS // 64)
            found.append(request.total(words, root=owner, kind="projections"))
        return found


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
        shares = {name: KernelShare.from_arrays(each.arrays) for name, each in holdings.items()}
        some = next(iter(shares.values()))
        n = int(next(iter(columns.values())).shape[0])
        f: Floats = np.zeros((n, *some.outputs))
        size = some.rows_at_once(n)
        for start in range(0, n, size):
            stretch = slice(start, start + size)
            # all parties have the same pieces in the same order, each its own part of them
            for parts in zip(*(_pieces(shares[name], n) for name in columns), strict=True):
                owner, piece, first = parts[0]
                if (alpha := shares[owner].alpha) is None:
                    raise ShareError(f"{owner}: its share has no coefficients, but it owns features")
                angles = sum(
                    part.project(X[stretch]) for (_, part, _), X in zip(parts, columns.values(), strict=True)
                )
                f[stretch] += phi(np.asarray(angles)) @ alpha[first : first + piece.count]
        return f
