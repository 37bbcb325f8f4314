"""JSON lines: a frame, a batch, an index entry or a state file per line.

The lines of ordinary frames are written by the engine, straight from their bytes. A frame is
ordinary if all of it is there, its API and version are known, its header has no tags, and its body
is as Kafka itself would write it, hides no secret and has nothing nested in it. All others are
decoded, which reports findings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from struct import Struct
from typing import Any, BinaryIO

from kraftwire import engine, messages
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.framing.headers import NAME_CHARACTERS_MAX
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.body.nested import is_plain
from kraftwire.decode.body.ordinary import form_of
from kraftwire.decode.body.records import FieldBatches, Settings, read_into
from kraftwire.decode.body.scan import RecordsField
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.limits import JSON_ROW_BYTES_MIN, JSON_ROWS_FREE
from kraftwire.decode.sinks import Sink
from kraftwire.limits import ELEMENT_FREE_COUNT
from kraftwire.printable import printable
from kraftwire.records.crc import crc32c
from kraftwire.records.json_form import RecordRows, weight_of
from kraftwire.records.limits import RECORDS_CHUNK_COUNT
from kraftwire.records.messages import family_of_topic
from kraftwire.wire.json_form import json_plan
from kraftwire.wire.message import Message

# The weight of the records of a long list that are encoded at a time.
_WEIGHT_AT_ONCE = RECORDS_CHUNK_COUNT // 8

# The one control character that JSON takes as it is.
_DELETE = "\x7f"

# Where in the text records belong, where they begin and end, name and id of their topic.
_Gap = tuple[int, int, int, str | None, bytes | None]

# Writer of the body, whether the header ends with tagged fields, name of the API; None without one.
_Plan = tuple[Any, bool, str] | None

_END = b',"nested":{},"findings":[]}\n'
_NO_TAGS = b"\0"
# API key and version, correlation id, length of the client id, which is -1 for null.
_HEADER = Struct(">hhih")
_NULL = -1
# Names and client ids that are kept as text.
_TEXTS_MAX = 20_000


class _Encoder:
    """Encodes objects; the long lists of records in them are `rows`, and marks in the text.

    All values are made by the decoder and never contain themselves, so cycles are not checked.
    Everything outside ASCII is escaped: some readers break lines at more characters than the line
    feed.
    """

    def __init__(self) -> None:
        self.rows: list[RecordRows] = []
        self.mark = 0
        self._encode = json.JSONEncoder(
            separators=(",", ":"), check_circular=False, allow_nan=False, default=self._default
        ).encode

    def encode(self, data: object) -> str:
        """Return the text of an object, without characters that control a terminal."""
        text = self._encode(data)
        return printable(text) if _DELETE in text else text

    def encode_whole(self, data: object) -> str:
        """Return the text of an object. Raises: TypeError if it has a long list of records."""
        text = self.encode(data)
        if self.rows:
            self.rows = []
            raise TypeError("a long list of records is written piece by piece")
        return text

    def _default(self, value: object) -> str:
        if not isinstance(value, RecordRows):
            raise TypeError(f"{type(value).__name__} has no JSON form")
        self.rows.append(value)
        return self.mark_text

    @property
    def mark_text(self) -> str:
        """Return the mark that stands in the text for a long list."""
        return f"rows {self.mark}"


def to_line(data: dict[str, Any]) -> bytes:
    """One JSON object as a line."""
    parts: list[bytes] = []
    _write(parts.append, _Encoder(), data)
    return b"".join(parts)


class JsonLines(Sink):
    """The sink of ``--format jsonl``."""

    def __init__(
        self, out: BinaryIO, *, is_live: bool = False, settings: Settings | None = None
    ) -> None:
        """Write to a binary stream.

        `is_live` flushes each line, for an endless input. With the `settings` of the run
        ordinary frames take a fast path.
        """
        self._write = out.write
        self._flush = out.flush
        self._is_live = is_live
        self._encoder = _Encoder()
        self._short = _OrdinaryLines(settings, _Encoder().encode_whole) if settings else None

    def take_ordinary(self, frames: Sequence[RawFrame], number: int = 0, /) -> Iterator[bool]:
        """Write frames that are not decoded yet, if they are ordinary."""
        return map(self._quick, frames, count(number))

    def _quick(self, frame: RawFrame, number: int) -> bool:
        line = self._short.line(frame, number) if self._short else None
        if line is None:
            return False
        self._write(line)
        self.left -= 1
        if self._is_live:
            self._flush()
        return True

    def frame(self, frame: Frame) -> None:
        """Write a frame."""
        self._line(frame.lazy_json())

    def file_line(self, line: FileLine) -> None:
        """Write a line of a file."""
        self._line(line.json)

    def _line(self, data: dict[str, Any]) -> None:
        _write(self._write, self._encoder, data)
        self.left -= 1
        if self._is_live:
            self._flush()

    def finish(self) -> None:
        """Write what is buffered."""
        self._flush()


def _write(write: Callable[[bytes], object], encoder: _Encoder, data: dict[str, Any]) -> None:
    """Write an object and a line feed; long lists of records are written piece by piece."""
    text = encoder.encode(data)
    if not encoder.rows:
        write(text.encode("ascii") + b"\n")
        return
    rows, encoder.rows = encoder.rows, []
    # A text in the data may look like a mark; then another one is taken.
    while text.count(f'"{encoder.mark_text}"') != len(rows):
        encoder.mark += 1
        text = encoder.encode(data)
        rows, encoder.rows = encoder.rows, []
    first, *rest = text.split(f'"{encoder.mark_text}"')
    del text
    write(first.encode("ascii"))
    for each, after in zip(rows, rest, strict=True):
        _write_rows(write, encoder, each)
        write(after.encode("ascii"))
    write(b"\n")


def _write_rows(
    write: Callable[[bytes], object], encoder: _Encoder, rows: RecordRows
) -> None:
    between = b"["
    pending: list[dict[str, Any]] = []
    weight = 0
    for row in rows:
        pending.append(row)
        weight += weight_of(row)
        if weight >= _WEIGHT_AT_ONCE:
            write(between + encoder.encode(pending)[1:-1].encode("ascii"))
            between = b","
            pending, weight = [], 0
    if pending or between == b"[":
        write(between + encoder.encode(pending)[1:-1].encode("ascii"))
    write(b"]")


class _OrdinaryBodies:
    """Writes bodies by the engine; `encode` is that of `_OrdinaryLines`."""

    def __init__(self, settings: Settings, encode: Callable[[object], str]) -> None:
        self._settings = settings
        self._encode = encode
        # The capture that batches come from, and how they begin.
        self._file: str | None = None
        self._head = b""

    def plan(self, message: type[Message], version: int) -> Any:
        """Return what writes a message, None if nothing does: without the engine, for one."""
        return json_plan(message.facts(), version)

    def text(self, frame: RawFrame, plan: Any, position: int) -> bytes | None:
        """Return the JSON of the body at a position; None if there is any finding in it."""
        written = plan.write(frame.data, position, ELEMENT_FREE_COUNT)
        if written is None or written[1] != frame.size:
            return None
        body: bytes = written[0]
        return body if written[2] is None else self._filled(frame, body, written[2])

    def _filled(self, frame: RawFrame, body: bytes, gaps: list[_Gap]) -> bytes | None:
        """Return a body with its batches filled in."""
        pieces: list[bytes] = []
        last = 0
        rows_left = JSON_ROWS_FREE + sum(gap[2] - gap[1] for gap in gaps) // JSON_ROW_BYTES_MIN
        for at, start, end, name, topic_id in gaps:
            topic = self._settings.topics.name(name, topic_id)
            text = self._heads(frame, start, end, topic)
            if text is None:
                text, rows_left = self._batches(frame, (start, end), topic, rows_left)
            if text is None:
                return None
            pieces += (body[last:at], text)
            last = at
        return b"".join((*pieces, body[last:]))

    def _heads(self, frame: RawFrame, start: int, end: int, topic: str | None) -> bytes | None:
        """Return batches whose records are not shown, from their headers; None to read them."""
        detail = self._settings.records.detail
        if detail == "full" or (detail == "summary" and topic and family_of_topic(topic)):
            return None
        if frame.file != self._file:
            self._file = frame.file
            self._head = f'{{"file":{self._encode(frame.file)},"position":'.encode("ascii")
        written = engine.core.json_batches(frame.data, start, end, self._head)
        if written is None:
            return None
        view = memoryview(frame.data)
        text: bytes = written[0]
        is_sound = all(crc32c(view[begin:stop]) == crc for crc, begin, stop in written[1])
        return text if is_sound else None

    def _batches(
        self, frame: RawFrame, place: tuple[int, int], topic: str | None, rows_left: int
    ) -> tuple[bytes | None, int]:
        """Return batches as Python reads them, and how many rows of records may still follow."""
        where = RecordsField((), "records", None, "", topic, None)
        result = FieldBatches(where, topic, frame.file, [])
        data = memoryview(frame.data)[slice(*place)]
        rows_left = read_into(result, data, self._settings.records, rows_left)
        if result.findings:
            return None, 0
        try:
            return self._encode(result.batches).encode("ascii"), rows_left
        except TypeError:
            return None, 0  # a long list of records, which is written piece by piece


class _OrdinaryLines:
    """Writes frames as JSON lines, if they are ordinary.

    `encode` makes text of objects. Raises: that function TypeError for what is too long to
    be text at once.
    """

    def __init__(self, settings: Settings, encode: Callable[[object], str]) -> None:
        self._encode = encode
        self._bodies = _OrdinaryBodies(settings, encode)
        self._plans: dict[tuple[str, int | None, int | None], _Plan] = {}
        self._texts = _Texts(encode)
        self._clients: dict[bytes | None, str] = {}

    def line(self, frame: RawFrame, number: int) -> bytes | None:
        """The line of a frame, None if it is not ordinary. `number` is that in the run."""
        key = frame.direction, frame.api_key, frame.api_version
        if key not in self._plans:
            self._plans[key] = self._find_plan(*key)
        plan = self._plans[key]
        if plan is None or frame.packet_findings or frame.missing or frame.time_ns < 0:
            return None
        body_plan, has_tags, name = plan
        header, position = self._header(frame, has_tags)
        is_ordinary = header and frame.input_bytes == frame.size
        body = self._bodies.text(frame, body_plan, position) if is_ordinary else None
        if body is None:
            return None
        head = self._head(frame, number, name, header)
        return b"".join((head.encode("ascii"), body, _END))

    def _find_plan(self, direction: str, key: int | None, version: int | None) -> _Plan:
        form = form_of(direction == "request", key, version)
        if form is None or form.names_topics or key is None or not is_plain(form.message.NAME):
            return None
        body_plan = self._bodies.plan(form.message, form.version)
        return None if body_plan is None else (body_plan, form.has_tags, messages.API_NAMES[key])

    def _head(self, frame: RawFrame, number: int, name: str, header: str) -> str:
        latency = frame.latency_ms
        return (
            f'{{"file":{self._texts[frame.file]},"frame":{number},"time":{frame.time!r},'
            f'"connection":{self._texts[frame.connection or None]},'
            f'"direction":"{frame.direction}","apiKey":{frame.api_key},"apiName":"{name}",'
            f'"apiVersion":{frame.api_version},"correlationId":{frame.correlation_id},'
            f'"size":{frame.size},"remaining":0,'
            f'"latencyMs":{"null" if latency is None else repr(latency)},'
            f'"header":{header},"body":'
        )

    def _header(self, frame: RawFrame, has_tags: bool) -> tuple[str, int]:
        """The header's text, empty if it is not ordinary, and where the body begins."""
        data = frame.data
        if frame.direction == "request":
            header, position = self._request_header(data)
        else:
            correlation_id = int.from_bytes(data[:4], "big", signed=True)
            header, position = f'{{"correlationId":{correlation_id}}}', 4
        if has_tags:
            if data[position : position + 1] != _NO_TAGS:
                return "", 0
            position += 1
        return (header, position) if position <= len(data) else ("", 0)

    def _request_header(self, data: bytes) -> tuple[str, int]:
        if len(data) < _HEADER.size:
            return "", 0
        key, version, correlation_id, size = _HEADER.unpack_from(data)
        position = _HEADER.size
        raw = None
        if size != _NULL:
            raw = data[position : position + size]
            position += size
        client = self._clients.get(raw)
        if client is None:
            if size < _NULL or (raw is not None and len(raw) < size):
                return "", 0
            client = self._client(raw)
        if not client:
            return "", 0
        return (
            f'{{"requestApiKey":{key},"requestApiVersion":{version},'
            f'"correlationId":{correlation_id},"clientId":{client}}}'
        ), position

    def _client(self, raw: bytes | None) -> str:
        """Return the text of a client id that is new; empty if the bytes are not a client id."""
        try:
            text = "null" if raw is None else self._encode(raw.decode("utf-8"))
        except UnicodeDecodeError:
            return ""
        if len(self._clients) > _TEXTS_MAX:
            self._clients.clear()
        if len(text) <= NAME_CHARACTERS_MAX:
            self._clients[raw] = text
        return text


class _Texts(dict[str | None, str]):
    """The JSON texts of names, kept for the next time."""

    def __init__(self, encode: Callable[[object], str]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, name: str | None) -> str:
        if len(self) > _TEXTS_MAX:
            self.clear()
        text = self[name] = self._encode(name)
        return text
