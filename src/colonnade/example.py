"""Two small files to try things on: customers of a bank, some of whom also buy at a shop.

The people are invented, and so is the rule by which they repay; what is typical of real files is there on
purpose: words, gaps, a date, amounts of very different size, and customers whom only one of the two knows.
"""

from __future__ import annotations

import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from colonnade.arrays import Floats
from colonnade.disk import drafted
from colonnade.errors import DataError

ROWS = 2000
BOTH = 0.85  # of the customers of each file that the other knows, too
WORK = ("employed", "self-employed", "public service", "retired", "looking for work")
GOODS = ("food", "clothes", "electronics", "garden", "books")
TODAY = date(2026, 1, 1)


def write_example(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """Write bank.csv (which has the label, `default`) and shop.csv; refused if one is there already."""
    bank, shop = folder / "bank.csv", folder / "shop.csv"
    for path in (bank, shop):
        if path.exists():
            raise DataError(f"{path}: exists and is not overwritten; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made: {error.strerror}; choose another folder") from error
    rng = np.random.default_rng(seed)
    columns, risk = _people(rng)
    defaults = rng.random(ROWS) < 1 / (1 + np.exp(-risk))
    ids = [f"C{number:05}" for number in rng.permutation(90_000)[:ROWS]]
    known = {path: rng.random(ROWS) < BOTH for path in (bank, shop)}
    at_bank = {"customer": ids, **columns[0], "default": ["yes" if d else "no" for d in defaults]}
    at_shop = {"customer": ids, **columns[1]}
    for path, table in ((bank, at_bank), (shop, at_shop)):
        _write(path, table, rng.permutation(np.flatnonzero(known[path])).tolist())
    return bank, shop


def _people(rng: np.random.Generator) -> tuple[tuple[dict[str, list[str]], dict[str, list[str]]], Floats]:
    """Return the columns of bank and shop, as text, and the log-odds that a person does not repay."""
    age = rng.integers(19, 80, ROWS)
    income = np.exp(rng.normal(7.8, 0.5, ROWS))
    work = rng.choice(len(WORK), ROWS, p=[0.55, 0.12, 0.15, 0.1, 0.08])
    debt = np.maximum(rng.normal(0.4, 0.3, ROWS), 0) * income * 6
    orders = rng.poisson(6, ROWS)
    returned = rng.binomial(orders, rng.beta(1, 6, ROWS))
    spent = orders * np.exp(rng.normal(3.6, 0.6, ROWS))
    goods = rng.choice(len(GOODS), ROWS)
    days = np.minimum(rng.exponential(90, ROWS), 700).astype(int)
    risk = (
        -1.9
        - 0.02 * (age - 45)
        - 0.9 * (np.log(income) - 7.8)
        + 1.6 * (debt / (income * 6) - 0.4)
        + np.array([0.0, 0.3, -0.4, -0.2, 1.1])[work]
        + 0.35 * returned
        - 0.08 * (orders - 6)
        + 0.004 * (days - 90)
        + np.array([-0.3, 0.0, 0.5, -0.2, 0.0])[goods]
    )
    bank = {
        "age": _texts(age),
        "income": _with_gaps([f"{v:.2f}" for v in income], 0.06, rng),
        "debt": [f"{v:.0f}" for v in debt],
        "occupation": _with_gaps([WORK[k] for k in work], 0.03, rng),
    }
    shop = {
        "orders": _texts(orders),
        "returned": _texts(returned),
        "spent": [f"{v:.2f}" for v in spent],
        "buys_mostly": [GOODS[k] for k in goods],
        "last_order": [(TODAY - timedelta(days=int(d))).isoformat() for d in days],
    }
    return (bank, shop), risk


def _texts(numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[str]:
    return [str(number) for number in numbers]


def _with_gaps(values: list[str], part: float, rng: np.random.Generator) -> list[str]:
    """Return the values with some of them missing."""
    gaps = rng.random(len(values)) < part
    return ["" if gap else value for value, gap in zip(values, gaps, strict=True)]


def _write(path: Path, table: dict[str, list[str]], rows: list[int]) -> None:
    with drafted(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows([column[row] for column in table.values()] for row in rows)
