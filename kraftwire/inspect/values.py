"""Formats values of fields for people: codes with names, times as dates, bytes as hex.

Works on the JSON form of a value and the facts of its field.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from typing import Any

from kraftwire import messages
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.decode.text import utc_text
from kraftwire.protocol.error_codes import error_name
from kraftwire.records.compression import CODEC_MASK, NAMES
from kraftwire.records.header import CONTROL, DELETE_HORIZON, STAMPED, TRANSACTIONAL
from kraftwire.wire.facts import FieldFacts
from kraftwire.wire.json_form import float_to_json, uuid_from_text, uuid_to_text

# Made once, because `json.dumps` makes an encoder for each text.
_quoted = json.JSONEncoder(ensure_ascii=False).encode

_ERROR_SUFFIX = "rrorCode"
_API_KEYS = frozenset({"apiKey", "requestApiKey"})
# Smaller numbers of milliseconds (before 1973) are taken not to be times.
_TIMES_MIN = 10**11
_BYTES_SHOWN = 24
_TEXT_SHOWN = 200

_UUID_SIZE = 16

_ATTRIBUTES = {
    STAMPED: "LogAppendTime",
    TRANSACTIONAL: "transactional",
    CONTROL: "control",
    DELETE_HORIZON: "delete horizon",
}

_CODE_NAMES: dict[str, dict[int, str]] = {
    "isolationLevel": {0: "read uncommitted", 1: "read committed"},
    "keyType": {0: "group", 1: "transaction", 2: "share"},
    "endpointType": {1: "brokers", 2: "controllers"},
    "securityProtocol": {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"},
}


def value_text(facts: FieldFacts, value: Any, topics: TopicNames) -> str:
    """Return the text of a value that is no array and no struct; `value` is its JSON form."""
    if isinstance(value, str) and value != REDACTED:
        if facts.type in ("bytes", "records"):
            return _base64_text(value)
        if facts.type == "uuid":
            name = topics.name(None, uuid_from_text(value)) if facts.name == "topicId" else None
            return f"{value} ({name})" if name else value
    if value is None:
        return "null"
    if isinstance(value, float):
        value = float_to_json(value)
    if value == REDACTED:
        return REDACTED
    if facts.type == "string":
        return cut(_quoted(value))
    remark = _remark(facts.name, facts.type, value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{text} {remark}" if remark else text


def raw_value_text(name: str, type_name: str, value: Any, topics: TopicNames) -> str:
    """Return the text of a message's value by the name and type of its field."""
    if value is None:
        return "null"
    if isinstance(value, bytes | memoryview):
        if type_name == "uuid" or (len(value) == _UUID_SIZE and name.endswith("Id")):
            known = topics.name(None, bytes(value)) if name == "topicId" else None
            return f"{uuid_to_text(bytes(value))}{f' ({known})' if known else ''}"
        return bytes_text(value)
    if isinstance(value, str):
        return cut(_quoted(value))
    if isinstance(value, bool):
        return str(value).lower()
    remark = _remark(name, type_name, value)
    return f"{value} {remark}" if remark else str(value)


def _remark(name: str, type_name: str, value: Any) -> str:
    """Return the meaning of a number; empty if it is a plain number."""
    if not isinstance(value, int):
        return ""
    if name.endswith(_ERROR_SUFFIX):
        return error_name(value)
    if name in _API_KEYS:
        return messages.API_NAMES.get(value, "")
    if type_name == "int64" and value >= _TIMES_MIN and "time" in name.lower():
        return f"({utc_text(value)})"
    if name == "attributes":
        return _attributes(value)
    known = _CODE_NAMES.get(name)
    return f"({known[value]})" if known and value in known else ""


def _attributes(value: int) -> str:
    """Describe the bits of a batch's attributes."""
    codec = value & CODEC_MASK
    words = [NAMES[codec] if codec < len(NAMES) else f"codec {codec}"] if codec else []
    words += [word for bit, word in _ATTRIBUTES.items() if value & bit]
    return f"({', '.join(words)})" if words else ""


def _base64_text(text: str) -> str:
    try:
        return bytes_text(b64decode(text))
    except (binascii.Error, ValueError):
        return text


def bytes_text(data: bytes | memoryview) -> str:
    """Return the number of bytes and the first of them, as text if possible, else in hex."""
    size = len(data)
    if not size:
        return "0 bytes"
    head = bytes(data[:_BYTES_SHOWN])
    noun = "byte" if size == 1 else "bytes"
    shown = _quoted(head.decode("ascii")) if _is_text(head) else head.hex(" ")
    return f"{size} {noun}: {shown}{'...' if size > _BYTES_SHOWN else ''}"


def _is_text(data: bytes) -> bool:
    return all(0x20 <= each < 0x7F for each in data)


def cut(text: str, size: int = _TEXT_SHOWN) -> str:
    """Return a text, cut to `size` characters."""
    return text if len(text) <= size else f"{text[: size - 3]}..."
