"""A result in words: rows of text that the terminal and the page show alike.

Numbers are rounded for reading here and nowhere else; result.json keeps every digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from colonnade.result import Compared, Cost, Moment, Result, Worth

NAMES = {
    "train_loss": "training loss",
    "objective": "objective (with penalty)",
    "suboptimality": "objective above the pooled optimum",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "test_auc": "test AUC",
    "rmse": "test RMSE",
    "r2": "test R2",
    "d2": "test D2",
}
Pair = tuple[str, str]


def headline(result: Result) -> str:
    """Return one line about a run: the algorithm, the data, the parties and the world."""
    q, active = len(result.parties), len(result.active)
    holders = "all of them hold" if active == q else f"{active} {'holds' if active == 1 else 'hold'}"
    parties = "1 party, which holds" if q == 1 else f"{q} parties, {holders}"
    return f"{result.algorithm} on {result.dataset}: {parties} the label, {result.world} world"


def metric_rows(result: Result) -> list[tuple[str, str, str]]:
    """Return (name, federated, pooled) of every metric."""
    return [
        (NAMES.get(key, key.replace("_", " ")), metric(key, value), metric(key, result.pooled.get(key)))
        for key, value in result.metrics.items()
        if key != "objective" or _has_penalty(result)
    ]


def metric_table(result: Result) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the header and the rows of all metrics: of the run, and of what it is compared with.

    Without yardsticks (`Result.compared`) there are the run and, if it was fitted, the pooled model.
    """
    known = {each.name: each for each in result.compared}
    if "together" not in known:
        columns = 3 if result.pooled else 2
        return ["", "federated", "pooled"][:columns], [row[:columns] for row in metric_rows(result)]
    beside = [each for name in ("base rate", "alone") if (each := known.get(name)) is not None]
    head = ["", *map(_level_name, beside), "together", "95% interval", *(["pooled"] if result.pooled else [])]
    keys = [key for key in result.metrics if key != "objective" or _has_penalty(result)]
    rows = []
    for key, (name, together, pooled) in zip(keys, metric_rows(result), strict=True):
        ends = known["together"].intervals.get(key)
        interval = "" if ends is None else " to ".join(metric(key, end) for end in ends)
        others = [metric(key, each.metrics.get(key)) for each in beside]
        rows.append((name, *others, together, interval, *([pooled] if result.pooled else [])))
    return head, rows


def _level_name(each: Compared) -> str:
    """Return what stands above a yardstick."""
    if each.name != "alone":
        return each.name
    model = f" ({each.model})" if each.model else ""
    return f"{each.parties[0]} alone{model}"


def _has_penalty(result: Result) -> bool:
    return result.metrics.get("objective") != result.metrics.get("train_loss")


KEY_GAINS = ("test_auc", "test_accuracy", "r2", "d2", "rmse", "test_loss")
LESS_IS_BETTER = ("rmse", "test_loss")


def gain_line(result: Result) -> str:
    """Return what the others' columns add to the label holder's, in words; empty where nobody knows."""
    known = {each.name: each for each in result.compared}
    if "alone" not in known or "together" not in known:
        return ""
    gains, holder = known["together"].gains, known["alone"].parties[0]
    key = next((key for key in KEY_GAINS if key in gains), None)
    if key is None:
        return ""
    gain, low, high = gains[key]
    chance = "; as much may be chance" if low <= 0 <= high else ""
    name = NAMES[key].removeprefix("test ")
    return (
        f"{name} {signed(key, gain)} over {holder} alone "
        f"(95% interval {signed(key, low)} to {signed(key, high)}{chance})"
    )


def signed(key: str, value: float) -> str:
    """Return a difference of metrics with its sign.

    >>> signed("test_auc", 0.0745), signed("rmse", -12.34567)
    ('+0.0745', '-12.3457')
    """
    size = abs(value)
    shown = metric(key, size) if size >= 1e-3 or not size else f"{size:.1g}"
    return f"{'-' if value < 0 else '+'}{shown}"


SIDE_BY_SIDE = ("test_auc", "test_accuracy", "r2", "d2", "rmse", "test_loss", "train_loss", "suboptimality")


def overview(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Return the header and a row for every run: all metrics that some run has, and what each cost."""
    keys = [key for key in SIDE_BY_SIDE if any(key in result.metrics for result in results)]
    private = any(result.privacy.epsilon is not None for result in results)
    head = [*(NAMES[key] for key in keys), "time", "sent", *(["epsilon"] if private else [])]
    rows = []
    for result in results:
        cost, epsilon = result.cost, result.privacy.epsilon
        spent = cost.seconds if cost.virtual_seconds is None else cost.virtual_seconds
        noise = ["" if epsilon is None else f"{epsilon:.3g}"] if private else []
        measured = [metric(key, result.metrics.get(key)) for key in keys]
        rows.append([*measured, duration(spent), size(cost.bytes_sent), *noise])
    return head, rows


def sent(results: Iterable[Result]) -> str:
    """Return whose bytes are counted: those of all parties, or in a party's own report no more than its
    own."""
    return "sent by all parties" if all(len(each.cost.bytes_by_party) > 1 for each in results) else "sent"


def cost_rows(result: Result) -> list[Pair]:
    """Return the cost of a run: time, work and traffic, and how old gradients were when they arrived."""
    cost, late = result.cost, result.staleness
    rows = [*ending_row(result), ("time", duration(cost.seconds))]
    if cost.virtual_seconds is not None:
        times = [("simulated time", duration(cost.virtual_seconds)), ("real time", duration(cost.seconds))]
        rows = [*ending_row(result), *times]
    busiest = max(cost.bytes_by_party.values(), default=0)
    share = f", at most {size(busiest)} by one party" if len(cost.bytes_by_party) > 1 else ""
    rows += [
        ("epochs, rounds", f"{cost.epochs:,}, {cost.rounds:,}"),
        ("messages", f"{cost.messages:,}"),
        ("bytes sent", size(cost.bytes_sent) + share),
        ("of them", _parts(cost)),
    ]
    if cost.evaluation_bytes:
        rows.append(("to evaluate", f"{size(cost.evaluation_bytes)} more, not counted above"))
    if late.max:
        age = f"mean {late.mean:.2f}, 95% within {late.p95}, at most {late.max} updates"
        rows.append(("age of weights", age))
    if cost.refused:
        refused = ", ".join(f"{count} {name}" for name, count in cost.refused.items())
        rows.append(("refused messages", refused))
    return rows


def _parts(cost: Cost) -> str:
    """Return how many of the bytes are numbers, framing and TLS records."""
    ours = cost.bytes_sent - cost.payload_bytes - cost.sealed_bytes
    sealed = f", {size(cost.sealed_bytes)} TLS records" if cost.sealed_bytes else ""
    return f"{size(cost.payload_bytes)} numbers, {size(ours)} framing{sealed}"


def privacy_rows(result: Result) -> list[Pair]:
    """Return how scores and labels were protected."""
    privacy = result.privacy
    noise = "none" if privacy.mechanism == "none" else privacy.mechanism
    if privacy.epsilon is not None:
        noise += f", epsilon {privacy.epsilon:.3g} at delta {privacy.delta:.1g}"
    sent = (
        "not summed; the notes say who learns what"
        if privacy.secure_sum == "none"
        else f"{privacy.secure_sum} sum"
    )
    return [("partial scores", sent), ("noise", noise)]


def ending_row(result: Result) -> list[Pair]:
    """Return the row that says how training ended."""
    return [("training", ending_line(result))]


def ending_line(result: Result) -> str:
    """Return whether the loss had stopped falling, and what to do if not; where nobody can tell, that the
    run ended."""
    if result.converged is None:
        gap = result.metrics.get("suboptimality")
        above = (
            "" if gap is None else f", its objective {metric('suboptimality', gap)} above the pooled optimum"
        )
        return f"ended after its {result.cost.epochs} epochs{above}"
    if result.converged:
        return f"converged: the loss had stopped falling after {result.cost.epochs} epochs"
    if not result.history:  # a party between companies that was not told the loss
        return f"not converged after {result.cost.epochs} epochs; raise train.epochs"
    return not_converged(result.history)


def not_converged(history: Sequence[Moment]) -> str:
    """Return the words for a run that its epochs ended, with how much its objective still fell."""
    *before, last = history
    fell = ""
    if before and (epochs := last.epoch - before[-1].epoch) > 0:
        fell = f": the objective still fell by {max(before[-1].loss - last.loss, 0.0) / epochs:.2g} an epoch"
    return f"not converged after {last.epoch} epochs{fell}; raise train.epochs"


def moment_line(moment: Moment, epochs: int) -> str:
    """Return one evaluation as a line of text, for a log."""
    when = moment.seconds if moment.virtual_seconds is None else moment.virtual_seconds
    return f"epoch {moment.epoch}/{epochs}  {losses(moment)}  {size(moment.bytes)}  {duration(when)}"


def losses(moment: Moment) -> str:
    """Return the training loss of a moment and, where there is a penalty, the objective beside it."""
    objective = "" if moment.loss == moment.shown else f"  objective {moment.loss:.6f}"
    return f"loss {moment.shown:.6f}{objective}"


def size(count: float) -> str:
    """Return bytes as people write them.

    >>> size(0), size(999), size(1500), size(12_345_678)
    ('0 B', '999 B', '1.5 kB', '12.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.{0 if count >= 99.95 else 1}f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def duration(seconds: float) -> str:
    """Return seconds as people write them.

    >>> duration(0.00234), duration(1.5), duration(75), duration(7322)
    ('2.3 ms', '1.5 s', '1 min 15 s', '2 h 02 min')
    """
    if seconds < 1:
        return f"{seconds * 1000:.{1 if seconds < 0.01 else 0}f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02} min"


def metric(key: str, value: float | None) -> str:
    """Return a metric as people read it; nothing where it is not known.

    >>> metric("train_loss", 0.46141), metric("rmse", 1.0e-5), metric("train_loss", 2.398e10)
    ('0.4614', '1e-05', '2.398e+10')
    """
    if value is None:
        return ""
    if key == "suboptimality":
        return f"{value:.2e}"
    plain = value == 0 or 1e-3 <= abs(value) < 1e6  # a loss has the scale of its label
    return f"{value:.4f}" if plain else f"{value:.4g}"


def worth_table(worth: Worth) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the header and a row for every party: its Shapley value of each metric, who adds most first."""
    keys = [key for key in KEY_GAINS if all(key in each for each in worth.values.values())]
    sign = -1 if keys and keys[0] in LESS_IS_BETTER else 1
    parties = sorted(worth.values, key=lambda party: -sign * worth.values[party][keys[0]][0] if keys else 0)
    head = ["party"]
    for key in keys:
        head += [NAMES[key].removeprefix("test "), "95% interval"]
    rows = []
    for party in parties:
        cells = []
        for key in keys:
            value, low, high = worth.values[party][key]
            cells += [signed(key, value), f"{signed(key, low)} to {signed(key, high)}"]
        rows.append((party, *cells))
    return head, rows


def worth_line(worth: Worth) -> str:
    """Return how the values of parties were found, in words."""
    found = "exact, from all coalitions" if worth.exact else "from orders of parties that were drawn"
    known = "" if worth.coalitions else "; as the label holder told them, rounded to their intervals"
    return f"Shapley values, {found}: {worth.trainings} trainings{known}"
