"""Which setting ends what an attack finds: named in its finding."""

from __future__ import annotations

JOINT = "columns from joint scores"

_BLIND = "secure.labels = 'blind'"
_HIDDEN = "secure.scores = 'hidden'"
_REPLIES = "[privacy] mechanism = 'gradient' or 'scalar'"
_FAULT_OF_MASKS = "nothing but fresh masks: this is a fault, please report it"
_NOISE = "secure.noise, or secure.epsilon"
_UNKNOWN = "secure.reveal = 'never', the default between companies"
_HISTOGRAMS = "trees.bin_rows, trees.node_rows, trees.noise and trees.bits, as they come"

CLOSED_BY: dict[str, str] = {
    "labels from theta": f"{_BLIND}, or [privacy] mechanism = 'labels'",
    "labels from gradients": _REPLIES,
    "labels from function values": _REPLIES,
    "labels from probes": _REPLIES,
    "labels from veiled words": _FAULT_OF_MASKS,
    "labels from its own weights": _UNKNOWN,
    "labels from packed columns": f"{_UNKNOWN}, where weights are told and kept no finer than known",
    "labels from its gradients": _NOISE,
    "labels from ciphertexts": "nothing but fresh keys: this is a fault, please report it",
    "labels from its parts": _FAULT_OF_MASKS,
    "columns from its parts": _FAULT_OF_MASKS,
    "labels from weight of evidence": "woe.noise, which between companies limits.woe_noise demands",
    "columns from its gradients": _NOISE,
    JOINT: _HIDDEN,
    "columns from the space of scores": _HIDDEN,
    "columns from exact scores": _HIDDEN,
    "labels from gradients of trees": _BLIND,
    "labels from nodes of trees": "[privacy] mechanism = 'labels'",
    "columns from histograms": _HISTOGRAMS,
    "bins from small sums": _HISTOGRAMS,
    "columns from angles": "kernel.omega = 'private', the default",
}
"""By the name of an attack."""
