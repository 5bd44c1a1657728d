"""The processes that a daemon starts, as it sees them: pipes, limits, logs, memory."""
