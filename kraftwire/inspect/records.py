"""Records for people: found in frames and files, their content recognized, and written.

Owns the search for topic, partition and offset of a record (a Produce request, for example, lacks
offsets, which its response brings), the distinction of JSON, text, bytes after a schema id, and
bytes, and the lines: for people, by a template like kcat's -f, or as JSON. Nothing else is guessed:
without its schema, Avro or Protobuf is bytes.

Source: Confluent's wire format of serializers: a zero byte, the schema's id in four bytes.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from kraftwire.decode.body.frame import Frame
from kraftwire.decode.body.records import FieldBatches
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.decode.files.kinds import partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.sinks import DecodedExchangeSink
from kraftwire.decode.text import utc_text
from kraftwire.errors import UsageError
from kraftwire.printable import printable_pieces
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import error_name

Kind = Literal["null", "json", "text", "bytes"]

_SCHEMA_PREFIX = 5
# Text may hold line ends and tabs; bytes with any other control character are not text.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_JSON_STARTS = ("{", "[")
# Longer text is not parsed as JSON.
_JSON_SIZE_MAX = 8 * 1024 * 1024

# Returns whether the records of a topic and partition are wanted; either is None where unknown.
TopicTest = Callable[[str | None, int | None], bool]
_PRODUCE = "Produce"
_STEP = re.compile(r"\w+")
_VERBS = {"Produce": "produced", "Fetch": "fetched", "ShareFetch": "acquired"}
Value = bytes | str | None
_TOKEN = re.compile(r"%(?P<letter>.)|\\(?:x(?P<hex>[0-9a-fA-F]{2})|(?P<escape>.))", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "0": "\0"}

# A piece of a line, and whether it is text of the template.
Piece = tuple[str, bool]

# Records are written together up to this many characters; a batch may have millions.
_TEXT_TOGETHER = 64 * 1024

# No other bodies hold records.
_RECORD_APIS = frozenset(
    {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT, ApiKey.SHARE_FETCH}
)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a key, a value or a header, and its kind.

    `text` is JSON on one line, or text; for bytes it is hex. `data` are the bytes after the prefix
    with the `schema_id`, if there is one.
    """

    kind: Kind
    text: str = ""
    data: bytes = b""
    schema_id: int | None = None

    def quoted(self) -> str:
        """Return it in a form that distinguishes text from all other kinds.

        Text is in quotes, JSON as it is, and bytes are their number and their hex.
        """
        shown = self._quoted()
        return shown if self.schema_id is None else f"schema {self.schema_id} {shown}"

    def _quoted(self) -> str:
        if self.kind == "text":
            return json.dumps(self.text, ensure_ascii=False)
        if self.kind == "bytes":
            noun = "byte" if len(self.data) == 1 else "bytes"
            return f"{len(self.data)} {noun} {self.text}"
        return self.text or self.kind

    def plain(self) -> str:
        """Return it alone: text without quotes, an empty string for null."""
        return self.text if self.schema_id is None else f"schema {self.schema_id} {self.text}"

    def to_json(self) -> dict[str, Any]:
        """Return kind and data: JSON as JSON, text as a string, bytes in base64."""
        found: dict[str, Any] = {"format": self.kind}
        if self.schema_id is not None:
            found["schemaId"] = self.schema_id
        if self.kind == "bytes":
            found["data"] = b64encode(self.data).decode()
        elif self.kind == "json":
            found["data"] = json.loads(self.text)
        else:
            found["data"] = self.text if self.kind == "text" else None
        return found


_NULL = Content("null")


def content_of(data: bytes | None) -> Content:
    """Return the content of a record's bytes. None stands for null."""
    if data is None:
        return _NULL
    if len(data) > _SCHEMA_PREFIX and not data[0]:
        schema_id = int.from_bytes(data[1:_SCHEMA_PREFIX], "big", signed=True)
        if schema_id > 0:
            return _plain(data[_SCHEMA_PREFIX:], schema_id)
    return _plain(data, None)


def _plain(data: bytes, schema_id: int | None) -> Content:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Content("bytes", data.hex(" "), data, schema_id)
    if _CONTROLS.search(text):
        return Content("bytes", data.hex(" "), data, schema_id)
    if text.lstrip().startswith(_JSON_STARTS) and _is_json(text):
        return Content("json", _on_one_line(text), data, schema_id)
    return Content("text", text, data, schema_id)


def _is_json(text: str) -> bool:
    if len(text) > _JSON_SIZE_MAX:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _on_one_line(text: str) -> str:
    """Return JSON without its line ends, which never occur inside strings."""
    if "\n" not in text:
        return text.strip()
    return " ".join(line.strip() for line in text.split("\n")).strip()


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A record with its place and the exchange that it was in.

    `offset` is None where the capture does not show it. `key`, `value` and the values of `headers`
    are bytes, None for null, or the word that stands for a secret. `decoded` is the JSON form of a
    record that Kafka wrote itself. `api` and `error` are those of the exchange that carried it;
    both are empty for files. Units: `timestamp` in milliseconds since the epoch.
    """

    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: int
    key: bytes | str | None
    value: bytes | str | None
    headers: tuple[tuple[str, bytes | str | None], ...]
    decoded: dict[str, Any] | None = None
    api: str = ""
    error: str = ""
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """What the records of a field have in common; `base` is the offset of the first record."""

    topic: str | None
    partition: int | None
    api: str = ""
    base: int | None = 0
    error: str = ""


def records_of_exchange(
    request: Frame | None, response: Frame | None, is_wanted: TopicTest
) -> Iterator[PlacedRecord]:
    """Yield the records of a request and its response, either of which may be missing."""
    for frame in filter(None, (request, response)):
        for field in frame.batches:
            place = _place(frame, field, response)
            if is_wanted(place.topic, place.partition):
                yield from _records(field.batches or (), place)


def records_of_line(line: FileLine, is_wanted: TopicTest) -> Iterator[PlacedRecord]:
    """Yield the records of a batch of a file; none for other lines."""
    if line.batch is None:
        return
    found = partition_of(Path(line.json["file"]))
    topic, partition = (found.topic, found.index) if found else (None, None)
    if is_wanted(topic, partition):
        yield from _records([line.json], _Place(topic, partition))


def _place(frame: Frame, field: FieldBatches, response: Frame | None) -> _Place:
    holder = field.where.holder
    partition = getattr(holder, "partition_index", getattr(holder, "index", None))
    api = frame.api_name or ""
    if api != _PRODUCE:
        return _Place(field.topic, partition, api)
    result = _partition_response(field, partition, response)
    if result is None:
        return _Place(field.topic, partition, api, None)
    base = result.base_offset if result.base_offset >= 0 and not result.error_code else None
    error = error_name(result.error_code) if result.error_code else ""
    return _Place(field.topic, partition, api, base, error)


def _partition_response(
    field: FieldBatches, partition: int | None, response: Frame | None
) -> Any:
    """Return the part of a Produce response about a partition; None if there is none."""
    body: Any = None if response is None else response.body
    if body is None:
        return None
    for topic in body.responses:
        if field.where.topic_id is not None:
            is_same = topic.topic_id == field.where.topic_id
        else:
            is_same = topic.name == field.where.topic
        for each in topic.partition_responses if is_same else ():
            if each.index == partition:
                return each
    return None


def _records(batches: Any, place: _Place) -> Iterator[PlacedRecord]:
    """Yield the records of batches in their JSON form, in which secrets are hidden."""
    base = place.base
    for batch in batches:
        count = 0
        for count, record in enumerate(batch.get("records") or (), 1):
            offset = record["offset"]
            if place.api == _PRODUCE:
                offset = None if base is None else base + count - 1
            yield PlacedRecord(
                place.topic, place.partition, offset, record["timestamp"],
                _bytes(record["key"]), _bytes(record["value"]),
                tuple((each["key"], _bytes(each["value"])) for each in record["headers"]),
                record.get("decoded"), place.api, place.error, batch["isControl"],
            )
        base = None if base is None else base + count


def _bytes(value: str | None) -> bytes | str | None:
    return value if value is None or value == REDACTED else b64decode(value)


def quoted_text(value: Value) -> str:
    """Return a key or value, with text in quotes, or the word that stands for a secret."""
    return value if isinstance(value, str) else content_of(value).quoted()


def plain_text(value: Value) -> str:
    """Return a key or value without quotes, empty for null, or the word for a secret."""
    return value if isinstance(value, str) else content_of(value).plain()


def decoded_text(decoded: dict[str, Any]) -> str:
    """Return type and JSON data of a record that Kafka wrote itself.

    What is inside fields of type bytes takes their place, as far as it was decoded.
    """
    version = "" if decoded["version"] is None else f" v{decoded['version']}"
    data = decoded["data"]
    if "nested" in decoded:
        data = {**data, "value": _opened(data["value"], decoded["nested"])}
    shown = "" if data is None else " " + json.dumps(data, ensure_ascii=False)
    return f"{decoded['type']}{version}{shown}"


def _opened(value: dict[str, Any], nested: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a record's value with other values at the paths of some fields."""
    opened: dict[str, Any] = deepcopy(value)
    for path, inside in nested.items():
        # Such as "members[0].subscription".
        *steps, last = [int(each) if each.isdecimal() else each for each in _STEP.findall(path)]
        holder: Any = opened
        for step in steps:
            holder = holder[step]
        holder[last] = inside["data"]
    return opened


def place_text(row: PlacedRecord) -> str:
    """Return topic and partition, with a dash for unknown ones."""
    return f"{row.topic or '-'}-{'-' if row.partition is None else row.partition}"


def record_line(row: PlacedRecord) -> str:
    """Return a record's line for people: direction, place, time and content."""
    parts = [_VERBS.get(row.api, row.api)] if row.api else []
    parts += [place_text(row), "offset", "-" if row.offset is None else str(row.offset)]
    parts.append("-" if row.timestamp < 0 else utc_text(row.timestamp))
    if row.error:
        parts.append(row.error)
    if row.decoded is not None:
        return " ".join([*parts, decoded_text(row.decoded)])
    parts += ["key", quoted_text(row.key), "value", quoted_text(row.value)]
    if row.headers:
        pairs = ", ".join(f"{name}={quoted_text(value)}" for name, value in row.headers)
        parts += ["headers", pairs]
    return " ".join(parts)


def json_line(row: PlacedRecord) -> str:
    """Return a record as a JSON object."""
    data: dict[str, Any] = {
        "topic": row.topic,
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp if row.timestamp >= 0 else None,
        "api": row.api or None,
        "error": row.error or None,
        "key": _json(row.key),
        "value": _json(row.value),
        "headers": [{"key": name, "value": _json(value)} for name, value in row.headers],
        "decoded": row.decoded,
    }
    return json.dumps(data)


def _json(value: Value) -> dict[str, Any]:
    if isinstance(value, str):
        return {"format": "redacted", "data": None}
    found = content_of(value).to_json()
    if found["format"] != "json":
        return found
    try:
        json.dumps([[[found]]])
    except RecursionError:
        found = {**found, "format": "text", "data": content_of(value).text}
    return found


Part = Callable[[PlacedRecord], str]


def _headers(row: PlacedRecord) -> str:
    return ",".join(
        f"{name}={'NULL' if value is None else plain_text(value)}" for name, value in row.headers
    )


def _size(value: bytes | str | None) -> str:
    return "-1" if value is None else str(len(value)) if isinstance(value, bytes) else ""


LETTERS: dict[str, Part] = {
    "t": lambda row: row.topic or "",
    "p": lambda row: "" if row.partition is None else str(row.partition),
    "o": lambda row: "" if row.offset is None else str(row.offset),
    "k": lambda row: plain_text(row.key),
    "K": lambda row: _size(row.key),
    "s": lambda row: plain_text(row.value),
    "S": lambda row: _size(row.value),
    "h": _headers,
    "T": lambda row: str(row.timestamp),
    "%": lambda _row: "%",
}


class Template:
    """A parsed template."""

    def __init__(self, text: str) -> None:
        """Parse a template. Raises: UsageError for an unknown letter."""
        self._parts: list[str | Part] = []
        position = 0
        for match in _TOKEN.finditer(text):
            self._add(text[position : match.start()])
            self._parts.append(_part(match))
            position = match.end()
        rest = text[position:]
        if rest.endswith("%"):
            raise UsageError("the template ends with a lone %")
        self._add(rest)
        last = self._parts[-1] if self._parts else ""
        if not (isinstance(last, str) and last.endswith("\n")):
            self._parts.append("\n")

    def _add(self, text: str) -> None:
        if text:
            self._parts.append(text)

    def pieces(self, row: PlacedRecord) -> list[tuple[str, bool]]:
        """Return the pieces of a record's text, each with whether it is text of the template."""
        return [
            (part, True) if isinstance(part, str) else (part(row), False) for part in self._parts
        ]


def _part(match: re.Match[str]) -> str | Part:
    letter, digits, escape = match["letter"], match["hex"], match["escape"]
    if digits:
        return chr(int(digits, 16))
    if escape:
        return _ESCAPES.get(escape, escape)
    if letter in LETTERS:
        return LETTERS[letter]
    known = " ".join(f"%{each}" for each in LETTERS)
    raise UsageError(f"the template has %{letter}, which stands for nothing; there are {known}")


def _any_topic(_topic: str | None, _partition: int | None) -> bool:
    return True


class DataWriter(DecodedExchangeSink):
    """Writes the records of exchanges and files."""

    def __init__(
        self,
        stream: TextIO,
        *,
        is_live: bool = False,
        is_wanted_topic: TopicTest = _any_topic,
    ) -> None:
        """Write to a stream. `is_wanted_topic` selects records of bodies with several topics."""
        super().__init__()
        self._stream = stream
        self._is_live = is_live
        self._is_wanted = is_wanted_topic

    def frame(self, frame: Frame) -> None:
        """Take the next frame; bodies without records are not decoded."""
        if frame.api_key in _RECORD_APIS:
            super().frame(frame)

    def exchange(
        self, request: Frame | None, response: Frame | None, _is_awaited: bool, /
    ) -> None:
        """Write the records of an exchange."""
        self._put(records_of_exchange(request, response, self._is_wanted))

    def file_line(self, line: FileLine) -> None:
        """Write the records of a batch."""
        self._put(records_of_line(line, self._is_wanted))

    def finish(self) -> None:
        """Write the records of requests that never got an answer."""
        super().finish()
        self._stream.flush()

    def pieces(self, row: PlacedRecord) -> list[Piece]:
        """Return a record's line with its line end; empty if the record is left out."""
        return [(record_line(row), False), ("\n", True)]

    def _put(self, rows: Iterable[PlacedRecord]) -> None:
        has_any = False
        pieces: list[Piece] = []
        size = 0
        for row in rows:
            has_any = True
            for piece in (found := self.pieces(row)):
                pieces.append(piece)
                size += len(piece[0])
            self.left -= bool(found)
            if self.left <= 0:
                break
            if size > _TEXT_TOGETHER:
                self._stream.write(printable_pieces(pieces))
                pieces, size = [], 0
        self._stream.write(printable_pieces(pieces))
        if has_any and self._is_live:
            self._stream.flush()


class DataJsonWriter(DataWriter):
    """Writes a JSON object for each record."""

    def pieces(self, row: PlacedRecord) -> list[Piece]:
        """Return the JSON object of a record."""
        return [(json_line(row), False), ("\n", True)]


class TemplateWriter(DataWriter):
    """Writes each record by a template."""

    def __init__(
        self,
        stream: TextIO,
        *,
        template: str,
        is_live: bool = False,
        is_wanted_topic: TopicTest = _any_topic,
    ) -> None:
        """Parse the template. Raises: UsageError if it is wrong."""
        super().__init__(stream, is_live=is_live, is_wanted_topic=is_wanted_topic)
        self._template = Template(template)

    def pieces(self, row: PlacedRecord) -> list[Piece]:
        """Return a record in the form of the template, whose own line ends and tabs stay.

        As in kcat, transaction markers are left out.
        """
        return [] if row.is_control else self._template.pieces(row)
