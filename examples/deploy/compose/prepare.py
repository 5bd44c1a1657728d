"""Lay out the demonstration of compose.yaml: a folder for each of three parties.

Usage: python prepare.py FOLDER. Companies do this each on its own (docs/deploy.md); here a script plays all.
"""

from __future__ import annotations

import csv
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PARTIES = ("bank", "shop", "telco")
USER = 10001  # as in the Containerfile

SETTINGS = """\
name = "{party}"
listen = "{party}:7401"
memory = "1GB"

[peers]
{peers}

[data.customers]
file = "customers.csv"
id = "customer"
{label}
[policy]
algorithms = ["vfb2-saga"]
min_rows = 1000
min_parties = 3
accept = ["scores"]
"""
JOB = """\
name = "credit"
algorithm = "vfb2-saga"

[parties]
bank = { data = "customers", label = true }
shop = { data = "customers" }
telco = { data = "customers" }

[split]
test = 0.25

[train]
epochs = 20

[secure]
labels = "blind"
"""


def main(folder: Path) -> None:
    """Write every party's folder, unless it was done before."""
    if all((folder / party / "party.toml").exists() for party in PARTIES):
        print("the parties are laid out already")
        return
    with tempfile.TemporaryDirectory() as made:
        colonnade("example", made)
        colonnade("certs", made, *PARTIES)
        invent_telco(Path(made))
        for party in PARTIES:
            lay_out(party, Path(made), folder / party)
    (folder / "bank" / "credit.toml").write_text(JOB, encoding="utf-8")
    if os.getuid() == 0:
        for party in PARTIES:
            for path in (folder / party, *(folder / party).rglob("*")):
                os.chown(path, USER, USER)


def colonnade(*words: str) -> None:
    """Run the command; an error of its ends this script."""
    subprocess.run([sys.executable, "-m", "colonnade", *words], check=True)  # noqa: S603


def invent_telco(made: Path) -> None:
    """Write telco.csv: most of the bank's customers, with late bills where somebody did not repay."""
    rng = random.Random(0)  # noqa: S311
    with (made / "bank.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if rng.random() < 0.9]
    people = [(row["customer"], row["default"] == "yes") for row in rows]
    rng.shuffle(people)
    with (made / "telco.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["customer", "months", "minutes", "late_bills"])
        for customer, default in people:
            late = sum(rng.random() < (0.3 if default else 0.1) for _ in range(6))
            writer.writerow([customer, rng.randint(1, 120), round(rng.expovariate(1 / 300)), late])


def lay_out(party: str, made: Path, mine: Path) -> None:
    """Write one party's data, settings, and the certificates that are its own or everybody's."""
    (mine / "certificates").mkdir(parents=True, exist_ok=True)
    shutil.copy(made / f"{party}.csv", mine / "customers.csv")
    for name in ("ca.crt", f"{party}.key", *(f"{each}.crt" for each in PARTIES)):
        shutil.copy2(made / name, mine / "certificates" / name)
    peers = "\n".join(f'{peer} = "{peer}:7401"' for peer in PARTIES if peer != party)
    label = 'label = "default"\n' if party == "bank" else ""
    (mine / "party.toml").write_text(SETTINGS.format(party=party, peers=peers, label=label), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
