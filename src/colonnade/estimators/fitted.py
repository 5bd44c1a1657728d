"""A trained model where one process holds all shares: how it scores rows, and its plain form for storing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Arrays, Floats
from colonnade.conversations.context import GivenModels
from colonnade.conversations.predict import Holding, ShareKind
from colonnade.credit.attribution import Attributions, attributions
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import INTERCEPT, RawTable
from colonnade.errors import ShareError
from colonnade.estimators.given_models import model_of
from colonnade.job.plan import Plan
from colonnade.run.registry import CONVERSATIONS
from colonnade.trees.importance import importance_of
from colonnade.trees.tree import Forest, Splits


@dataclass(frozen=True, eq=False)
class Fitted:
    """Every party's preparation and share, and the models that the plan does not describe.

    `own` and `head` are torch modules or `Model` objects that a user gave.
    """

    plan: Plan[Any]
    preparations: dict[str, Preparation]
    shares: dict[str, Arrays]
    own: Mapping[str, object]
    head: object = None
    means: Mapping[str, Floats] = field(default_factory=dict)  # of prepared training columns, by party

    @property
    def kind(self) -> ShareKind:
        """What a party keeps of such a model."""
        return CONVERSATIONS[self.plan.conversation].share

    def scores(self, tables: Mapping[str, RawTable]) -> Floats:
        """Return the score of every row, and of every class where there are several."""
        holdings = {}
        for party, preparation in self.preparations.items():
            X = preparation.transform(tables[party]).X
            holdings[party] = Holding(self.plan, party, self.shares[party], X, self._models(party))
        return self.kind.together(holdings)

    def attributions(self, tables: Mapping[str, RawTable]) -> Attributions:
        """Return the SHAP values of rows."""
        if self.kind.name == "linear" and not self.means:
            raise ShareError("shap_values: this model was stored by an earlier version; fit it again")
        return attributions(self.plan, self.preparations, self.shares, tables, self.means)

    def coefficients(self) -> dict[str, Floats]:
        """Return the weights of a linear model by party, without the intercept; none of any other model."""
        if self.kind.name != "linear":
            raise AttributeError("coef_: this is not a linear model")
        self._refuse_in_parts("coef_")
        return {party: np.asarray(self.shares[party]["w"])[self._own(party)] for party in self.preparations}

    def intercept(self) -> float | Floats:
        """Return the intercept of a linear model, 0 where there is none."""
        if self.kind.name != "linear":
            raise AttributeError("intercept_: this is not a linear model")
        self._refuse_in_parts("intercept_")
        for party, preparation in self.preparations.items():
            if preparation.intercept:
                last = np.asarray(self.shares[party]["w"])[-1]
                return last if last.ndim else float(last)
        return 0.0

    def importances(self) -> dict[str, Floats]:
        """Return the part of all gain that the splits of every prepared column have, by party; of trees
        alone."""
        if self.kind.name != "trees":
            raise AttributeError("feature_importances_: these are not trees")
        forest = Forest.from_arrays(self.shares[self.plan.evaluator])
        found = {}
        for number, party in enumerate(self.plan.parties):
            splits, columns = Splits.from_arrays(self.shares[party]), len(self.preparations[party].outputs)
            found[party] = importance_of(forest, number, splits, columns).gain
        total = sum(float(gain.sum()) for gain in found.values()) or 1.0
        return {party: gain / total for party, gain in found.items()}

    def _refuse_in_parts(self, name: str) -> None:
        """Refuse weights that the job keeps from everybody, as between companies."""
        if self.plan.blind is not None and self.plan.blind.reveal == "never":
            raise AttributeError(f"{name}: nobody knows weights where secure.reveal = 'never'; use 'owner'")

    def _own(self, party: str) -> slice:
        """Return the places of the weights of a party's own columns: all but the intercept, which is the
        last."""
        return slice(-1) if self.preparations[party].intercept else slice(None)

    def _models(self, party: str) -> GivenModels:
        head = self.head if party == self.plan.evaluator else None
        return GivenModels(
            model_of(self.own[party]) if party in self.own else None,
            None if head is None else model_of(head),
        )

    def plain(self) -> dict[str, Any]:
        """Return the same as text, arrays and the user's own objects: all that a file of a model should
        hold."""
        return {
            "conversation": self.plan.conversation,
            "plan": msgspec.json.encode(self.plan).decode(),
            "preparations": {party: each.to_dict() for party, each in self.preparations.items()},
            "shares": self.shares,
            "own": dict(self.own),
            "head": self.head,
            "means": dict(self.means),
        }

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Fitted:
        """Return the model that `plain` described."""
        settings = CONVERSATIONS[plain["conversation"]].settings
        plan: Plan[Any] = msgspec.json.decode(plain["plan"], type=Plan[settings])  # type: ignore[valid-type]
        made = {party: Preparation.from_dict(each) for party, each in plain["preparations"].items()}
        return Fitted(plan, made, plain["shares"], plain["own"], plain["head"], plain.get("means", {}))


def without_ones(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the prepared columns without that of the intercept."""
    return tuple(column for column in columns if column != INTERCEPT)
