"""SVRG's look at all rows: theta of every row at the present weights.

The rows travel in waves of pieces (`pieces`), each summed under a tag of its own. In `announced` every
dominator sums a part of the rows and tells all theta of them; a wave ends when all know its thetas. In
`pulled` nothing is sent back: every label holder sums all rows for itself, and says what it has taken where
many pieces follow.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.cost import charge
from colonnade.conversations.linear.block import Block
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pieces import UNDER_WAY, runs
from colonnade.messages import Announce
from colonnade.net.expect import NOTHING, floats

Tags = Callable[[int], list[int]]
"""Gives this many tags that no snapshot has used; all parties count alike."""

_TAKEN = np.empty(0)


async def announced(
    context: Context[LinearSettings], block: Block, roots: tuple[str, ...], tags: Tags, number: int
) -> Floats:
    """Return theta of every row, a part from every dominator; `number` is the round that an error names."""
    n, me, w = context.train.rows, context.me, block.w.copy()
    theta = np.empty((n, *w.shape[1:]))
    cuts = np.linspace(0, n, len(roots) + 1).astype(int).tolist()
    parts = [runs(cuts[j], cuts[j + 1], w.shape[1:]) for j in range(len(roots))]
    for wave in zip_longest(*parts):
        due = [each for each in zip(roots, wave, strict=True) if each[1] is not None]
        named = list(zip(due, tags(len(due)), strict=True))
        for (root, rows), tag in named:
            if root != me:
                await context.sum.give(block.all_rows.scores(rows.start, rows.stop, w), root=root, tag=tag)
        for (root, rows), tag in named:
            if root == me:
                z = await context.sum.collect(block.all_rows.scores(rows.start, rows.stop, w), tag=tag)
                theta[rows] = context.label_holder.theta(z, rows, number)
                await context.net.broadcast(Announce(tag, theta[rows]))
        for (root, rows), tag in named:
            if root != me:
                size = floats(rows.stop - rows.start, *w.shape[1:])
                theta[rows] = (await context.net.recv(Announce, root, tag, values=size)).values
    return theta


async def pulled(
    context: Context[LinearSettings], block: Block, pullers: tuple[str, ...], tags: Tags
) -> Floats | None:
    """Return theta of every row at a label holder, which pulls all scores for itself; None elsewhere."""
    n, me, w = context.train.rows, context.me, block.w.copy()
    theta = np.empty((n, *w.shape[1:])) if me in pullers else None
    waves = runs(0, n, w.shape[1:])
    named = [dict(zip(pullers, tags(len(pullers)), strict=True)) for _ in waves]
    for number, rows in enumerate(waves):
        share = block.all_rows.scores(rows.start, rows.stop, w)
        for puller, tag in named[number].items():
            if puller != me and number >= UNDER_WAY:
                await context.net.recv(Announce, puller, named[number - UNDER_WAY][puller], values=NOTHING)
            if puller != me:
                await context.sum.give(share, root=puller, tag=tag)
        # one kernel a wave, whose time passes after others can have its outcome
        await charge(context.net.clock, context.plan.network, block.all_rows.values(rows.start, rows.stop))
        if theta is not None:
            z = await context.sum.collect(share, tag=named[number][me])
            theta[rows] = context.label_holder.theta(z, rows)
            if number + UNDER_WAY < len(waves):
                await context.net.broadcast(Announce(named[number][me], _TAKEN))
    return theta
