"""What every table of a job file is: it refuses unknown keys, and parties compare it by its digest."""

from __future__ import annotations

import hashlib
from functools import cache

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the job file, or of the plan that is made of it."""

    def digest(self) -> str:
        """Return a hash of the content: two parties whose digests are equal hold the same values.

        What is as it is by default does not count, so that a version with one key more agrees with another.
        """
        return hashlib.sha256(self.written()).hexdigest()

    def written(self) -> bytes:
        """Return the content as JSON without the fields at their defaults, of which an older version may not
        know."""
        return msgspec.json.encode(_said(self), order="deterministic")


def _said(value: object) -> object:
    """Return a value without the fields of sections that are at their defaults."""
    match value:
        case Section():
            there = [(field, getattr(value, field.name)) for field in fields_of(type(value))]
            return {field.encode_name: _said(each) for field, each in there if _counts(each, field)}
        case dict():
            return {key: _said(each) for key, each in value.items()}
        case list() | tuple():
            return [_said(each) for each in value]
    return value


@cache
def fields_of(kind: type[Section]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a kind of section, whose types take long to read."""
    return msgspec.structs.fields(kind)


def _counts(value: object, field: msgspec.structs.FieldInfo) -> bool:
    """Return whether a field says anything: it is not as it is by default, and not a key that is gone."""
    return field.default is not msgspec.UNSET and not _is_default(value, field)


def _is_default(value: object, field: msgspec.structs.FieldInfo) -> bool:
    if field.default_factory is not msgspec.NODEFAULT:
        return bool(value == field.default_factory())
    if field.default is msgspec.NODEFAULT:
        return False
    if isinstance(value, Section) and type(value) is type(field.default):
        return _said(value) == _said(field.default)  # a key that is gone may be all that differs
    return bool(value == field.default)
