"""A credit kit: what a risk department asks of a model, beside what training measures.

Weight of evidence across parties is a conversation (`conversations.woe`); what is here needs scores and
labels, which the label holder has, or all shares of a linear model on one machine.
"""

from colonnade.credit.calibration import Platt, brier, hosmer_lemeshow, isotonic, reliability
from colonnade.credit.card import model_card
from colonnade.credit.inference import coefficient_table, vif
from colonnade.credit.linear import LinearModel
from colonnade.credit.measures import Gain, gains, gini, ks, psi, psi_of_columns
from colonnade.credit.scorecard import Scaling, Scorecard

__all__ = [
    "Gain",
    "LinearModel",
    "Platt",
    "Scaling",
    "Scorecard",
    "brier",
    "coefficient_table",
    "gains",
    "gini",
    "hosmer_lemeshow",
    "isotonic",
    "ks",
    "model_card",
    "psi",
    "psi_of_columns",
    "reliability",
    "vif",
]
