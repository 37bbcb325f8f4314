"""Frames that are similar except for one batch of users' records, which may have any size.

Owns patterns with a hole. The bytes before and after the batch are compared as in other patterns;
the headers of many batches are read at once, and their CRCs are checked. Records are not read, as
in the code for single frames.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from kraftwire.errors import WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.decoded import family_of_topic
from kraftwire.records.header import CRC_START, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.steady.cutting import Bytes, rows_of
from kraftwire.spark.captures.steady.packets import Ints
from kraftwire.spark.captures.steady.patterns import (
    FETCH,
    ID_AT,
    OFFSET_MAX,
    PRODUCE,
    SESSION,
    TIME_MAX,
    NoPlaceError,
    Pattern,
    Writer,
    name_of,
    plain_frame,
)
from kraftwire.wire.varint import uvarint

__all__ = ["HoledPattern", "HoledPatterns", "is_of_kafka", "numbers_of"]

Flags: TypeAlias = "npt.NDArray[np.bool_]"

# Messages with records of users: where their topics and partitions are.
_PLACES = {
    (PRODUCE, False): ("topic_data", "partition_data"),
    (FETCH, True): ("responses", "partitions"),
}

# The header of a batch as numpy reads it; names as in `records.header`.
_HEADER = np.dtype(
    [
        ("base_offset", ">i8"), ("batch_length", ">i4"), ("partition_leader_epoch", ">i4"),
        ("magic", "i1"), ("crc", ">u4"), ("attributes", ">i2"), ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"), ("max_timestamp", ">i8"), ("producer_id", ">i8"),
        ("producer_epoch", ">i2"), ("base_sequence", ">i4"), ("count", ">i4"),
    ]
)  # fmt: skip

# Fields that must equal those of the pattern's batch: tables show them in words, or they determine
# how to read the batch.
_SAME = ("partition_leader_epoch", "magic", "attributes")

# Fields, by the names of the columns of frames.
_NUMBERS = {
    "base_offset": "base_offset", "base_timestamp": "base_time", "max_timestamp": "max_time",
    "crc": "crc", "last_offset_delta": "last_delta", "count": "count",
    "producer_id": "producer_id", "producer_epoch": "producer_epoch",
    "base_sequence": "base_sequence",
}  # fmt: skip
_SIZE = "batch_size"

# Batches with larger numbers are left to the reader of single frames.
_MOST = {
    "base_offset": OFFSET_MAX, "base_timestamp": TIME_MAX, "max_timestamp": TIME_MAX,
    "last_offset_delta": 1 << 31, "count": 1 << 31,
}  # fmt: skip

# The numbers of a partition in a Fetch response that change from one to the next.
_OFFSETS = {"high_watermark": 8, "last_stable_offset": 8, "log_start_offset": 8}

# A length of four bytes, or a varint of at most as many, one more than the length.
_LENGTH_SIZE = 4

_KEPT = 16
_KINDS_MAX = 256
_FRAMES_MIN = 3

# Failed searches for a pattern that are allowed: at first, and one more per so many frames.
_TRIES = 4.0
_FRAMES_PER_TRY = 64


def numbers_of(batch: RecordBatch) -> dict[str, int]:
    """The numbers of a batch as columns of frames."""
    found: dict[str, int] = {ours: getattr(batch, name) for name, ours in _NUMBERS.items()}
    return found | {_SIZE: batch.size}


def is_of_kafka(pattern: HoledPattern, bodies: Bodies) -> bool:
    """Whether a connection knows the topic of a pattern with a hole to be one of Kafka's own."""
    assert pattern.place is not None
    (topic,) = getattr(pattern.body, pattern.place[0])
    known = bodies.topic_name(name_of(topic) or None, getattr(topic, "topic_id", None))
    return bool(known) and family_of_topic(known or "") is not None


@dataclass(slots=True, eq=False)
class HoledPattern(Pattern):
    """Frames that differ in a few numbers and in one batch.

    `value` and `is_free` describe the bytes before the length of the records, `tail` those after
    the records; with `is_compact` the length is a varint.
    """

    tail: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    is_compact: bool = True

    def take(
        self, data: Bytes, stream: memoryview, starts: Ints, sizes: Ints
    ) -> tuple[Flags, dict[str, Ints]]:
        """Return which frames match this pattern, and the numbers of those that do."""
        begin, after = len(self.value), len(self.tail)
        found = sizes >= begin + _LENGTH_SIZE + HEADER_SIZE + after
        at = np.flatnonzero(found)
        heads = rows_of(data, starts[at], begin)
        at = at[((heads == self.value) | self.is_free).all(axis=1)]
        lengths, widths = self._lengths(rows_of(data, starts[at], _LENGTH_SIZE, at=begin))
        is_whole = (lengths >= HEADER_SIZE) & (begin + widths + lengths + after == sizes[at])
        at, lengths, widths = at[is_whole], lengths[is_whole], widths[is_whole]
        batches = starts[at] + begin + widths
        tails = rows_of(data, batches + lengths, after)
        headers = rows_of(data, batches, HEADER_SIZE).view(_HEADER)[:, 0]
        good = (tails == self.tail).all(axis=1) & self._are_usual(headers, lengths)
        told = headers["crc"].tolist()
        places = zip(batches.tolist(), lengths.tolist(), good.tolist(), told, strict=True)
        good &= np.fromiter(
            (
                is_good and crc32c(stream[start + CRC_START : start + length]) == crc
                for start, length, is_good, crc in places
            ),
            np.bool_,
            len(at),
        )
        at, headers = at[good], headers[good]
        found[:] = False
        found[at] = True
        numbers = {ours: headers[name].astype(np.int64) for name, ours in _NUMBERS.items()}
        numbers[_SIZE] = lengths[good]
        for name in self.numbers:
            heads = rows_of(data, starts[at], begin)
            numbers[name] = self.column(heads, name)
        return found, numbers

    def _lengths(self, rows: Bytes) -> tuple[Ints, Ints]:
        """Return the lengths of records and the sizes of these lengths; -1 where there is none."""
        if not self.is_compact:
            lengths = np.ascontiguousarray(rows).view(">i4")[:, 0].astype(np.int64)
            return lengths, np.full(len(rows), _LENGTH_SIZE, np.int64)
        more = rows >= 0x80
        widths = 1 + np.cumprod(more, axis=1).sum(axis=1).astype(np.int64)
        parts = (rows & 0x7F).astype(np.int64) << (7 * np.arange(_LENGTH_SIZE))
        parts[np.arange(_LENGTH_SIZE) >= widths[:, None]] = 0
        lengths = parts.sum(axis=1) - 1
        lengths[widths > _LENGTH_SIZE] = -1
        return lengths, widths

    def _are_usual(self, headers: Any, lengths: Ints) -> Flags:
        """Whether the records are one batch like that of the pattern, and nothing else."""
        size = headers["batch_length"].astype(np.int64)
        usual: Flags = (size >= LENGTH_MIN) & (size + LOG_OVERHEAD == lengths)
        for name in _SAME:
            usual &= headers[name] == getattr(self.batch, name)
        for name, most in _MOST.items():
            usual &= (headers[name] >= 0) & (headers[name].astype(np.int64) < most)
        return usual


class HoledPatterns:
    """The patterns with a hole of all connections, most recently used first."""

    def __init__(self) -> None:
        self._known: dict[tuple[bool, int], list[HoledPattern]] = {}
        self._tries: dict[tuple[bool, int], float] = {}

    def takes(self, kind: tuple[bool, int]) -> bool:
        """Whether frames of a direction, API and version may have a hole."""
        return (kind[1] >> 16, kind[0]) in _PLACES

    def sort(
        self, stream: bytes, places: tuple[Ints, Ints], kind: tuple[bool, int], bodies: Bodies
    ) -> list[tuple[HoledPattern, Ints, dict[str, Ints]]]:
        """Return the patterns of frames of one direction, API and version, with the matching frames
        and their numbers.

        `places` are where the frames begin in the stream, and their sizes.
        """
        is_response, api = kind
        if len(places[0]) < _FRAMES_MIN:
            return []
        while kind not in self._known and len(self._known) >= _KINDS_MAX:
            del self._known[next(iter(self._known))]
        known = self._known.setdefault(kind, [])
        taking = _Taking(stream, *places)
        for pattern in known[:]:
            if taking.take(pattern):
                known.remove(pattern)
                known.insert(0, pattern)
        tries = min(self._tries.get(kind, _TRIES) + len(places[0]) / _FRAMES_PER_TRY, _TRIES)
        while len(taking.left) >= _FRAMES_MIN and tries >= 1:
            # The first frames of a connection are seldom like the rest.
            at = int(taking.left[len(taking.left) // 2])
            made = _learn(taking.frame(at), is_response, api, bodies)
            if made is not None and taking.take(made) >= _FRAMES_MIN:
                known.insert(0, made)
                continue
            tries -= 1
            taking.left = taking.left[taking.left != at]
        self._tries[kind] = tries
        del known[_KEPT:]
        return taking.found


class _Taking:
    """Frames of one kind, and the patterns that took them."""

    def __init__(self, stream: bytes, starts: Ints, sizes: Ints) -> None:
        # Headers and lengths may be read beyond the end of bytes that are not a batch.
        self._stream = stream
        self._view = memoryview(stream)
        self._data = np.frombuffer(stream, np.uint8)
        self._starts, self._sizes = starts, sizes
        self.left = np.arange(len(starts))
        self.found: list[tuple[HoledPattern, Ints, dict[str, Ints]]] = []

    def frame(self, at: int) -> bytes:
        """The bytes of a frame."""
        start = int(self._starts[at])
        return self._stream[start : start + int(self._sizes[at])]

    def take(self, pattern: HoledPattern) -> int:
        """Take the frames that match a pattern; return how many."""
        left = self.left
        if not len(left):
            return 0
        mine, numbers = pattern.take(self._data, self._view, self._starts[left], self._sizes[left])
        count = int(mine.sum())
        if count:
            self.found.append((pattern, left[mine], numbers))
            self.left = left[~mine]
        return count


def _learn(data: bytes, is_response: bool, api: int, bodies: Bodies) -> HoledPattern | None:
    """Return the pattern of a frame; None if it cannot have one."""
    read = bodies.read_plainly(plain_frame(data, is_response, api))
    if read is None:
        return None
    try:
        return _made(data, is_response, api, read)
    except (WireError, NoPlaceError):
        return None


def _made(data: bytes, is_response: bool, api: int, read: Read) -> HoledPattern | None:
    body = read.body
    topics, partitions = _PLACES[api >> 16, is_response]
    named = getattr(body, topics)
    if len(named) != 1 or len(getattr(named[0], partitions)) != 1:
        return None
    (records,) = read.fields
    if len(records.batches) != 1 or (records.topic and family_of_topic(records.topic)):
        return None
    (batch,) = records.batches
    holder, name = records.where.holder, records.where.attribute
    content = bytes(getattr(holder, name))
    if not isinstance(batch, RecordBatch) or batch.size != len(content):
        return None
    write = Writer(data, body, api & 0xFFFF)
    at = write.place(holder, name, bytes(byte ^ 0x55 for byte in content), len(content))
    begin = None if at is None else _before_length(data, at, len(content))
    if at is None or begin is None:
        return None
    numbers: dict[str, tuple[int, int]] = {}
    if api >> 16 == FETCH:
        for struct, wanted in ((body, SESSION[True]), (holder, _OFFSETS)):
            for each, size in wanted.items():
                # A version that cannot carry a number does not have it either.
                with suppress(WireError):
                    numbers |= write.numbers(struct, {each: size})
    if any(place + size > begin for place, size in numbers.values()):
        return None
    is_free = np.zeros(begin, np.bool_)
    for place, size in [(ID_AT[is_response], 4), *numbers.values()]:
        is_free[place : place + size] = True
    value = np.frombuffer(data[:begin], np.uint8)
    tail = np.frombuffer(data[at + len(content) :], np.uint8)
    is_compact = data[begin:at] == uvarint(len(content) + 1)
    return HoledPattern(
        data, body, numbers, (at, at + len(content)), bool(name_of(named[0])),
        (topics, partitions), value, is_free, batch, (), tail, is_compact,
    )  # fmt: skip


def _before_length(data: bytes, at: int, size: int) -> int | None:
    """Return where the length before the records at an index begins; None if uncertain."""
    forms = {uvarint(size + 1), size.to_bytes(_LENGTH_SIZE, "big")}
    begins = {at - len(form) for form in forms if data[:at].endswith(form)}
    return begins.pop() if len(begins) == 1 else None
