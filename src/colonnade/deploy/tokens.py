"""Tokens in files: the secrets that the prediction service and the daemon's page ask for."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from colonnade.errors import JobError

SHORTEST = 16


def read_token(path: Path, where: str) -> str:
    """Return the token in a file; JobError, naming the setting, if it is missing, short, or others may read
    it."""
    try:
        token = path.read_text(encoding="utf-8").strip()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise JobError(f"{where}: {path}: {reason}; `colonnade party --make-tokens` writes one") from error
    if mode & 0o077:
        raise JobError(f"{where}: {path}: other users of this machine can read it; `chmod 600` it")
    if len(token) < SHORTEST:
        raise JobError(f"{where}: {path}: a token has at least {SHORTEST} characters")
    return token


def make_token(path: Path) -> bool:
    """Write a new random token to a file that only its owner may read; False if the file exists already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(file, "w") as opened:
        opened.write(secrets.token_urlsafe(32) + "\n")
    return True
