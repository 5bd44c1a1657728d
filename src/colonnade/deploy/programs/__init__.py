"""The programs of a session: training, scoring, and training in a process of its own."""
