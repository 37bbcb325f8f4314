"""The union of several releases: one message with every version of any of them.

The newest release that has a version determines it, names included. An older release adds only what
newer ones dropped, and only for requests, responses and headers: those may arrive from an old peer,
while records are read in the form of the newest release. A result is checked version by version
against the release it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kraftwire.errors import UsageError
from tools.import_schemas.layout import layout
from tools.import_schemas.renames import with_current_names
from tools.import_schemas.schema import Field, Message, Struct
from tools.import_schemas.versions import EMPTY, Versions

_MERGED_TYPES = frozenset(("request", "response", "header"))


def union_of_releases(releases: Sequence[Mapping[str, Message]]) -> dict[str, Message]:
    """Merge releases, given newest first, each by message name.

    Messages without any valid version are left out; a message that a newer release has
    under another name (same API key, same direction) keeps its own entry, with the new name in it.
    A field that changed its name has the newest one.
    Raises: UsageError if an older release cannot be merged with the newer ones.
    """
    union: dict[str, Message] = {}
    for age, release in enumerate(releases):
        for name, older in release.items():
            if not older.valid or (age and older.type not in _MERGED_TYPES):
                continue
            newer = union.get(name)
            if newer is None:
                union[name] = replace(_clip(older), renamed_to=_successor(older, union))
            elif missing := older.valid.without(newer.valid):
                union[name] = _merge(newer, with_current_names(older, newer), missing)
    return dict(sorted(union.items()))


def with_unreleased(union: Message, present: Message) -> Message:
    """Keep a version of ours that no release has yet, and that our schema marks as unstable.

    Raises: UsageError if the present schema differs from the releases' in a version that they have.
    """
    if not present.is_latest_unstable or not present.valid.without(union.valid):
        return union
    _check_layout(present, union, union.valid.without(EMPTY))
    return present


def _successor(message: Message, union: Mapping[str, Message]) -> str:
    """Return the name of this message in a newer release, or an empty string."""
    if message.api_key is None or message.type not in _MERGED_TYPES:
        return ""
    names = [
        other.name
        for other in union.values()
        if other.api_key == message.api_key and other.type == message.type
    ]
    return names[0] if names else ""


def _clip(message: Message) -> Message:
    """Limit every range to the valid versions and drop what no valid version has."""
    clipped = _Merge(message, message, ()).message()
    _check_layout(clipped, message, message.valid.without(EMPTY))
    return clipped


def _merge(newer: Message, older: Message, missing: tuple[int, ...]) -> Message:
    merged = _Merge(newer, older, missing).message()
    _check_layout(merged, newer, newer.valid.without(EMPTY))
    _check_layout(merged, older, missing)
    return merged


def _check_layout(merged: Message, source: Message, versions: tuple[int, ...]) -> None:
    for version in versions:
        if layout(merged, version) != layout(source, version):
            raise UsageError(
                f"{merged.name} v{version}: the merged schema does not lay out the fields as the "
                "release that has this version; a field moved or changed its type"
            )


class _Merge:
    """One newer and one older form of a message; `missing` are versions only the older one has."""

    def __init__(self, newer: Message, older: Message, missing: tuple[int, ...]) -> None:
        self._newer = newer
        self._older = older
        self._missing = missing
        gained = Versions(missing[0], missing[-1]) if missing else EMPTY
        self._gained = gained
        self._valid = newer.valid | gained

    def message(self) -> Message:
        newer, older = self._newer, self._older
        return replace(
            newer,
            valid=self._valid,
            flexible=self._range(newer.flexible, older.flexible),
            deprecated=self._range(newer.deprecated, older.deprecated),
            fields=self._fields(newer.fields, older.fields),
            structs=self._structs(),
        )

    def _range(self, newer: Versions, older: Versions) -> Versions:
        """Return the versions of the newer form where it is valid, else those of the older form."""
        joined = (newer & self._newer.valid) | (older & self._gained)
        return joined.opened(self._valid)

    def _structs(self) -> tuple[Struct, ...]:
        older = {struct.name: struct for struct in self._older.structs}
        merged = []
        for struct in self._newer.structs:
            twin = older.pop(struct.name, None)
            merged.append(
                replace(
                    struct,
                    versions=self._range(struct.versions, (twin or struct).versions),
                    fields=self._fields(struct.fields, twin.fields if twin else ()),
                )
            )
        for struct in older.values():
            merged.append(
                replace(
                    struct,
                    versions=(struct.versions & self._gained).opened(self._valid),
                    fields=self._fields((), struct.fields),
                )
            )
        return tuple(struct for struct in merged if struct.versions)

    def _fields(self, newer: tuple[Field, ...], older: tuple[Field, ...]) -> tuple[Field, ...]:
        """Merge both lists: the newer order, with old fields after their predecessor."""
        twins = {field.name: field for field in older}
        merged = [self._field(field, twins.get(field.name)) for field in newer]
        names = [field.name for field in merged]
        at = 0
        for field in older:
            if field.name in names:
                at = names.index(field.name) + 1
            else:
                merged.insert(at, self._past_field(field))
                names.insert(at, field.name)
                at += 1
        return tuple(field for field in merged if field.versions)

    def _field(self, newer: Field, older: Field | None) -> Field:
        past = older or replace(newer, versions=EMPTY, nullable=EMPTY, tagged=EMPTY)
        return replace(
            newer,
            versions=self._range(newer.versions, past.versions),
            nullable=self._range(newer.nullable, past.nullable),
            tagged=self._range(newer.tagged, past.tagged),
            is_ignorable=newer.is_ignorable or self._was_ignored(past),
            fields=self._subfields(newer, past),
        )

    def _past_field(self, field: Field) -> Field:
        """Return a field that only old versions have."""
        return replace(
            field,
            versions=(field.versions & self._gained).opened(self._valid),
            nullable=(field.nullable & self._gained).opened(self._valid),
            tagged=(field.tagged & self._gained).opened(self._valid),
            fields=None if field.fields is None else self._fields((), field.fields),
        )

    def _subfields(self, newer: Field, older: Field) -> tuple[Field, ...] | None:
        if newer.fields is None:
            return None
        return self._fields(newer.fields, older.fields or ())

    def _was_ignored(self, older: Field) -> bool:
        """Whether a version that only the older release has leaves the field out silently."""
        return older.is_ignorable and any(v not in older.versions for v in self._missing)
