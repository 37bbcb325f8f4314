"""Rows of similar exchanges: the rows of a sample, and the numbers of all.

Owns which columns take which number of a frame. All other columns are those of a sample, whose rows
come from the code for single exchanges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kraftwire.spark.captures.rows import Alike, Cells
from kraftwire.spark.captures.steady.packets import Ints
from kraftwire.spark.captures.steady.patterns import Pattern
from kraftwire.spark.captures.traffic import replica_of

__all__ = ["Pairs", "Sample", "make_sample", "pair_rows"]

_NS_PER_MS = 1_000_000
_FRAMES, _TRAFFIC, _OBSERVATIONS = "frames", "partition_traffic", "quorum_observations"
_BATCHES, _RECORDS = "batches", "metadata_records"
_WHOLE = ("raft_exchanges", "group_exchanges")
_PAYLOAD = -1

# The tables whose changing columns are known here.
_KNOWN = frozenset({_FRAMES, "exchanges", _TRAFFIC, _OBSERVATIONS, _BATCHES, _RECORDS, *_WHOLE})

# Latencies up to this many nanoseconds are exact as doubles.
_EXACT = 1 << 53


@dataclass(slots=True)
class Sample:
    """One exchange that stands for all with the same two patterns.

    `rows` are its rows, by table. `replica` is the subject of its row in `quorum_observations`,
    None without such a row; `told` is the partition in the response. `asks` is true if the request
    names the partition of the response. Units: `max_wait` milliseconds.
    """

    question: Pattern
    answer: Pattern
    rows: Mapping[str, Sequence[tuple[Any, ...]]]
    is_fetch: bool
    is_raft: bool
    cluster: str = ""
    replica: int | None = None
    told: Any = None
    asks: bool = False
    max_wait: float = 0.0
    never_waits: bool = False
    has_error: bool = False


def make_sample(
    question: Pattern,
    answer: Pattern,
    rows: Mapping[str, Sequence[tuple[Any, ...]]],
    *,
    is_fetch: bool,
    is_raft: bool,
) -> Sample | None:
    """Return a sample; None if the rows hold something that may differ among the exchanges."""
    is_usual = all(
        len(each) == (2 if name == _FRAMES else len(answer.own) if name == _RECORDS else 1)
        for name, each in rows.items()
    )
    if not is_usual or not rows.keys() <= _KNOWN:
        return None
    made = Sample(question, answer, rows, is_fetch, is_raft)
    if question.batch is not None and not _is_answered(question, answer):
        return None
    if is_fetch:
        asked = [(t, p) for t in question.body.topics for p in t.partitions]
        told = [(t, p) for t in answer.body.responses for p in t.partitions]
        made.max_wait = float(question.body.max_wait_ms)
        made.never_waits = bool(answer.body.error_code)
        if told:
            made.told = told[0][1]
            made.has_error = bool(made.told.error_code)
            made.asks = bool(asked) and _key(*asked[0], "partition") == _key(
                *told[0], "partition_index"
            )
        if is_raft:
            made.cluster = question.body.cluster_id
        if rows.get(_OBSERVATIONS):
            made.replica = replica_of(question.body)
            if not made.asks:
                return None
    return made if _has_places(made) else None


def _is_answered(question: Pattern, answer: Pattern) -> bool:
    """Whether the response to a Produce with one partition has the offset of its records."""
    asked = [(t, p) for t in question.body.topic_data for p in t.partition_data]
    told = [(t, p) for t in answer.body.responses for p in t.partition_responses]
    if len(asked) != 1 or len(told) != 1 or "base_offset" not in answer.numbers:
        return False
    (topic, part), (other, place) = asked[0], told[0]
    return bool(
        (topic.name or topic.topic_id) == (other.name or other.topic_id)
        and part.index == place.index
    )


def _key(topic: Any, partition: Any, name: str) -> tuple[Any, int]:
    return topic.topic or topic.topic_id, getattr(partition, name)


def _has_places(sample: Sample) -> bool:
    """Whether the frames hold all numbers that the rows need."""
    needed = set()
    if sample.told is not None:
        needed.add("high_watermark")
    known = sample.answer.numbers.keys()
    if not sample.is_fetch:
        return True
    return needed <= known and (not sample.asks or "fetch_offset" in sample.question.numbers)


@dataclass(slots=True)
class Pairs:
    """Exchanges both of whose frames have a pattern, in the order of the responses.

    `asked` and `told` are indexes of frames, `which` that of the sample. The other arrays
    are by frame; `columns` are the numbers in frames, by name. `caught_up` has an item for each
    exchange that is a quorum observation; `followed` counts the exchanges that others know of.
    """

    asked: Ints
    told: Ints
    samples: list[Sample]
    which: Ints
    times: Ints
    positions: Ints
    ends: Ints
    ids: Ints
    starts: Ints
    sizes: Ints
    stream: bytes
    columns: Mapping[str, Ints]
    followed: int = 0
    caught_up: list[int | None] = field(default_factory=list)

    def column(self, name: str, frames: Ints) -> Ints:
        """Return a number of some frames, -1 where they have none."""
        column = self.columns.get(name)
        return np.full(len(frames), -1, np.int64) if column is None else column[frames]

    def of_samples(self, values: list[Any]) -> npt.NDArray[Any]:
        """Return, for each exchange, the value of its sample."""
        return np.array(values)[self.which]

    def log_ends(self) -> Ints:
        """Return the offset after the records of each response; meaningless for those without."""
        return self.column("base_offset", self.told) + self.column("last_delta", self.told) + 1

    @property
    def carriers(self) -> Ints:
        """Return the frame with a batch in each exchange, if there is one."""
        is_asked = self.of_samples([each.question.batch is not None for each in self.samples])
        return np.where(is_asked, self.asked, self.told)

    def fetched(self, start: int, end: int) -> tuple[list[int], list[int], list[int]]:
        """Return the time of the request, its offset and the log end offset of some exchanges."""
        asked = self.asked[start:end]
        ends = self.log_ends()[start:end]
        offsets = self.column("fetch_offset", asked)
        return self.times[asked].tolist(), offsets.tolist(), ends.tolist()


def pair_rows(
    pairs: Pairs, singles: Ints, after: Mapping[str, Ints]
) -> Iterator[tuple[str, Alike]]:
    """Return the rows of all requested tables.

    `singles` are the frames that came one by one, `after` how many rows they had given
    before each of them and after the last, by table.
    """
    for name, counts in after.items():
        mine = np.flatnonzero(pairs.of_samples([bool(s.rows.get(name)) for s in pairs.samples]))
        if not len(mine):
            continue
        if name == _FRAMES:
            yield name, _frames(pairs, singles, counts)
            continue
        told = pairs.told[mine]
        if name == _BATCHES:
            # They come with the frame that holds them, which may be the request.
            told = pairs.carriers[mine]
            order = np.argsort(told, kind="stable")
            told, mine = told[order], mine[order]
        before = counts[np.searchsorted(singles, told)]
        samples = [row for each in pairs.samples for row in each.rows.get(name, ())]
        lengths = np.array([len(each.rows.get(name, ())) for each in pairs.samples])
        firsts = np.cumsum(lengths) - lengths
        if name == _RECORDS:
            # Several rows for each response.
            counts = lengths[pairs.which[mine]]
            owner = np.repeat(np.arange(len(mine)), counts)
            inside = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
            rows = firsts[pairs.which[mine]][owner] + inside
            yield name, Alike(samples, rows, before[owner], _records(pairs, told[owner], rows))
            continue
        cells = _CELLS[name](pairs)
        chosen = {column: _chosen(each, mine) for column, each in cells.items()}
        yield name, Alike(samples, firsts[pairs.which[mine]], before, chosen)


def _chosen(cells: Cells, mine: Ints) -> Cells:
    """Some of the cells of a column."""
    if isinstance(cells, list):
        return [cells[at] for at in mine.tolist()]
    if isinstance(cells, tuple):
        return cells[0][mine], cells[1][mine]
    return cells[mine]


def _frames(pairs: Pairs, singles: Ints, counts: Ints) -> Alike:
    frames = np.concatenate((pairs.asked, pairs.told))
    order = np.argsort(frames, kind="stable")
    frames = frames[order]
    samples = [row for each in pairs.samples for row in each.rows[_FRAMES]]
    which = np.concatenate((2 * pairs.which, 2 * pairs.which + 1))[order]
    times = pairs.times[frames]
    cells: dict[str, Cells] = {
        "position": pairs.positions[frames],
        "end_position": pairs.ends[frames],
        "time": times // 1000,
        "time_ns": times,
        "correlation_id": pairs.ids[frames],
        "size": pairs.sizes[frames],
    }
    return Alike(samples, which, counts[np.searchsorted(singles, frames)], cells)


def _place(pairs: Pairs) -> dict[str, Cells]:
    """Where and when the requests are."""
    times = pairs.times[pairs.asked]
    return {"position": pairs.positions[pairs.asked], "time": times // 1000, "time_ns": times}


def _exchanges(pairs: Pairs) -> dict[str, Cells]:
    latency = pairs.times[pairs.told] - pairs.times[pairs.asked]
    wait = _waits(pairs, latency)
    return _place(pairs) | {
        "response_position": pairs.positions[pairs.told],
        "correlation_id": pairs.ids[pairs.asked],
        "request_size": pairs.sizes[pairs.asked],
        "response_size": pairs.sizes[pairs.told],
        "latency_ns": latency,
        "wait_ns": wait,
        "service_ns": latency - wait,
    }


def _waits(pairs: Pairs, latency: Ints) -> Ints:
    """Return how long each Fetch was parked, as `decode.exchange.wait` does; 0 for all others."""
    samples = pairs.samples
    limit = np.minimum(latency / _NS_PER_MS, pairs.of_samples([s.max_wait for s in samples]))
    asked_ms = np.array([time / _NS_PER_MS for time in pairs.times[pairs.asked].tolist()])
    made = pairs.column("max_time", pairs.told)
    wait = limit.copy()
    has_records = pairs.of_samples([s.answer.batch is not None for s in samples])
    wait[has_records] = np.minimum(np.maximum(made - asked_ms, 0.0), limit)[has_records]
    is_refused = pairs.of_samples([s.has_error and s.answer.batch is None for s in samples])
    wait[is_refused] = 0.0
    wait[pairs.of_samples([s.never_waits for s in samples]) | (limit <= 0)] = 0.0
    waits = np.minimum(np.rint(wait * _NS_PER_MS).astype(np.int64), latency)
    waits[~pairs.of_samples([s.is_fetch for s in samples])] = 0
    return waits


def _traffic(pairs: Pairs) -> dict[str, Cells]:
    samples, carriers = pairs.samples, pairs.carriers
    is_fetch = pairs.of_samples([s.is_fetch for s in samples])
    is_asked = pairs.of_samples([s.question.batch is not None for s in samples])
    has_records = pairs.of_samples([s.answer.batch is not None for s in samples])
    asks = pairs.of_samples([s.asks for s in samples])
    offset = np.where(
        asks, pairs.column("fetch_offset", pairs.asked), pairs.column("base_offset", pairs.told)
    )
    # What a Produce has written is known only from its response.
    has_offset = np.where(is_fetch, asks | has_records, offset >= 0)
    end = np.where(has_records, pairs.log_ends(), offset)
    has_error = pairs.of_samples([s.has_error for s in samples])
    has_end = is_fetch & (has_records | has_offset) & ~has_error
    watermark = pairs.column("high_watermark", pairs.told)
    begin = pairs.column("base_time", carriers) * 1000
    return _place(pairs) | {
        "offset": (offset, ~has_offset),
        "bytes": np.maximum(pairs.column("batch_size", carriers), 0),
        "records": np.maximum(pairs.column("count", carriers), 0),
        "high_watermark": (watermark, watermark < 0),
        "log_end_offset": (end, ~has_end),
        "first_timestamp": (begin, ~(has_records | is_asked)),
    }


def _observations(pairs: Pairs) -> dict[str, Cells]:
    samples = pairs.samples
    has_records = pairs.of_samples([s.answer.batch is not None for s in samples])
    offset = pairs.column("fetch_offset", pairs.asked)
    end = np.where(has_records, pairs.log_ends(), offset)
    has_end = has_records | ~pairs.of_samples([s.has_error for s in samples])
    watermark = pairs.column("high_watermark", pairs.told)
    caught_up = np.full(len(pairs.asked), -1, np.int64)
    seen = pairs.of_samples([s.replica is not None for s in samples])
    caught_up[seen] = [-1 if each is None else each for each in pairs.caught_up]
    place = _place(pairs)
    return place | {
        "fetch_offset": offset,
        "log_end_offset": (end, ~has_end),
        "high_watermark": (watermark, watermark < 0),
        "last_fetch": place["time"],
        "last_caught_up": (caught_up // 1000, caught_up < 0),
    }


def _whole(pairs: Pairs) -> dict[str, Cells]:
    return _place(pairs) | {
        "response_position": pairs.positions[pairs.told],
        "correlation_id": pairs.ids[pairs.asked],
        "latency_ns": pairs.times[pairs.told] - pairs.times[pairs.asked],
        "request": _bytes(pairs, pairs.asked),
        "response": _responses(pairs),
    }


def _bytes(pairs: Pairs, frames: Ints) -> list[bytes]:
    stream = pairs.stream
    starts = pairs.starts[frames]
    stops = starts + pairs.sizes[frames]
    return [stream[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]


def _responses(pairs: Pairs) -> list[bytes]:
    """Return the bytes of responses; for those with records, the sample's with other numbers."""
    found = _bytes(pairs, pairs.told)
    for at, sample in enumerate(pairs.samples):
        row = next((sample.rows[name][0] for name in _WHOLE if sample.rows.get(name)), None)
        if sample.answer.records is None or row is None:
            continue
        mine = np.flatnonzero(pairs.which == at).tolist()
        shared: bytes = row[_PAYLOAD]
        start = sample.answer.records[0]
        places = [(0, 4)] + [each for each in sample.answer.numbers.values() if each[0] < start]
        for index in mine:
            data = bytearray(shared)
            for begin, size in places:
                data[begin : begin + size] = found[index][begin : begin + size]
            found[index] = bytes(data)
    return found


def _batches(pairs: Pairs) -> dict[str, Cells]:
    carriers = pairs.carriers
    offset = pairs.column("base_offset", carriers)
    same = ("count", "crc", "producer_id", "producer_epoch", "base_sequence")
    cells: dict[str, Cells] = {name: pairs.column(name, carriers) for name in same}
    return cells | {
        "position": pairs.positions[carriers],
        "base_offset": offset,
        "last_offset": offset + pairs.column("last_delta", carriers),
        "size": pairs.column("batch_size", carriers),
        "max_timestamp": pairs.column("max_time", carriers) * 1000,
    }


def _records(pairs: Pairs, told: Ints, rows: Ints) -> dict[str, Cells]:
    """Return cells of records; `told` is the response of each, `rows` its index among samples'."""
    offsets, times = [], []
    for sample in pairs.samples:
        if sample.rows.get(_RECORDS) and sample.answer.batch is not None:
            batch = sample.answer.batch
            offsets += [each.offset - batch.base_offset for each in sample.answer.own]
            times += [(each.time_ms or 0) - batch.base_timestamp for each in sample.answer.own]
    return {
        "position": pairs.positions[told],
        "offset": pairs.column("base_offset", told) + np.array(offsets)[rows],
        "time": (pairs.column("base_time", told) + np.array(times)[rows]) * 1000,
    }


_CELLS = {
    "exchanges": _exchanges,
    _TRAFFIC: _traffic,
    _OBSERVATIONS: _observations,
    _BATCHES: _batches,
    "raft_exchanges": _whole,
    "group_exchanges": _whole,
}
