"""What `colonnade describe` shows and stores: columns by party, and how all of them go together."""

from __future__ import annotations

import msgspec

from colonnade.describe.columns import ColumnSummary
from colonnade.describe.joint import Statistics


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of the training rows: each party's own, and all together.

    Between companies only one's own columns are described. `repeated` are those that were not correlated, as
    they are constant or the others of their party give them; nor were `rare` ones between companies, in which
    single rows weigh too much.
    """

    job: str
    parties: dict[str, list[ColumnSummary]]
    joint: Statistics
    repeated: dict[str, list[str]] = {}
    rare: dict[str, list[str]] = {}
    told: bool = False  # with noise and in steps, as it is between companies
