"""Whether a model is better than the one in use, by a metric of each on its own test rows."""

from __future__ import annotations

import msgspec

from colonnade.deploy.models.stored_shares import Manifest
from colonnade.errors import JobError
from colonnade.search import HIGHER


class Gate(msgspec.Struct, frozen=True):
    """A metric of the test rows, and by how much it has to be better."""

    metric: str
    by: float = 0.0

    def passed(self, new: Manifest, used: Manifest) -> tuple[bool, str]:
        """Return whether a model is better than the one in use, and both figures in words.

        The test rows of the two differ where data has changed since: then the figures are of other rows.
        """
        if not self.by >= 0:
            raise JobError(f"by = {self.by:g}: give by how much it has to be better, 0 or more")
        key = f"test_{self.metric.removeprefix('test_')}"
        figures = []
        for each in (new, used):
            if key not in each.metrics:
                known = ", ".join(name.removeprefix("test_") for name in sorted(each.metrics)) or "none"
                raise JobError(f"{each.model} has no {key}; there is {known}")
            figures.append(each.metrics[key])
        gain = (figures[0] - figures[1]) * (1 if key.removeprefix("test_") in HIGHER else -1)
        words = f"{key} {figures[0]:.6g}, beside {figures[1]:.6g} of {used.model}"
        return gain > self.by, f"{words}; better by more than {self.by:g} is asked for"
