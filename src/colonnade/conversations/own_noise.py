"""One party's own noise and random rounding: what it tells twice says nothing new.

A run that was cut off makes some passes again. Noise and random rounding are functions of a secret of the
run, kept on disk, and of the pass. The same noise alone would be worse than none against an owner that cuts
a run off and comes back with other columns: the difference of two answers has no noise at all. So what is
told again has noise of its own as well, twice as loud each time (`Tellings`). Who asks the same again hears
nothing new, and all other questions that breaking off could buy tell less than a third of one more pass.
Keys are new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.conversations.gates import Gates
from colonnade.errors import CheckpointError, FixedPointOverflow
from colonnade.privacy import discrete
from colonnade.privacy.noise import Streams
from colonnade.secure.streams import subkey

if TYPE_CHECKING:
    from colonnade.secure.lattice.parameters import CoefficientParameters

STEPS = 8  # codes to a doubling
LOUDEST = 1 / 8  # of the range: noise beyond that leaves nothing of what it hides
FINE = 32  # bits below a step of a draw
MOST_AGAIN = 8  # times that a pass is told again: its noise is 256 times as loud then
_TOLD = "told"


class Tellings:
    """How often this party has told noise of each purpose and pass in a run: on disk before it tells it."""

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        found = gates.noted(_TOLD)
        self._told = {} if found is None else msgspec.json.decode(found, type=dict[str, int])

    def before(self, purpose: str, number: int) -> int:
        """Return how often that was told before, and count it once more."""
        key = f"{purpose} {number}"
        found = self._told.get(key, 0)
        if found > MOST_AGAIN:
            raise CheckpointError(
                f"pass {number} of this run was told {found} times, as it was cut off so often; start again "
                "without --resume"
            )
        self._told[key] = found + 1
        self._gates.note(_TOLD, msgspec.json.encode(self._told))
        return found


class OwnNoise:
    """One party's noise and random rounding: nobody can foretell it, and it is the same when asked again,
    but for noise that is added to what was told before."""

    def __init__(self, secret: bytes, tellings: Tellings | None = None) -> None:
        self._secret, self._tellings = secret, tellings

    @staticmethod
    def of(gates: Gates) -> OwnNoise:
        """Return the noise of a run, in any of its sessions."""
        return OwnNoise(gates.secret(), Tellings(gates))

    def rounding(self, purpose: str, number: int = 0) -> np.random.Generator:
        """Return a generator for rounding by chance."""
        key = subkey(self._secret, f"rounding of {purpose} {number}")
        return np.random.default_rng(int.from_bytes(key, "little"))

    def gaussian(
        self, ring: CoefficientParameters, codes: Rows, rows: float, bits: int, purpose: str, number: int
    ) -> Rows:
        """Return noise of this many rows for every column, in words of an answer: discrete and Gaussian.

        It never falls below what hides the key in a part that goes back.
        """
        deviation = np.maximum(rows * largest_of(codes) * 2.0**bits, ring.least_noise) / ring.unit
        if not float(deviation.max(initial=0.0)) < LOUDEST * 2 ** (ring.cut - 1):
            raise FixedPointOverflow(
                f"secure.noise: noise of {rows:.3g} rows leaves nothing of a gradient of this data; ask for "
                "less, for fewer passes or a larger epsilon, and cap the weight of a row far above all others"
            )
        return self.words(deviation, purpose, number)

    def words(self, deviation: Floats, purpose: str, number: int) -> Rows:
        """Return whole numbers of these deviations, discrete and Gaussian; more of them if told before."""
        before = 0 if self._tellings is None else self._tellings.before(purpose, number)
        found = self._drawn(deviation, purpose, number)
        if before:
            found = found + self._drawn(deviation * 2.0**before, f"{purpose}, told {before} times", number)
        return found

    def _drawn(self, deviation: Floats, purpose: str, number: int) -> Rows:
        places = np.arange(len(deviation))
        streams = Streams(
            subkey(self._secret, f"noise of {purpose}"), places, np.full(len(places), number), 1
        )
        drawn, between = discrete.gaussian(streams), streams.take(places) >> np.uint64(64 - FINE)
        # a uniform number fills what lies between two steps: any multiple is as smooth as the draw itself
        factors = np.rint(deviation / discrete.SCALE * 2.0**FINE).tolist()
        told = [
            int(factor) * ((draw << FINE) + fill) >> 2 * FINE
            for factor, draw, fill in zip(factors, drawn.tolist(), between.tolist(), strict=True)
        ]
        return np.array(told, dtype=np.int64)


def largest_of(codes: Rows) -> Floats:
    """Return the sizes that codes of columns stand for."""
    sizes: Floats = np.exp2(codes / STEPS)
    return sizes
