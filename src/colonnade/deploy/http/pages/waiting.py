"""Proposals that wait, as the daemon's page shows them: what matters first, the rest on demand."""

from __future__ import annotations

from colonnade.data.table import count
from colonnade.deploy.daemon.proposal_views import ProposalView
from colonnade.deploy.http.pages.access import SignedIn
from colonnade.deploy.http.pages.parts import form, time
from colonnade.report.html import Html, joined, tag

REST = "Every key of the job, also those at their defaults"


def waiting(proposals: list[ProposalView], session: SignedIn) -> Html:
    """Return the proposals that wait, each with what it gives away and the two buttons."""
    if not proposals:
        return Html("")
    return joined(tag("h2", "Waiting for your approval"), *(_proposal(each, session) for each in proposals))


def _proposal(each: ProposalView, session: SignedIn) -> Html:
    asks = (
        f"{each.job}, proposed by {each.proposer}"
        if each.kind == "train"
        else f"{each.proposer} asks for {each.job}"
    )
    return tag(
        "div",
        tag("h3", asks),
        _facts(_what_for(each)),
        _reads(each),
        _list("What it tells of yours", each.gives_away),
        _facts(_what(each)),
        _details("What every party hears of every other, at the most, by counting", _bullets(each.heard)),
        _details("The job, as its file says it", tag("pre", each.job_file)),
        _details(REST, tag("pre", each.terms)),
        _decide(each, session),
        class_="card pad waits",
        id=f"proposal-{each.run}",
    )


def _what_for(each: ProposalView) -> dict[str, str]:
    """Return what people have to know before anything else: what for, under which contract, until when."""
    times = f"{count(each.runs_before, 'time')} so far"
    if each.runs_of_a_job is not None:
        times += f", {each.runs_of_a_job} at most; one approval counts for all of them"
    approved = f"{', '.join(each.people) or 'nobody'} of {each.needs} people" if each.needs > 1 else ""
    return {
        "purpose": each.purpose or "the job does not say",
        "contract": each.contract,
        "may be asked": each.contact,
        "last day": each.expires or "none",
        "was run": times if each.kind == "train" else "",
        "approved by": approved,
        "waits since": time(each.since),
        "refused after": time(each.until),
    }


def _what(each: ProposalView) -> dict[str, str]:
    """Return what is computed of which data."""
    bound = "no mechanism bounds it" if each.epsilon is None else f"{each.epsilon:g} (delta {each.delta:g})"
    return {
        "algorithm": each.algorithm,
        "parties": ", ".join(f"{name} ({role})" for name, role in sorted(each.parties.items())),
        "to expect": each.cost,
        "your data": f"{each.data}, {each.rows:,} rows",
        "your columns": ", ".join(each.columns) or "none",
        "epsilon of labels": bound if each.kind == "train" else "",
        "digest": tag("code", each.digest),
    }


def _facts(facts: dict[str, str]) -> Html:
    given = ((name, value) for name, value in facts.items() if value)
    return tag("dl", *(joined(tag("dt", name), tag("dd", value)) for name, value in given))


def _reads(each: ProposalView) -> Html:
    """Return who can read what, and the notes, in the sentences of the report after the run."""
    if each.kind == "score":
        return Html("")
    said = [*each.reads, *(f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in each.notes)]
    told = _bullets(said) if said else tag("p", "By construction no party learns a number of another's rows.")
    return tag("div", "Who can read what, as the report of the run will say:", told, class_="leaks")


def _list(title: str, sentences: list[str]) -> Html:
    return joined(tag("h4", title), _bullets(sentences))


def _bullets(sentences: list[str]) -> Html:
    return tag("ul", *(tag("li", sentence) for sentence in sentences))


def _details(title: str, content: Html) -> Html:
    return tag("details", tag("summary", title), content)


def _decide(each: ProposalView, session: SignedIn) -> Html:
    if "approver" not in session.who.roles:
        return tag("p", "Somebody with the role approver decides.", class_="soft")
    digest = tag("input", type="hidden", name="digest", value=each.digest)
    read = tag("input", type="checkbox", name="read", value="yes", required=True)
    return tag(
        "div",
        form(
            f"/proposals/{each.run}/approve",
            session,
            digest,
            tag("label", read, " I have read what it gives away"),
            tag("button", "Approve", class_="go"),
        ),
        form(
            f"/proposals/{each.run}/refuse",
            session,
            digest,
            tag(
                "input",
                type="text",
                name="reason",
                placeholder=f"reason, which {each.proposer} reads",
                aria_label="reason",
            ),
            tag("button", "Refuse", class_="stop"),
        ),
        class_="decide",
    )
