"""Writes a line for each record: for people, by a template like kcat's -f, or as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, TextIO

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.exchange.paired import WholePaired
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.text import utc_text
from kraftwire.errors import UsageError
from kraftwire.inspect.payload.records import (
    PlacedRecord,
    TopicTest,
    records_of_exchange,
    records_of_line,
)
from kraftwire.inspect.payload.text import payload_of
from kraftwire.printable import printable_pieces

_STEP = re.compile(r"\w+")
_VERBS = {"Produce": "produced", "Fetch": "fetched", "ShareFetch": "acquired"}

Value = bytes | str | None


def quoted_text(value: Value) -> str:
    """Return a payload, with text in quotes, or the word that stands for a secret."""
    return value if isinstance(value, str) else payload_of(value).quoted()


def plain_text(value: Value) -> str:
    """Return a payload without quotes, or the word that stands for a secret; empty for null."""
    return value if isinstance(value, str) else payload_of(value).plain()


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
    found = payload_of(value).to_json()
    if found["format"] != "json":
        return found
    try:
        json.dumps([[[found]]])
    except RecursionError:
        found = {**found, "format": "text", "data": payload_of(value).text}
    return found


Part = Callable[[PlacedRecord], str]

_TOKEN = re.compile(r"%(?P<letter>.)|\\(?:x(?P<hex>[0-9a-fA-F]{2})|(?P<escape>.))", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "0": "\0"}


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


# A piece of a line, and whether it is text of the template.
Piece = tuple[str, bool]

# Records are written together up to this many characters; a batch may have millions.
_TEXT_TOGETHER = 64 * 1024

# Produce, Fetch, FetchSnapshot and ShareFetch: no other bodies hold records.
_RECORD_APIS = frozenset({0, 1, 59, 78})


def _any_topic(_topic: str | None, _partition: int | None) -> bool:
    return True


class DataWriter(WholePaired):
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

    def frame(self, decoded: DecodedFrame) -> None:
        """Take the next frame; bodies without records are not decoded."""
        if decoded.frame.api_key in _RECORD_APIS:
            super().frame(decoded)

    def exchange(
        self, request: DecodedFrame | None, response: DecodedFrame | None, _is_awaited: bool, /
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
            for piece in self.pieces(row):
                pieces.append(piece)
                size += len(piece[0])
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
