"""Who may learn what labels follow from: which jobs can be blind, and which party helps which.

In a blind run nobody but the label holder learns theta, gradients or labels. That is the default where an
algorithm can be trained so; a job that cannot must say that its labels are clear. It needs a third party for
every owner of columns, which deals random words and sees no data: `secure.helper`, or the next owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

from msgspec import structs

from colonnade.conversations.conversation import Conversation
from colonnade.errors import JobError, suggest
from colonnade.job import Job, Training
from colonnade.job.plan import Blind, Encrypted, Facts, Hidden, Noisy
from colonnade.job.presets import Preset
from colonnade.job.sections import LabelsName, ProductsName, RevealName
from colonnade.losses import LOSSES
from colonnade.secure.sums import HIDING, SUMS

TWO_PARTIES = (
    "secure.labels: two parties have no third one that could deal random words, so labels cannot be blind, "
    "as they are by default; use algorithm = 'lbfgs' or 'secureboost', which can encrypt what crosses, add "
    "a neutral party as secure.helper, or set secure.labels = 'clear', and the other party learns every label"
)
BOTH_HOLD = (
    "secure.labels = 'blind': both parties hold the label, so nothing of it can be hidden; set "
    "data.active = 1, or secure.labels = 'clear'"
)
PASSES = 12  # of an encrypted run: what more would gain is less than its noise
PROOFS = 2  # random measurements of weights, where nothing else would show a wrong word
NOISE = 3.0  # rows of noise in every gradient of an encrypted run
MOST_LEAN = 1_150_000  # rows: more leave columns too few bits in the smaller ring
FEW, CROWDED = 1000, 0.02  # rows, and columns of one owner a row: where own weights begin to tell labels


def settled(job: Job, preset: Preset, conversation: Conversation[Any]) -> Job:
    """Return the job with `secure.labels` filled in where it does not say, if its algorithm can be trained
    blind; on one machine, where all parties are the caller's, weights are each owner's, and what a paper
    prints has its labels in clear (between companies a job must say so, `deploy.terms.contract`)."""
    if job.secure.reveal == "auto":
        job = structs.replace(job, secure=structs.replace(job.secure, reveal="owner"))
    if job.secure.labels is not None or "blind-labels" not in conversation.traits:
        return job
    labels = "clear" if preset.literal else labels_of(job, conversation, len(job.data.party_names))
    return structs.replace(job, secure=structs.replace(job.secure, labels=labels))


def as_trained(job: Job) -> Job:
    """Return the job of a stored model with `secure.labels` filled in: two parties that did not say are
    clear."""
    if job.secure.labels is not None or len(job.data.party_names) != 2:
        return job
    return structs.replace(job, secure=structs.replace(job.secure, labels="clear"))


def faults(job: Job, conversation: Conversation[Any]) -> Iterator[JobError]:
    """Yield what in a job does not go together with blind labels."""
    if job.secure.reveal == "never" and job.secure.labels != "blind":
        yield JobError(
            "secure.reveal = 'never': only weights of blind runs are kept apart; set labels = 'blind'"
        )
    if job.secure.scores == "hidden" and job.secure.labels != "blind":
        yield JobError("secure.scores = 'hidden': only blind runs can hide scores; set labels = 'blind'")
    if job.secure.scores == "hidden" and job.secure.proofs and "encrypts" not in conversation.traits:
        yield JobError(
            "secure.proofs: random measurements would tell the label holder scores, which secure.scores = "
            "'hidden' keeps from it; drop secure.proofs, set secure.scores = 'open', or take lbfgs"
        )
    if job.secure.labels != "blind":
        if job.secure.helper is not None and job.secure.labels == "clear":
            yield JobError("secure.helper: nobody needs help where labels are clear; drop one of the keys")
        return
    if "blind-labels" not in conversation.traits:
        yield JobError(
            f"secure.labels = 'blind': {job.algorithm} cannot be trained without telling what labels follow "
            "from; set secure.labels = 'clear', or use another algorithm"
        )
    yield from _products_faults(job, conversation, len(job.data.party_names))
    if not SUMS[job.secure.sum].hides_pieces:
        yield JobError(
            f"secure.labels = 'blind': a {job.secure.sum} sum shows pieces of the masks; use sum = {HIDING}"
        )
    if job.network.broadcast != "star":
        yield JobError(
            "network.broadcast = 'tree': in a blind run everybody is sent words that it alone may read, and "
            "nothing passes through others; drop the key, or set secure.labels = 'clear'"
        )


def _products_faults(job: Job, conversation: Conversation[Any], parties: int) -> Iterator[JobError]:
    """Yield what does not go together with how products are made in a blind run."""
    secure, encrypts = job.secure, "encrypts" in conversation.traits
    alone = encrypted_between(secure.products, conversation, parties) or sums_between(
        secure.products, conversation, parties
    )
    if secure.products == "encrypted" and not encrypts and "encrypts-sums" not in conversation.traits:
        yield JobError(
            f"secure.products = 'encrypted': {job.algorithm} multiplies by a third party's words; use "
            "algorithm = 'lbfgs' or 'secureboost', or products = 'dealer'"
        )
    if secure.products == "encrypted" and parties != 2:
        yield JobError(
            f"secure.products = 'encrypted': two parties multiply so, and here are {parties}; drop the key, "
            "and a third party's words do"
        )
    if parties == 2 and not alone:
        yield JobError(TWO_PARTIES)
    if alone and secure.helper is not None:
        yield JobError(
            "secure.helper: products are encrypted between two parties and nobody deals; drop the key, "
            "or set secure.products = 'dealer' with a third party"
        )
    if encrypts and secure.reveal == "never":
        yield from _never_faults(job, alone=alone)


def _never_faults(job: Job, *, alone: bool) -> Iterator[JobError]:
    """Yield what does not go together with weights of `lbfgs` that nobody knows."""
    words = "secure.reveal = 'never': "
    if not alone:
        yield JobError(
            f"{words}between three and more parties {job.algorithm} has every owner know its own "
            "weights; use 'owner', or algorithm = 'vfb2-saga'"
        )
    elif not _in_parts(job):
        yield JobError(
            f"{words}theta of the {job.train.loss} loss cannot be made of scores in parts; use 'owner'"
        )
    if job.secure.epsilon is not None:
        yield JobError(f"{words}no gradient is told that epsilon could be of; drop secure.epsilon")


def _in_parts(job: Training) -> bool:
    """Return whether theta of a job's loss can be made of scores that two parties have in parts."""
    return job.train.loss is None or LOSSES[job.train.loss].shared_form is not None


def encrypted_between(products: ProductsName, conversation: Conversation[Any], parties: int) -> bool:
    """Return whether the products of a blind run are encrypted: two parties alone, if their algorithm
    can."""
    return parties == 2 and products != "dealer" and "encrypts" in conversation.traits


def sums_between(products: ProductsName, conversation: Conversation[Any], parties: int) -> bool:
    """Return whether what one of two parties adds up for the other is encrypted: histograms of trees."""
    return parties == 2 and products != "dealer" and "encrypts-sums" in conversation.traits


def hides_counts(terms: Training, conversation: Conversation[Any], parties: int) -> bool:
    """Return whether weight of evidence is made of encrypted labels: they are blind, and owners are told
    something of them with noise anyway.

    Other blind runs tell owners nothing of labels, so that policies must accept evidence by its name.
    """
    told = parties == 2 or "encrypts" in conversation.traits
    return parties > 1 and told and labels_of(terms, conversation, parties) == "blind"


def reveal_of(
    terms: Training, conversation: Conversation[Any], parties: int, *, degraded: bool
) -> RevealName:
    """Return who learns weights between companies, where the job does not say: nobody, if that can be.

    Scores without a party need each party's mean part, and hidden scores no weights to score with. Of two
    parties that encrypt, weights stay in parts where theta can be made of scores in parts.
    """
    blind = labels_of(terms, conversation, parties) == "blind" and not degraded
    if encrypted_between(terms.secure.products, conversation, parties):
        apart = _in_parts(terms) and terms.secure.epsilon is None
    else:
        apart = parties > 2 and terms.secure.scores != "hidden" and "weights-apart" in conversation.traits
    return "never" if blind and apart else "owner"


def labels_between(terms: Training, conversation: Conversation[Any], parties: int) -> LabelsName | None:
    """Return whether labels are blind between companies, where `lbfgs` that does not say is blind as well.

    A loss that it cannot hide is then refused, with the way out, and never trained in clear by itself. On one
    machine, where all columns are the caller's, such a run is clear and says so.
    """
    own = terms.secure.labels is None and "encrypts" in conversation.traits
    alone = parties == 1 or terms.privacy.mechanism != "none"
    return "blind" if own and not alone else terms.secure.labels


def labels_of(terms: Training, conversation: Conversation[Any], parties: int) -> LabelsName:
    """Return whether labels are blind: as the job says or, where it does not, as the algorithm is usually
    run.

    What is blind by itself is clear where randomised labels protect the true ones already, or nobody is there
    to learn them.
    """
    if terms.secure.labels is not None:
        return terms.secure.labels
    alone = parties == 1 or terms.privacy.mechanism != "none"
    return "blind" if "blind-by-itself" in conversation.traits and not alone else "clear"


def blind_of(job: Job, conversation: Conversation[Any], facts: Facts) -> Blind | None:
    """Return the roles of a blind run; None where labels are clear."""
    if labels_of(job, conversation, len(facts.columns)) != "blind":
        return None
    asker, helper = facts.label_holders[0], job.secure.helper
    if helper is not None and helper not in facts.columns:
        raise JobError(f"secure.helper: there is no party {helper!r}; {suggest(helper, facts.columns)}")
    if helper == asker:
        raise JobError(
            f"secure.helper: {helper} holds the label, and with the random words it would read the others' "
            "columns; name another party"
        )
    others = [party for party in facts.columns if party != asker]
    if sums_between(job.secure.products, conversation, len(facts.columns)):
        if len(facts.label_holders) > 1:
            raise JobError(BOTH_HOLD)
        return Blind(dealers={}, reveal=job.secure.reveal)
    if encrypted_between(job.secure.products, conversation, len(facts.columns)):
        return Blind(dealers={}, reveal=job.secure.reveal, encrypted=encrypted_of(job, facts))
    if len(others) < 2:
        raise JobError(TWO_PARTIES)
    owners = [party for party in others if facts.columns[party]]
    dealers, hidden = dealers_of(owners, others, helper), None
    if job.secure.scores == "hidden":
        hidden = hidden_of(asker, dealers, others, helper, own=bool(facts.columns[asker]))
    noisy = noisy_of(job, facts) if "encrypts" in conversation.traits else None
    proofs = job.secure.proofs if proves(job, conversation) else 0
    if noisy is not None:
        noisy = structs.replace(noisy, proofs=proofs)
    return Blind(dealers=dealers, reveal=job.secure.reveal, hidden=hidden, noisy=noisy, proofs=proofs)


def proves(terms: Training, conversation: Conversation[Any]) -> bool:
    """Return whether a blind run can show that no word was wrong: open scores by random measurements, hidden
    ones by the gradient of the finished model, which `lbfgs` brings to nothing."""
    if "encrypts" in conversation.traits:
        return terms.secure.scores == "hidden"
    return "weights-apart" in conversation.traits and terms.secure.scores == "open"


def proofs_of(terms: Training, conversation: Conversation[Any], parties: int) -> int:
    """Return how many random measurements a run between companies makes, where the job does not say: two, if
    nothing else would show a wrong word of a dealer."""
    blind = parties > 2 and labels_of(terms, conversation, parties) == "blind"
    shown = terms.train.evaluate_every or terms.secure.scores == "hidden"
    return PROOFS if blind and not shown and proves(terms, conversation) else 0


def encrypted_of(job: Job, facts: Facts) -> Encrypted:
    """Return the terms of a run whose products are encrypted."""
    if len(facts.label_holders) > 1:
        raise JobError(BOTH_HOLD)
    terms = structs.asdict(noisy_of(job, facts))
    if job.secure.reveal == "never":
        terms["tight"] = False  # no weight tells anything, however few rows there are
    return Encrypted(**terms, profile="lean" if facts.rows <= MOST_LEAN else "strict")


def noisy_of(job: Job, facts: Facts) -> Noisy:
    """Return the terms of a run in which owners are told gradients with noise."""
    secure = job.secure
    return Noisy(
        passes=passes_of(job),
        noise=NOISE if secure.noise is None else secure.noise,
        epsilon=secure.epsilon,
        weighted=facts.weighted,
        tight=facts.rows < FEW or max(facts.columns.values()) > CROWDED * facts.rows,
    )


def passes_of(job: Training) -> int:
    """Return in how many passes owners are told gradients with noise."""
    train = job.train
    usual = train.tolerance is None or train.tolerance > 0
    return min(train.epochs, PASSES) if usual else train.epochs


def noise_left(job: Training) -> float:
    """Return the noise that the mean of all gradients of a run has, in rows: what a longest row of 1 hides.

    Where weights stay at nothing every pass tells the same gradient, and noise of S rows in T passes is as
    good as S / sqrt(T) rows in one.
    """
    from colonnade.privacy.gaussian import deviation_for

    if job.secure.epsilon is not None:
        return deviation_for(job.secure.epsilon, Noisy(passes=1, noise=0.0).delta)
    return float((NOISE if job.secure.noise is None else job.secure.noise) / sqrt(gradients_of(job)))


def gradients_of(job: Training) -> int:
    """Return how many gradients owners are told: one in each pass, and one of the finished model for a
    proof."""
    return passes_of(job) + job.secure.proofs


def hidden_of(
    asker: str, first: Mapping[str, str], others: Sequence[str], helper: str | None, *, own: bool = True
) -> Hidden:
    """Return the mate of the label holder, the party that deals for both, and who deals for the mate's
    products.

    That is another party than deals for the label holder's (`first`) where there is one, and the label holder
    itself only where there is no other third party. `own`: whether the label holder has columns.

    >>> hidden_of("bank", {"shop": "telco", "telco": "shop"}, ["shop", "telco"], None)
    Hidden(mate='shop', dealer='telco', dealers={'bank': 'telco', 'telco': 'bank'})
    """
    mate = next(party for party in others if party != helper)
    dealer = helper or next(party for party in others if party != mate)
    dealers = {}
    for block in [*([asker] if own else []), *first]:
        free = [party for party in (dealer, *others) if party not in (mate, block)]
        better = [party for party in free if party != first.get(block)]
        if block != mate:
            dealers[block] = (free if helper in free else better or free or [asker])[0]
    return Hidden(mate=mate, dealer=dealer, dealers=dealers)


def dealers_of(owners: Sequence[str], others: Sequence[str], helper: str | None = None) -> dict[str, str]:
    """Return, for every owner, the party that deals for it: the helper or, without one, the next of the
    others.

    >>> dealers_of(["shop", "telco", "card"], ["shop", "telco", "card"])
    {'shop': 'telco', 'telco': 'card', 'card': 'shop'}
    >>> dealers_of(["shop", "telco"], ["shop", "telco", "notary"], "notary")
    {'shop': 'notary', 'telco': 'notary'}
    """
    following = dict(zip(others, [*others[1:], *others[:1]], strict=True))
    return {owner: following[owner] if helper in (None, owner) else helper for owner in owners}
