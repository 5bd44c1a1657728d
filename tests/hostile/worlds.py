"""What parties do while one of them is hostile: every conversation, scoring, alignment and weighing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from tests.conversations.test_woe import TERMS, binned, labels
from tests.hostile.peer import BRIEF, Attack, Program, judged, played
from tests.oracles.tables import random_job, random_tables
from tests.patience import PATIENCE_S

from colonnade.conversations.align import FEW, AlignTerms, Method, align
from colonnade.conversations.predict import Holding, Session
from colonnade.conversations.woe import weigh_as_label_holder, weigh_as_party
from colonnade.errors import Aborted
from colonnade.net.endpoint import Endpoint
from colonnade.privacy.counts import CountNoise
from colonnade.run.coalitions import train
from colonnade.run.federate import plan_for
from colonnade.run.party import Party, Share, Work, held_to
from colonnade.run.registry import CONVERSATIONS
from colonnade.secure.keys import InProcessIdentity
from colonnade.secure.streams import PairStreams

NAMES = tuple(f"party{k}" for k in range(4))
NETWORK = {"model": {"kind": "mlp", "hidden": [4], "outputs": 2, "server": {"kind": "mlp", "hidden": [4]}}}

CLEAR = {"secure": {"labels": "clear"}}
TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "vfb2-sgd": ("vfb2-sgd", CLEAR),
    "vfb2-svrg": ("vfb2-svrg", {**CLEAR, "train": {"step": "auto"}}),
    "vfb-saga": ("vfb-saga", CLEAR),
    "joint": ("vfb2-saga", {**CLEAR, "train": {"direction": "lbfgs", "step": "auto"}}),
    "tree": ("vfb2-sgd", {"secure": {"labels": "clear", "sum": "tree"}}),
    "plain": ("vfb2-sgd", {"secure": {"labels": "clear", "sum": "plain"}}),
    "relayed": ("vfb2-sgd", {**CLEAR, "network": {"broadcast": "tree"}}),
    "blind": ("vfb2-saga", {"secure": {"labels": "blind"}}),
    "afsgd-vp": ("afsgd-vp", {}),
    "asysqn-svrg": ("asysqn-svrg", {"train": {"step": "auto"}}),
    "synsqn-saga": ("synsqn-saga", {}),
    "lbfgs": ("lbfgs", {"train": {"epochs": 4}}),
    "fdskl": ("fdskl", {}),
    "fdskl-capped": ("fdskl-capped", {"kernel": {"features": 16, "block": 8}}),
    "pp-svmv": ("pp-svmv", {"train": {"loss": "smooth_hinge"}}),
    "secureboost": ("secureboost", {}),
    "boosted-sum": ("boosted-sum", {}),
    "blind trees": ("secureboost", {"secure": {"labels": "blind"}}),
    "asyrevel-gau": ("asyrevel-gau", {}),
    "synrevel-uni": ("synrevel-uni", {}),
    "tig": ("tig", {}),
    "czofo": ("czofo", {"cascade": {"directions": 4}}),
    "czofo-ef": ("czofo-ef", {"cascade": {"directions": 4}}),
    "zoo-vfl": ("zoo-vfl", {}),
    "vafl": ("vafl", {}),
    "c-vfl": ("c-vfl", {}),
}


@dataclass
class Case:
    """What all parties do, how they end when all are honest, and which messages each sends then."""

    programs: dict[str, Program]
    same: Callable[[Any, Any], bool]
    virtual: bool = True
    brief: float = BRIEF
    clean: dict[str, Any] = field(init=False)
    sent: dict[str, dict[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.sent = {}
        for name in self.programs:
            counting = Attack(np.random.default_rng(0))
            # where all are honest nobody waits for a deadline, unless the machine is busy
            self.clean = played(self.programs, name, counting, virtual=self.virtual, brief=PATIENCE_S)
            self.sent[name] = dict(counting.seen)
        failed = [end for end in self.clean.values() if isinstance(end, BaseException)]
        if failed:
            raise next((end for end in failed if not isinstance(end, Aborted)), failed[0])

    def attacked(self, seed: int) -> tuple[str, list[str]]:
        """One hostile party, one altered message: what was done, and what is wrong with how others ended."""
        rng = np.random.default_rng([seed, 17])
        names = sorted(self.programs)
        evil = names[int(rng.integers(len(names)))]
        kinds = sorted(self.sent[evil])
        kind = kinds[int(rng.integers(len(kinds)))]
        attack = Attack(rng, kind, int(rng.integers(self.sent[evil][kind])))
        ends = played(self.programs, evil, attack, virtual=self.virtual, brief=self.brief)
        what = f"seed {seed}: {evil}, {kind} {attack.place}: {attack.done.what if attack.done else '-'}"
        return what, judged(ends, evil, attack, lambda name, end: self.same(self.clean[name], end))


def same_share(clean: Share, found: Share) -> bool:
    return clean.weights.keys() == found.weights.keys() and all(
        np.allclose(value, found.weights[name], rtol=1e-6, atol=1e-6) for name, value in clean.weights.items()
    )


@cache
def plan_of(name: str) -> tuple[Any, Any]:
    algorithm, sections = TRAININGS[name]
    one = name in ("blind", "blind trees")
    tables = random_tables(rows=60, test_rows=20, active=1 if one else 2)
    trains = {"epochs": 2, **sections.get("train", {})}
    return plan_for(random_job(tables, algorithm, **{**sections, "train": trains}), tables)


@cache
def training(name: str) -> Case:
    """A run of an algorithm from the agreement on keys to the last goodbye."""
    plan, data = plan_of(name)
    identities = InProcessIdentity.for_all(NAMES)

    def party(me: str) -> Program:
        async def program(net: Endpoint) -> Share:
            prepared = data[me].prepare()
            async with Party(identities[me], (net,)) as party:
                return await train(party, Work(plan, prepared.train, prepared.test), net)

        return program

    return Case({me: party(me) for me in NAMES}, same_share)


@cache
def scoring(name: str) -> Case:
    """A session of joint scores with a model that was trained honestly; the label holder asks."""
    plan, data = plan_of(name)
    trained, kind = training(name).clean, CONVERSATIONS[plan.conversation].share
    identities, asker = InProcessIdentity.for_all(NAMES), plan.evaluator

    def party(me: str) -> Program:
        async def program(net: Endpoint) -> Any:
            table = data[me].prepare().test
            async with Party(identities[me], (net,)) as party:
                held_to(net)
                secrets = await party.join(net, "scores")
                secure = party.secure_sum(net, secrets, plan.secure_sum)
                part = kind.scorer(Holding(plan, me, trained[me].weights, table.X))
                session = Session(net, secure, asker, part, PairStreams(me, secrets), limits=net.meter.limits)
                found: Any = None
                if me != asker:
                    found = await session.answer()
                else:
                    found = [await session.ask(np.array(rows)) for rows in ([3], [1, 19, 7], range(20))]
                    await session.end()
                await party.leave(net)
                return found

        return program

    def same(clean: Any, found: Any) -> bool:
        return clean == found if isinstance(clean, int) else all(map(np.allclose, clean, found))

    return Case({me: party(me) for me in NAMES}, same)


@cache
def aligning(method: Method = "curve", half: int = 20, brief: float = BRIEF) -> Case:
    """Private alignment of 40 ids at each of three parties, of which half are common to all."""
    names, rng = NAMES[:3], np.random.default_rng(0)
    pool = rng.integers(0, 256, (5 * half, 32), dtype=np.uint8)
    own = {me: pool[half * (k + 1) : half * (k + 2)] for k, me in enumerate(names)}
    ids = {me: np.concatenate([pool[:half], rest]) for me, rest in own.items()}
    identities = InProcessIdentity.for_all(names)

    def party(me: str) -> Program:
        async def program(net: Endpoint) -> Any:
            async with Party(identities[me], (net,)) as party:
                secrets = await party.join(net, "align")
                terms = AlignTerms(order=b"order", minimum=10, method=method, declare=held_to(net))
                found = await align(net, ids[me], secrets, terms)
                await net.finish()
                return found

        return program

    return Case(
        {me: party(me) for me in names}, lambda a, b: a.digest == b.digest, virtual=False, brief=brief
    )


@cache
def weighing() -> Case:
    """Weight of evidence of three parties' columns."""
    names, y = NAMES[:3], labels()
    identities = InProcessIdentity.for_all(names)
    own = {me: binned(k) for k, me in enumerate(names)}

    def party(me: str) -> Program:
        async def program(net: Endpoint) -> Any:
            async with Party(identities[me], (net,)) as party:
                declare = held_to(net)
                await party.join(net, "weigh")
                if me == names[0]:
                    found = await weigh_as_label_holder(net, y, own[me], TERMS, CountNoise(), declare)
                else:
                    found = await weigh_as_party(net, names[0], own[me], TERMS, declare)
                await net.finish()
                return found

        return program

    return Case({me: party(me) for me in names}, lambda a, b: bool(a.columns == b.columns))


CASES: dict[str, Callable[[], Case]] = {
    **{f"train {name}": (lambda name=name: training(name)) for name in TRAININGS},  # type: ignore[misc]
    **{
        f"score {name}": (lambda name=name: scoring(name))  # type: ignore[misc]
        for name in ("vfb2-sgd", "tree", "fdskl-capped", "secureboost", "boosted-sum", "blind")
    },
    "align": aligning,
    "align by transfers": lambda: aligning("ot", FEW // 2, 6.0),
    "weigh": weighing,
}


def findings(case: str, seeds: range) -> Iterator[str]:
    """Everything that went wrong with these seeds."""
    for seed in seeds:
        what, wrong = CASES[case]().attacked(seed)
        for each in wrong:
            yield f"{case}, {what}: {each}"
