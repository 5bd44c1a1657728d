"""When a run makes steps, and when it pauses for something that all parties do together.

A pass is one look at every row. For SVRG a snapshot costs one pass and the steps after it another
`INNER`; its first pass is plain SGD. A pause is a gate in the window: at an epoch's end the step is
measured again, or a snapshot is taken; between batches the quasi-Newton direction takes in a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

from colonnade.conversations.linear.settings import LinearSettings
from colonnade.job.plan import Plan

INNER = 2  # passes of steps between two snapshots of SVRG


@dataclass(frozen=True)
class Timetable:
    """`epochs` passes of steps of `per_epoch` rounds each, and the snapshots between them."""

    epochs: int
    per_epoch: int
    snapshots: tuple[int, ...]  # before these epochs
    tunings: tuple[int, ...]  # before these epochs
    pairs: tuple[int, ...]  # before these rounds

    @staticmethod
    def of(
        passes: int,
        per_epoch: int,
        *,
        svrg: bool,
        tune: bool,
        pair_every: int | None,
        all_rows_first: bool = False,
    ) -> Timetable:
        """Lay out a run of `passes` looks at every row; `pair_every` rounds lie between two pairs, if any.

        With `all_rows_first` the first pass is a look at all rows instead of steps.

        >>> plan = Timetable.of(8, 10, svrg=True, tune=True, pair_every=None)
        >>> plan.epochs, plan.snapshots, plan.tunings
        (6, (1, 3), (1, 3))
        >>> plan.passes(60), plan.rounds(60)
        (8, 80)
        """
        epochs, snapshots = passes, []
        if all_rows_first and not svrg and passes > 1:
            epochs, snapshots = passes - 1, [0]
        if svrg:
            epochs, left = (0, passes) if all_rows_first and passes > 1 else (1, passes - 1)
            while left >= 2:
                snapshots.append(epochs)
                steps = min(INNER, left - 1)
                epochs += steps
                left -= 1 + steps
            epochs += left  # one pass is too little for a snapshot and steps after it
        # curvature changes most at the start, so look again after 1, 3, 7, ... epochs
        tunings = [2**k - 1 for k in range(1, epochs.bit_length() + 1) if 2**k - 1 < epochs] if tune else []
        pairs = range(pair_every, epochs * per_epoch, pair_every) if pair_every else ()
        return Timetable(epochs, per_epoch, tuple(snapshots), tuple(tunings), tuple(pairs))

    @property
    def gates(self) -> set[int]:
        """The rounds before which training pauses; what is due before the first one needs no gate."""
        return {epoch * self.per_epoch for epoch in (*self.snapshots, *self.tunings) if epoch} | set(
            self.pairs
        )

    def passes(self, rounds: int) -> int:
        """Return the passes over the rows after this many rounds of steps, snapshots included."""
        return rounds // self.per_epoch + self._snapshots_before(rounds)

    def rounds(self, rounds: int) -> int:
        """Return the same in rounds: a snapshot sends as many scores as a pass of batches does."""
        return rounds + self._snapshots_before(rounds) * self.per_epoch

    def _snapshots_before(self, rounds: int) -> int:
        return sum(epoch * self.per_epoch < rounds for epoch in self.snapshots)


def timetable_of(plan: Plan[LinearSettings], rows: int) -> Timetable:
    """Return when a run pauses, as all parties make it of the plan."""
    pace, settings = plan.pace, plan.settings
    return Timetable.of(
        pace.epochs,
        -(-rows // pace.batch),
        svrg=settings.kind.snapshots,
        tune=pace.step == "auto" or settings.pairs == "joint",
        pair_every=settings.pair_every if settings.pairs == "batch" else None,
        all_rows_first=settings.start == "all-rows",
    )
