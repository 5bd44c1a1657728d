"""`colonnade run --check`."""

from __future__ import annotations

from pathlib import Path

from colonnade.job import Job


def check_job(job: Job, folder: Path, *, as_json: bool) -> int:
    """Placeholder."""
    return 0
