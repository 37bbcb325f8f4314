"""How a scenario writes the requests and shows the records and answers of the controller.

Fields are JSON without quotes. Ids are words, and numbers with names have these.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kraftwire.controller.cluster import LOST, MIGRATING, UNASSIGNED
from kraftwire.controller.image import MetadataImage
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.acls import Operation, ResourceType
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message

# Words of a request in quotes or without.
_WORD = re.compile(r'"[^"]*"|[A-Za-z_][\w.-]*')
_LITERALS = ("true", "false", "null")

# Numbers that have names: by field, and by a part of the message's name before it.
_NUMBERS: dict[str, dict[int, str]] = {
    "errorCode": {code: code.name for code in ErrorCode},
    "topicConfigErrorCode": {code: code.name for code in ErrorCode},
    "configOperation": {0: "SET", 1: "DELETE", 2: "APPEND", 3: "SUBTRACT"},
    "electionType": {0: "PREFERRED", 1: "UNCLEAN"},
    "fenced": {1: "FENCE", -1: "UNFENCE"},
    "leaderRecoveryState": {0: "RECOVERED", 1: "RECOVERING"},
    "mechanism": {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"},
    "operation": dict(enumerate(Operation.NAMES)),
    "patternType": {1: "ANY", 3: "LITERAL", 4: "PREFIXED"},
    "permissionType": {1: "ANY", 2: "DENY", 3: "ALLOW"},
    "resourceType": {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"},
    "upgradeType": {1: "UPGRADE", 2: "SAFE_DOWNGRADE", 3: "UNSAFE_DOWNGRADE"},
}
for _name, _like in {
    "resourceTypeFilter": "resourceType",
    "resourcePatternType": "patternType",
    "patternTypeFilter": "patternType",
}.items():
    _NUMBERS[_name] = _NUMBERS[_like]
_ACL_RESOURCES = dict(enumerate(ResourceType.NAMES))

# What fields of requests are where a scenario does not say it: time enough, and the number of
# replicas as they are assigned.
_USUAL = {"timeoutMs": 60_000, "timeout": 60_000, "numPartitions": -1, "replicationFactor": -1}

_DIRECTORIES = {MIGRATING: "MIGRATING", UNASSIGNED: "UNASSIGNED", LOST: "LOST"}

# Long, and the same in every scenario; in CreateTopicsResponse the whole configuration.
_NOT_SHOWN = {"allowReplicationFactorChange", "configs", "endPoints", "features"}

# A number that is at its default is shown where it identifies something.
_IDENTIFIES = re.compile(r"([iI]d|Index|Epoch|Level)$")
_IDENTIFIES_FAILED = ("partitionId", "partitionIndex")


class Notation:
    """The words of one scenario; `image` is the state that topics are looked up in."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        # By value of an id that was drawn at random: what is shown for it.
        self._labels: dict[Any, str] = {}

    def message(self, cls: type[Message], text: str, usual: dict[str, Any]) -> Any:
        """Return a message from the fields that a scenario writes; `usual` are those that it need
        not write."""
        return self._built(cls.facts().root, usual | _parsed(text), cls.NAME)

    def _built(self, struct: StructFacts, data: dict[str, Any], message: str) -> Any:
        """Return a struct of a request; what is not given is at its default."""
        fields = {each.name: each for each in struct.fields}
        value = struct.cls()
        for name in _USUAL.keys() & fields.keys():
            setattr(value, fields[name].attribute, _USUAL[name])
        for name, given in data.items():
            each = fields[name]
            setattr(value, each.attribute, self._value(each, given, message))
        broker = self.image.brokers.get(getattr(value, "broker_id", -1))
        if "brokerEpoch" in fields and "brokerEpoch" not in data and broker is not None:
            value.broker_epoch = broker.epoch
        return value

    def _value(self, each: FieldFacts, given: Any, message: str) -> Any:
        if isinstance(given, list):
            return [self._value(each, item, message) for item in given]
        if each.struct and given is not None:
            return self._built(each.struct, given, message)
        if each.type == "uuid":
            return self._id(given)
        if each.type == "bytes" and isinstance(given, str):
            return self._labelled(given, bytes) or given.encode()
        if each.type == "string" and given is not None:
            return self._labelled(str(given), str) or str(given)
        if isinstance(given, str):
            numbers = {name: number for number, name in _numbers(each.name, message).items()}
            return numbers[given]
        return given

    def _id(self, label: str) -> bytes:
        topics = self.image.topics.ids
        known = {name: value for value, name in _DIRECTORIES.items()}
        return (
            topics.get(label)
            or self._labelled(label, bytes)
            or known.get(label)
            or label.encode().ljust(16, b"\0")
        )

    def _labelled(self, label: str, kind: type) -> Any:
        found = (value for value, other in self._labels.items() if other == label)
        return next((value for value in found if isinstance(value, kind)), None)

    def text(self, message: Message) -> str:
        shown = self._struct(type(message).facts().root, message, message.NAME)
        return shown[1:-1]

    def _struct(self, struct: StructFacts, value: Any, message: str) -> str:
        parts = []
        is_failed = bool(getattr(value, "error_code", 0))
        for each in struct.fields:
            held = getattr(value, each.attribute)
            if is_failed and held == each.default and each.name not in _IDENTIFIES_FAILED:
                continue
            if each.name in _NOT_SHOWN or not self._is_shown(each, held, message):
                continue
            parts.append(f"{each.name}: {self._shown_value(each, held, message)}")
        return "{" + ", ".join(parts) + "}"

    @staticmethod
    def _is_shown(each: FieldFacts, held: Any, message: str) -> bool:
        """Return whether a value is of interest: most that are at their defaults are not."""
        if isinstance(held, bool):
            return held or each.default or message.endswith("Response")
        if isinstance(held, int) and _IDENTIFIES.search(each.name):
            return held >= 0
        if held == []:
            return message == "PartitionChangeRecord"  # empty from now on, where null is no change
        return held is not None and held != each.default and held not in ("", b"", bytes(16))

    def _shown_value(self, each: FieldFacts, held: Any, message: str) -> str:
        if isinstance(held, list):
            return "[" + ", ".join(self._shown_value(each, item, message) for item in held) + "]"
        if each.struct:
            return self._struct(each.struct, held, message)
        if each.type == "uuid":
            return self._uuid(held, message)
        if each.name in ("hmac", "tokenId") and held:
            return self._labels.setdefault(held, f"{each.name}{self._count(each.name)}")
        if isinstance(held, bytes):
            return f"{len(held)} bytes"
        if isinstance(held, str):
            return held if _WORD.fullmatch(held) else json.dumps(held)
        if isinstance(held, bool) or not isinstance(held, int):
            return json.dumps(held)
        return _numbers(each.name, message).get(held, str(held))

    def _count(self, prefix: str) -> int:
        return 1 + sum(label.startswith(prefix) for label in self._labels.values())

    def _uuid(self, held: bytes, message: str) -> str:
        if held in _DIRECTORIES:
            return _DIRECTORIES[held]
        label = self._labels.get(held)
        name = self.image.topics.names.get(held)
        if label is None and name is not None:
            # A topic that is created again has another id.
            again = self._count(name)
            label = self._labels[held] = name if again == 1 else f"{name}-{again}"
        elif label is None and message == "AccessControlEntryRecord":
            label = self._labels[held] = f"acl{self._count('acl')}"
        elif label is None and not held.rstrip(b"\0").isascii():
            label = "new"  # of a topic that is only checked
        return label or held.rstrip(b"\0").decode()


def _parsed(text: str) -> dict[str, Any]:
    """Return the fields of a request: JSON whose words need no quotes, without its braces."""

    def quoted(match: re.Match[str]) -> str:
        word = match[0]
        return word if word[0] == '"' or word in _LITERALS else f'"{word}"'

    found: dict[str, Any] = json.loads("{" + _WORD.sub(quoted, text) + "}")
    return found


def _numbers(field: str, message: str) -> dict[int, str]:
    if ("Acl" in message or "AccessControl" in message) and field.startswith("resourceType"):
        return _ACL_RESOURCES
    return _NUMBERS.get(field, {})
