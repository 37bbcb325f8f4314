"""The facts of a message schema, read from JSON: Kafka's own files and ours alike.

Owns which keys are facts. A key that is not listed here is an error, so that a new release cannot
slip a new kind of fact past the import. Comments are dropped; `about` texts are kept only if the
caller says that they are ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from kraftwire.errors import UsageError
from tools.import_schemas.versions import EMPTY, Versions, parse_versions

# fmt: off
_MESSAGE_KEYS = frozenset((
    "apiKey", "type", "listeners", "name", "renamedTo", "about", "validVersions",
    "deprecatedVersions", "flexibleVersions", "latestVersionUnstable", "fields", "commonStructs",
))
_STRUCT_KEYS = frozenset(("name", "versions", "about", "fields"))
_FIELD_KEYS = frozenset((
    "name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default",
    "ignorable", "entityType", "mapKey", "zeroCopy", "flexibleVersions", "formerNames", "about",
    "fields",
))
# fmt: on
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*')


@dataclass(frozen=True, slots=True)
class Field:
    """One field; `fields` is None unless the struct it refers to is spelled out in place.

    `former` are names that older releases have for it.
    """

    name: str
    type: str
    versions: Versions
    nullable: Versions = EMPTY
    tagged: Versions = EMPTY
    tag: int | None = None
    default: str | None = None
    is_ignorable: bool = False
    entity_type: str = ""
    is_map_key: bool = False
    is_zero_copy: bool = False
    flexible: Versions | None = None
    former: tuple[str, ...] = ()
    about: str = ""
    fields: tuple[Field, ...] | None = None

    @property
    def struct(self) -> str:
        """The struct's name, or an empty string for a primitive type."""
        element = self.type.removeprefix("[]")
        return element if element[:1].isupper() else ""


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct that several fields of one message share."""

    name: str
    versions: Versions
    fields: tuple[Field, ...]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One schema file.

    `renamed_to` is empty unless a newer release carries this message under another name;
    `deprecated` is None if the schema does not say.
    """

    name: str
    type: str
    valid: Versions
    flexible: Versions
    api_key: int | None = None
    listeners: tuple[str, ...] = ()
    deprecated: Versions = EMPTY
    is_latest_unstable: bool = False
    fields: tuple[Field, ...] = ()
    structs: tuple[Struct, ...] = ()
    renamed_to: str = ""
    about: str = ""


def strip_comments(text: str) -> str:
    """Replace ``//`` comments by spaces; strings and line numbers stay the same."""
    return _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else "", text)


def parse_schema(text: str, where: str, *, keep_about: bool) -> Message:
    """Read one schema.

    `where` names the file in errors; `keep_about` is true for our own files only.
    Raises: UsageError for broken JSON, unknown keys and values of the wrong kind.
    """
    try:
        data = json.loads(strip_comments(text))
    except json.JSONDecodeError as error:
        raise UsageError(f"{where}: not valid JSON: {error}") from error
    message = _message(_Reader(_mapping(data, where), where))
    return message if keep_about else _without_about(message)


class _Reader:
    """Typed access to one JSON object; every error names the object's place."""

    def __init__(self, data: Mapping[str, object], where: str) -> None:
        self._data = data
        self._where = where

    def refuse(self, key: str, expected: str) -> UsageError:
        return UsageError(f"{self._where}: {key!r} is {self._data.get(key)!r}, expected {expected}")

    def only(self, known: frozenset[str]) -> None:
        unknown = sorted(self._data.keys() - known)
        if unknown:
            raise UsageError(
                f"{self._where}: unknown key {', '.join(unknown)}; if it is a fact of the format, "
                "tools/import_schemas/schema.py has to learn it"
            )

    def text(self, key: str, fallback: str | None = None) -> str:
        value = self._data.get(key, fallback)
        if not isinstance(value, str):
            raise self.refuse(key, "a string")
        return value

    def flag(self, key: str) -> bool:
        value = self._data.get(key, False)
        # Some schemas spell the flag as a string.
        if value not in (True, False, "true", "false"):
            raise self.refuse(key, "true or false")
        return value in (True, "true")

    def number(self, key: str) -> int | None:
        value = self._data.get(key)
        if isinstance(value, str) and value.isdecimal():
            return int(value)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self.refuse(key, "an integer")
        return value

    def default(self) -> str | None:
        """A default as text; JSON's null means no default, while the text "null" is a value."""
        value = self._data.get("default")
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, float)):
            return str(value)
        raise self.refuse("default", "a string, a number or a boolean")

    def versions(self, key: str, fallback: str = "none") -> Versions:
        try:
            return parse_versions(self.text(key, fallback))
        except UsageError as error:
            raise UsageError(f"{self._where}: {key!r}: {error}") from error

    def has(self, key: str) -> bool:
        return key in self._data

    def strings(self, key: str) -> tuple[str, ...]:
        return tuple(cast(str, item) for item in self._list(key))

    def children(self, key: str) -> Iterator[_Reader]:
        for index, item in enumerate(self._list(key)):
            name = item.get("name", index) if isinstance(item, dict) else index
            where = f"{self._where} {name}"
            yield _Reader(_mapping(item, where), where)

    def _list(self, key: str) -> list[object]:
        value = self._data.get(key, [])
        if not isinstance(value, list):
            raise self.refuse(key, "a list")
        return value


def _mapping(data: object, where: str) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise UsageError(f"{where}: expected a JSON object, found {type(data).__name__}")
    return data


def _message(reader: _Reader) -> Message:
    reader.only(_MESSAGE_KEYS)
    return Message(
        name=reader.text("name"),
        type=reader.text("type"),
        valid=reader.versions("validVersions"),
        flexible=reader.versions("flexibleVersions"),
        api_key=reader.number("apiKey"),
        listeners=reader.strings("listeners"),
        deprecated=reader.versions("deprecatedVersions"),
        is_latest_unstable=reader.flag("latestVersionUnstable"),
        fields=_fields(reader),
        structs=tuple(_struct(child) for child in reader.children("commonStructs")),
        renamed_to=reader.text("renamedTo", ""),
        about=reader.text("about", ""),
    )


def _struct(reader: _Reader) -> Struct:
    reader.only(_STRUCT_KEYS)
    return Struct(
        name=reader.text("name"),
        versions=reader.versions("versions"),
        fields=_fields(reader),
        about=reader.text("about", ""),
    )


def _fields(reader: _Reader) -> tuple[Field, ...]:
    return tuple(_field(child) for child in reader.children("fields"))


def _field(reader: _Reader) -> Field:
    reader.only(_FIELD_KEYS)
    tagged = reader.versions("taggedVersions")
    return Field(
        name=reader.text("name"),
        type=reader.text("type"),
        # A tagged field may leave out its versions: they are those in which it is tagged.
        versions=reader.versions("versions", str(tagged)),
        nullable=reader.versions("nullableVersions"),
        tagged=tagged,
        tag=reader.number("tag"),
        default=reader.default(),
        is_ignorable=reader.flag("ignorable"),
        entity_type=reader.text("entityType", ""),
        is_map_key=reader.flag("mapKey"),
        is_zero_copy=reader.flag("zeroCopy"),
        flexible=reader.versions("flexibleVersions") if reader.has("flexibleVersions") else None,
        former=reader.strings("formerNames"),
        about=reader.text("about", ""),
        fields=_fields(reader) if reader.has("fields") else None,
    )


def _without_about(message: Message) -> Message:
    def bare(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        return tuple(
            replace(field, about="", fields=None if field.fields is None else bare(field.fields))
            for field in fields
        )

    structs = tuple(
        replace(struct, about="", fields=bare(struct.fields)) for struct in message.structs
    )
    return replace(message, about="", fields=bare(message.fields), structs=structs)
