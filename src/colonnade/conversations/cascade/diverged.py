"""What a cascade says when its numbers run away: at their owner, before a peer refuses them."""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Numbers
from colonnade.errors import Diverged
from colonnade.losses import Loss
from colonnade.net.expect import MOST


def check_size(what: str, values: Numbers, loss: Loss, most: float = MOST) -> None:
    """Raise Diverged unless all values are numbers that a peer takes."""
    most = min(most, MOST)
    if not float(np.abs(values).max(initial=0)) <= most:
        raise ran_away(f"{what} beyond {most:.0e}", loss)


def ran_away(what: str, loss: Loss) -> Diverged:
    """Return the error for training that has diverged, with the ways out."""
    unit = ", or give the label in a unit in which it is about 1" if loss.task == "regression" else ""
    return Diverged(f"{what}; use a smaller step{unit}")
