"""Layouts of Kafka's fixed formats, written down with `construct`, independently of the codec.

The fast readers are struct calls and generated code; these layouts describe the same bytes
once more, field by field, so that tests can compare the two and a byte view can name every
range. They are two orders of magnitude slower, so `spans` has fast paths for what every frame
has; tests hold them equal to the layouts.

Nothing here knows a message schema: bodies of requests, control and metadata records belong to
the generated classes.
"""

# Values of a construct container have no static types: hence Any.
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import construct as c

from kraftwire.errors import WireError
from kraftwire.wire.varint import read_varint


def _layout(*fields: Any) -> Any:
    """A struct that also notes where each field starts, under the field's name after an @."""
    noted: list[Any] = []
    for field in fields:
        noted += [("@" + field.name) / c.Tell, field]
    return c.Struct(*noted, "@" / c.Tell)


_INT16, _INT32, _INT64 = c.Int16sb, c.Int32sb, c.Int64sb
_UINT32 = c.Int32ub
_UVARINT = c.VarInt
_VARINT = c.ZigZag


def _nullable(length: Any, value: Any) -> Any:
    """A value after its length, where a negative length stands for null."""
    return _layout("length" / length, "value" / c.If(c.this.length >= 0, value(c.this.length)))


# Not PaddedString, which would drop zero bytes at the end.
_STRING = _nullable(_INT16, lambda length: c.StringEncoded(c.Bytes(length), "utf8"))
_TAGGED_FIELD = _layout(
    "tag" / _UVARINT,
    "size" / _UVARINT,
    "data" / c.Bytes(c.this.size),
)
_TAGGED_FIELDS = _layout(
    "count" / _UVARINT,
    "fields" / _TAGGED_FIELD[c.this.count],
)

_REQUEST_V0 = ("apiKey" / _INT16, "apiVersion" / _INT16, "correlationId" / _INT32)
_REQUEST_V1 = (*_REQUEST_V0, "clientId" / _STRING)

# The legacy formats and the current one agree up to the magic.
_BATCH_START = (
    "baseOffset" / _INT64,
    "batchLength" / _INT32,
)

LAYOUTS: dict[str, Any] = {
    "frame": _layout("size" / _INT32),
    "request header v0": _layout(*_REQUEST_V0),
    "request header v1": _layout(*_REQUEST_V1),
    "request header v2": _layout(*_REQUEST_V1, "taggedFields" / _TAGGED_FIELDS),
    "response header v0": _layout("correlationId" / _INT32),
    "response header v1": _layout("correlationId" / _INT32, "taggedFields" / _TAGGED_FIELDS),
    "record batch": _layout(
        *_BATCH_START,
        "partitionLeaderEpoch" / _INT32,
        "magic" / c.Const(2, c.Int8sb),
        "crc" / _UINT32,
        "attributes" / _INT16,
        "lastOffsetDelta" / _INT32,
        "baseTimestamp" / _INT64,
        "maxTimestamp" / _INT64,
        "producerId" / _INT64,
        "producerEpoch" / _INT16,
        "baseSequence" / _INT32,
        "recordCount" / _INT32,
    ),
    # Bit fields of the attributes, most significant bit first.
    "batch attributes": c.BitStruct(
        "unused" / c.BitsInteger(9),
        "hasDeleteHorizon" / c.Flag,
        "isControl" / c.Flag,
        "isTransactional" / c.Flag,
        "isLogAppendTime" / c.Flag,
        "compression" / c.BitsInteger(3),
    ),
    "record": _layout(
        "length" / _VARINT,
        "attributes" / c.Int8sb,
        "timestampDelta" / _VARINT,
        "offsetDelta" / _VARINT,
        "key" / _nullable(_VARINT, c.Bytes),
        "value" / _nullable(_VARINT, c.Bytes),
        "headerCount" / _VARINT,
        "headers"
        / _layout("key" / c.PascalString(_VARINT, "utf8"), "value" / _nullable(_VARINT, c.Bytes))[
            c.this.headerCount
        ],
    ),
    "message v0": _layout(
        *_BATCH_START,
        "crc" / _UINT32,
        "magic" / c.Const(0, c.Int8sb),
        "attributes" / c.Int8sb,
        "key" / _nullable(_INT32, c.Bytes),
        "value" / _nullable(_INT32, c.Bytes),
    ),
    "message v1": _layout(
        *_BATCH_START,
        "crc" / _UINT32,
        "magic" / c.Const(1, c.Int8sb),
        "attributes" / c.Int8sb,
        "timestamp" / _INT64,
        "key" / _nullable(_INT32, c.Bytes),
        "value" / _nullable(_INT32, c.Bytes),
    ),
    "control record key": _layout("version" / _INT16, "type" / _INT16),
    "end transaction marker": _layout("version" / _INT16, "coordinatorEpoch" / _INT32),
    "metadata record": _layout(
        "frameVersion" / _UVARINT, "type" / _UVARINT, "version" / _UVARINT
    ),
    "coordinator record key": _layout("type" / _INT16),
    "coordinator record value": _layout("version" / _INT16),
    "offset index entry": _layout("relativeOffset" / _INT32, "position" / _INT32),
    "time index entry": _layout("timestamp" / _INT64, "relativeOffset" / _INT32),
    "transaction index entry": _layout(
        "version" / _INT16,
        "producerId" / _INT64,
        "firstOffset" / _INT64,
        "lastOffset" / _INT64,
        "lastStableOffset" / _INT64,
    ),
    "producer snapshot": _layout("version" / _INT16, "crc" / _UINT32, "count" / _INT32),
    "producer snapshot entry": _layout(
        "producerId" / _INT64,
        "epoch" / _INT16,
        "lastSequence" / _INT32,
        "lastOffset" / _INT64,
        "offsetDelta" / _INT32,
        "timestamp" / _INT64,
        "coordinatorEpoch" / _INT32,
        "currentTxnFirstOffset" / _INT64,
    ),
}


class Span(NamedTuple):
    """A field and the bytes [start, end) that hold it; hidden ones must not be shown."""

    path: str
    start: int
    end: int
    value: Any
    is_hidden: bool = False


def parse(name: str, buf: bytes | memoryview, offset: int = 0) -> dict[str, Any]:
    """Read the layout `name` at an offset; returns the plain values, nested as the layout is.

    Raises: WireError if the bytes do not follow the layout.
    """
    plain = _plain(_container(name, buf, offset))
    return dict(plain)


def spans(name: str, buf: bytes | memoryview, offset: int = 0) -> list[Span]:
    """Read the layout `name` at an offset; returns its innermost fields in order of their bytes.

    Layouts of fixed size, and those that most bytes of a capture follow, take a fast path.
    Ranges count from the start of `buf`, follow each other without a gap and cover all
    that the layout reads; the bits of a bit struct have no ranges.
    Raises: WireError if the bytes do not follow the layout.
    """
    quick = _QUICK.get(name)
    found = None if quick is None else quick(buf, offset)
    return list(_spans(_container(name, buf, offset), "")) if found is None else found


def _container(name: str, buf: bytes | memoryview, offset: int) -> Any:
    layout = LAYOUTS[name]
    try:
        # A stream over `bytes` shares them; positions then count from the start of the buffer.
        stream = BytesIO(bytes(buf))
        stream.seek(offset)
        return layout.parse_stream(stream)
    except (c.ConstructError, UnicodeDecodeError) as error:
        problem = str(error).splitlines()[-1]
        raise WireError(problem, message=name, offset=offset) from error


def _plain(value: Any) -> Any:
    """The values without the notes on positions; a nullable becomes its value or None."""
    if isinstance(value, c.ListContainer):
        return [_plain(item) for item in value]
    if not isinstance(value, c.Container):
        return value
    keys = [key for key in value if not key.startswith(("@", "_"))]
    if keys == ["length", "value"]:
        return value["value"]
    return {key: _plain(value[key]) for key in keys}


def _spans(value: Any, path: str) -> Iterator[Span]:
    keys = [key for key in value if not key.startswith(("@", "_"))]
    starts = [value["@" + key] for key in keys] + [value["@"]]
    for key, (start, end) in zip(keys, pairwise(starts), strict=True):
        item, where = value[key], f"{path}.{key}" if path else key
        if isinstance(item, c.ListContainer):
            for index, element in enumerate(item):
                yield from _spans(element, f"{where}[{index}]")
        elif isinstance(item, c.Container):
            yield from _spans(item, where)
        elif start < end:
            yield Span(where, start, end, item)


# -- fast paths ---------------------------------------------------------------------------------
# Each returns None where something is unusual; construct then finds the place and describes it.

_Quick = Callable[[bytes | memoryview, int], list[Span] | None]


def _fixed(name: str) -> _Quick:
    """Return the fast path of a layout whose fields all have a fixed size."""
    fields = [each for each in LAYOUTS[name].subcons if each.name and not each.name.startswith("@")]
    plain = [getattr(each.subcon, "subcon", each.subcon) for each in fields]
    unpack = struct.Struct(">" + "".join(each.fmtstr[1:] for each in plain)).unpack_from
    ends = list(accumulate(each.length for each in plain))
    places = [
        (each.name, end - one.length, end)
        for each, one, end in zip(fields, plain, ends, strict=True)
    ]
    subcons = enumerate(each.subcon for each in fields)
    wanted = [(at, each.value) for at, each in subcons if isinstance(each, c.Const)]

    def quick(buf: bytes | memoryview, offset: int) -> list[Span] | None:
        if offset + ends[-1] > len(buf):
            return None
        values = unpack(buf, offset)
        if any(values[at] != value for at, value in wanted):
            return None
        return [
            Span(path, offset + start, offset + end, value)
            for (path, start, end), value in zip(places, values, strict=True)
        ]

    return quick


def _varints(*names: str) -> _Quick:
    """Return the fast path of a row of unsigned varints of one byte each."""

    def quick(buf: bytes | memoryview, offset: int) -> list[Span] | None:
        values = bytes(buf[offset : offset + len(names)])
        if len(values) < len(names) or max(values) > 0x7F:
            return None
        return [
            Span(name, at, at + 1, value)
            for at, (name, value) in enumerate(zip(names, values, strict=True), offset)
        ]

    return quick


def _request_header(buf: bytes | memoryview, offset: int, *, is_tagged: bool) -> list[Span] | None:
    found = _REQUEST_START(buf, offset)
    end = offset + 10
    if found is None or end > len(buf):
        return None
    size = int.from_bytes(buf[end - 2 : end], "big", signed=True)
    found.append(Span("clientId.length", end - 2, end, size))
    if size > 0:
        try:
            text = bytes(buf[end : end + size]).decode()
        except UnicodeDecodeError:
            return None
        found.append(Span("clientId.value", end, end + size, text))
        end += size
    return _with_no_tags(found, buf, end) if is_tagged else found if end <= len(buf) else None


def _with_no_tags(found: list[Span], buf: bytes | memoryview, end: int) -> list[Span] | None:
    if end >= len(buf) or buf[end]:
        return None
    found.append(Span("taggedFields.count", end, end + 1, 0))
    return found


def _tagged_response_header(buf: bytes | memoryview, offset: int) -> list[Span] | None:
    found = _RESPONSE_START(buf, offset)
    return None if found is None else _with_no_tags(found, buf, offset + 4)


def _record(buf: bytes | memoryview, offset: int) -> list[Span] | None:
    """Read a record that has no headers; None for any other."""
    found: list[Span] = []
    try:
        at = offset
        for name in ("length", "attributes", "timestampDelta", "offsetDelta"):
            start = at
            if name == "attributes":
                value, at = buf[at] - (buf[at] >> 7 << 8), at + 1
            else:
                value, at = read_varint(buf, at)
            found.append(Span(name, start, at, value))
        for name in ("key", "value"):
            start = at
            size, at = read_varint(buf, at)
            found.append(Span(f"{name}.length", start, at, size))
            if size > 0:
                found.append(Span(f"{name}.value", at, at + size, bytes(buf[at : at + size])))
                at += size
        if at >= len(buf) or buf[at]:
            return None
    except (IndexError, WireError):
        return None
    found.append(Span("headerCount", at, at + 1, 0))
    return found


_FIXED = frozenset(
    {
        "frame", "record batch", "control record key", "end transaction marker",
        "coordinator record key", "coordinator record value", "offset index entry",
        "time index entry", "transaction index entry", "producer snapshot",
        "producer snapshot entry", "request header v0", "response header v0",
    }
)  # fmt: skip
_QUICK: dict[str, _Quick] = {name: _fixed(name) for name in _FIXED}
_REQUEST_START, _RESPONSE_START = _QUICK["request header v0"], _QUICK["response header v0"]
_QUICK |= {
    "metadata record": _varints("frameVersion", "type", "version"),
    "record": _record,
    "request header v1": partial(_request_header, is_tagged=False),
    "request header v2": partial(_request_header, is_tagged=True),
    "response header v1": _tagged_response_header,
}
