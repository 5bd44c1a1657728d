"""Vertical federated learning: many columns carry one roof."""

__version__ = "0.1.0"
