"""Properties of a node, a client or a program: typed values by key, each with its place for errors.

Source: Kafka's `ConfigDef`; `ListenerName` for the keys of one listener.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kraftwire.errors import UsageError
from kraftwire.properties_file import Property, read_properties

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Key:
    """A row of a table of keys: how the value of a key is read and checked, and what it sets.

    `kind` is `int`, `bool`, `list`, `text` or `choice`; `low` and `high` bound an int, `choices` a
    choice. A default of None means: not set. `sets` is the field of a configuration that has the
    value as it is, with the field of the group that it belongs to (``timers.fetch_timeout_ms``);
    empty for a key that is combined with others. `aliases` are other names of the key.
    """

    name: str
    kind: str
    default: int | bool | str | None = None
    low: int = -LONG_MAX
    high: int = INT_MAX
    choices: tuple[str, ...] = ()
    sets: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if self.kind == "int":
            if self.low == -LONG_MAX:
                return "a whole number"
            if self.high in (INT_MAX, LONG_MAX):
                return f"a whole number of at least {self.low}"
            return f"a whole number from {self.low} to {self.high}"
        if self.kind == "bool":
            return "true or false"
        if self.kind == "choice":
            return " or ".join(self.choices)
        return "a list separated by commas" if self.kind == "list" else "a text"


_NO_KEYS: Mapping[str, Key] = {}


class Properties:
    """Values by key, each with its place for errors; later entries win.

    `path` names the origin in messages. `keys` is the table of the keys that are read by type:
    those that are not set have the default of their row. `listener` is the listener whose own keys
    win, ``listener.name.<listener>.<key>``, in any case; None for properties without listeners.
    `warnings` are for people, a line each. No value is part of the repr.
    """

    def __init__(
        self, entries: Iterable[Property], path: str, keys: Mapping[str, Key] = _NO_KEYS
    ) -> None:
        self.path = path
        self.listener: str | None = None
        self.warnings: list[str] = []
        self._keys = keys
        self._entries = {entry.key: entry for entry in entries}

    @classmethod
    def of(cls, values: Mapping[str, object], path: str) -> Properties:
        """Return the properties of a program, which have no lines; paths and numbers are text."""
        return cls([Property(key, str(value), 0) for key, value in values.items()], path)

    @classmethod
    def given(
        cls, given: Mapping[str, object] | str | os.PathLike[str], name: str
    ) -> Properties:
        """Return the properties that a program gives under a name, or those of a file.

        Raises: as `read_properties`.
        """
        if isinstance(given, Mapping):
            return cls.of(given, name)
        path = os.fspath(given)
        return cls(read_properties(path), path)

    @classmethod
    def read(
        cls, path: str, overrides: Iterable[str] = (), keys: Mapping[str, Key] = _NO_KEYS
    ) -> Properties:
        """Read a properties file and apply `key=value` overrides.

        Raises: UsageError for a file that cannot be read, a bad escape or an override without a
        key.
        """
        try:
            entries = read_properties(path)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from error
        for override in overrides:
            key, equals, value = override.partition("=")
            if not equals or not key.strip():
                raise UsageError(f"--override {override}: expected key=value")
            entries.append(Property(key.strip(), value, 0, "--override"))
        return cls(entries, path, keys)

    def __repr__(self) -> str:
        return f"Properties({self.path!r}, {len(self._entries)} keys)"

    def of_listener(self, listener: str) -> Properties:
        """Return the same properties as a listener sees them.

        Raises: UsageError for keys that name it in capitals, which Kafka passes over.
        """
        own = listener.lower()
        for key in self._entries:
            name = key.removeprefix("listener.name.").partition(".")[0]
            if key.startswith("listener.name.") and name.lower() == own != name:
                raise self.error(key, f"has no effect, as in Kafka: write {own}, in lower case")
        return self._with((), listener)

    def changed(self, values: Mapping[str, str], origin: str) -> Properties:
        """Return the same properties with others in place of some; `origin` names where they are
        from."""
        changes = [Property(key, value, 0, origin) for key, value in values.items()]
        return self._with(changes, self.listener)

    def adopt(self, key: str, alias: str) -> None:
        """Give a key the value of another name of it, with its place."""
        self._entries[key] = self._entries[alias]

    def names(self) -> Iterable[str]:
        """Return all keys as they are spelled."""
        return self._entries.keys()

    def spelling(self, key: str) -> str | None:
        """Return the name under which a key is given, another one or that of a listener's own key;
        None if it is absent."""
        entry = self._entry(key)
        return entry.key if entry else None

    def has(self, key: str) -> bool:
        """Return whether a key is present, even if it is empty."""
        return self._entry(key) is not None

    def get(self, key: str, mechanism: str | None = None) -> str | None:
        """Return a value without blanks around it; None if it is absent or empty.

        `mechanism` is that of a key which a listener has once for each.
        """
        return self._text(key, mechanism) or None

    def text(self, key: str) -> str | None:
        """Return a text or a password, which may be empty; None if the key is absent."""
        return self._text(key)

    def listed(self, key: str) -> list[str]:
        """Return the parts of a comma-separated list, without empty ones."""
        return [part.strip() for part in (self.get(key) or "").split(",") if part.strip()]

    def items(self, key: str) -> list[str]:
        """Return the items of a list. Raises: UsageError for an empty or a repeated item."""
        text = self.get(key)
        if not text:
            return []
        parts = [part.strip() for part in text.split(",")]
        if not all(parts):
            raise self.refuse(key, "no empty items")
        if len(set(parts)) < len(parts):
            raise self.refuse(key, "each item once")
        return parts

    def number(self, key: str, mechanism: str | None = None) -> int | None:
        """Return an integer within the key's bounds. Raises: UsageError otherwise."""
        rule, text = self._keys[key], self._text(key, mechanism)
        if text is None:
            return None
        digits = text[1:] if text[:1] in "+-" else text
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
            raise self.refuse(key, rule.allowed, mechanism)
        value = int(text)
        if not rule.low <= value <= rule.high:
            raise self.refuse(key, rule.allowed, mechanism)
        return value

    def integer(self, key: str, mechanism: str | None = None) -> int:
        """Return the integer of a key that has a default. Raises: UsageError as `number`."""
        value = self.number(key, mechanism)
        if value is None:
            raise self.missing(key, "it has no default")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean. Raises: UsageError unless it is true or false, in upper or lower
        case."""
        return self._one_of(key, ("true", "false")) == "true"

    def choice(self, key: str) -> str:
        """Return one of the key's choices. Raises: UsageError otherwise."""
        return self._one_of(key, self._keys[key].choices)

    def group(self, group: str) -> dict[str, Any]:
        """Return the values that keys give to the fields of a group, by the name of the field."""
        values = {}
        for key in self._keys.values():
            of_group, _, field = key.sets.rpartition(".")
            if field and of_group == group:
                values[field] = self._typed(key)
        return values

    def place(self, key: str, mechanism: str | None = None) -> str:
        """Return where a key stands, for messages: ``client.properties:3: ssl.keystore.type``."""
        entry = self._entry(key, mechanism)
        return f"{self.path}: {key}" if entry is None else f"{self._origin(entry)}: {entry.key}"

    def origin(self, key: str) -> str:
        """Return the file and the line of a key that is present, or what else set it."""
        return self._origin(self._entries[key])

    def error(self, key: str, problem: str, mechanism: str | None = None) -> UsageError:
        """Return an error about a key, with its place."""
        return UsageError(f"{self.place(key, mechanism)}: {problem}")

    def refuse(self, key: str, allowed: str, mechanism: str | None = None) -> UsageError:
        """Return the error for a bad value that is no secret: place, key, value, allowed values."""
        entry = self._entry(key, mechanism)
        if entry is None:
            return self.missing(key, f"expected {allowed}")
        name = entry.key if entry.key.endswith(key) else f"{entry.key} (for {key})"
        return UsageError(f"{self._origin(entry)}: {name}={entry.value}: expected {allowed}")

    def missing(self, key: str, why: str) -> UsageError:
        """Return the error for a missing key."""
        return UsageError(f"{self.path}: {key} is not set: {why}")

    def _typed(self, key: Key) -> int | bool | str | tuple[str, ...] | None:
        if key.kind == "int":
            return self.integer(key.name)
        if key.kind == "bool":
            return self.flag(key.name)
        if key.kind == "choice":
            return self.choice(key.name)
        return tuple(self.items(key.name)) if key.kind == "list" else self.text(key.name)

    def _one_of(self, key: str, choices: Collection[str]) -> str:
        text = (self._text(key) or "").lower()
        if text not in choices:
            raise self.refuse(key, self._keys[key].allowed)
        return text

    def _text(self, key: str, mechanism: str | None = None) -> str | None:
        """Return a value without blanks around it, or the default of its row."""
        entry = self._entry(key, mechanism)
        if entry is not None:
            return entry.value.strip()
        rule = self._keys.get(key)
        return None if rule is None or rule.default is None else str(rule.default)

    def _origin(self, entry: Property) -> str:
        line = f":{entry.line}" if entry.line else ""
        return f"{entry.origin or self.path}{line}"

    def _entry(self, key: str, mechanism: str | None = None) -> Property | None:
        prefixes = [""]
        if self.listener is not None:
            own = f"listener.name.{self.listener.lower()}."
            prefixes.insert(0, own)
            if mechanism is not None:
                prefixes.insert(0, f"{own}{mechanism.lower()}.")
        found = (self._entries.get(prefix + key) for prefix in prefixes)
        return next((entry for entry in found if entry is not None), None)

    def _with(self, changes: Iterable[Property], listener: str | None) -> Properties:
        other = Properties(changes, self.path, self._keys)
        other._entries = self._entries | other._entries
        other.listener, other.warnings = listener, self.warnings
        return other
