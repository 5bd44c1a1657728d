"""`colonnade predict MODEL FILE --explain`: what this party's own columns did to scores, from its own disk.

Nothing is sent and nobody is asked. A linear model's score is a sum over columns, so the party that knows its
weights knows its columns' SHAP values, and nobody else does. The mean that they are counted from is that of
all rows of the entry that the model was trained on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from colonnade.credit.attribution import Attributions
    from colonnade.job.source import Source


def explain_own(
    model: str, ids_file: Source, config: Path, out: Source, data: str | None, *, reasons: int
) -> None:
    """Write the SHAP values of this party's own columns for some ids."""
    import numpy as np

    from colonnade.cli.predict import keys_of, write_rows
    from colonnade.credit.attribution import linear_values, means_of
    from colonnade.data.read.files import load_ids
    from colonnade.deploy.models.serving import Serving
    from colonnade.deploy.programs.scoring import read_rows
    from colonnade.deploy.rows.rows import digests
    from colonnade.deploy.settings import read_settings
    from colonnade.deploy.terms.terms import Scoring
    from colonnade.errors import ShareError

    settings = read_settings(config)
    share = Serving(settings.state).load(model)
    if share.manifest.kind != "linear":
        raise ShareError(
            f"{model}: a score of {share.manifest.kind} is not a sum over columns, so no party knows its "
            "part alone; where one machine holds all shares, `colonnade predict DIR FILE --explain` does. "
            "Of secureboost's trees --explain without --reasons at the label holder has one a party"
        )
    trained, made = share.manifest.terms, share.preparation
    keys = keys_of(settings, trained.parties[settings.name].data, data)
    columns = [part.tolist() for part in load_ids(ids_file, keys)]
    asked = [
        Scoring(model=model, asker=settings.name, parties=(settings.name,), data=entry)
        for entry in (data, None)
    ]
    own, known = (read_rows(settings, share, each, None) for each in asked)
    held = {bytes(each): row for row, each in enumerate(own.ids)}
    places = [held.get(bytes(each)) for each in digests(columns, trained.align.keys, keys)]
    there = np.array([place for place in places if place is not None], dtype=np.int64)
    X = made.transform(own.table.take(there)).X
    means = means_of(made.transform(known.table).X)
    found = linear_values(settings.name, made, share.arrays, X, means)
    lines = iter(_lines(found, reasons))
    write_rows(out, keys, columns, [None if place is None else next(lines) for place in places])
    click.echo(f"{out}: {len(there)} of {len(places)} ids explained by {len(found.columns)} own columns")


def by_party(model: str, config: Path) -> bool:
    """Return whether a model's trees are here, whose holder can say what every party's columns did."""
    from colonnade.deploy.models.serving import Serving
    from colonnade.deploy.settings import read_settings

    settings = read_settings(config)
    found = Serving(settings.state).find(model)
    return found.kind == "trees" and found.terms.server == settings.name


def _lines(found: Attributions, reasons: int) -> list[dict[str, Any]]:
    """Return a row's values by name: of every own column, and those that raise its score most."""
    names = [f"shap_{column}" for _, column in found.columns]
    lines = [dict(zip(names, row, strict=True)) for row in found.values.tolist()]
    if reasons:
        for line, given in zip(lines, found.reasons(reasons), strict=True):
            for k in range(reasons):
                line[f"reason_{k + 1}"] = given[k][1] if k < len(given) else ""
    return lines
