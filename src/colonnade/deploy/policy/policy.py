"""What a party allows: a proposal is checked here before any of the party's data is read.

`leaks` says in the words of the threat model what a job gives away by construction; a party takes part only
if its own settings accept that. A refusal names what is forbidden and what would be allowed; it says nothing
about the party's data beyond what its catalogue offers.
"""

from __future__ import annotations

from colonnade.deploy.agreed import is_over
from colonnade.deploy.books.ledger import Ledger, Spendable
from colonnade.deploy.models import party_models
from colonnade.deploy.policy.cost_limits import check_floors, check_limits
from colonnade.deploy.settings import Policy, Rule, Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Scoring, Terms
from colonnade.errors import Refused
from colonnade.openings.leaks import Leak, meaning
from colonnade.run import notes
from colonnade.run.blind import encrypted_between, labels_of


def leaks(contract: Contract) -> tuple[Leak, ...]:
    """Return what the job gives away by construction."""
    terms = contract.terms
    if contract.weighs:
        return ("values",) if contract.hides_counts else ("evidence", "values")
    if contract.describes:
        return ("statistics",)
    return notes.leaks(
        contract.conversation,
        terms.privacy,
        terms.secure.sum,
        len(terms.parties),
        woe=terms.prepare.woe and not contract.hides_counts,
        blind=labels_of(terms, contract.conversation, len(terms.parties)) == "blind",
        encrypted=encrypted_between(terms.secure.products, contract.conversation, len(terms.parties)),
        few_rows=terms.secure.few_rows,
        value=terms.value,
    )


def rule_for(policy: Policy, proposer: str) -> Rule:
    """Return the rule for this proposer: its own, or the general one."""
    return policy.peers.get(proposer, policy)


def check_training(settings: Settings, proposer: str, contract: Contract) -> None:
    """Raise Refused, with the reason, unless this party's policy allows the job."""
    terms = contract.terms
    policy, me = settings.policy, settings.name
    rule = policy if proposer == me else rule_for(policy, proposer)
    if not rule.train:
        raise Refused(f"{proposer} may not propose training here")
    check_agreed(rule, terms)
    check_limits(settings.limits, contract, me)
    check_floors(settings.limits, terms)
    if policy.approved is not None and terms.digest() not in policy.approved:
        raise Refused(
            f"only approved jobs are run here; {terms.name} has digest {terms.digest()[:16]}, approved: "
            f"{', '.join(each[:16] for each in policy.approved) or 'none'}; compare the job files"
        )
    if rule.algorithms is not None and terms.algorithm not in rule.algorithms:
        raise Refused(
            f"algorithm {terms.algorithm} is not allowed here; "
            f"allowed: {', '.join(rule.algorithms) or 'none'}"
        )
    if len(terms.parties) < rule.min_parties:
        raise Refused(f"{len(terms.parties)} parties take part, {rule.min_parties} are demanded here")
    unaccepted = [leak for leak in leaks(contract) if leak not in rule.accept]
    if unaccepted:
        what = "describing" if contract.describes else terms.algorithm
        what = "weighing columns" if contract.weighs else what
        raise Refused(
            f"{what} leaks '{unaccepted[0]}' ({meaning(unaccepted[0])}), which is not accepted "
            "here; its operator would have to add it to policy.accept"
        )
    member = terms.parties[me]
    check_data(settings, rule, proposer, member.data)
    entry = settings.data[member.data]
    if member.label and entry.label is None:
        raise Refused(f"{member.data} has no label here")
    for column in member.columns or ():
        if column in policy.never:
            raise Refused(f"column {column} is never offered here")
        if entry.columns is not None and column not in entry.columns:
            raise Refused(f"{member.data} offers no column {column}; offered: {', '.join(entry.columns)}")
    check_models(settings, rule, proposer, contract)
    if member.label and entry.label is not None:
        Ledger(settings.state).check(policy, entry.label, Spendable.of(contract, settings.limits))


def check_agreed(rule: Rule, terms: Terms) -> None:
    """Raise Refused unless a job is for what the rule allows, under such a contract, and in force today."""
    for key in ("purpose", "contract"):
        said, allowed = getattr(terms, key), getattr(rule, key)
        if allowed is not None and said not in allowed:
            raise Refused(
                f"{key} = {said!r} is not allowed here; allowed: {', '.join(map(repr, allowed)) or 'none'}"
            )
    check_in_force(rule, terms)
    if rule.expires and not "" < terms.expires <= rule.expires:
        raise Refused(
            f"a job may last until {rule.expires} here, this one "
            f"{f'lasts until {terms.expires}' if terms.expires else 'says no day'}; set expires in the job"
        )


def check_times(rule: Rule, terms: Terms, times: int) -> None:
    """Raise Refused if a job was run as often as it says itself, or as the rule allows."""
    most = [each for each in (terms.runs_of_a_job, rule.runs_of_a_job) if each is not None]
    if most and times >= min(most):
        raise Refused(f"{terms.name} was run {times} times, runs_of_a_job = {min(most)}")


def check_in_force(rule: Rule, terms: Terms) -> None:
    """Raise Refused where the last day of a job, or of the rule, is over."""
    if is_over(terms.expires):
        raise Refused(f"{terms.name} has expired: its last day was {terms.expires}")
    if is_over(rule.expires):
        raise Refused(f"the policy here has expired: its last day was {rule.expires}")


def check_scoring(settings: Settings, proposer: str, terms: Scoring) -> None:
    """Raise Refused unless the proposer may ask for these scores here."""
    rule = rule_for(settings.policy, proposer)
    if not rule.predict:
        raise Refused(f"{proposer} may not ask for scores here")
    if terms.asker != proposer:
        raise Refused(f"{proposer} asks on behalf of {terms.asker}; only the asker itself may")
    if len(set(terms.parties)) < rule.min_parties:
        raise Refused(f"{len(set(terms.parties))} parties would score, {rule.min_parties} are demanded here")
    if terms.data is not None:
        check_data(settings, rule, proposer, terms.data)


def check_models(settings: Settings, rule: Rule, proposer: str, contract: Contract) -> None:
    """Raise Refused unless this party's settings name the code asked for and let this proposer use it."""
    if not contract.asks_for_models:
        return
    for model in party_models.asked_of(settings.name, contract.terms).values():
        if model.name is not None and rule.models is not None and model.name not in rule.models:
            raise Refused(
                f"model {model.name} may not be asked for by {proposer} here; "
                f"allowed: {', '.join(rule.models) or 'none'}"
            )
        party_models.code_of(settings, model)


def check_data(settings: Settings, rule: Rule, proposer: str, name: str) -> None:
    """Raise Refused unless this entry of the catalogue is offered to the proposer."""
    offered = [entry for entry in settings.data if rule.data is None or entry in rule.data]
    if name not in offered:
        raise Refused(
            f"no data named {name} is offered to {proposer} here; offered: {', '.join(offered) or 'none'}"
        )
