"""Which data sets the papers use, what they report on them, and what stands in for a set that is not here.

A bench takes a paper's own set whenever its files are on this machine (`colonnade datasets` says which are,
and where to get the others), otherwise the set that stands in for it, if there is one. A stand-in keeps its
own name, and the paper's figures beside it are those of the set it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from colonnade.data.datasets.loading import available

# the data sets of each paper, by their names here
VFB2 = ("uci-credit", "givemesomecredit", "news20.binary", "webspam")
ASYSQN = ("uci-credit", "givemesomecredit", "news20.binary", "w8a", "rcv1", "a9a", "epsilon", "mnist")
ASYREVEL = ("uci-credit", "givemesomecredit", "rcv1", "a9a", "w8a", "epsilon")
FDSKL = (
    "phishing", "a9a", "cod-rna", "uci-credit", "givemesomecredit", "gisette", "ijcnn1", "w8a", "real-sim",
    "epsilon",
)  # fmt: skip
MORE = ("a9a", "phishing", "cod-rna", "covtype")
"""Sets that the papers on linear models do not have, or not all of them."""

# the one set of a figure, and what is taken where it is not here
VFB2_FIGURE_2 = ("webspam", "mnist-4v9")
ASYSQN_FIGURE_4 = ("epsilon", "mnist-4v9")
ASYREVEL_FIGURE_4 = ("w8a", "a9a")

BUNDLED = "breast-cancer"  # comes with scikit-learn
STAND_INS = {"news20.binary": "news20-binary", "gisette": "mnist-4v9"}
WORDS = {
    "news20-binary": "stands in for news20.binary: the 20-class set made binary, 62,061 columns",
    "mnist-4v9": "stands in for gisette, which was made from it: MNIST 4 against 9, 784 dense columns",
    "mnist": "has two classes, 5 to 9 against 0 to 4: the paper names none, and these have its accuracy",
    "givemesomecredit": "has 80 columns and all rows; the papers have 92 and drop incomplete rows",
    BUNDLED: "is not a set of the papers: none of theirs is on this machine (`colonnade datasets --get a9a`)",
}
"""What is to be known of a set in a table."""

# accuracy in per cent: (NonF and the paper's own, AFSVRG-VP), of the l2 and the nonconvex problem
VFB2_TABLE_2: dict[tuple[str, str], tuple[float, float | None]] = {
    ("uci-credit", "l2"): (81.96, 79.35),
    ("givemesomecredit", "l2"): (93.56, 93.35),
    ("news20.binary", "l2"): (98.29, 97.24),
    ("webspam", "l2"): (92.17, 89.17),
    ("uci-credit", "nonconvex"): (82.03, 79.36),
    ("givemesomecredit", "nonconvex"): (93.56, 93.35),
    ("news20.binary", "nonconvex"): (98.45, 97.59),
    ("webspam", "nonconvex"): (92.71, 89.98),
}
ASYSQN_TABLE_4: dict[tuple[str, str], tuple[float, float | None]] = {
    ("uci-credit", "l2"): (81.96, None),
    ("givemesomecredit", "l2"): (93.56, None),
    ("news20.binary", "l2"): (98.29, None),
    ("w8a", "l2"): (90.21, None),
    ("rcv1", "l2"): (96.02, None),
    ("a9a", "l2"): (85.03, None),
    ("epsilon", "l2"): (87.43, None),
    ("mnist", "l2"): (87.01, None),
}
# CRUI of SGD, SVRG and SAGA
ASYSQN_TABLE_5 = {
    "uci-credit": (2.90, 2.96, 2.99), "givemesomecredit": (2.77, 2.80, 2.92),
    "news20.binary": (2.98, 3.01, 3.09), "w8a": (2.84, 2.95, 2.96), "rcv1": (2.82, 2.86, 2.91),
    "a9a": (2.80, 2.72, 2.79), "epsilon": (2.75, 2.84, 2.74), "mnist": (2.86, 2.88, 2.92),
}  # fmt: skip
# NonF and AsyREVEL, which are the same, of both kinds of smoothing
ASYREVEL_TABLE_4 = {
    "uci-credit": (81.93, 81.88), "givemesomecredit": (93.50, 93.48), "rcv1": (95.24, 95.14),
    "a9a": (85.16, 85.14), "w8a": (89.85, 89.88), "epsilon": (87.79, 87.89),
    "mnist": (91.89, 91.84), "fashion-mnist": (81.32, 81.45),
}  # fmt: skip
# minutes of FDSKL and of SecureBoost; epsilon took SecureBoost more than 900
FDSKL_TABLE_4: dict[str, tuple[int, int | None]] = {
    "gisette": (1, 46), "phishing": (1, 10), "a9a": (2, 15), "ijcnn1": (1, 17), "cod-rna": (1, 16),
    "w8a": (1, 17), "real-sim": (14, 65), "epsilon": (29, None), "uci-credit": (1, 13),
    "givemesomecredit": (3, 32),
}  # fmt: skip


class Here(NamedTuple):
    """Which sets a bench uses on this machine, and which are missing, whether another stands in or not."""

    found: list[str]
    missing: list[str]


def here(names: Sequence[str]) -> Here:
    """Every set that is on this machine, in this order, or what stands in for it."""
    found, missing = [], []
    for name in dict.fromkeys(names):
        if available(name):
            found.append(name)
            continue
        missing.append(name)
        stand_in = STAND_INS.get(name)
        if stand_in is not None and available(stand_in):
            found.append(stand_in)
    return Here(list(dict.fromkeys(found)), missing)


def here_or_bundled(names: Sequence[str]) -> Here:
    """Every set that is on this machine; where none is, one that every machine has."""
    found, missing = here(names)
    return Here(found or [BUNDLED], missing)


def nothing_here(part: str, names: Sequence[str]) -> str:
    """Say that a part cannot be measured, as no set that it takes is on this machine.

    >>> nothing_here("Figure 2", ["webspam"])
    'Figure 2 is left out: webspam is not on this machine; `colonnade datasets` says where to get it'
    """
    one = len(names) == 1
    where = f"{names[0]} is not" if one else f"none of {', '.join(names)} is"
    how = f"`colonnade datasets` says where to get {'it' if one else 'them'}"
    return f"{part} is left out: {where} on this machine; {how}"


def first_here(names: Sequence[str]) -> str | None:
    """The first of these sets that is on this machine."""
    return next((name for name in names if available(name)), None)


def stands_for(name: str) -> str:
    """The set of a paper that a set is, or stands for.

    >>> stands_for("news20-binary"), stands_for("a9a")
    ('news20.binary', 'a9a')
    """
    return next((own for own, other in STAND_INS.items() if other == name), name)
