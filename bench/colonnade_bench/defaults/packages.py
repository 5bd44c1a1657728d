"""Tables of statistics packages as problems: those of R's that lie as CSV files in a folder `packages`.

Rscript bench/packages.R ~/data/packages     # Debian: r-cran-modeldata, -mass, -aer, -cardata, -mlbench, ...
COLONNADE_DATA=~/data colonnade bench defaults --only packages
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from colonnade_bench.defaults.problem import Frames, Kind, folds, parted

SMALL = 2_000  # rows: of fewer every row is a test row once
LEAST = 40  # rows of a class: a fold without one of them has no AUC


class Known(NamedTuple):
    """A table: its file, what to predict, what kind that is, and columns that tell it or come after it."""

    file: str
    label: str
    kind: Kind = "classes"
    drop: tuple[str, ...] = ()
    companies: int = 3


TABLES: dict[str, Known] = {
    "ames": Known("modeldata_ames", "Sale_Price", "number", companies=4),
    "attrition": Known("modeldata_attrition", "Attrition", companies=4),
    "credit_data": Known("modeldata_credit_data", "Status"),
    "mlc_churn": Known("modeldata_mlc_churn", "churn"),
    "car_prices": Known("modeldata_car_prices", "Price", "number"),
    "concrete": Known("modeldata_concrete", "compressive_strength", "number", companies=2),
    "wa_churn": Known("modeldata_wa_churn", "churn", companies=4),
    "Sacramento": Known("modeldata_Sacramento", "price", "number", companies=2),
    "lending_club": Known("modeldata_lending_club", "Class", companies=4),
    "penguins": Known("modeldata_penguins", "species", companies=2),
    "Boston": Known("MASS_Boston", "medv", "number"),
    "birthwt": Known("MASS_birthwt", "low", drop=("bwt",), companies=2),
    "HMDA": Known("AER_HMDA", "deny"),
    "CPS1985": Known("AER_CPS1985", "wage", "number"),
    "HousePrices": Known("AER_HousePrices", "price", "number"),
    "Salaries": Known("carData_Salaries", "salary", "number", companies=2),
    "Mroz": Known("carData_Mroz", "lfp", companies=2),
    "TitanicSurvival": Known("carData_TitanicSurvival", "survived", companies=2),
    "SLID": Known("carData_SLID", "wages", "number", companies=2),
    "PimaIndiansDiabetes": Known("mlbench_PimaIndiansDiabetes", "diabetes"),
    "Soybean": Known("mlbench_Soybean", "Class", companies=4),
    "HouseVotes84": Known("mlbench_HouseVotes84", "Class"),
    "Vehicle": Known("mlbench_Vehicle", "Class"),
    "spam": Known("kernlab_spam", "type", companies=5),
    "flchain": Known("survival_flchain", "death", drop=("futime", "chapter")),
    "DoctorVisits": Known("AER_DoctorVisits", "visits", "counts"),
}


def _problems(name: str, known: Known, root: Path) -> Iterator[Frames]:
    """Return the problems of a table; FileNotFoundError if it is not there."""
    frame = pd.read_csv(root / "packages" / f"{known.file}.csv")
    frame = frame.drop(columns=list(known.drop)).dropna(subset=[known.label]).reset_index(drop=True)
    if known.kind == "classes":
        frame = frame[frame.groupby(known.label)[known.label].transform("size") >= LEAST]
    maker = folds if len(frame) < SMALL else parted
    return maker(name, frame, label=known.label, kind=known.kind, companies=known.companies)


PACKAGES: dict[str, Callable[[Path], Iterator[Frames]]] = {
    name: partial(_problems, name, known) for name, known in TABLES.items()
}
