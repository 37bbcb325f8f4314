"""Frames of a run of packets, cut and paired all at once.

Owns what `decode.framing` does for ordinary requests and responses: lengths, headers and
correlation ids are compared as arrays. A run ends before the first surprise, at a packet after
which neither direction is inside a frame.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kraftwire.capture.framing.headers import HEADER_SIZE, PRODUCE, api_table, produce_acks
from kraftwire.limits import FRAME_SIZE_MAX, PENDING_REQUESTS_MAX
from kraftwire.spark.captures.headers import join_ranges
from kraftwire.spark.captures.steady.packets import Ints, Segments

__all__ = ["Run", "cut", "rows_of"]

Bytes: TypeAlias = "npt.NDArray[np.uint8]"

_SIZE = struct.Struct(">i").unpack_from
_REQUEST_HEADER = np.dtype([("size", ">i4"), ("kind", ">u4"), ("id", ">i4"), ("client", ">i2")])
_RESPONSE_HEADER = np.dtype([("size", ">i4"), ("id", ">i4")])

_PRODUCE_API = 0

# The acks of a Produce request come soon after its header.
_ACKS_WITHIN = 1024

# The bytes before the acks without a transaction, by the first version that has them: no tagged
# fields in the header and a null string, or only a null string.
_NULL_SIZE, _ACKS_SIZE = 2, 2
_NULLS = (9, (0, 0)), (3, (0xFF, 0xFF))


@dataclass(slots=True)
class Run:
    """Frames in the order of their last packets.

    `stream` holds the bytes of both directions, frame i from `starts[i]` on, without its
    length, `sizes[i]` of them. `first` and `last` are the packets with its first and last byte.
    `partners[i]` is the frame that answers it or that it answers, -1 if there is none in the
    run; of a response that answers one of the requests `before` the run it is -2 minus its index.
    `kinds` are API key and version as one number, -1 where a request before the run tells them.
    `wants` is false for requests without a response. `end` is the packet after the run, `counts`
    are the bytes that were carried, of requests and of responses.
    """

    stream: bytes
    is_response: npt.NDArray[np.bool_]
    starts: Ints
    sizes: Ints
    first: Ints
    last: Ints
    ids: Ints
    kinds: Ints
    partners: Ints
    wants: npt.NDArray[np.bool_]
    answered_before: int
    end: int
    counts: tuple[int, int]


@dataclass(slots=True)
class _Cut:
    """The whole frames of one direction, in order.

    `edges[i]` is the end of packet `packets[i]` in the direction's bytes; `limit` the first
    packet that may not be in the run.
    """

    data: bytes
    packets: Ints
    edges: Ints
    starts: Ints
    sizes: Ints
    first: Ints
    last: Ints
    limit: int
    ids: Ints
    kinds: Ints


def rows_of(data: Bytes, starts: Ints, size: int, *, at: int = 0) -> Bytes:
    """Return `size` bytes from each start (plus `at`) as rows; all of them exist."""
    if not len(starts):
        return np.empty((0, size), np.uint8)
    # Every index is that of a window, so one copy makes all rows.
    shape = len(data) - size - at + 1, size
    rows: Bytes = np.ndarray(shape, np.uint8, data, at, (1, 1))[starts]
    return rows


def cut(
    segments: Segments, span: tuple[int, int], client: tuple[int, bytes], before: list[int]
) -> Run | None:
    """Cut the frames of a span of packets, up to the first surprise.

    `client` is the direction of requests and the client id they have; `before` are the
    correlation ids of requests that wait for their responses. None if no packet can be taken.
    """
    (start, end), (way, raw) = span, client
    asked = _requests(_cut(segments, start, end, way), raw)
    told = _responses(_cut(segments, start, end, 1 - way))
    wants = _wants_response(asked, len(raw))
    limit = min(asked.limit, told.limit, end)
    limit = min(limit, _surprise(asked, told, wants, before))
    stop = _border(asked, told, start, limit)
    if stop <= start or len(before) + len(asked.starts) > PENDING_REQUESTS_MAX:
        return None
    return _joined(asked, told, wants, before, stop)


def _cut(segments: Segments, start: int, end: int, way: int) -> _Cut:
    """Cut the bytes of a direction by the lengths in them."""
    mine = segments.indexes[way]
    mine = mine[np.searchsorted(mine, start) : np.searchsorted(mine, end)]
    mine = mine[segments.counts[mine] > 0]
    counts = segments.counts[mine]
    begins = segments.begins[mine]
    data = join_ranges(segments.packets.data, begins, counts)
    edges = np.cumsum(counts)
    starts, sizes, bad = _lengths(data, edges, counts)
    stops = starts + sizes + 4
    whole = int(np.searchsorted(stops, len(data), "right"))
    starts, sizes, stops = starts[:whole], sizes[:whole], stops[:whole]
    first = mine[np.searchsorted(edges, starts, "right")]
    last = mine[np.searchsorted(edges, stops)]
    limit = end if bad is None else int(mine[np.searchsorted(edges, bad, "right")])
    none = np.empty(0, np.int64)
    return _Cut(data, mine, edges, starts, sizes, first, last, limit, none, none)


def _lengths(data: bytes, edges: Ints, counts: Ints) -> tuple[Ints, Ints, int | None]:
    """Return where frames begin, their lengths, and where the first impossible length is."""
    starts = edges - counts
    if len(counts) and counts.min() >= 4:
        heads = rows_of(np.frombuffer(data, np.uint8), starts, 4).view(">i4")[:, 0]
        sizes = heads.astype(np.int64)
        if (sizes + 4 == counts).all():
            return starts, sizes, None
    found: list[int] = []
    lengths: list[int] = []
    at, last = 0, len(data) - 4
    while at <= last:
        (size,) = _SIZE(data, at)
        if size < 0 or size > FRAME_SIZE_MAX:
            return np.array(found, np.int64), np.array(lengths, np.int64), at
        found.append(at)
        lengths.append(size)
        at += 4 + size
    return np.array(found, np.int64), np.array(lengths, np.int64), None


def _requests(found: _Cut, raw: bytes) -> _Cut:
    """Read the headers of requests, up to the first that differs from those before."""
    heads = _heads(found, _REQUEST_HEADER)
    client = heads["client"].astype(np.int64)
    kinds = heads["kind"].astype(np.int64)
    is_usual = np.ones(len(kinds), np.bool_)
    for kind in set(kinds.tolist()) - _usual_kinds():
        is_usual &= kinds != kind
    is_usual &= found.sizes >= HEADER_SIZE - 4 + np.maximum(client, 0)
    if raw:
        is_usual &= client == len(raw)
        texts = _rows_within(found.data, found.starts + HEADER_SIZE, len(raw))
        is_usual &= (texts == np.frombuffer(raw, np.uint8)).all(axis=1)
    else:
        is_usual &= (client == 0) | (client == -1)
    found.ids, found.kinds = heads["id"].astype(np.int64), kinds
    return _only(found, is_usual)


@cache
def _usual_kinds() -> frozenset[int]:
    """Return the known APIs and versions that do not affect how later frames are read."""
    return frozenset(kind for kind, api in api_table().items() if api[2] in (0, PRODUCE))


def _responses(found: _Cut) -> _Cut:
    """Read the headers of responses."""
    found.ids = _heads(found, _RESPONSE_HEADER)["id"].astype(np.int64)
    found.kinds = np.zeros(len(found.ids), np.int64)
    return _only(found, (found.sizes >= 4) & (found.sizes <= FRAME_SIZE_MAX))


def _heads(found: _Cut, kind: np.dtype[np.void]) -> npt.NDArray[np.void]:
    rows = _rows_within(found.data, found.starts, kind.itemsize)
    heads: npt.NDArray[np.void] = rows.view(kind)[:, 0]
    return heads


def _rows_within(data: bytes, starts: Ints, size: int) -> Bytes:
    """Return `size` bytes from each start; zeros after the end of the data."""
    # Starts are in order, so those near the end come last.
    inside = int(np.searchsorted(starts, len(data) - size, "right"))
    rows = np.zeros((len(starts), size), np.uint8)
    rows[:inside] = rows_of(np.frombuffer(data, np.uint8), starts[:inside], size)
    for at in range(inside, len(starts)):
        rest = data[int(starts[at]) :][:size]
        rows[at, : len(rest)] = np.frombuffer(rest, np.uint8)
    return rows


def _only(found: _Cut, is_usual: npt.NDArray[np.bool_]) -> _Cut:
    """Drop the first frame that is not usual, and all after it."""
    odd = np.flatnonzero(~is_usual)
    if len(odd):
        _end_at(found, int(odd[0]))
    return found


def _end_at(found: _Cut, index: int) -> None:
    """Drop the frames from `index` on, and the packets from its first one on."""
    found.limit = min(found.limit, int(found.first[index]))
    found.starts, found.sizes = found.starts[:index], found.sizes[:index]
    found.first, found.last = found.first[:index], found.last[:index]
    found.ids, found.kinds = found.ids[:index], found.kinds[:index]


def _wants_response(asked: _Cut, text_size: int) -> npt.NDArray[np.bool_]:
    """Return which requests will be answered: all but Produce with acks=0.

    `text_size` is the length of the client id of all of them.
    """
    wants = np.ones(len(asked.starts), np.bool_)
    produce = np.flatnonzero(asked.kinds >> 16 == _PRODUCE_API)
    if not len(produce):
        return wants
    # Only the bytes in the first packet are examined.
    held = asked.edges[np.searchsorted(asked.packets, asked.first[produce])]
    stops = np.minimum(asked.starts[produce] + 4 + asked.sizes[produce], held)
    begins = asked.starts[produce] + HEADER_SIZE + text_size
    is_usual = begins + _NULL_SIZE + _ACKS_SIZE <= stops
    heads = _rows_within(asked.data, begins, _NULL_SIZE + _ACKS_SIZE)
    versions = asked.kinds[produce] & 0xFFFF
    for since, null in _NULLS:
        is_usual &= (versions < since) | (heads[:, :_NULL_SIZE] == null).all(axis=1)
        versions = np.where(versions >= since, -1, versions)
    is_usual &= versions < 0
    wants[produce] = (heads[:, _NULL_SIZE:] != 0).any(axis=1)
    for at in np.flatnonzero(~is_usual).tolist():
        index, begin = int(produce[at]), int(begins[at])
        head = asked.data[begin : min(int(stops[at]), begin + _ACKS_WITHIN)]
        acks = produce_acks(head, 0, len(head), int(asked.kinds[index]) & 0xFFFF)
        if acks is None:
            _end_at(asked, index)
            return wants[:index]
        wants[index] = acks != 0
    return wants


def _surprise(asked: _Cut, told: _Cut, wants: npt.NDArray[np.bool_], before: list[int]) -> int:
    """Return the first packet of the first response that does not answer the next request.
    """
    expected = np.concatenate((np.array(before, np.int64), asked.ids[wants]))
    complete = np.concatenate((np.full(len(before), -1, np.int64), asked.last[wants]))
    count = min(len(expected), len(told.ids))
    is_right = (told.ids[:count] == expected[:count]) & (told.last[:count] > complete[:count])
    odd = np.flatnonzero(~is_right)
    first = int(odd[0]) if len(odd) else count
    if first < len(told.ids):
        return int(told.first[first])
    return min(asked.limit, told.limit)


def _border(asked: _Cut, told: _Cut, start: int, limit: int) -> int:
    """Return the packet after the last one before `limit` at which no frame is incomplete."""
    is_clear = np.ones(limit - start, np.bool_)
    for way in (asked, told):
        inside = int(np.searchsorted(way.packets, limit))
        if inside:
            stops = way.starts + way.sizes + 4
            at = np.searchsorted(stops, way.edges[:inside])
            if len(stops):
                ends = stops[np.minimum(at, len(stops) - 1)] == way.edges[:inside]
            else:
                ends = np.zeros(inside, np.bool_)
            # The last packet of the direction at or before each packet decides.
            which = np.searchsorted(way.packets[:inside], np.arange(start, limit), "right") - 1
            is_clear &= (which < 0) | ends[which]
    clear = np.flatnonzero(is_clear)
    return start + int(clear[-1]) + 1 if len(clear) else start


def _joined(
    asked: _Cut, told: _Cut, wants: npt.NDArray[np.bool_], before: list[int], stop: int
) -> Run:
    """Merge both directions in order, up to a packet."""
    questions = int(np.searchsorted(asked.last, stop))
    answers = int(np.searchsorted(told.last, stop))
    last = np.concatenate((asked.last[:questions], told.last[:answers]))
    order = np.argsort(last, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    # The request of each response, and the response of each request, in order.
    wanting = np.flatnonzero(wants[:questions])
    partners = np.full(questions + answers, -1, np.int64)
    old = min(len(before), answers)
    pairs = wanting[: answers - old]
    partners[pairs] = place[questions + old + np.arange(len(pairs))]
    partners[questions + old : questions + old + len(pairs)] = place[pairs]
    partners[questions : questions + old] = -2 - np.arange(old)
    kinds = np.concatenate((asked.kinds[:questions], np.full(answers, -1, np.int64)))
    kinds[questions + old : questions + old + len(pairs)] = asked.kinds[pairs]

    def both(first: Ints, second: Ints) -> Ints:
        return np.concatenate((first[:questions], second[:answers]))[order]

    shift = len(asked.data) + 4
    return Run(
        asked.data + told.data,
        np.arange(questions + answers)[order] >= questions,
        both(asked.starts + 4, told.starts + shift),
        both(asked.sizes, told.sizes),
        both(asked.first, told.first),
        last[order],
        both(asked.ids, told.ids),
        kinds[order],
        partners[order],
        np.concatenate((wants[:questions], np.ones(answers, np.bool_)))[order],
        old,
        stop,
        (_carried(asked, stop), _carried(told, stop)),
    )


def _carried(way: _Cut, stop: int) -> int:
    """Return the bytes of a direction in the packets before one."""
    inside = int(np.searchsorted(way.packets, stop))
    return int(way.edges[inside - 1]) if inside else 0
