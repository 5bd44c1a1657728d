"""Certificates that live for a minute and are changed over while companies train and score.

    python -m colonnade_bench.deploy.rotations [--rotations 60] [--life 60]

Three daemons train one model after the other and score rows all the time. One after the other they change
their certificate, as docs/deploy.md says: peers take the new one beside the old one, its owner takes it, and
peers leave the old one out when the next one comes. In the end an authority takes one back. Printed are the
rotations, what was trained and scored, and what failed; a certificate that was not changed in time would end
every line with it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from colonnade.deploy.daemon.commands import PredictRequest, ReloadRequest, StatusRequest, TrainRequest
from colonnade.errors import ColonnadeError
from colonnade.net.stream.authority import issue
from colonnade_bench.deploy.distant import Distant, made_up

NAMES = ("bank", "shop", "telecom")
ROWS, COLUMNS = 2_000, 12
IDS = [[str(k) for k in range(20)]]
LEAVE_S = 90.0  # until a line with a certificate that was taken back has ended


class Seen:
    """What was done meanwhile, and what failed."""

    def __init__(self, companies: Distant) -> None:
        self.companies, self.over = companies, threading.Event()
        self.count: Counter[str] = Counter()
        self.failed: list[str] = []

    def train(self) -> None:
        """Train, and train again."""
        terms = self.companies.terms("vfb2-svrg", secure={"labels": "clear"}, train={"epochs": 60})
        while not self.over.is_set():
            self._try("trainings", TrainRequest(terms))

    def score(self) -> None:
        """Have rows scored with the latest model, once there is one."""
        while not self.over.is_set():
            if self.count["trainings"]:
                self._try("scores", PredictRequest("job", IDS))
            time.sleep(0.2)

    def _try(self, what: str, request: TrainRequest | PredictRequest) -> None:
        try:
            self.companies.ask(request)
            self.count[what] += 1
        except ColonnadeError as error:
            self.failed.append(f"{what}: {error}")


def announce(companies: Distant, party: str, life_s: float) -> None:
    """Give peers a party's next certificate, which lives so long, beside the one that it shows."""
    authority = companies.folder / "authority"
    for end in ("crt", "key"):
        (authority / f"{party}.{end}").unlink()
    issue(authority, party, days=life_s / 86400)
    new, peers = (authority / f"{party}.crt").read_bytes(), [name for name in NAMES if name != party]
    old = (companies.folder / party / "certificates" / f"{party}.crt").read_bytes()
    for peer in peers:
        (companies.folder / peer / "certificates" / f"{party}.crt").write_bytes(old + new)
        companies.ask(ReloadRequest(), peer)


def switch(companies: Distant, party: str) -> None:
    """Let a party show the certificate that its peers have been given."""
    for end in ("crt", "key"):
        source = companies.folder / "authority" / f"{party}.{end}"
        shutil.copy2(source, companies.folder / party / "certificates")
    companies.ask(ReloadRequest(), party)


def take_back(companies: Distant, party: str) -> str:
    """Take a certificate back; returns why its line with the first company has ended."""
    authority = companies.folder / "authority"
    issuer = x509.load_pem_x509_certificate((authority / "ca.crt").read_bytes())
    taken = x509.load_pem_x509_certificate((authority / f"{party}.crt").read_bytes())
    key = serialization.load_pem_private_key((authority / "ca.key").read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not one of an elliptic curve")
    now = datetime.now(UTC)
    line = x509.RevokedCertificateBuilder().serial_number(taken.serial_number).revocation_date(now).build()
    found = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.subject)
        .last_update(now)
        .next_update(now + timedelta(days=1))
        .add_revoked_certificate(line)
        .sign(key, hashes.SHA256())
    )
    path = companies.folder / NAMES[0] / "certificates" / "crl.pem"
    path.write_bytes(found.public_bytes(serialization.Encoding.PEM))
    companies.ask(ReloadRequest())
    until = time.monotonic() + LEAVE_S
    while time.monotonic() < until:
        peer = companies.ask(StatusRequest())["peers"][party]
        if not peer["up"] and "revoked" in peer["reason"]:
            return str(peer["reason"])
        time.sleep(1.0)
    return ""


def run(folder: Path, rotations: int, life_s: float) -> dict[str, object]:
    """Return what was seen while certificates were changed this often."""
    with Distant(folder, NAMES, made_up(ROWS, COLUMNS), more="runs_of_a_peer = 16") as companies:
        seen = Seen(companies)
        threads = [threading.Thread(target=each, daemon=True) for each in (seen.train, seen.score)]
        for thread in threads:
            thread.start()
        while not seen.count["scores"] and not seen.failed:  # from then on there is something to cut
            time.sleep(0.2)
        began, longest = time.monotonic(), 0.0
        for number in range(rotations):
            start, party = time.monotonic(), NAMES[number % len(NAMES)]
            announce(companies, party, life_s)
            # each is changed within a sixth of its life; what began before peers knew of the new one, or with
            # the old one, has a third or two of that to exchange its keys
            time.sleep(life_s / 6 / len(NAMES))
            switch(companies, party)
            longest = max(longest, time.monotonic() - start)
        seconds = time.monotonic() - began
        seen.over.set()
        for thread in threads:
            thread.join()
        return {
            "rotations": rotations,
            "life_s": life_s,
            "seconds": round(seconds),
            "longest rotation, s": round(longest, 2),  # with the pause in it
            **seen.count,
            "failed": seen.failed,
            "taken back": take_back(companies, NAMES[-1]) or "its line still stands",
        }


def main() -> None:
    """Print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rotations", type=int, default=60)
    parser.add_argument("--life", type=float, default=60.0, help="of a certificate, in seconds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder), given.rotations, given.life)))


if __name__ == "__main__":
    main()
