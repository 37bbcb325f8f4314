"""The rows of a run of frames.

Owns which frames are similar and become rows in bulk, and the order of these rows among those of
frames that are decoded one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kraftwire.capture.connections.kafka_connection import Conversation
from kraftwire.capture.framing.frames import Frame, Request
from kraftwire.decode.body.response_context import TELLING
from kraftwire.spark.captures.headers import Flags
from kraftwire.spark.captures.helpers import RAFT_APIS
from kraftwire.spark.captures.quorum import is_of_metadata
from kraftwire.spark.captures.steady.alike import Pairs, Sample, make_sample, pair_rows
from kraftwire.spark.captures.steady.cutting import Run, rows_of
from kraftwire.spark.captures.steady.holed import (
    HoledPattern,
    HoledPatterns,
    is_of_kafka,
    numbers_of,
)
from kraftwire.spark.captures.steady.host import FilePlaces, Host
from kraftwire.spark.captures.steady.packets import Ints, Packets
from kraftwire.spark.captures.steady.patterns import Pattern, Patterns

__all__ = ["Harvest", "Known"]

_FETCH = 1
_TOPIC_APIS = frozenset({3, 19, 20, 75})

# A pattern needs at least this many frames, a sample this many exchanges.
_FRAMES_MIN = 3
_SIZE_MAX = 4096
# One in so many frames.
_MANY = 8
_NONE = -1

# The numbers of frames that tables show.
_COLUMNS = frozenset(
    {
        "fetch_offset", "high_watermark", "base_offset", "base_time", "max_time", "crc",
        "last_delta", "count", "batch_size", "producer_id", "producer_epoch", "base_sequence",
    }
)  # fmt: skip

# A sample and its patterns.
Sampled = tuple[Sample | None, Pattern, Pattern]


@dataclass(slots=True)
class Known:
    """What the runs of a connection share.

    `samples` are kept by their patterns, their files, the name of the
    connection and the client id.
    """

    host: Host
    places: FilePlaces
    patterns: Patterns
    holed: HoledPatterns
    samples: dict[tuple[Pattern, Pattern, tuple[int, int], str, str | None], Sampled] = field(
        default_factory=dict
    )


class Harvest:
    """One run."""

    def __init__(
        self,
        known: Known,
        run: Run,
        packets: Packets,
        conversation: Conversation,
    ) -> None:
        self._host, self._places = known.host, known.places
        self._known, self._holed = known.patterns, known.holed
        self._samples = known.samples
        self._run = run
        self._conversation = conversation
        self._times = packets.times[run.last]
        self._files, self._positions = known.places.find(packets.begins[run.first])
        _, ends = known.places.find(packets.ends[run.last] - 1)
        self._ends = ends + 1
        self._bytes = np.frombuffer(run.stream, np.uint8)
        # The fields of each `Frame`; as tuples if there are many.
        self._arrays = (
            run.starts, run.sizes, self._times, self._files, self._positions, self._ends,
            run.partners, run.kinds, run.ids, run.is_response, run.wants,
        )  # fmt: skip
        self._facts: list[tuple[int, ...]] = []
        self._patterns: list[Pattern] = []
        self._which = np.full(len(run.starts), _NONE, np.int64)
        self._wanted: Flags = np.ones(len(run.starts), np.bool_)
        self._columns: dict[str, Ints] = {}

    def take(self, pending: list[Request]) -> list[Request]:
        """Make the rows; `pending` are the requests open before the run.

        Returns those open after it.
        """
        slow = self._choose(pending)
        self._sort(slow)
        pairs = self._pairs()
        if pairs is not None:
            slow[pairs.asked] = slow[pairs.told] = False
        singles = np.flatnonzero(slow)
        if len(singles) * _MANY > len(slow):
            self._facts = list(zip(*(each.tolist() for each in self._arrays), strict=True))
        requests: dict[int, Request] = {}
        if pairs is None:
            for at in singles.tolist():
                self._single(at, requests, pending)
        else:
            self._mixed(pairs, singles, requests, pending)
        left = pending[self._run.answered_before :]
        unanswered = np.flatnonzero(
            ~self._run.is_response & self._run.wants & (self._run.partners == _NONE)
        )
        return left + [requests[at] for at in unanswered.tolist()]

    def _choose(self, pending: list[Request]) -> Flags:
        """Return which frames have to be examined: those that are selected, that affect others, or
        that have no response.
        """
        run, selection = self._run, self._host.selection
        if selection.is_all:
            return self._wanted.copy()
        apis, times = run.kinds >> 16, self._times.copy()
        # A response is judged by its request.
        told = np.flatnonzero(run.partners >= 0)
        told = told[run.is_response[told]]
        times[told] = times[run.partners[told]]
        for at in np.flatnonzero(run.partners < _NONE).tolist():
            request = pending[-2 - int(run.partners[at])]
            apis[at], times[at] = request.api_key, request.time_ns
        self._wanted = selection.pass_all(apis, times)
        is_open = ~run.is_response & (run.partners == _NONE)
        chosen: Flags = self._wanted | np.isin(apis, list(TELLING)) | is_open
        return chosen

    def _mixed(
        self, pairs: Pairs, singles: Ints, requests: dict[int, Request], pending: list[Request]
    ) -> None:
        """Add single frames, with similar ones among them."""
        names = list(self._host.rows)
        follows = np.zeros(len(singles) + 1, np.bool_)
        follows[np.searchsorted(singles, np.concatenate((pairs.asked, pairs.told)))] = True
        counts = np.zeros((len(singles) + 1, len(names)), np.int64)
        caught_up: list[int | None] = []
        for index, (at, is_after) in enumerate(
            zip(singles.tolist(), follows.tolist(), strict=False)
        ):
            if is_after:
                self._follow(pairs, at, caught_up)
                counts[index] = [len(self._host.rows[name]) for name in names]
            self._single(at, requests, pending)
        self._follow(pairs, len(self._which), caught_up)
        counts[-1] = [len(self._host.rows[name]) for name in names]
        pairs.caught_up = caught_up
        after = {name: counts[:, at] for at, name in enumerate(names)}
        for name, rows in pair_rows(pairs, singles, after):
            self._host.rows[name].add_alike(rows)
        self._host.count(2 * len(pairs.asked), self._conversation.name)

    def _single(self, at: int, requests: dict[int, Request], pending: list[Request]) -> None:
        """Add a frame without a pattern."""
        frame = self._frame(at, requests, pending)
        which = int(self._which[at])
        pattern = self._patterns[which] if which >= 0 else None
        if pattern is None or pattern.records is not None:
            self._host.frame(frame)
        else:
            self._host.read(pattern.read(frame, self._host.bodies.memo(pattern)))

    def _sort(self, chosen: Flags) -> None:
        """Find the pattern of each chosen frame, if it has one."""
        run = self._run
        self._sort_holed(chosen)
        kinds = (run.kinds << 1 | run.is_response) << 13 | np.minimum(run.sizes, _SIZE_MAX + 1)
        is_out = (run.kinds < 0) | (run.sizes > _SIZE_MAX) | (self._which >= 0) | ~chosen
        kinds[is_out] = _NONE
        values, counts = np.unique(kinds, return_counts=True)
        for value in values[(counts >= _FRAMES_MIN) & (values != _NONE)].tolist():
            group = np.flatnonzero(kinds == value)
            size = int(run.sizes[group[0]])
            kind = bool(run.is_response[group[0]]), int(run.kinds[group[0]]), size
            rows = rows_of(self._bytes, run.starts[group], size)
            for pattern, mine in self._known.sort(rows, kind, self._host.bodies):
                numbers = {
                    name: pattern.column(rows[mine], name)
                    for name in pattern.numbers.keys() & _COLUMNS
                }
                self._found(pattern, group[mine], numbers)

    def _sort_holed(self, chosen: Flags) -> None:
        """Find the pattern with a hole of each chosen frame that carries users' records."""
        run = self._run
        kinds = run.kinds << 1 | run.is_response
        kinds[(run.kinds < 0) | ~chosen] = _NONE
        for value in np.unique(kinds).tolist():
            kind = bool(value & 1), value >> 1
            if value == _NONE or not self._holed.takes(kind):
                continue
            group = np.flatnonzero(kinds == value)
            places = run.starts[group], run.sizes[group]
            for pattern, mine, numbers in self._holed.sort(
                run.stream, places, kind, self._host.bodies
            ):
                self._found(pattern, group[mine], numbers)

    def _found(self, pattern: Pattern, frames: Ints, numbers: Mapping[str, Ints]) -> None:
        """Record the frames of a pattern, and their numbers."""
        self._which[frames] = len(self._patterns)
        self._patterns.append(pattern)
        if pattern.batch is not None:
            same = numbers_of(pattern.batch)
            numbers = {name: np.full(len(frames), same[name]) for name in same} | dict(numbers)
        for name in numbers.keys() & _COLUMNS:
            column = self._columns.get(name)
            if column is None:
                column = np.full(len(self._which), _NONE, np.int64)
                self._columns[name] = column
            column[frames] = numbers[name]

    def _pairs(self) -> Pairs | None:
        """Return the requests and responses that both have a pattern."""
        run = self._run
        is_told = run.is_response & (self._which >= 0) & (run.partners >= 0)
        told = np.flatnonzero(is_told & self._wanted)
        asked = run.partners[told]
        is_both = self._which[asked] >= 0
        told, asked = told[is_both], asked[is_both]
        if not len(told):
            return None
        count = len(self._patterns)
        files = len(self._places.files)
        key = self._which[asked] * count + self._which[told]
        key = (key * files + self._files[asked]) * files + self._files[told]
        _, first, which, sizes = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        learns = not _TOPIC_APIS.isdisjoint((run.kinds >> 16).tolist())
        samples: list[Sample] = []
        keep = np.full(len(first), _NONE, np.int64)
        for at, (index, size) in enumerate(zip(first.tolist(), sizes.tolist(), strict=True)):
            if size < _FRAMES_MIN:
                continue
            sample = self._sample(int(asked[index]), int(told[index]), learns)
            if sample is not None:
                keep[at] = len(samples)
                samples.append(sample)
        chosen = keep[which]
        chosen[self._opening(samples, chosen)] = _NONE
        is_kept = chosen >= 0
        if not is_kept.any():
            return None
        return self._made(asked[is_kept], told[is_kept], samples, chosen[is_kept])

    def _made(self, asked: Ints, told: Ints, samples: list[Sample], which: Ints) -> Pairs:
        run = self._run
        return Pairs(
            asked, told, samples, which, self._times, self._positions, self._ends, run.ids,
            run.starts, run.sizes, run.stream, self._columns,
        )  # fmt: skip

    def _opening(self, samples: list[Sample], which: Ints) -> Ints:
        """Return the exchange that shows a connection to be a quorum's, if it is among them."""
        raft = np.array([sample.is_raft for sample in samples] + [False])
        found = np.flatnonzero(raft[which])
        if not len(found) or self._host.raft.speaks(self._conversation.name):
            return found[:0]
        return found[:1]

    def _sample(self, asked: int, told: int, learns: bool) -> Sample | None:
        """Return what all exchanges of two patterns have in common; None if that is not enough."""
        question = self._patterns[self._which[asked]]
        answer = self._patterns[self._which[told]]
        is_static = question.is_static and answer.is_static
        if learns and not is_static:
            return None
        files = int(self._files[asked]), int(self._files[told])
        client = self._conversation.requests.client
        key = question, answer, files, self._conversation.name, client
        known = self._samples.get(key)
        if known is None:
            known = self._made_sample(question, answer, asked, told)
            if is_static:
                self._samples[key] = known
        return known[0]

    def _made_sample(self, question: Pattern, answer: Pattern, asked: int, told: int) -> Sampled:
        api_key = int(self._run.kinds[asked]) >> 16
        if api_key in RAFT_APIS:
            # An earlier exchange has named the cluster of the connection.
            return None, question, answer
        is_fetch = api_key == _FETCH
        is_raft = is_fetch and any(map(is_of_metadata, question.body.topics))
        if is_raft and not question.body.cluster_id:
            return None, question, answer
        for pattern in (question, answer):
            if isinstance(pattern, HoledPattern) and is_of_kafka(pattern, self._host.bodies):
                return None, question, answer
        requests: dict[int, Request] = {}
        frames = [self._frame(asked, requests, []), self._frame(told, requests, [])]
        rows = self._host.sample(frames)
        sample = make_sample(question, answer, rows, is_fetch=is_fetch, is_raft=is_raft)
        return sample, question, answer

    def _follow(self, pairs: Pairs, before: int, caught_up: list[int | None]) -> None:
        """Make the exchanges that are complete before a frame known to those after them."""
        start = pairs.followed
        end = int(np.searchsorted(pairs.told, before))
        if end == start:
            return
        pairs.followed = end
        name = self._conversation.name
        which = pairs.which[start:end]
        raft = np.array([sample.is_raft for sample in pairs.samples])
        last = np.flatnonzero(raft[which])
        if len(last):
            self._host.raft.tell(name, pairs.samples[which[last[-1]]].cluster)
        observe = self._host.observer.caught_up
        times, offsets, ends = pairs.fetched(start, end)
        for at, time_ns, offset, log_end in zip(which.tolist(), times, offsets, ends, strict=True):
            sample = pairs.samples[at]
            if sample.replica is None:
                continue
            key = name, sample.replica
            has_end = sample.answer.batch is not None
            up = observe(key, time_ns, offset, log_end if has_end else None, sample.told)
            caught_up.append(up)

    def _frame(self, at: int, requests: dict[int, Request], pending: list[Request]) -> Frame:
        """Return a frame as if it had been cut alone, with correct file and positions."""
        run = self._run
        begin, size, time_ns, file, position, end, partner, kind, number, is_response, wants = (
            self._facts[at] if self._facts else [int(each[at]) for each in self._arrays]
        )
        frame = Frame()
        frame.kind = "rpc"
        frame.connection = self._conversation.name
        frame.data = run.stream[begin : begin + size]
        frame.size = size
        frame.time_ns = time_ns
        frame.file = frame.end_file = self._places.files[file]
        frame.position, frame.end_position = position, end
        frame.latency_ms = None
        frame.missing = frame.findings = ()
        if is_response:
            frame.direction = "response"
            request = pending[-2 - partner] if partner < 0 else requests[partner]
            frame.latency_ms = (time_ns - request.time_ns) / 1_000_000
        else:
            frame.direction = "request"
            client = self._conversation.requests.client
            request = Request(kind >> 16, kind & 0xFFFF, number, client)
            request.has_response = bool(wants)
            request.time_ns, request.position = time_ns, position
            requests[at] = request
        frame.request = request
        frame.api_key, frame.api_version = request.api_key, request.api_version
        frame.correlation_id = request.correlation_id
        return frame
