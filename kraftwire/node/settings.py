"""A properties file and its overrides, read and checked key by key.

Every value knows its origin, so that an error names key, file and line. `config` has the rules
between values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraftwire.controller.group_configs import GROUP_SETTINGS
from kraftwire.controller.topic_keys import SETTINGS
from kraftwire.errors import UsageError
from kraftwire.node.config_keys import (
    DRAFT_NAMES,
    KAFKA_PREFIXES,
    KEYS,
    is_security_key,
    security_key_problem,
)
from kraftwire.properties import Property, read_properties, suggestion
from kraftwire.protocol.kafka_keys import kafka_keys

# Where the names of listeners stand.
_LISTENER_KEYS = (
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it was set. `place` is `FILE:LINE` or `--override`."""

    key: str
    text: str
    place: str


class Settings:
    """The values of a node's properties; keys that are not set have their defaults.

    `path` names the file in messages about keys that are missing.
    """

    def __init__(self, entries: Iterable[Setting], path: str) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._values: dict[str, Setting] = {}
        drafts: list[Setting] = []
        for entry in entries:
            if entry.key in DRAFT_NAMES and entry.key not in self._values:
                drafts.append(entry)
            self._values[entry.key] = entry
        for entry in drafts:
            self._adopt(self._values[entry.key])
        self._warn_of_keys()

    def is_set(self, key: str) -> bool:
        """Return whether a key was given, empty or not."""
        return key in self._values

    def entries(self) -> Iterator[tuple[str, str, int]]:
        """All keys that were given, with their texts and lines; an override has line 0."""
        for setting in self._values.values():
            line = setting.place.rpartition(":")[2]
            yield setting.key, setting.text, int(line) if line.isdigit() else 0

    def named(self, name: str) -> list[str]:
        """Return the keys that were given and are this name, with or without a prefix."""
        return [key for key in self._values if key == name or key.endswith(f".{name}")]

    def text(self, key: str) -> str | None:
        """Return a text, stripped; None if the key is not set and has no default."""
        setting = self._values.get(key)
        if setting is None:
            default = KEYS[key].default
            return None if default is None else str(default)
        return setting.text.strip()

    def items(self, key: str) -> list[str]:
        """Return the items of a list. Raises: UsageError for an empty or a repeated item."""
        text = self.text(key)
        if not text:
            return []
        parts = [part.strip() for part in text.split(",")]
        if not all(parts):
            raise self.refuse(key, "no empty items")
        if len(set(parts)) < len(parts):
            raise self.refuse(key, "each item once")
        return parts

    def number(self, key: str) -> int | None:
        """Return an integer within the key's bounds. Raises: UsageError otherwise."""
        rule = KEYS[key]
        setting = self._values.get(key)
        if setting is None:
            return None if rule.default is None else int(rule.default)
        text = setting.text.strip()
        digits = text[1:] if text[:1] in "+-" else text
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
            raise self.refuse(key, rule.allowed)
        value = int(text)
        if not rule.low <= value <= rule.high:
            raise self.refuse(key, rule.allowed)
        return value

    def integer(self, key: str) -> int:
        """Return the integer of a key that has a default."""
        value = self.number(key)
        if value is None:
            raise self.missing(key, "it has no default")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean. Raises: UsageError unless it is true or false, in upper or lower
        case."""
        text = (self.text(key) or "").lower()
        if text not in ("true", "false"):
            raise self.refuse(key, KEYS[key].allowed)
        return text == "true"

    def choice(self, key: str) -> str:
        """Return one of the key's choices. Raises: UsageError otherwise."""
        text = (self.text(key) or "").lower()
        if text not in KEYS[key].choices:
            raise self.refuse(key, KEYS[key].allowed)
        return text

    def refuse(self, key: str, allowed: str) -> UsageError:
        """Return the error for a bad value: key, place, allowed values."""
        setting = self._values.get(key)
        if setting is None:
            return self.missing(key, f"expected {allowed}")
        named = f"{setting.key} (for {key})" if setting.key != key else key
        return UsageError(f"{setting.place}: {named}={setting.text}: expected {allowed}")

    def missing(self, key: str, why: str) -> UsageError:
        """Return the error for a missing key."""
        return UsageError(f"{self.path}: {key} is not set: {why}")

    def _adopt(self, draft: Setting) -> None:
        """Use a draft name as the released one, unless that is given too."""
        released = DRAFT_NAMES[draft.key]
        given = self._values.get(released)
        if draft.key == "broker.id":
            self._adopt_broker_id(draft, given)
            return
        if given is not None and given.key == released:
            if given.text.strip() != draft.text.strip():
                self._warn(draft, f"is overruled by {released} at {given.place}")
            return
        self._warn(draft, f"is another name of {released}")
        self._values[released] = draft

    def _adopt_broker_id(self, draft: Setting, given: Setting | None) -> None:
        """Accept `broker.id`, which Kafka still knows: it must equal `node.id` (R-CONF)."""
        if given is not None and given.text.strip() != draft.text.strip():
            raise self.refuse("broker.id", f"the value of node.id, {given.text.strip()}")
        if given is None:
            self._warn(draft, "is the old name of node.id")
            self._values["node.id"] = draft

    def _warn_of_keys(self) -> None:
        """Warn of keys without effect and of unknown keys."""
        idle = []
        for setting in self._values.values():
            key = setting.key
            of_resources = key in SETTINGS or key in GROUP_SETTINGS
            if key in KEYS or key in DRAFT_NAMES or of_resources:
                continue
            if is_security_key(key):
                problem = security_key_problem(key, self._listeners, kafka_keys())
                if problem:
                    self._warn(setting, problem)
            elif key in kafka_keys() or key.startswith(KAFKA_PREFIXES):
                idle.append(key)
            else:
                known = [*KEYS, *DRAFT_NAMES, *kafka_keys()]
                self._warn(setting, f"is not a known key{suggestion(key, known)}")
        if idle:
            names = ", ".join(sorted(idle))
            self.warnings.append(f"{self.path}: without effect here: {names}")

    @property
    def _listeners(self) -> frozenset[str]:
        """The names of all listeners that the file has, in lower case."""
        given = (self._values[key].text for key in _LISTENER_KEYS if key in self._values)
        parts = (part.partition(":")[0].strip() for text in given for part in text.split(","))
        return frozenset(part.lower() for part in parts)

    def _warn(self, setting: Setting, what: str) -> None:
        self.warnings.append(f"{setting.place}: {setting.key} {what}")


def read_settings(path: str, overrides: Iterable[str] = ()) -> Settings:
    """Read a properties file and apply `key=value` overrides.

    Raises: UsageError for a file that cannot be read, a bad escape or an override without a key.
    """
    entries = []
    for entry in _read(path):
        entries.append(Setting(entry.key, entry.value, f"{path}:{entry.line}"))
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--override {override}: expected key=value")
        entries.append(Setting(key.strip(), value, "--override"))
    return Settings(entries, path)


def _read(path: str) -> list[Property]:
    try:
        return read_properties(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


