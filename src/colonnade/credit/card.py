"""A model card: one page about a finished run that says what the model is, how good, and what it tells.

Everything comes from the folder of the run; nothing is made up where the run does not know it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from colonnade.credit.calibration import brier, hosmer_lemeshow
from colonnade.credit.measures import gini, ks
from colonnade.result import Result
from colonnade.test_scores import TestScores


def measures_of(scores: TestScores) -> dict[str, float]:
    """Return KS and Gini of test scores, and how well probabilities are calibrated where the scores are
    logistic."""
    bad = scores.y > 0
    if scores.z.ndim != 1 or not 0 < bad.sum() < len(bad):
        return {}
    found = {"ks": ks(scores.z, bad), "gini": gini(scores.z, bad)}
    if scores.with_probabilities:
        from scipy.special import expit  # slow to load, and a run needs none of this

        p = expit(scores.z)
        statistic, value = hosmer_lemeshow(p, bad)
        found |= {"brier": brier(p, bad), "hosmer_lemeshow": statistic, "hosmer_lemeshow_p": value}
    return found


def model_card(result: Result, scores: TestScores | None = None) -> dict[str, Any]:
    """Return the card as plain data."""
    return {
        "model": {
            "algorithm": result.algorithm,
            "dataset": result.dataset,
            "version": result.version,
            "parties": result.parties,
            "label_holders": result.active,
            "converged": result.converged,
            "seed": result.seed,
        },
        "data": msgspec.to_builtins(result.data),
        "quality": {**result.metrics, **(measures_of(scores) if scores is not None else {})},
        "pooled": result.pooled,
        "cost": {
            "seconds": result.cost.seconds,
            "epochs": result.cost.epochs,
            "bytes_sent": result.cost.bytes_sent,
        },
        "privacy": msgspec.to_builtins(result.privacy),
    }


def as_markdown(card: dict[str, Any]) -> str:
    """Return the card as Markdown."""
    model, data = card["model"], card["data"]
    lines = [f"# Model card: {model['algorithm']} on {model['dataset']}", ""]
    lines += [
        f"One model over the columns of {', '.join(model['parties'])}; the label is held by "
        f"{', '.join(model['label_holders'])}. Trained by Colonnade {model['version']}, "
        f"seed {model['seed']}.",
        "",
    ]
    if model["converged"] is not None:
        lines += ["Training converged." if model["converged"] else "Training did not converge.", ""]
    lines += ["## Data", "", *_data_lines(data), ""]
    lines += [
        "## Quality on rows the model has not seen",
        "",
        "| measure | model | pooled |",
        "|---|---|---|",
    ]
    lines += [
        f"| {name} | {value:.4g} | {_number(card['pooled'].get(name))} |"
        for name, value in card["quality"].items()
    ]
    cost, privacy = card["cost"], card["privacy"]
    lines += ["", "## Cost", ""]
    lines += [f"{cost['epochs']} epochs, {cost['seconds']:.1f} s, {cost['bytes_sent']:,} bytes sent.", ""]
    lines += ["## What the parties learn of each other", ""]
    lines += [f"- scores are summed: {privacy['secure_sum']}", *(f"- {note}" for note in privacy["notes"])]
    if privacy["epsilon"] is not None:
        lines += [f"- {privacy['mechanism']}: epsilon {privacy['epsilon']:.3g}, delta {privacy['delta']:.1g}"]
    lines += ["", "## To be filled in by its owner", ""]
    lines += [f"- {what}:" for what in ("intended use", "out of scope", "owner", "next review", "signed")]
    return "\n".join(lines) + "\n"


def _data_lines(data: dict[str, Any]) -> list[str]:
    lines = [f"- {what} rows: {count:,}" for what, count in data["rows"].items()]
    lines += [f"- columns of {party}: {count}" for party, count in data["columns"].items()]
    if data["positive"]:
        lines.append(f"- bad means the label {', '.join(data['positive'])}")
    if data["base_rate"] is not None:
        lines.append(f"- base rate of bads: {data['base_rate']:.2%}")
    lines += [f"- {party}: {said}" for party, sentences in data["done"].items() for said in sentences]
    lines += [f"- warning: {text}" for text in data["warnings"]]
    return lines or ["- the run did not describe its data"]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
