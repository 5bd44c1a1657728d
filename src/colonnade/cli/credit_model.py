"""`colonnade credit`, what is inside a model: points, coefficients, importances; and the model as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import JSON, print_json

if TYPE_CHECKING:
    from colonnade.credit.linear import LinearModel
    from colonnade.data.table import RawTable
    from colonnade.run.run_shares import KeptModel

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
ABOVE_ZERO = click.FloatRange(min=0, min_open=True)


@click.command()
@FOLDER
@click.option("--pdo", type=ABOVE_ZERO, default=20.0, show_default=True, help="Points that double the odds.")
@click.option("--base-score", type=float, default=600.0, show_default=True, help="Points at the base odds.")
@click.option(
    "--base-odds",
    type=ABOVE_ZERO,
    default=50.0,
    show_default=True,
    help="Goods to one bad at the base score.",
)
@click.option("--exact", is_flag=True, help="Do not round points.")
@JSON
def scorecard(
    folder: Path, pdo: float, base_score: float, base_odds: float, exact: bool, as_json: bool
) -> None:
    """Show the points of every bin, from a run whose columns were weighed (woe = true under [data]).

    \b
    Example:
      colonnade credit scorecard runs/job --pdo 20
    """
    from colonnade.cli.show import console, table
    from colonnade.credit.scorecard import Scaling, Scorecard

    card = Scorecard.of(_model(folder), Scaling(pdo, base_score, base_odds, rounded=not exact))
    if as_json:
        print_json(card)
        return
    digits = 2 if exact else 0
    rows = [("", "(every row)", "", "", f"{card.base:.{digits}f}")]
    rows += [(x.party, x.column, x.bin, f"{x.woe:+.4f}", f"{x.points:.{digits}f}") for x in card.lines]
    console().print(table(["party", "column", "bin", "WOE", "points"], rows, right=(3, 4)))


@click.command()
@FOLDER
@JSON
def coefficients(folder: Path, as_json: bool) -> None:
    """Show coefficients with standard errors, p-values and VIF, from all columns together on this machine.

    \b
    Example:
      colonnade credit coefficients runs/job
    """
    import numpy as np

    from colonnade.cli.show import console, table
    from colonnade.credit.inference import coefficient_table
    from colonnade.run.run_shares import KeptModel

    model, plan = _model(folder), KeptModel.read(folder).plan
    model.require_logistic("a table of p-values")
    tables = training_rows(folder)
    X = [np.asarray(b.preparation.transform(tables[p]).X) for p, b in model.blocks.items()]
    names = [(p, c) for p, b in model.blocks.items() for c in b.preparation.outputs]
    weights = np.concatenate([b.weights for b in model.blocks.values()])
    found = coefficient_table(names, np.hstack(X), weights, plan.objective.l2)
    if as_json:
        print_json(found)
        return
    rows = [
        (c.party, c.column, f"{c.weight:+.4f}", f"{c.error:.4f}", f"{c.z:+.2f}", f"{c.p:.2g}",
         "" if c.vif is None else f"{c.vif:.2f}")
        for c in found
    ]  # fmt: skip
    console().print(table(["party", "column", "weight", "error", "z", "p", "VIF"], rows, right=range(2, 7)))


@click.command()
@FOLDER
@click.argument("out", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--raw", is_flag=True, help="A .skops Pipeline that takes columns as the files have them.")
@JSON
def export(folder: Path, out: Path, raw: bool, as_json: bool) -> None:
    """Write the model in DIR, linear or trees, as FILE.onnx, or as FILE.skops for scikit-learn.

    \b
    Example:
      colonnade credit export runs/job model.onnx
      colonnade credit export runs/job model.skops --raw
    """
    from colonnade.cli.folder import check_file
    from colonnade.disk import drafted
    from colonnade.errors import ShareError
    from colonnade.run.run_shares import KeptModel

    if out.exists():
        raise ShareError(f"{out} exists and is not overwritten")
    check_file(out)
    kept = KeptModel.read(folder)
    trees = {share.manifest.kind for share in kept.shares.values()} == {"trees"}
    content, features = _trees_as(kept, out, raw) if trees else _linear_as(_model(folder), out, raw)
    with drafted(out) as draft:
        draft.write_bytes(content)
    if as_json:
        print_json({"written": str(out), "features": features})
        return
    click.echo(f"written: {out}, of {len(features)} {'raw' if raw else 'prepared'} columns")


def _trees_as(kept: KeptModel, out: Path, raw: bool) -> tuple[bytes, list[str]]:
    """Return boosted trees as the content of a file, and the columns that they take."""
    from colonnade.credit.boosting import trees_to_sklearn
    from colonnade.credit.export import skops_bytes, tree_features, trees_onnx_bytes
    from colonnade.credit.trees import TreeModel
    from colonnade.errors import DataError

    if out.suffix not in (".onnx", ".skops") or raw:
        raise DataError(f"{out}: trees take prepared columns; write .onnx or .skops, without --raw")
    trees = TreeModel.of(kept)
    names = tree_features(trees)
    if out.suffix == ".onnx":
        return trees_onnx_bytes(trees), names
    return skops_bytes(trees_to_sklearn(trees, names)), names


def _linear_as(model: LinearModel, out: Path, raw: bool) -> tuple[bytes, list[str]]:
    """Return a linear model as the content of a file, and the columns that it takes."""
    from colonnade.credit.export import feature_names, onnx_bytes, skops_bytes, to_sklearn
    from colonnade.credit.pipeline import to_pipeline
    from colonnade.errors import DataError

    match out.suffix:
        case ".onnx" if raw:
            raise DataError("--raw: an ONNX graph takes prepared columns; write .skops")
        case ".onnx":
            return onnx_bytes(model), feature_names(model)
        case ".skops" if raw:
            pipeline = to_pipeline(model)
            return skops_bytes(pipeline), pipeline["prepare"].feature_names_in_.tolist()
        case ".skops":
            return skops_bytes(to_sklearn(model)), feature_names(model)
    raise DataError(f"{out}: write .onnx or .skops")


@click.command()
@FOLDER
@JSON
def importance(folder: Path, as_json: bool) -> None:
    """Show each column's share of gain, cover and splits in the boosted trees of the run in DIR.

    \b
    Example:
      colonnade credit importance runs/job
    """
    from dataclasses import asdict

    from colonnade.cli.show import console, table
    from colonnade.credit.trees import TreeModel
    from colonnade.run.run_shares import KeptModel

    found = TreeModel.of(KeptModel.read(folder)).importances()
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = [(x.party, x.column, f"{x.gain:.1%}", f"{x.cover:.1%}", str(x.splits)) for x in found]
    console().print(table(["party", "column", "gain", "cover", "splits"], rows, right=(2, 3, 4)))


def _model(folder: Path) -> LinearModel:
    from colonnade.credit.linear import LinearModel
    from colonnade.run.run_shares import KeptModel

    return LinearModel.of(KeptModel.read(folder))


def training_rows(folder: Path) -> dict[str, RawTable]:
    """Return every party's raw training rows, read again by the job of the run."""
    from colonnade.cli.folder import JOB
    from colonnade.errors import DataError
    from colonnade.job import read_job
    from colonnade.run.federate import read
    from colonnade.run.resolve import compose

    if not (folder / JOB).is_file():
        raise DataError(f"{folder}: there is no {JOB}, which names the training rows; run the job again")
    assigned = read(compose(read_job(folder / JOB)))
    return {party: data.train for party, data in assigned.parties.items()}
