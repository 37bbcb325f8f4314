"""What captures recorded: at which times, and between which hosts.

The one place that says whether a time without packets is evidence. A capture that ended, paused, or
leaves out two hosts says nothing about them; only packets of others show that it was running.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# A replica asks at least every half second, so the packets of a cluster that runs are closer than
# this. After a longer pause it is unknown what happened in it. Units: nanoseconds.
PAUSE_NS = 750_000_000

# After a pause of this length nothing from before is assumed to go on. Longer than the two seconds
# of controller.quorum.fetch.timeout.ms, in which all wait for a leader that was stopped.
HOLE_S = 4.0

# Clients may have nothing to say for longer than the nodes of a quorum.
REST_S = 30.0

# With more, pauses that are too short to matter much are forgotten, the shortest first.
STRETCHES_MAX = 10_000
# Further pairs count as not recorded.
HOST_PAIRS_MAX = 20_000

# Two hosts, the lesser name first.
HostPair = tuple[str, str]
# Start and end. Units: seconds since the epoch.
TimeSpan = tuple[float, float]

_SECOND_NS = 1_000_000_000
_LATEST = 1 << 64
# A double of seconds since the epoch is this exact.
_EXACT_NS = 1_000


def host_pair(connection: str) -> HostPair:
    """Return the hosts of a connection "client:port-server:port"."""
    client, _, server = connection.rpartition("-")
    one, other = (end.rpartition(":")[0] for end in (client, server))
    return (one, other) if one <= other else (other, one)


@dataclass(slots=True)
class Recorded:
    """The times and hosts of one recording, of one file or of several that follow each other.

    `stretches` are [first, last] times of packets, in order, without a pause between. `pairs` are
    the hosts between which there are connections of Kafka. `offset_ns` is added to its times, as
    its clock differs from those of other recordings. Units: nanoseconds since the epoch.
    """

    stretches: list[list[int]] = field(default_factory=list)
    pairs: set[HostPair] = field(default_factory=set)
    offset_ns: int = 0
    _pause_ns: int = PAUSE_NS
    # The last stretch, if the packet before was its last.
    _latest: list[int] = field(default_factory=list, compare=False)

    def note(self, time_ns: int) -> None:
        """Add the time of a packet; they nearly always come in order."""
        latest = self._latest
        if latest and latest[0] <= time_ns <= latest[1] + self._pause_ns:
            if time_ns > latest[1]:
                latest[1] = time_ns
            return
        self._insert(time_ns)

    def note_run(self, first_ns: int, last_ns: int) -> None:
        """Add the first and the last time of packets without a pause between."""
        self.note(first_ns)
        if self._latest:
            self._latest[1] = max(self._latest[1], last_ns)
        else:
            spans = sorted([*self.stretches, [first_ns, last_ns]])
            self.stretches = list(_joined(spans, self._pause_ns))

    def meet(self, connection: str) -> None:
        """Add a connection of Kafka."""
        if len(self.pairs) < HOST_PAIRS_MAX:
            self.pairs.add(host_pair(connection))

    def _insert(self, time_ns: int) -> None:
        """Begin a stretch, or extend one that is not the latest."""
        at = bisect_right(self.stretches, [time_ns, _LATEST])
        self.stretches.insert(at, [time_ns, time_ns])
        if at + 1 < len(self.stretches):
            self._join(at)
        if at:
            self._join(at - 1)
        if len(self.stretches) > STRETCHES_MAX:
            while len(self.stretches) > STRETCHES_MAX // 2:
                self._pause_ns *= 2
                self.stretches = list(_joined(self.stretches, self._pause_ns))
        self._latest = self.stretches[-1] if self.stretches[-1][1] == time_ns else []

    def _join(self, at: int) -> None:
        """Make one of a stretch and the next, unless there is a pause."""
        before, after = self.stretches[at : at + 2]
        if after[0] - before[1] <= self._pause_ns:
            before[1] = max(before[1], after[1])
            del self.stretches[at + 1]

    def within(self, start_ns: int, end_ns: int) -> Iterator[list[int]]:
        """Yield the stretches that reach into a time, by the common clock."""
        offset = self.offset_ns
        at = bisect_right(self.stretches, [start_ns - offset, _LATEST])
        for first, last in self.stretches[max(0, at - 1) :]:
            if first + offset > end_ns:
                return
            if last + offset >= start_ns:
                yield [first + offset, last + offset]


class Recordings:
    """Several recordings as one. Order: complete up to the time that is asked about."""

    def __init__(self, recordings: Iterable[Recorded] = ()) -> None:
        self._all = list(recordings)
        self._frames: Recorded | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is no recording."""
        return not self._all

    def note_frame(self, time: float, connection: str) -> None:
        """Add a frame whose packets are not known, unless there are recordings.

        Between frames more time passes than between packets: only holes are noted.
        """
        if self._frames is None:
            if self._all:
                return
            self._frames = Recorded(_pause_ns=round(HOLE_S * _SECOND_NS))
            self._all.append(self._frames)
        self._frames.note(round(time * _SECOND_NS))
        self._frames.meet(connection)

    def and_also(self, recorded: Recorded) -> Recordings:
        """Return these and another recording."""
        return Recordings([*self._all, recorded])

    def add(self, recorded: Recorded) -> None:
        """Add a recording, which may still grow."""
        self._all.append(recorded)

    def shows(self, pair: HostPair, time: float) -> bool:
        """Whether two hosts were being recorded at a time."""
        at = round(time * _SECOND_NS)
        span = at - _EXACT_NS, at + _EXACT_NS
        return any(pair in each.pairs and any(each.within(*span)) for each in self._all)

    def pauses(self, start: float, end: float, pair: HostPair | None = None) -> list[TimeSpan]:
        """Return the parts of a time in which no packet was recorded, by recordings of a pair only
        if one is given.
        """
        first_ns, end_ns = round(start * _SECOND_NS), round(end * _SECOND_NS)
        if end_ns - first_ns <= PAUSE_NS:
            return []
        chosen = [each for each in self._all if pair is None or pair in each.pairs]
        within = sorted(span for each in chosen for span in each.within(first_ns, end_ns))
        found, at = [], first_ns
        for first, last in [*within, [end_ns, end_ns]]:
            if first - at > PAUSE_NS:
                found.append((at / _SECOND_NS, first / _SECOND_NS))
            at = max(at, last)
        return found

    def has_packets(self, start: float, end: float) -> bool:
        """Whether any packet was recorded in a time."""
        span = round(start * _SECOND_NS), round(end * _SECOND_NS)
        return any(any(each.within(*span)) for each in self._all)

    def longest(self, start: float, end: float) -> float:
        """Return the longest part of a time without a pause. Units: seconds."""
        pauses = [*self.pauses(start, end), (end, end)]
        starts = [start, *(stop for _, stop in pauses)]
        return max(at - begin for begin, (at, _) in zip(starts, pauses, strict=False))

    def holes(self, start: float, end: float, least: float = HOLE_S) -> list[TimeSpan]:
        """Return the parts of a time that are not recorded: pauses too long to be waited through.
        """
        if end - start <= least:
            return []
        return [each for each in self.pauses(start, end) if each[1] - each[0] > least]

    def until(self, time: float, end: float, pair: HostPair | None = None) -> float:
        """Return how far recordings that run at a time reach without a hole, at most to an end."""
        for start, stop in self.pauses(time, end, pair):
            if stop - start > HOLE_S or stop >= end:
                return start
        return end

    def seconds(self, start: float, end: float) -> float:
        """Return how much of a time is recorded."""
        return end - start - sum(stop - first for first, stop in self.holes(start, end))


def _joined(spans: Iterable[list[int]], pause_ns: int) -> Iterator[list[int]]:
    """Yield spans, in order, with those joined that no longer pause separates."""
    current: list[int] | None = None
    for span in spans:
        if current is not None and span[0] - current[1] <= pause_ns:
            current[1] = max(current[1], span[1])
            continue
        if current is not None:
            yield current
        current = list(span)
    if current is not None:
        yield current
