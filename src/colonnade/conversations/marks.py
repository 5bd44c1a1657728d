"""When a run is measured, and how reaching the target ends it everywhere at the same round."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from colonnade.conversations.context import Context
from colonnade.conversations.schedule import Schedule
from colonnade.conversations.window import Window
from colonnade.messages import Stop


async def measure_at_marks(
    context: Context,
    schedule: Schedule,
    window: Window,
    measure: Callable[[int, bool], Awaitable[float | None]],
) -> None:
    """Measure every `evaluate_every` epochs, which may be a part of one, and at the end of the run.

    `measure` takes the rounds that are finished and whether it is the last time; at the evaluator it
    gives the loss, and a loss within the target ends the run.
    """
    epochs = context.job.train.evaluate_every
    every = max(1, round(epochs * schedule.per_epoch)) if epochs else schedule.rounds
    target = context.target_loss
    mark, final = 0, False
    while not final:
        mark = min(mark + every, schedule.rounds)
        reached = await window.reaches(mark)
        final = not reached or mark == schedule.rounds
        loss = await measure(mark if reached else window.base, final)
        if loss is not None and target is not None and loss <= target and not final:
            # no theta of a round that we have not begun can exist, so nobody is past this one
            stop = min(window.begun + window.ahead, schedule.rounds)
            window.stop_at(stop)
            await context.net.broadcast(Stop(stop))


async def heed_stop(context: Context, window: Window) -> None:
    """Everybody but the evaluator: stop where it says."""
    for _, message in await context.net.drain(Stop, patient=True):
        window.stop_at(message.at)
