"""The privacy budget of labels: a ledger, at every party that holds labels, of what runs told about them.

A run with a privacy mechanism spends (epsilon, delta) of the labels that it trains on. One with
`secure.epsilon` spends that at every owner of columns, and so do noisy counts of weight of evidence: peers
may lay together what they hear, so their epsilons add up. Runs add up by basic composition, the sum of
epsilons and the sum of deltas, which holds for any runs. What a run may
spend is reserved when this party accepts it, on disk before anything begins; the run's own account takes its
place at the end. A run that fails, or a daemon that dies, leaves the reservation, because nobody can say how
much was told by then.

A run without a mechanism has no bound. It is written down as unbounded, and refused where the policy has a
budget.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from colonnade.deploy.settings import Limits, Policy
from colonnade.deploy.terms.contract import Contract
from colonnade.disk import replace_file
from colonnade.errors import Refused, ShareError
from colonnade.job.plan import NOISY_DELTA
from colonnade.openings.account import together
from colonnade.privacy import counts
from colonnade.privacy.counts import CountNoise
from colonnade.privacy.label_noise import delta_of

SLACK = 1e-9  # sums of floats


class Spending(msgspec.Struct, frozen=True):
    """An entry of the ledger: what a run told, or may tell, about a label; epsilon None is without bound."""

    run: str
    job: str
    label: str
    epsilon: float | None
    delta: float
    state: Literal["reserved", "spent"]
    when: str


class Spendable(msgspec.Struct, frozen=True):
    """The most that a job may tell about a label; epsilon None is without bound."""

    epsilon: float | None
    delta: float = 0.0

    @staticmethod
    def of(contract: Contract, limits: Limits) -> Spendable:
        """Return the most that a job with this contract may tell, at a party with these limits."""
        terms, told = contract.terms, [] if contract.weighs else [_of_training(contract)]
        if terms.prepare.woe:
            noise = CountNoise(max(terms.woe.noise or 0.0, limits.woe_noise))
            # what the holder's own columns may be worth follows from counts with noise, too
            told += [Spendable(noise.epsilon, counts.DELTA)] * (_owners(contract) + contract.weighs)
        return Spendable(together(each.epsilon for each in told), sum(each.delta for each in told))


def _of_training(contract: Contract) -> Spendable:
    """Return what a training may tell by itself."""
    privacy = contract.terms.privacy
    if contract.epsilon is None:
        return Spendable(None)
    if privacy.mechanism != "none":
        return Spendable(privacy.epsilon, delta_of(privacy, contract.composition.loss("binary")))
    return Spendable(_owners(contract) * contract.epsilon, _owners(contract) * NOISY_DELTA)


def _owners(contract: Contract) -> int:
    """Return how many parties hear what follows from labels of others."""
    terms = contract.terms
    return sum(each not in terms.active and not contract.is_neutral(each) for each in terms.parties)


class Balance(msgspec.Struct, frozen=True):
    """The account of one label column: sums over all runs, how many were unbounded, and what is left."""

    label: str
    epsilon: float
    delta: float
    reserved: float
    unbounded: int
    left: float | None
    left_delta: float | None


class Ledger:
    """The ledger of one party: a file that is replaced as a whole and flushed before a call returns."""

    def __init__(self, state: Path) -> None:
        self._path = state / "ledger.json"

    def entries(self) -> list[Spending]:
        """Return all entries, the oldest first."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Spending])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as error:
            raise ShareError(f"{self._path}: is not a readable ledger: {error}; restore a backup") from error

    def labels(self) -> list[str]:
        """Return the label columns that have entries."""
        return sorted({each.label for each in self.entries()})

    def balance(self, policy: Policy, label: str) -> Balance:
        """Return the account of one label column under this policy."""
        held = [each for each in self.entries() if each.label == label]
        bounded = [each for each in held if each.epsilon is not None]
        epsilon = sum(each.epsilon or 0.0 for each in bounded)
        delta = sum(each.delta for each in bounded)
        limited = policy.epsilon is not None
        return Balance(
            label=label,
            epsilon=epsilon,
            delta=delta,
            reserved=sum(each.epsilon or 0.0 for each in bounded if each.state == "reserved"),
            unbounded=len(held) - len(bounded),
            left=max(0.0, (policy.epsilon or 0.0) - epsilon) if limited else None,
            left_delta=max(0.0, policy.delta - delta) if limited else None,
        )

    def check(self, policy: Policy, label: str, asked: Spendable) -> None:
        """Raise Refused, with what is left of the budget, if such a run could exceed it."""
        if policy.epsilon is None:
            return
        if asked.epsilon is None:
            raise Refused(
                f"the labels {label} have a privacy budget here (epsilon {policy.epsilon:g} in all), and "
                "this job has no mechanism; set [privacy] mechanism and epsilon"
            )
        found = self.balance(policy, label)
        if asked.epsilon > (left := found.left or 0.0) + SLACK:
            raise Refused(
                f"epsilon {asked.epsilon:g} would exceed the privacy budget of the labels {label}: "
                f"{left:g} of {policy.epsilon:g} is left"
            )
        if asked.delta > (left := found.left_delta or 0.0) + SLACK * policy.delta:
            raise Refused(
                f"delta {asked.delta:g} would exceed the privacy budget of the labels {label}: "
                f"{left:g} of {policy.delta:g} is left"
            )

    def reserve(self, spending: Spending) -> None:
        """Add an entry for a run that is about to begin."""
        self._write([*self.entries(), spending])

    def settle(self, run: str, epsilon: float | None) -> None:
        """Write down what a finished run told; None keeps what was reserved for it."""
        self._write(
            [
                msgspec.structs.replace(
                    each, state="spent", epsilon=each.epsilon if epsilon is None else epsilon
                )
                if each.run == run
                else each
                for each in self.entries()
            ]
        )

    def release(self, run: str) -> None:
        """Delete the reservation of a run that never began."""
        entries = self.entries()
        kept = [each for each in entries if each.run != run]
        if len(kept) < len(entries):
            self._write(kept)

    def _write(self, entries: list[Spending]) -> None:
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(entries), indent=2))
