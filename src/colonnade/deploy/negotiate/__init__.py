"""What daemons agree on before a run: proposals, answers, approvals, shares that are still held."""
