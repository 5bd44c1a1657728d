"""A party's daemon and all around it, none of which can be imported on Windows."""

from colonnade.posix import need_posix

need_posix("a party's daemon")
