"""Engines: who computes inside a party. See `engine`."""
