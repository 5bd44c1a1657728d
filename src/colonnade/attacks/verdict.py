"""How far an attack came: its guess beside the truth, with an interval, and beside what anybody can guess.

Labels of two classes: the attacker is given the labels of a tenth of the rows, to set one threshold and tell
the sides apart; what it gets right is counted on the others. Columns: the correlation of the column that is
given away most, beside how well the attacker could have guessed that column from its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from colonnade.arrays import Floats, Numbers
from colonnade.attacks.case import BinGuess, Case, ColumnGuess, LabelGuess, UnnamedColumns
from colonnade.attacks.confidence import Interval, of_auc, of_correlation, of_part
from colonnade.attacks.epsilon import epsilon_at_least
from colonnade.attacks.registry import Attack
from colonnade.data.table import INTERCEPT, Table
from colonnade.findings import Finding
from colonnade.job.plan import Task
from colonnade.metrics import auc
from colonnade.trees.bins import Cuts

KNOWN = 10  # of one row in this many the attacker knows the label
LEAST = 40  # rows below which nothing is said
ALIKE = 0.9  # the correlation from which a column counts as found


def on_labels(attack: Attack, case: Case, guess: LabelGuess, y: Floats, task: Task) -> Finding:
    """Return how many labels an attack got right."""
    scores = guess.scores
    heard = scores >= 0 if task == "multiclass" else scores != 0
    if heard.sum() < LEAST:
        return _nothing(attack, case, f"the replies were about {heard.sum()} rows only")
    of = f"of {heard.mean():.0%} of the rows" if not heard.all() else ""
    scores, y = scores[heard], y[heard]
    if task == "regression":
        found = of_correlation(abs(_correlation(scores, y)), len(y))
        return _finding(attack, case, found, 0.0, f"a correlation of {_span(found)}", "0", of)
    test = np.arange(len(y)) % KNOWN != 0
    if task == "multiclass":
        right, commonest = scores == y, np.unique(y, return_counts=True)[1].max() / len(y)
        found = of_part(int(right.sum()), len(y))
        return _finding(attack, case, found, commonest, _part_of_labels(found), f"{commonest:.1%}", of)
    side, threshold = _threshold(scores[~test], y[~test], oriented=guess.oriented)
    positive = side * scores[test] > threshold
    truth = y[test] > 0
    found = of_part(int((positive == truth).sum()), len(truth))
    base = max(truth.mean(), 1 - truth.mean())
    area = _area(side * scores[test], truth)
    words = _part_of_labels(found) + (f"; AUC {_span(area)}" if area else "")
    more = area is not None and area.low > 0.5
    return _finding(attack, case, found, base, words, f"{base:.1%}; AUC 0.5", of, also=more)


def on_columns(
    attack: Attack, case: Case, guess: ColumnGuess, tables: Mapping[str, Table], y: Floats | None
) -> Finding:
    """Return how well an attack knows the column of others that it knows best."""
    if len(guess.rows) < LEAST:
        return _nothing(attack, case, f"only {len(guess.rows)} rows were heard of")
    best, where, looked_at = 0.0, "", 0
    truth: Floats = np.zeros(0)
    for party, found in guess.guess.items():
        table = tables[party]
        for j, name in enumerate(table.columns):
            column = _dense(table.X[guess.rows][:, [j]]).ravel()
            if name == INTERCEPT or np.ptp(column) == 0:
                continue
            looked_at += 1
            size = abs(_correlation(found[:, j if found.shape[1] > 1 else 0], column))
            if size > best:
                best, where, truth = size, f"{name} of {party}", column
    if not looked_at:
        return _nothing(attack, case, "the others have no columns that vary")
    span = of_correlation(best, len(guess.rows), looked_at)
    own = _dense(case.own.X[guess.rows])
    known = own if y is None else np.column_stack([own, y[guess.rows]])
    base = _explained(known, truth)
    words = f"a correlation of {_span(span)} with {where}"
    note = f"the most exposed of {looked_at} columns"
    return _finding(attack, case, span, base, words, f"{base:.2f}, from its own columns", note)


def on_bins(attack: Attack, case: Case, guess: BinGuess, tables: Mapping[str, Table]) -> Finding:
    """Return how many of the others' bins an attack got right, which takes the commonest for the rest."""
    rules, seed = case.plan.settings.trees, case.plan.seed
    right = base = said = cells = 0
    for party, found in guess.bins.items():
        X = tables[party].X
        sets = tables[party].categories if rules.categories == "sets" else ()
        codes = Cuts.of(X, rules.max_bin, seed, sets).codes(X).T.astype(np.int64)
        for truth, bins in zip(codes.T, found.T, strict=True):
            known, commonest = bins >= 0, np.bincount(truth).argmax()
            right += int((np.where(known, bins, commonest) == truth).sum())
            base += int((truth == commonest).sum())
            said += int(known.sum())
            cells += len(truth)
    if not cells:
        return _nothing(attack, case, "no histograms were heard")
    part, guessing = of_part(right, cells), base / cells
    words = f"{part.value:.1%} of the others' bins ({part.low:.1%} to {part.high:.1%})"
    note = (
        f"it names the bin of {said / cells:.0%} of all rows and columns, and takes the commonest elsewhere"
    )
    return _finding(attack, case, part, guessing, words, f"{guessing:.1%}, the commonest bin", note)


def on_unnamed(
    attack: Attack, case: Case, guess: UnnamedColumns, tables: Mapping[str, Table], y: Floats | None
) -> Finding:
    """Return how many of the others' columns an attack has found that does not know their names."""
    if not guess.columns.shape[1]:
        return _nothing(attack, case, "too few measurements, or too many columns, for this attack")
    truth = np.column_stack([_varying(tables[party]) for party in case.widths if party != case.party])
    if not truth.shape[1]:
        return _nothing(attack, case, "the others have no columns that vary")
    alike = exposure(guess.columns, truth)
    own = _dense(case.own.X)
    known = own if y is None else np.column_stack([own, y])
    base = float(np.mean([_explained(known, column) > ALIKE for column in truth.T]))
    cuts, whole = yes_no_found(guess, truth)
    found = of_part(int((alike > ALIKE).sum()), len(alike))
    words = f"{found.value:.0%} of {len(alike)} columns (correlation over {ALIKE:g})"
    if cuts.size:
        words += f"; {cuts.sum()} of {cuts.size} yes/no columns exactly"
    note = f"the median correlation is {np.median(alike):.2f}"
    if whole:
        note += f"; {whole} vectors of two values claimed"
    return _finding(attack, case, found, base, words, f"{base:.0%}, from its own columns", note)


def exposure(found: Floats, truth: Floats) -> Floats:
    """Return, for every true column, the largest correlation with one that was found."""
    one, other = (each - each.mean(axis=0) for each in (found, truth))
    one = one[:, np.any(one != 0, axis=0)]
    one, other = one / np.linalg.norm(one, axis=0), other / np.linalg.norm(other, axis=0)
    alike: Floats = np.abs(one.T @ other).max(axis=0, initial=0.0)
    return alike


def yes_no_found(guess: UnnamedColumns, truth: Floats) -> tuple[Numbers, int]:
    """Return which of the true columns of two values were claimed exactly, and how many claims there were."""
    claims = {_side(cut > 0) for cut in guess.columns[:, : guess.cuts].T}
    of_two = [column for column in truth.T if len(np.unique(column)) == 2]
    return np.array([_side(column > column.min()) in claims for column in of_two], dtype=bool), guess.cuts


def _side(cut: Numbers) -> bytes:
    """Return a cut of the rows in two, in one form for both ways to call the halves."""
    return min(cut.tobytes(), (~cut).tobytes())


def _varying(table: Table) -> Floats:
    """Return a party's columns that are not the same everywhere."""
    X = _dense(table.X)
    return X[:, np.ptp(X, axis=0) > 0] if len(X) and X.shape[1] else np.zeros((table.rows, 0))


def on_coins(
    attack: Attack, case: Case, guess: LabelGuess, y: Floats, coins: Numbers, promised: float, delta: float
) -> Finding:
    """Return the least epsilon that fits how many labels an attack got right of those that were drawn by
    coin."""
    others = np.setdiff1d(np.flatnonzero(guess.scores != 0), coins)
    drawn = coins[guess.scores[coins] != 0]
    scores, side, threshold = guess.scores[drawn], 1.0, 0.0
    if not guess.oriented and len(drawn):  # coins fall on both sides of the middle
        side = 1.0 if _correlation(guess.scores[others], y[others]) >= 0 else -1.0
        threshold = side * float(np.median(scores))
    positive, truth = side * scores > threshold, y[drawn] > 0
    hits, alarms = int((positive & truth).sum()), int((positive & ~truth).sum())
    yes, no = int(truth.sum()), int((~truth).sum())
    # the attacker may name either label, whichever tells more: so each bound holds more surely
    bound = max(
        epsilon_at_least(hits, alarms, yes, no, delta=delta, confidence=0.975),
        epsilon_at_least(no - alarms, yes - hits, no, yes, delta=delta, confidence=0.975),
    )
    broken = bound > promised
    note = f"{len(drawn)} labels drawn by coin; the job promises {promised:g}"
    return Finding(
        attack=f"epsilon, by {attack.name}",
        by=case.party,
        aim="epsilon",
        success=f"an epsilon of at least {bound:.2f}" + (": more than promised" if broken else ""),
        guessing="0",
        note=note,
        value=bound,
        low=bound,
        baseline=0.0,
        found=bound > 0,
    )


def _finding(
    attack: Attack,
    case: Case,
    found: Interval,
    baseline: float,
    words: str,
    guessing: str,
    note: str,
    *,
    also: bool = False,
) -> Finding:
    active = "departs from the protocol, unseen" if attack.active else ""
    sure = bool(found.low > baseline or also)
    closed = f"closed by {attack.closed_by}" if sure else ""
    return Finding(
        attack=attack.name,
        by=case.party,
        aim=attack.aim,
        success=words,
        guessing=guessing,
        note="; ".join(each for each in (f"sees {attack.sees}", note, active, closed) if each),
        value=found.value,
        low=found.low,
        high=found.high,
        baseline=float(baseline),
        found=sure,
        closed_by=attack.closed_by,
    )


def _nothing(attack: Attack, case: Case, why: str) -> Finding:
    return Finding(attack=attack.name, by=case.party, aim=attack.aim, success="not measured", note=why)


def _threshold(scores: Numbers, y: Floats, *, oriented: bool) -> tuple[float, float]:
    """Return which end of the scores is positive, and from where on, so that most of these rows are right."""
    side = 1.0 if oriented or _correlation(scores, y) >= 0 else -1.0
    order = np.argsort(side * scores, kind="stable")
    ranked, positive = side * scores[order], y[order] > 0
    right = np.concatenate([[0], np.cumsum(~positive)]) + np.concatenate(
        [np.cumsum(positive[::-1])[::-1], [0]]
    )
    ends = np.concatenate([ranked[:1] - 1, ranked, ranked[-1:] + 1])
    good = np.flatnonzero(right == right.max())
    at = int(good[len(good) // 2])  # in the middle of all places that are as good
    return side, float(ends[at] + ends[at + 1]) / 2


def _area(scores: Numbers, positive: Numbers) -> Interval | None:
    yes = int(positive.sum())
    return of_auc(auc(scores, positive), yes, len(positive) - yes) if 0 < yes < len(positive) else None


def _correlation(a: Numbers, b: Numbers) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _explained(known: Floats, column: Floats) -> float:
    """Return the correlation of a column with the best linear guess of it, less what chance alone
    explains."""
    n, X = len(column), np.column_stack([known, np.ones(len(column))])
    if X.shape[1] >= n - 1:
        return 0.0
    left = column - X @ np.linalg.lstsq(X, column, rcond=None)[0]
    part = 1 - (left @ left / (n - X.shape[1])) / column.var(ddof=1)
    return float(np.sqrt(max(0.0, part)))


def _dense(X: Numbers) -> Floats:
    dense: Floats = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    return dense


def _part_of_labels(found: Interval) -> str:
    return f"{found.value:.1%} of the labels ({found.low:.1%} to {found.high:.1%})"


def _span(found: Interval) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
