"""`colonnade credit`: weight of evidence of a job's columns; measures, points and cards of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import JSON, print_json

if TYPE_CHECKING:
    from colonnade.credit.linear import LinearModel
    from colonnade.data.table import RawTable
    from colonnade.test_scores import TestScores

FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


@click.group()
def credit() -> None:
    """What a risk department asks of a model: WOE, points, KS, calibration, a card.

    \b
    Example:
      colonnade credit woe job.toml
      colonnade credit scorecard runs/job
    """


@credit.command()
@click.argument("job_file", metavar="JOB.toml", type=click.Path(path_type=Path))
@click.option("--bins", is_flag=True, help="Also show every bin.")
@JSON
def woe(job_file: Path, bins: bool, as_json: bool) -> None:
    """Weigh every party's columns as JOB.toml says, and show their information value.

    \b
    Example:
      colonnade credit woe job.toml --bins
    """
    from colonnade.cli.show import console, table
    from colonnade.job import read_job
    from colonnade.run.federate import weigh_columns_of

    weighed = weigh_columns_of(read_job(job_file))
    columns = [(party, each) for party, done in weighed.items() for each in done.columns]
    if as_json:
        print_json(
            [
                {"party": party, "column": each.bins.column, "iv": each.iv}
                | {"bins": [{"bin": b, "woe": w} for b, w in zip(each.names(), each.woe, strict=True)]}
                for party, each in columns
            ]
        )
        return
    columns.sort(key=lambda each: -each[1].iv)
    rows = [(party, each.bins.column, f"{each.iv:.4f}", str(len(each.woe))) for party, each in columns]
    console().print(table(["party", "column", "IV", "bins"], rows, right=(2, 3)))
    if bins:
        lines = [
            (party, each.bins.column, name, f"{value:+.4f}")
            for party, each in columns
            for name, value in zip(each.names(), each.woe, strict=True)
        ]
        console().print(table(["party", "column", "bin", "WOE"], lines, right=(3,)))


@credit.command()
@FOLDER
@JSON
def measure(folder: Path, as_json: bool) -> None:
    """KS, Gini, Brier, Hosmer-Lemeshow and the lift table of the test rows of the run in DIR.

    \b
    Example:
      colonnade credit measure runs/job
    """
    from scipy.special import expit

    from colonnade.cli.show import console, table
    from colonnade.credit.calibration import reliability
    from colonnade.credit.card import measures_of
    from colonnade.credit.measures import gains
    from colonnade.errors import DataError

    scores = _test_scores(folder)
    found, bad = measures_of(scores), scores.y > 0
    if not found:
        raise DataError(f"{folder}: these measures are of models with two classes")
    lift = gains(scores.z, bad)
    curve = reliability(expit(scores.z), bad) if scores.with_probabilities else []
    if as_json:
        print_json({"measures": found, "gains": lift, "reliability": [each._asdict() for each in curve]})
        return
    terminal = console()
    terminal.print(table(["measure", "value"], [(k, f"{v:.4f}") for k, v in found.items()], right=(1,)))
    rows = [
        (str(each.rows), str(each.bads), f"{each.rate:.2%}", f"{each.lift:.2f}", f"{each.captured:.1%}")
        for each in lift
    ]
    names = ["rows", "bads", "bad rate", "lift", "bads so far"]
    terminal.print(table(names, rows, right=range(5), title="highest scores first"))
    if curve:
        rows2 = [(str(each.rows), f"{each.predicted:.2%}", f"{each.observed:.2%}") for each in curve]
        terminal.print(table(["rows", "predicted", "observed"], rows2, right=range(3), title="calibration"))


@credit.command()
@FOLDER
@click.argument("scores", metavar="SCORES.csv", type=click.Path(path_type=Path))
@JSON
def stability(folder: Path, scores: Path, as_json: bool) -> None:
    """PSI of the scores in SCORES.csv against the test rows of the run in DIR.

    \b
    Example:
      colonnade credit stability runs/job scores.csv
    """
    from colonnade.credit.measures import psi
    from colonnade.data.files import load

    now = load(scores).column("score").astype(float)
    value = psi(_test_scores(folder).z, now)
    if as_json:
        print_json({"psi": value, "rows": len(now)})
        return
    word = "stable" if value < 0.1 else "a shift: look into it" if value > 0.25 else "some change"
    click.echo(f"PSI {value:.4f} over {len(now)} scores: {word}")


@credit.command()
@FOLDER
@click.option(
    "--pdo",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    show_default=True,
    help="Points that double the odds.",
)
@click.option("--base-score", type=float, default=600.0, show_default=True, help="Points at the base odds.")
@click.option(
    "--base-odds",
    type=click.FloatRange(min=0, min_open=True),
    default=50.0,
    show_default=True,
    help="Goods to one bad at the base score.",
)
@click.option("--exact", is_flag=True, help="Do not round points.")
@JSON
def scorecard(
    folder: Path, pdo: float, base_score: float, base_odds: float, exact: bool, as_json: bool
) -> None:
    """The points of every bin, from a run whose columns were weighed (woe = true under [data]).

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


@credit.command()
@FOLDER
@JSON
def coefficients(folder: Path, as_json: bool) -> None:
    """Coefficients with standard errors, p-values and VIF, from all columns together on this machine.

    \b
    Example:
      colonnade credit coefficients runs/job
    """
    import numpy as np

    from colonnade.cli.show import console, table
    from colonnade.credit.inference import coefficient_table
    from colonnade.run.kept import KeptModel

    model, plan = _model(folder), KeptModel.read(folder).plan
    model.require_logistic("a table of p-values")
    tables = _training_rows(folder)
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


@credit.command()
@FOLDER
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Write it there instead of printing it.")
@JSON
def card(folder: Path, out: Path | None, as_json: bool) -> None:
    """A model card of the run in DIR, in Markdown.

    \b
    Example:
      colonnade credit card runs/job --out card.md
    """
    import msgspec

    from colonnade.cli.folder import RESULT
    from colonnade.credit.card import as_markdown, model_card
    from colonnade.errors import DataError
    from colonnade.result import read_result
    from colonnade.test_scores import FILE

    if not (folder / RESULT).is_file():
        raise DataError(f"{folder}: there is no {RESULT}; `colonnade run JOB.toml --out {folder}` writes one")
    scores = _test_scores(folder) if (folder / FILE).is_file() else None
    made = model_card(read_result(folder / RESULT), scores)
    text = msgspec.json.format(msgspec.json.encode(made), indent=2).decode() if as_json else as_markdown(made)
    if out is None:
        click.echo(text)
        return
    out.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"written": str(out)})
    else:
        click.echo(f"written: {out}")


@credit.command()
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
    from colonnade.credit.boosting import trees_to_sklearn
    from colonnade.credit.export import (
        feature_names,
        onnx_bytes,
        skops_bytes,
        to_sklearn,
        tree_features,
        trees_onnx_bytes,
    )
    from colonnade.credit.pipeline import to_pipeline
    from colonnade.credit.trees import TreeModel
    from colonnade.errors import DataError, ShareError
    from colonnade.run.kept import KeptModel

    if out.exists():
        raise ShareError(f"{out} exists and is not overwritten")
    kept = KeptModel.read(folder)
    if {share.manifest.kind for share in kept.shares.values()} == {"trees"}:
        if out.suffix not in (".onnx", ".skops") or raw:
            raise DataError(f"{out}: trees take prepared columns; write .onnx or .skops, without --raw")
        trees = TreeModel.of(kept)
        names = tree_features(trees)
        if out.suffix == ".onnx":
            content = trees_onnx_bytes(trees)
        else:
            content = skops_bytes(trees_to_sklearn(trees, names))
        _write_export(out, content, names, "prepared", as_json)
        return
    model = _model(folder)
    match out.suffix:
        case ".onnx" if raw:
            raise DataError("--raw: an ONNX graph takes prepared columns; write .skops")
        case ".onnx":
            content, features = onnx_bytes(model), feature_names(model)
        case ".skops" if raw:
            pipeline = to_pipeline(model)
            content, features = skops_bytes(pipeline), pipeline["prepare"].feature_names_in_.tolist()
        case ".skops":
            content, features = skops_bytes(to_sklearn(model)), feature_names(model)
        case _:
            raise DataError(f"{out}: write .onnx or .skops")
    _write_export(out, content, features, "raw" if raw else "prepared", as_json)


def _write_export(out: Path, content: bytes, features: list[str], kind: str, as_json: bool) -> None:
    out.write_bytes(content)
    if as_json:
        print_json({"written": str(out), "features": features})
        return
    click.echo(f"written: {out}, of {len(features)} {kind} columns")


@credit.command()
@FOLDER
@JSON
def importance(folder: Path, as_json: bool) -> None:
    """What every column did in the boosted trees of the run in DIR: its part of gain and cover, its splits.

    \b
    Example:
      colonnade credit importance runs/job
    """
    from dataclasses import asdict

    from colonnade.cli.show import console, table
    from colonnade.credit.trees import TreeModel
    from colonnade.run.kept import KeptModel

    found = TreeModel.of(KeptModel.read(folder)).importances()
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = [(x.party, x.column, f"{x.gain:.1%}", f"{x.cover:.1%}", str(x.splits)) for x in found]
    console().print(table(["party", "column", "gain", "cover", "splits"], rows, right=(2, 3, 4)))


def _test_scores(folder: Path) -> TestScores:
    """The test scores of a run."""
    from colonnade.errors import DataError
    from colonnade.test_scores import FILE, TestScores

    if not (folder / FILE).is_file():
        raise DataError(f"{folder}: there is no {FILE}; `colonnade run JOB.toml --out {folder}` writes one")
    return TestScores.read(folder / FILE)


def _model(folder: Path) -> LinearModel:
    from colonnade.credit.linear import LinearModel
    from colonnade.run.kept import KeptModel

    return LinearModel.of(KeptModel.read(folder))


def _training_rows(folder: Path) -> dict[str, RawTable]:
    """Every party's raw training rows, read again by the job of the run."""
    from colonnade.cli.folder import JOB
    from colonnade.errors import DataError
    from colonnade.job import read_job
    from colonnade.run.federate import read
    from colonnade.run.resolve import compose

    if not (folder / JOB).is_file():
        raise DataError(f"{folder}: there is no {JOB}, which names the training rows; run the job again")
    assigned = read(compose(read_job(folder / JOB)))
    return {party: data.train for party, data in assigned.parties.items()}
