"""Patterns: what many frames have in common, and the numbers in which they differ.

A pattern is made from a frame that was decoded in the usual way: its message is encoded again with
other numbers to see where they are, so this module knows no layout. A frame of the same API,
version and size that equals it in all other bytes is the same message with other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.scan import topics
from kraftwire.decode.body.topics import METADATA_TOPIC_ID
from kraftwire.errors import WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.header import CRC_FIELD, CRC_START, STAMPED, fields
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.own_records import OwnRecord
from kraftwire.spark.captures.quorum import is_of_metadata
from kraftwire.spark.captures.steady.cutting import Bytes
from kraftwire.spark.captures.steady.packets import Ints
from kraftwire.spark.captures.templates import copy_struct

__all__ = [
    "FETCH",
    "ID_AT",
    "OFFSET_MAX",
    "PRODUCE",
    "SESSION",
    "TIME_MAX",
    "NoPlaceError",
    "Pattern",
    "Patterns",
    "Writer",
    "name_of",
    "plain_frame",
]

PRODUCE, FETCH, _HEARTBEAT = 0, 1, 63

# Tables need more of these than a pattern holds: WriteTxnMarkers, the APIs of Raft itself,
# FetchSnapshot, ShareFetch and ShareAcknowledge.
_NOT_THESE = frozenset({27, 52, 53, 54, 55, 59, 78, 79, 80, 81, 82})

# The numbers that change from one Fetch to the next, with their sizes: those of the message, and
# those of its partition.
SESSION = {False: {"session_id": 4, "session_epoch": 4}, True: {"session_id": 4}}
_PARTITION = {
    (FETCH, False): {"fetch_offset": 8, "high_watermark": 8},
    (FETCH, True): {"high_watermark": 8},
    (PRODUCE, True): {"base_offset": 8, "log_append_time_ms": 8, "log_start_offset": 8},
}
_BEATING = {"current_metadata_offset": 8}

_SIZE_MAX = 4096
_KEPT = 8
_KINDS_MAX = 1024
_TRIES = 4
# Frames to test before a pattern is tried on all of them.
_TASTED = 16

# Batches with larger numbers are left to the reader.
OFFSET_MAX = 1 << 60
TIME_MAX = 1 << 52

# Milliseconds between a batch's first record and another one.
_LATER_MAX = 1 << 40

ID_AT = {False: 4, True: 0}

# The numbers of a batch that differ from that of the same records, written at another time.
_BATCH = {
    "base_offset": (0, 8),
    "crc": (CRC_FIELD, 4),
    "base_time": (fields("base_timestamp").size - 8, 8),
    "max_time": (fields("max_timestamp").size - 8, 8),
}


# Where the partitions of a message are, by API and direction: attributes of it and of its topics.
_PLACES = {
    (FETCH, False): ("topics", "partitions"),
    (FETCH, True): ("responses", "partitions"),
    (PRODUCE, True): ("responses", "partition_responses"),
}


@dataclass(slots=True, eq=False)
class Pattern:
    """Frames that differ in a few numbers.

    `numbers` are index and size in a frame of the numbers that may differ, by name;
    `records` is the range of the one batch in it, `batch` its header and `own` its records, if any.
    With `is_static`, topic names follow from the frame alone.
    """

    data: bytes
    body: Any
    numbers: dict[str, tuple[int, int]]
    records: tuple[int, int] | None
    is_static: bool
    place: tuple[str, str] | None
    value: Bytes
    is_free: npt.NDArray[np.bool_]
    batch: RecordBatch | None = None
    own: Sequence[OwnRecord] = ()

    def read(self, frame: Frame, memo: dict[str, Any]) -> Read:
        """Read a frame of this pattern, which has no records."""
        body = copy_struct(self.body)
        holder = body
        if self.place is not None:
            named = getattr(body, self.place[0])
            if named:
                topic = copy_struct(named[0])
                setattr(body, self.place[0], [topic])
                holder = copy_struct(getattr(topic, self.place[1])[0])
                setattr(topic, self.place[1], [holder])
        data = frame.data
        for name, (at, size) in self.numbers.items():
            number = int.from_bytes(data[at : at + size], "big", signed=True)
            setattr(body if name in SESSION[False] else holder, name, number)
        return Read(frame, body, frame.api_version or 0, 0, (), (), True, None, memo)

    def may_match(self, rows: Bytes) -> bool:
        """Whether some frames, one per row, may match this pattern."""
        return bool(((rows == self.value) | self.is_free).all(axis=1).any())

    def matches(self, rows: Bytes) -> npt.NDArray[np.bool_]:
        """Return which frames, one per row, match this pattern."""
        found: npt.NDArray[np.bool_] = ((rows == self.value) | self.is_free).all(axis=1)
        if self.records is not None and found.any():
            found &= self._are_sound(rows, found)
        return found

    def _are_sound(self, rows: Bytes, found: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether the CRC of the batch is correct and its numbers have a usual size."""
        assert self.records is not None
        start, end = self.records
        sound = found.copy()
        for name, most in (
            ("base_offset", OFFSET_MAX), ("base_time", TIME_MAX), ("max_time", TIME_MAX)
        ):  # fmt: skip
            numbers = self.column(rows, name)
            sound &= (numbers >= 0) & (numbers < most)
        told = self.column(rows, "crc").tolist()
        for at in np.flatnonzero(sound).tolist():
            sound[at] = crc32c(rows[at, start + CRC_START : end]) == told[at]
        return sound

    def column(self, rows: Bytes, name: str) -> Ints:
        """A number of each frame."""
        at, size = self.numbers[name]
        kind = ">u4" if name == "crc" else f">i{size}"
        return np.ascontiguousarray(rows[:, at : at + size]).view(kind)[:, 0].astype(np.int64)


class Patterns:
    """The patterns of all connections, newest first."""

    def __init__(self) -> None:
        self._known: dict[tuple[bool, int, int], list[Pattern]] = {}
        # Failed searches for a pattern by kind, since the last useful one.
        self._vain: dict[tuple[bool, int, int], int] = {}

    def sort(
        self, rows: Bytes, kind: tuple[bool, int, int], bodies: Bodies
    ) -> list[tuple[Pattern, Ints]]:
        """Return the patterns of frames of one direction, API, version and size, with their frames.
        """
        is_response, api, size = kind
        is_produce = api >> 16 == PRODUCE and not is_response
        if size > _SIZE_MAX or api >> 16 in _NOT_THESE or is_produce:
            return []
        known = self._known.get(kind)
        if known is None:
            while len(self._known) >= _KINDS_MAX:
                del self._known[next(iter(self._known))]
            self._vain.clear()
            known = self._known[kind] = []
        found: list[tuple[Pattern, Ints]] = []
        left = np.arange(len(rows))
        for pattern in known[:]:
            before = len(left)
            if before and pattern.may_match(rows[left[:: -(-before // _TASTED)]]):
                left = _take(found, pattern, rows, left)
            if len(left) < before:
                known.remove(pattern)
                known.insert(0, pattern)
        vain = self._vain.get(kind, 0)
        while len(left) > 1 and vain < _TRIES:
            made = _learn(rows[left[0]].tobytes(), is_response, api, bodies)
            before = len(left)
            if made is not None:
                known.insert(0, made)
                left = _take(found, made, rows, left)
            vain = vain + 1 if before - len(left) < 2 else 0
            left = left[1:] if before == len(left) else left
        self._vain[kind] = vain
        del known[_KEPT:]
        return found


def _take(found: list[tuple[Pattern, Ints]], pattern: Pattern, rows: Bytes, left: Ints) -> Ints:
    """Take the frames that match a pattern; return the rest."""
    if not len(left):
        return left
    is_mine = pattern.matches(rows[left])
    if is_mine.any():
        found.append((pattern, left[is_mine]))
    return left[~is_mine]


def plain_frame(data: bytes, is_response: bool, api: int) -> Frame:
    """Return a frame with only its bytes, direction and API."""
    frame = Frame()
    frame.kind = "rpc"
    frame.direction = "response" if is_response else "request"
    frame.api_key, frame.api_version = api >> 16, api & 0xFFFF
    frame.data, frame.size = data, len(data)
    frame.findings, frame.missing = (), ()
    frame.request = None
    return frame


def _learn(data: bytes, is_response: bool, api: int, bodies: Bodies) -> Pattern | None:
    """Return the pattern of a frame; None if it cannot have one."""
    read = bodies.read_plainly(plain_frame(data, is_response, api))
    if read is None:
        return None
    body = read.body
    place = _PLACES.get((api >> 16, is_response))
    made = _Making(data, is_response, body, place)
    try:
        if place is not None:
            _partition(made, api, read)
        elif any(each.size for each in read.fields):
            return None
        else:
            made.is_static = all(use.name or not use.id for use in topics(body, api & 0xFFFF))
            if api >> 16 == _HEARTBEAT and not is_response:
                made.numbers = Writer(data, body, api & 0xFFFF).numbers(body, _BEATING)
    except (WireError, NoPlaceError):
        return None
    return made.pattern()


@dataclass(slots=True)
class _Making:
    """A pattern in the making."""

    data: bytes
    is_response: bool
    body: Any
    place: tuple[str, str] | None
    numbers: dict[str, tuple[int, int]] = field(default_factory=dict)
    records: tuple[int, int] | None = None
    is_static: bool = True
    batch: RecordBatch | None = None
    own: Sequence[OwnRecord] = ()

    def pattern(self) -> Pattern:
        """The pattern."""
        is_free = np.zeros(len(self.data), np.bool_)
        at = ID_AT[self.is_response]
        is_free[at : at + 4] = True
        for at, size in self.numbers.values():
            is_free[at : at + size] = True
        value = np.frombuffer(self.data, np.uint8)
        return Pattern(
            self.data, self.body, self.numbers, self.records, self.is_static, self.place, value,
            is_free, self.batch, self.own,
        )  # fmt: skip


def _partition(made: _Making, api: int, read: Read) -> None:
    """Find the numbers of a message about at most one partition."""
    assert made.place is not None
    body = made.body
    named = getattr(body, made.place[0])
    if len(named) > 1 or any(len(getattr(topic, made.place[1])) != 1 for topic in named):
        raise NoPlaceError
    has_records = any(each.size for each in read.fields)
    if has_records and not is_of_metadata(named[0]):
        raise NoPlaceError
    write = Writer(made.data, body, api & 0xFFFF)
    if api >> 16 == FETCH:
        made.numbers = write.numbers(body, SESSION[made.is_response])
    for topic in named:
        made.is_static = bool(name_of(topic)) or topic.topic_id == METADATA_TOPIC_ID
        (part,) = getattr(topic, made.place[1])
        made.numbers |= write.numbers(part, _PARTITION[api >> 16, made.is_response])
    if has_records:
        _add_batch(made, write, read)


def name_of(topic: Any) -> str | None:
    """The name of a topic in a Fetch or a Produce."""
    name: str | None = topic.topic if hasattr(topic, "topic") else topic.name
    return name


class NoPlaceError(Exception):
    """A number does not have its own place in the bytes of a message."""


class Writer:
    """Finds the places of numbers by encoding a message again.

    `begin` is where the body begins in the frame, None if it is not written as it came.
    """

    def __init__(self, data: bytes, body: Any, version: int) -> None:
        self._body = body
        self._version = version
        self._written = body.encode(version)
        begin = len(data) - len(self._written)
        self.begin = begin if begin >= 4 and data[begin:] == self._written else None

    def place(self, holder: Any, name: str, other: Any, size: int) -> int | None:
        """Return the index in the frame of a field of `size` bytes; None if it is not written.

        `other` is a value of the field that differs in every byte.
        """
        value = getattr(holder, name)
        try:
            setattr(holder, name, other)
            changed = self._body.encode(self._version)
        finally:
            setattr(holder, name, value)
        written = self._written
        if changed == written or len(changed) != len(written):
            return None  # not in this version, or omitted at its default
        at = next(at for at, byte in enumerate(written) if byte != changed[at])
        end = at + size
        is_all = all(old != new for old, new in zip(written[at:end], changed[at:end], strict=True))
        if self.begin is None or not is_all or changed[end:] != written[end:]:
            raise NoPlaceError
        return self.begin + at

    def numbers(self, holder: Any, wanted: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Return the places of numbers, by name; `wanted` has their sizes."""
        if self.begin is None:
            raise NoPlaceError
        found = {}
        for name, size in wanted.items():
            raw = getattr(holder, name).to_bytes(size, "big", signed=True)
            other = int.from_bytes(bytes(byte ^ 0x55 for byte in raw), "big", signed=True)
            at = self.place(holder, name, other, size)
            if at is not None:
                found[name] = at, size
        return found


def _add_batch(made: _Making, write: Writer, read: Read) -> None:
    """Find the numbers of the one batch of a Fetch response."""
    (records,) = read.fields
    holder, name = records.where.holder, records.where.attribute
    data = bytes(getattr(holder, name))
    if len(records.batches) != 1:
        raise NoPlaceError
    batch = records.batches[0]
    if not isinstance(batch, RecordBatch) or batch.attributes & STAMPED:
        raise NoPlaceError
    later = [(each.time_ms or -1) - batch.base_timestamp for each in records.own]
    if any(not 0 <= each < _LATER_MAX for each in later):
        raise NoPlaceError
    at = write.place(holder, name, bytes(byte ^ 0x55 for byte in data), len(data))
    if at is None or batch.size != len(data):
        raise NoPlaceError
    # Without its records, the message keeps the bytes before them.
    if any(place + size > at for place, size in made.numbers.values()):
        raise NoPlaceError
    made.records = at, at + len(data)
    made.batch, made.own = batch, records.own
    made.numbers |= {name: (at + begin, size) for name, (begin, size) in _BATCH.items()}
