"""What computing on a block costs: the time that a clock lets pass for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from colonnade.conversations.context import Context
from colonnade.conversations.cost import charge
from colonnade.conversations.linear.block import Block
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.tune import SAMPLE
from colonnade.conversations.pacing.schedule import Round


@dataclass(frozen=True, eq=False)
class Costs:
    """Lets the time pass that one party's kernels take, where that is not the time that they really take."""

    context: Context[LinearSettings]
    block: Block

    @cached_property
    def any(self) -> bool:
        """Whether computing takes other time than it takes."""
        return self.context.net.clock.virtual or bool(self.context.plan.network.work_ms)

    @cached_property
    def of_scores(self) -> bool:
        """Whether scoring batches is charged, too."""
        return self.any and self.context.plan.network.charge_forward

    async def of(self, batches: Sequence[Round], others: int = 0) -> None:
        """Let the time pass that computing on some batches takes, and touching some other stored numbers."""
        clock, network = self.context.net.clock, self.context.plan.network
        if self.any:
            await charge(clock, network, self.block.values(batches) + others if clock.virtual else 0)

    async def of_sample(self, products: int) -> None:
        """Let the time pass that some products with a sample of rows take."""
        await self.context.charge(products * self.block.all_rows.values(0, min(SAMPLE, self._rows)))

    async def of_all_rows(self) -> None:
        """Let the time pass that one kernel takes for all rows."""
        await self.context.charge(self.block.all_rows.values(0, self._rows))

    @property
    def _rows(self) -> int:
        return self.context.train.rows
