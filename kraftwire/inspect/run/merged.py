"""Merges captures of several nodes by time; a frame in several captures is shown once.

Owns which of some captures were taken at the same time, by how much their clocks differ, and which
of two captures shows a connection that both have recorded.

Clocks are compared by frames that two captures have in common. Such a frame is later where it
arrives than where it is sent, so the difference is taken in both directions of a connection, and
the time in transit cancels out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from heapq import heappop, heappush, merge

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.capture.packets.series import Span, span_of
from kraftwire.capture.tls import KeyLog

# Frames of a capture that are compared with those of others.
_COMPARED_MAX = 200_000
_DIGEST_SIZE = 12

# Digest of a frame's direction, connection and bytes.
_Key = bytes


def overlapping(paths: Sequence[str]) -> list[str]:
    """The captures among some that were taken at the same time as another one of them."""
    spans = [span for span in map(span_of, paths) if span is not None]
    return [
        each.path
        for each in spans
        if any(_overlap(each, other) for other in spans if other is not each)
    ]


def _overlap(one: Span, other: Span) -> bool:
    return one.first_ns < other.last_ns and other.first_ns < one.last_ns


@dataclass(slots=True)
class Clocks:
    """The result of comparing captures.

    `offsets_ns` are added to the times of each capture, those of the first being 0; `owner`
    says which capture shows a connection that several have; `alone` are captures without a frame in
    common with the first, directly or through others.
    """

    offsets_ns: list[int]
    owner: dict[str, int] = field(default_factory=dict)
    alone: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Seen:
    """The frames of a capture: by digest time and direction, None for one that comes twice."""

    frames: dict[_Key, tuple[int, bool, str] | None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def compare(paths: Sequence[str], keys: KeyLog | None = None) -> Clocks:
    """Read captures, and compare what they have in common. Raises: StorageError."""
    seen = [_read(path, keys) for path in paths]
    clocks = Clocks([0] * len(paths))
    known = [0]
    waiting = list(range(1, len(paths)))
    shared: dict[str, set[int]] = defaultdict(set)
    while found := next(
        ((new, old, offset) for new in waiting for old in known
         if (offset := _offset(seen[old], seen[new], shared, (old, new))) is not None), None
    ):  # fmt: skip
        new, old, offset = found
        clocks.offsets_ns[new] = clocks.offsets_ns[old] + offset
        known.append(new)
        waiting.remove(new)
    clocks.alone = waiting
    for new in waiting:
        for old in range(new):
            _offset(seen[old], seen[new], shared, (old, new))
    for connection, places in shared.items():
        clocks.owner[connection] = max(
            sorted(places), key=lambda place: seen[place].counts[connection]
        )
    return clocks


def _read(path: str, keys: KeyLog | None) -> _Seen:
    seen = _Seen()
    for frame in Capture(path, keys=keys):
        seen.counts[frame.connection] += 1
        if len(seen.frames) < _COMPARED_MAX and not frame.missing:
            key = _key(frame)
            is_new = key not in seen.frames
            place = frame.time_ns, frame.is_request, frame.connection
            seen.frames[key] = place if is_new else None
    return seen


def _key(frame: RawFrame) -> _Key:
    digest = blake2b(frame.data, digest_size=_DIGEST_SIZE)
    digest.update(f"{frame.direction} {frame.connection}".encode())
    return digest.digest()


def _offset(
    old: _Seen, new: _Seen, shared: dict[str, set[int]], places: tuple[int, int]
) -> int | None:
    """Return what to add to one capture's times to get another's; None if it is unknown.

    Notes the connections that both have.
    """
    directions: tuple[list[int], list[int]] = [], []
    for key, place in new.frames.items():
        other = old.frames.get(key)
        if place is not None and other is not None:
            time_ns, is_request, connection = place
            directions[is_request].append(other[0] - time_ns)
            shared[connection].update(places)
    middles = [_middle(direction) for direction in directions if direction]
    return round(sum(middles) / len(middles)) if middles else None


def _middle(values: list[int]) -> float:
    """The median; `statistics` takes longer to import than most captures to read."""
    ordered, half = sorted(values), len(values) // 2
    return (ordered[half] + ordered[~half]) / 2


class MergedEndings:
    """Passes on the ends of connections in several captures, by the common clock, each once.

    They wait until the frames before them were shown.
    """

    def __init__(self, clocks: Clocks, on_ending: Callable[[Ending], None]) -> None:
        self._clocks = clocks
        self._on_ending = on_ending
        self._waiting: list[tuple[int, int, Ending]] = []
        self._count = 0

    def of(self, at: int) -> Callable[[Ending], None]:
        """Return the callback for the ends in a capture."""
        offset, owner = self._clocks.offsets_ns[at], self._clocks.owner

        def take(ending: Ending) -> None:
            if owner.get(ending.connection, at) == at:
                time_ns = ending.time_ns + offset
                moved = replace(ending, time_ns=time_ns)
                heappush(self._waiting, (time_ns, self._count, moved))
                self._count += 1

        return take

    def pass_until(self, time_ns: int | None) -> None:
        """Pass on the ends before a time, None for all."""
        while self._waiting and (time_ns is None or self._waiting[0][0] < time_ns):
            self._on_ending(heappop(self._waiting)[2])


def merged(
    captures: Sequence[Capture], clocks: Clocks, endings: MergedEndings | None = None
) -> Iterator[RawFrame]:
    """The frames of captures by time, those of a connection from one capture only.

    `endings` are those of the captures, and are passed on in between.
    """
    directions = (_moved(each, at, clocks) for at, each in enumerate(captures))
    for latest, _, _, frame in merge(*directions):
        if endings is not None:
            endings.pass_until(latest)
        yield frame
    if endings is not None:
        endings.pass_until(None)


def _moved(
    frames: Iterable[RawFrame], at: int, clocks: Clocks
) -> Iterator[tuple[int, int, int, RawFrame]]:
    """The frames that a capture shows, with their times by the common clock, to be merged.

    A delayed frame does not delay those of other captures.
    """
    offset, owner, latest = clocks.offsets_ns[at], clocks.owner, 0
    for number, frame in enumerate(frames):
        if owner.get(frame.connection, at) == at:
            # Not that of `frame.request`: the latency is taken from it, by the capture's own clock.
            frame.time_ns += offset
            latest = max(latest, frame.time_ns)
            yield latest, at, number, frame
