"""How good a model is on rows it has not seen: curves, confusion, calibration, residuals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import expit

from colonnade.arrays import Floats
from colonnade.credit.calibration import Point, brier, reliability
from colonnade.credit.cuts import Confusion, Flags, Thresholds, confusion_matrix, part
from colonnade.credit.measures import Gain, gains
from colonnade.losses import Loss
from colonnade.metrics import auc
from colonnade.report.html import Html, beside, joined, table, tag
from colonnade.report.svg import Axis, Chart, percent, side_by_side
from colonnade.result import Described
from colonnade.test_scores import TestScores

DOTS, BARS = 800, 30


def quality(scores: TestScores, data: Described, loss: Loss | None) -> Html:
    """Return what the test scores tell, for two classes, several, or a number."""
    if not len(scores.y):
        return tag("p", "There were no test rows.")
    if scores.z.ndim == 2:
        return _classes(scores, data)
    # two classes are coded -1 and 1; a number may be so by chance, and then its task says what it is
    if data.task != "regression" and set(np.unique(scores.y)) <= {-1.0, 1.0}:
        return _two_classes(scores, data)
    return _numbers(scores.y, scores.z if loss is None else loss.predict(scores.z))


def roc_of(runs: Mapping[str, TestScores]) -> Html:
    """Return the ROC curves of several runs over each other."""
    chart = Chart("ROC", Axis("false positive rate"), Axis("true positive rate"))
    chart.rule((0, 0), (1, 1))
    for k, (name, scores) in enumerate(runs.items()):
        positive = scores.y > 0
        if positive.any() and not positive.all():
            found = Thresholds.of(scores.z, positive)
            chart.line(found.fpr, found.tpr, k, f"{name}: AUC {auc(scores.z, positive):.4f}")
    return chart.render()


# -- two classes ------------------------------------------------------------------------------------


def _two_classes(scores: TestScores, data: Described) -> Html:
    positive = scores.y > 0
    if positive.all() or not positive.any():
        return tag(
            "p", f"All {len(positive):,} test rows have the same label: there is nothing to tell apart."
        )
    shown = expit(scores.z) if scores.with_probabilities else scores.z
    found = Thresholds.of(shown, positive)
    ks, best = found.ks()
    word = "probability" if scores.with_probabilities else "score"
    figures = [
        _roc(found, auc(scores.z, positive)),
        _precision_recall(found),
        _ks(found, ks, best, word),
        _gains(found),
        _distribution(shown, positive, word),
    ]
    if scores.with_probabilities:
        figures.append(_calibration(reliability(shown, positive), brier(shown, positive)))
    middle = 0.5 if scores.with_probabilities else 0.0
    named = f"{', '.join(data.positive)} " if data.positive else ""
    counts = f"{int(positive.sum()):,} of {len(positive):,} test rows are positive ({named}coded as 1)."
    return joined(
        tag("p", counts),
        side_by_side(*figures),
        _confusions(shown, positive, {f"{middle:g}": middle, f"KS: {best:.4g}": best}, word),
        _lift_table(gains(shown, positive), word),
    )


def _roc(found: Thresholds, area: float) -> Html:
    chart = Chart("ROC curve", Axis("false positive rate"), Axis("true positive rate"))
    chart.rule((0, 0), (1, 1))
    chart.line(found.fpr, found.tpr)
    return chart.render(f"AUC {area:.4f}, Gini {2 * area - 1:.4f}. Dotted: guessing.")


def _precision_recall(found: Thresholds) -> Html:
    chart = Chart("Precision and recall", Axis("recall"), Axis("precision"))
    base = float(found.precision[-1])
    chart.rule((0, base), (1, base))
    chart.line(found.tpr[1:], found.precision)
    return chart.render(f"Average precision {found.average_precision():.4f}. Dotted: guessing, {base:.4f}.")


def _ks(found: Thresholds, ks: float, best: float, word: str) -> Html:
    low, high = float(found.at[-1]), float(found.at[0])
    if low == high:
        low, high = low - 0.5, high + 0.5
    chart = Chart("Kolmogorov-Smirnov", Axis(word, low, high), Axis("rows below"))
    chart.rule((best, 0), (best, 1))
    chart.line(found.at, 1 - found.fpr[1:], 0, "negative")
    chart.line(found.at, 1 - found.tpr[1:], 1, "positive")
    return chart.render(f"KS {ks:.4f}, at {word} {best:.4g} (dotted).")


def _gains(found: Thresholds) -> Html:
    rows = found.true + found.false
    reached = np.concatenate([[0.0], rows / rows[-1]])
    base = float(found.precision[-1])
    chart = Chart(
        "Gain", Axis("rows taken, best first", words=percent), Axis("positives among them", words=percent)
    )
    chart.rule((0, 0), (1, 1))
    chart.line([0, base, 1], [0, 1, 1], 2, "perfect")
    chart.line(reached, found.tpr, 0, "this model")
    tenth = float(np.interp(0.1, reached, found.tpr))
    return chart.render(
        f"The best tenth of the rows holds {percent(tenth)} of the positives. Dotted: guessing."
    )


def _distribution(shown: Floats, positive: Flags, word: str) -> Html:
    edges = np.histogram_bin_edges(shown, BARS)
    middles = (edges[:-1] + edges[1:]) / 2
    parts = [np.histogram(shown[rows], edges)[0] / rows.sum() for rows in (~positive, positive)]
    x, top = Axis.around(word, edges.tolist()), float(max(part.max() for part in parts))
    chart = Chart("Scores by class", x, Axis("part of the class", 0, top, words=percent))
    for k, name in enumerate(("negative", "positive")):
        chart.line(middles, parts[k], k, name)
    return chart.render(f"In {BARS} steps of equal width.")


def _calibration(points: list[Point], brier: float) -> Html:
    top = max(*(each.interval()[1] for each in points), *(each.predicted for each in points))
    chart = Chart("Calibration", Axis("predicted", 0, top), Axis("happened", 0, top))
    chart.rule((0, 0), (top, top))
    for each in points:
        low, high = each.interval()
        chart.rule((each.predicted, low), (each.predicted, high))
    chart.dots([each.predicted for each in points], [each.observed for each in points])
    caption = f"Tenths of the rows with 95% intervals. Brier score {brier:.4f}."
    return chart.render(caption)


def _confusions(shown: Floats, positive: Flags, thresholds: Mapping[str, float], word: str) -> Html:
    head = [f"positive from {word}", "true +", "false +", "false −", "true −"]
    rows = []
    for name, threshold in thresholds.items():
        found = Confusion.at(threshold, shown, positive)
        counts = (found.true_positive, found.false_positive, found.false_negative, found.true_negative)
        rates = found.rates()
        rows.append([name, *(f"{count:,}" for count in counts), *(f"{rate:.4f}" for rate in rates.values())])
    caption = (
        "Confusion at two thresholds: the middle, and the one that best separates the classes on these test "
        "rows (KS), whose figures are therefore slightly optimistic. Neither considers what an error costs."
    )
    return table(caption, [*head, *rates], rows, class_="numbers")


def _lift_table(tenths: list[Gain], word: str) -> Html:
    rows = [
        [
            str(k), f"{each.rows:,}", f"{each.mean:.4f}", f"{each.bads:,}", f"{each.rate:.4f}",
            f"{each.lift:.2f}", percent(each.covered), percent(each.captured), f"{each.cumulative_lift:.2f}",
        ]
        for k, each in enumerate(tenths, 1)
    ]  # fmt: skip
    head = f"tenth,rows,mean {word},positive,rate,lift,rows so far,caught,lift so far".split(",")
    return table("Lift by tenths of the test rows, the highest scores first", head, rows, class_="numbers")


# -- several classes --------------------------------------------------------------------------------


def _classes(scores: TestScores, data: Described) -> Html:
    count = scores.z.shape[1]
    y, predicted = scores.y.astype(np.int64), scores.z.argmax(axis=1).astype(np.int64)
    names = data.classes if len(data.classes) == count else [str(k) for k in range(count)]
    matrix = confusion_matrix(y, predicted, count)
    rows = []
    for k, name in enumerate(names):
        right, held, said = int(matrix[k, k]), int(matrix[k].sum()), int(matrix[:, k].sum())
        rates = part(right, said), part(right, held), part(2 * right, said + held)
        rows.append([name, f"{held:,}", *(f"{rate:.4f}" for rate in rates)])
    head = ["class", "test rows", "precision", "recall", "F1"]
    return beside(
        table("Every class against all others", head, rows, class_="numbers"), _heat_matrix(matrix, names)
    )


def _heat_matrix(matrix: np.ndarray, names: list[str]) -> Html:
    totals = np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    rows = [
        [
            name,
            *(
                heat_cell(f"{n:,}", n / total)
                for n, total in zip(row, np.repeat(whole, len(row)), strict=True)
            ),
        ]
        for name, row, whole in zip(names, matrix.tolist(), totals, strict=True)
    ]
    return table(
        "Confusion: true class down, predicted class across", ["", *names], rows, class_="heat numbers"
    )


def heat_cell(text: str, part: float) -> Html:
    """Return a cell whose ground is the deeper, the nearer `part` is to 1."""
    return tag("td", text, style=f"--heat:{max(0.0, min(1.0, part)):.2f}")


# -- numbers ----------------------------------------------------------------------------------------


def _numbers(y: Floats, predicted: Floats) -> Html:
    residual = predicted - y
    both = Axis.around("", [*y.tolist(), *predicted.tolist()])
    low, high = both.low, both.high
    chosen = np.unique(np.linspace(0, len(y) - 1, min(DOTS, len(y))).astype(int))
    chart = Chart("Predicted and actual", Axis("actual", low, high), Axis("predicted", low, high))
    chart.rule((low, low), (high, high))
    chart.dots(y[chosen], predicted[chosen], radius=2)
    some = "" if len(chosen) == len(y) else f"{len(chosen)} of {len(y):,} test rows, evenly chosen. "
    left = side_by_side(
        chart.render(f"{some}Dotted: a perfect prediction."), *_residuals(predicted, residual, chosen)
    )
    marks = np.quantile(residual, [0.05, 0.25, 0.5, 0.75, 0.95])
    row = [
        f"{float(residual.mean()):.5g}",
        *(f"{mark:.5g}" for mark in marks),
        f"{np.abs(residual).mean():.5g}",
    ]
    head = ["", "mean", "5%", "25%", "median", "75%", "95%", "mean size"]
    return joined(left, table("Predicted minus actual", head, [["error", *row]], class_="numbers"))


def _residuals(predicted: Floats, residual: Floats, chosen: np.ndarray) -> list[Html]:
    scatter = Chart(
        "Errors by prediction",
        Axis.around("predicted", predicted.tolist()),
        Axis.around("predicted − actual", residual.tolist()),
    )
    scatter.rule((scatter.x.low, 0.0), (scatter.x.high, 0.0))
    scatter.dots(predicted[chosen], residual[chosen], radius=2)
    counts, edges = np.histogram(residual, bins=BARS)
    x = Axis.around("predicted − actual", edges.tolist())
    histogram = Chart("How large errors are", x, Axis("test rows", 0, float(counts.max())))
    for count, low, high in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        histogram.bar(low, high, count, title=f"{count:,} rows from {low:.4g} to {high:.4g}")
    return [scatter.render(), histogram.render()]
