"""Daemons under load: how long they go on, and what they take."""
