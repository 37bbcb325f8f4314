"""Prints the fields of messages as indented trees, with the names and order of the schema.

Works on the JSON form that the decoder has made, so everything that is redacted in it is also
redacted in the tree. Records and nested payloads are shown at the places of their fields. Long
arrays are cut.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.text import count_text, utc_text, with_remarks
from kraftwire.inspect.exchange_blocks import ExchangeWriter
from kraftwire.inspect.records import content_of
from kraftwire.inspect.values import cut, value_text
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts

_STEP = "  "
_STRUCTS_SHOWN = 5
_NUMBERS_SHOWN = 12
_RECORDS_SHOWN = 5

# Made once, because `json.dumps` makes an encoder for each value.
_json = json.JSONEncoder(ensure_ascii=False).encode

_JSON_SHOWN = 120


class Tree:
    """Makes the lines of trees.

    With `is_full`, every element of every array and record is shown.
    """

    def __init__(self, topics: TopicNames, *, is_full: bool = False) -> None:
        self._topics = topics
        self._is_full = is_full
        self._nested: dict[str, Any] = {}

    def message(
        self, facts: MessageFacts, data: dict[str, Any], nested: dict[str, Any], indent: str
    ) -> Iterator[str]:
        """Yield the lines of a message in its JSON form; `nested` is by the paths of its fields."""
        self._nested = nested
        yield from self._struct(facts.root, data, indent, "")

    def _struct(
        self, facts: StructFacts, data: dict[str, Any], indent: str, path: str
    ) -> Iterator[str]:
        known = {each.name: each for each in facts.fields}
        for name, value in data.items():
            where = f"{path}.{name}" if path else name
            field = known.get(name)
            if field is None:
                yield from json_lines(name, value, indent, is_full=self._is_full)
            else:
                yield from self._field(field, value, indent, where)

    def _field(self, facts: FieldFacts, value: Any, indent: str, path: str) -> Iterator[str]:
        if facts.type == "records" and isinstance(value, list):
            yield f"{indent}{facts.name}: {count_text(len(value), 'batch')}"
            for batch in value:
                yield from self.batch(batch, indent + _STEP)
        elif facts.is_array and isinstance(value, list):
            yield from self._array(facts, value, indent, path)
        elif facts.struct and isinstance(value, dict):
            yield f"{indent}{facts.name}"
            yield from self._struct(facts.struct, value, indent + _STEP, path)
        else:
            yield f"{indent}{facts.name}: {value_text(facts, value, self._topics)}"
            inside = self._nested.get(path)
            if inside is not None:
                yield from json_lines("inside", inside, indent + _STEP, is_full=self._is_full)

    def _array(
        self, facts: FieldFacts, values: list[Any], indent: str, path: str
    ) -> Iterator[str]:
        if facts.struct is None:
            shown = values if self._is_full else values[:_NUMBERS_SHOWN]
            texts = ", ".join(value_text(facts, each, self._topics) for each in shown)
            rest = f", ... {len(values) - len(shown)} more" if len(shown) < len(values) else ""
            yield f"{indent}{facts.name}: [{texts}{rest}]"
            return
        yield f"{indent}{facts.name}: {len(values)}"
        shown = values if self._is_full else values[:_STRUCTS_SHOWN]
        for index, each in enumerate(shown):
            yield f"{indent}{_STEP}[{index}]"
            if isinstance(each, dict):
                deeper = indent + _STEP + _STEP
                yield from self._struct(facts.struct, each, deeper, f"{path}[{index}]")
        if len(shown) < len(values):
            yield f"{indent}{_STEP}... {len(values) - len(shown)} more, -vv shows all"

    # -- records -------------------------------------------------------------------------------

    def batch(self, batch: dict[str, Any], indent: str) -> Iterator[str]:
        """Yield the lines of a batch and its records; `batch` is its JSON form."""
        yield indent + batch_text(batch)
        records = batch.get("records") or ()
        shown = records if self._is_full else records[:_RECORDS_SHOWN]
        for record in shown:
            yield from self._record(record, indent + _STEP)
        if len(shown) < len(records):
            yield f"{indent}{_STEP}... {len(records) - len(shown)} more, -vv shows all"

    def _record(self, record: dict[str, Any], indent: str) -> Iterator[str]:
        decoded = record.get("decoded")
        head = f"{indent}offset {record['offset']} at {utc_text(record['timestamp'])}"
        if decoded is not None:
            version = "" if decoded["version"] is None else f" v{decoded['version']}"
            yield f"{head} {decoded['type']}{version}"
            if decoded["data"] is not None:
                deeper = indent + _STEP
                yield from json_lines("", decoded["data"], deeper, is_full=self._is_full)
            for path, inside in decoded.get("nested", {}).items():
                yield f"{deeper}{path}: {inside['type']} v{inside['version']}"
                data = inside["data"]
                yield from json_lines("", data, f"{deeper}{_STEP}", is_full=self._is_full)
            return
        if "keySize" in record:
            sizes = f"key {_size(record['keySize'])}, value {_size(record['valueSize'])}"
            yield f"{head} {record['type'] or sizes}"
            return
        parts = [f"{name} {self._payload(record[name])}" for name in ("key", "value")]
        headers = record["headers"]
        if headers:
            pairs = (f"{each['key']}={self._payload(each['value'])}" for each in headers)
            parts.append(f"headers {', '.join(pairs)}")
        yield f"{head} {', '.join(parts)}"


    def _payload(self, value: str | None) -> str:
        """Return a key or value as text; `value` is base64 or the word that stands for a secret."""
        if value == REDACTED:
            return REDACTED
        text = content_of(None if value is None else b64decode(value)).quoted()
        return text if self._is_full else cut(text)


def batch_text(batch: dict[str, Any]) -> str:
    """Return a batch as one line; `batch` is its JSON form."""
    remarks = [] if batch["isValid"] else ["CRC IS WRONG"]
    remarks += [
        word
        for key, word in (("isControl", "control"), ("isTransactional", "transactional"))
        if batch[key]
    ]
    if batch["producerId"] is not None and batch["producerId"] >= 0:
        producer = f"producer {batch['producerId']} epoch {batch['producerEpoch']}"
        remarks.append(f"{producer} sequence {batch['baseSequence']}")
    if batch["compression"] != "none":
        remarks.append(batch["compression"])
    if batch["magic"] != 2:
        remarks.append(f"magic {batch['magic']}")
    count = "?" if batch["count"] is None else count_text(batch["count"], "record")
    text = (
        f"batch offsets {batch['baseOffset']}-{batch['lastOffset']}, {count}, "
        f"leader epoch {batch['partitionLeaderEpoch']}, {batch['size']:,} bytes, "
        f"{utc_text(batch['maxTimestamp'])}"
    )
    return with_remarks(text, remarks)


def _size(size: int) -> str:
    return "null" if size < 0 else count_text(size, "byte")


def json_lines(name: str, value: Any, indent: str, *, is_full: bool) -> Iterator[str]:
    """Yield the lines of a JSON value with a name; short objects stay on one line."""
    head = f"{indent}{name}: " if name else indent
    text = _json(value)
    if not isinstance(value, dict | list) or len(text) <= _JSON_SHOWN:
        yield head + cut(text.strip('"') if isinstance(value, str) else text)
        return
    if name:
        yield head.rstrip(" ")
        indent += _STEP
    if isinstance(value, dict):
        for key, each in value.items():
            yield from json_lines(key, each, indent, is_full=is_full)
        return
    shown = value if is_full else value[:_STRUCTS_SHOWN]
    for index, each in enumerate(shown):
        yield from json_lines(f"[{index}]", each, indent, is_full=is_full)
    if len(shown) < len(value):
        yield f"{indent}... {len(value) - len(shown)} more, -vv shows all"


class TreeWriter(ExchangeWriter):
    """Writes the fields of requests and responses, and the content of files."""

    def frame_lines(self, frame: Frame) -> Iterator[str]:
        """Yield the lines of the body."""
        if frame.is_token:
            yield from json_lines("token", frame.nested["token"], "    ", is_full=self._is_full)
            return
        body, cls = frame.lazy_body_json, frame.payload.body_class
        if body is None or cls is None:
            yield "    the body is not decoded"
            return
        tree = Tree(self._topics, is_full=self._is_full)
        yield from tree.message(cls.facts(), body, frame.nested, "    ")

    def file_lines(self, line: FileLine) -> Iterator[str]:
        """Yield the lines of a batch with its records, an index entry, or a state file."""
        json = line.json
        if line.batch is None:
            place = f"{json['file']} "
            rest = {key: value for key, value in json.items() if key != "file"}
            yield from json_lines(place.strip(), rest, "", is_full=self._is_full)
            return
        tree = Tree(self._topics, is_full=self._is_full)
        yield f"{json['file']} at byte {json['position']}"
        yield from tree.batch(json, "  ")
