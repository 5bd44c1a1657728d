"""The four departments: their files, certificates and settings, and the job that the clinic proposes."""

from __future__ import annotations

import csv
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.port import free_ports

# ten measures, each as mean, standard error and worst value over the nuclei of a sample
MEASURES = {
    "radiology": ("radius", "perimeter", "area"),
    "pathology": ("compactness", "concavity", "concave points"),
    "laboratory": ("texture", "smoothness"),
    "clinic": ("symmetry", "fractal dimension"),
}
SPELLING = {"radiology": "P{:04}", "pathology": "p{:04}", "laboratory": " P{:04} ", "clinic": "P{:04}"}
HOLDER = "clinic"
NEW = 40
KEPT = 0.95
EPOCHS = 160

_PARTIES = "\n".join(
    f'{party} = {{ data = "patients"{", label = true" if party == HOLDER else ""} }}' for party in MEASURES
)
JOB = f"""\
# What the clinic proposes; the others check it against their own policy and data, and accept or refuse.
name = "diagnosis"
algorithm = "vfb2-saga"

[parties]
{_PARTIES}

[data]
keys = [{{ kind = "text", trim = true, case = "lower" }}]  # departments spell ids in their own ways
test_fraction = 0.25
scale = "zscore"         # every department scales its own columns

[train]
epochs = {EPOCHS}
batch = 32
l2 = 1e-2             # strong enough that first-order steps get to the pooled optimum on so few patients

[secure]
labels = "blind"         # nobody but the clinic learns a diagnosis, or what one follows from
"""
_SETTINGS = """\
name = "{party}"
listen = "127.0.0.1:{port}"
test_scores = "keep"     # for the curves of the report

[peers]
{peers}

[data.patients]
file = "patients.csv"
id = "patient"
{label}
[data.new]
file = "new.csv"
id = "patient"

[policy]
algorithms = ["vfb2-sgd", "vfb2-svrg", "vfb2-saga"]
min_rows = 100
min_parties = 3
accept = ["scores"]  # what this family of algorithms gives away where labels are blind, see docs/blind.md
"""


def lay_out(folder: Path) -> None:
    """Write every department's folder (files, certificates, settings), and the job."""
    from sklearn.datasets import load_breast_cancer

    shutil.rmtree(folder / "parties", ignore_errors=True)
    _certify(folder)
    ports = dict(zip(MEASURES, free_ports(len(MEASURES)), strict=True))
    bunch = load_breast_cancer()
    diagnosis = [str(bunch.target_names[k]) for k in bunch.target]
    new = set(np.random.default_rng(0).permutation(len(diagnosis))[:NEW].tolist())
    for number, (party, measures) in enumerate(MEASURES.items()):
        mine = folder / "parties" / party
        rng = np.random.default_rng([0, number])
        order = rng.permutation(len(diagnosis))
        known = [row for row in order if row not in new and rng.random() < KEPT]
        columns = [j for j, name in enumerate(bunch.feature_names) if any(m in name for m in measures)]
        for file, rows in (("patients", known), ("new", [row for row in order if row in new])):
            labels = diagnosis if party == HOLDER and file == "patients" else None
            _write(mine / f"{file}.csv", party, bunch, rows, columns, labels)
        peers = "\n".join(f'{peer} = "127.0.0.1:{ports[peer]}"' for peer in MEASURES if peer != party)
        label = 'label = "diagnosis"\n' if party == HOLDER else ""
        text = _SETTINGS.format(party=party, port=ports[party], peers=peers, label=label)
        (mine / "party.toml").write_text(text, encoding="utf-8")
    (folder / "job.toml").write_text(JOB, encoding="utf-8")


def _certify(folder: Path) -> None:
    """Give every department its certificate and key, and delete the authority: nobody keeps another's key."""
    with tempfile.TemporaryDirectory(prefix="colonnade-authority-") as made:
        authority = Path(made)
        make_authority(authority)
        for party in MEASURES:
            issue(authority, party)
        for party in MEASURES:
            mine = folder / "parties" / party / "certificates"
            mine.mkdir(parents=True)
            for name in ["ca.crt", f"{party}.key", *(f"{peer}.crt" for peer in MEASURES)]:
                shutil.copy2(authority / name, mine / name)


def _write(
    path: Path, party: str, bunch: Any, rows: list[int], columns: list[int], labels: list[str] | None
) -> None:
    """Write these patients and columns as CSV, with the ids as this department spells them."""
    with path.open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(
            ["patient", *(str(bunch.feature_names[j]) for j in columns), *(["diagnosis"] if labels else [])]
        )
        for row in rows:
            label = [labels[row]] if labels else []
            write([SPELLING[party].format(row + 1), *(float(bunch.data[row, j]) for j in columns), *label])
