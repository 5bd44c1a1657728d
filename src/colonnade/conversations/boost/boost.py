"""The boost conversation: gradient-boosted trees over columns that different parties hold (SecureBoost).

The label holder computes first and second derivatives of the loss and sends them once for every tree. Level
by level every owner of columns sums them over the bins of its columns, for all open nodes at once; the label
holder finds the best split of every node in these histograms, and its own, and tells the owner which of its
columns and bins it is. The owner keeps column and threshold and says which rows go left, to everybody who
sums on. What a leaf scores is known to the label holder alone.

With `additive` a tree uses one party's columns, and only that party hears of it: it gets its trees with their
leaves in the end, and a score is a sum over parties, as with linear models.

Gradients are whole numbers (`trees.gradients`), so sums do not depend on who makes them in which order: the
trees are those of the same program on pooled columns, split for split.

Where several parties hold the label, the first of them acts; the others are owners of columns like any other.

What each side learns: owners learn derivatives of the loss, and so the labels, and which rows share a node;
the label holder learns histograms of every owner's columns, bin by bin, and which rows a split separates;
nobody learns the names of another's columns, or their thresholds.
"""

from __future__ import annotations

from collections import Counter

from colonnade.arrays import Numbers
from colonnade.conversations.boost.column_owner import ColumnOwner
from colonnade.conversations.boost.label_holder import TreeLabelHolder
from colonnade.conversations.boost.settings import BoostSettings
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Evaluation


async def converse(context: Context[BoostSettings]) -> Outcome:
    """Grow trees together; returns this party's part of them."""
    evaluation = context.evaluation()
    if evaluation.scribe is not None:
        holder = TreeLabelHolder(context, evaluation, evaluation.scribe)
        return _outcome(context, evaluation, await holder.run(), holder.boosting.rounds)
    owner = ColumnOwner(context, evaluation)
    weights = await owner.run()
    return _outcome(context, evaluation, weights, owner.trees)


def _outcome(
    context: Context[BoostSettings], evaluation: Evaluation, weights: dict[str, Numbers], trees: int
) -> Outcome:
    return Outcome(
        weights=weights,
        step=context.plan.settings.trees.learning_rate,
        rounds=trees,
        updates=trees,
        evaluation=evaluation,
        delays=Counter({0: trees}),
    )
