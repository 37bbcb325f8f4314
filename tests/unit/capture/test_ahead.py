"""Stretches of a capture that are read ahead: what is found must be what one reader finds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.connections.adoption import Adoption, pack, passage, unpack
from kraftwire.capture.connections.ahead import Ahead
from kraftwire.capture.connections.frame_queue import Outbox
from kraftwire.capture.connections.open_connections import OpenConnections
from kraftwire.capture.connections.share import NotShared, Share
from kraftwire.capture.framing.frames import Frame
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.stretches import Stretch, Stretches
from tests.support.pcap_builder import PSH, Segment, Session, pcap_of, request, response

FILE_HEADER = 24
RECORD_HEADER = 16

# Where a frame was passed on, and everything that is known about it.
Shown = tuple[Any, ...]
MARK = itemgetter(0)


def shown(frame: Frame, mark: int) -> Shown:
    """Everything about a frame that its reader has found."""
    about = frame.connection, frame.direction, frame.api_key, frame.api_version, frame.data
    place = frame.position, frame.end_position, frame.time_ns, frame.latency_ms
    return (mark, *about, *place, frame.correlation_id, frame.missing, tuple(frame.findings))


def borders(data: bytes) -> list[int]:
    """The positions of all records, and the end."""
    found = [FILE_HEADER]
    while found[-1] < len(data):
        at = found[-1]
        found.append(at + RECORD_HEADER + int.from_bytes(data[at + 8 : at + 12], "little"))
    return found


class Reading:
    """A capture of which the stretch between two cuts is read ahead, if that fits."""

    def __init__(self, path: Path, ahead: Stretch) -> None:
        self.frames: list[Shown] = []
        self.why = ""
        self._ahead = ahead
        self._size = path.stat().st_size
        steps = (self._adopt, self._rest) if ahead[0] < ahead[1] else ()
        self._next: Iterator[Callable[[], Stretch | None]] = iter(steps)
        self._share = Share(2)
        with open(path, "rb") as file:
            self._file = file.fileno()
            first = 0, ahead[0]
            stream = Stretches(self._file, first, lambda: next(self._next, _nothing)())
            self._capture = Capture(stream, name="capture", share=self._share)
            for frames in self._capture.lists():
                self._take(frames, self._share.take())

    @property
    def health(self) -> Health:
        """The totals."""
        return self._capture.health

    def _take(self, frames: list[Frame], marks: list[int]) -> None:
        self.frames += map(shown, frames, marks)

    def _rest(self) -> Stretch | None:
        return (self._ahead[1], self._size) if self._ahead[1] < self._size else None

    def _adopt(self) -> Stretch | None:
        outbox = self._capture.connections.outbox
        try:
            packed, frames = read_ahead(self._file, self._ahead)
        except NotShared as error:
            self.why = str(error)
            return self._ahead
        adoption = Adoption(self._capture, unpack(packed, outbox))
        self.why = adoption.misfit(lambda _: 0)
        if self.why:
            return self._ahead
        adoption.carry_out()
        own = list(map(shown, outbox.take(), self._share.take()))
        self.frames += sorted([*own, *frames], key=MARK)
        return next(self._next)()


def _nothing() -> Stretch | None:
    return None


def read_ahead(file: int, stretch: Stretch) -> tuple[bytes, list[Shown]]:
    """Read a stretch without what comes before it."""
    outbox = Outbox(Health())
    after, size = OpenConnections(outbox), stretch[1] - stretch[0]
    ahead = Ahead(2, outbox, after.open, size)
    source = Stretches(file, stretch, lambda: None)
    capture = Capture(source, name="capture", after=after, is_last=False, share=ahead)
    frames: list[Shown] = []
    for some in capture.lists():
        frames += map(shown, some, ahead.take())
    assert capture.place == stretch[1]
    capture.health.bytes.file = 0
    return pack(passage(capture, ahead, size), outbox), frames


def compare(
    folder: Path, segments: list[Segment], pairs: Callable[[list[int]], list[Stretch]]
) -> Counter[str]:
    """Read a capture with each of some stretches ahead; returns how often what did not fit."""
    path = folder / "capture.pcap"
    path.write_bytes(pcap_of(segments))
    end = path.stat().st_size
    whole = Reading(path, (end, end))
    assert whole.frames
    why: Counter[str] = Counter()
    for stretch in pairs(borders(path.read_bytes())):
        found = Reading(path, stretch)
        assert found.frames == whole.frames, (stretch, found.why)
        assert found.health == whole.health, (stretch, found.why)
        why[found.why] += 1
    return why


def every(places: list[int]) -> list[Stretch]:
    """Every stretch there is."""
    return [(begin, end) for at, begin in enumerate(places) for end in places[at + 1 :]]


def exchange(session: Session, number: int, *, size: int = 30, mss: int = 1448) -> None:
    """A request and its response."""
    session.client(request(number, bytes(size)), mss=mss)
    session.server(response(number, bytes(size)), mss=mss)


def test_exchanges_one_after_the_other(tmp_path: Path) -> None:
    """Wherever the stretch begins: before a request, between the two, while a connection opens."""
    session = Session().open()
    for number in range(6):
        exchange(session, number)
    why = compare(tmp_path, session.close().segments, every)
    assert why[""] > sum(why.values()) * 0.9, why


def test_frames_in_several_packets(tmp_path: Path) -> None:
    """The stretch begins inside a request or a response, and ends inside another."""
    session = Session().open()
    for number in range(3):
        exchange(session, number, size=70, mss=25)
    why = compare(tmp_path, session.segments, every)
    assert why[""] > sum(why.values()) * 0.9, why


def test_requests_that_do_not_wait(tmp_path: Path) -> None:
    """Several requests are in flight, and responses share packets."""
    session = Session().open()
    for number in range(0, 9, 3):
        for each in range(3):
            session.client(request(number + each, bytes(30)))
        session.server(response(number, bytes(9)))
        session.server(response(number + 1, bytes(9)) + response(number + 2, bytes(9)))
    why = compare(tmp_path, session.segments, every)
    assert why[""] > sum(why.values()) * 0.6, why


def test_several_connections(tmp_path: Path) -> None:
    """One is idle for long, one begins and one ends inside the stretch, one says nothing."""
    sessions = [Session(client_end=("10.0.0.9", 50000 + number)) for number in range(4)]
    busy, idle, short, silent = sessions
    segments: list[Segment] = []
    for each in (busy, idle, silent):
        each.open()
    for number in range(4):
        for each in sessions:
            each.now_ns = max(other.now_ns for other in sessions)
        exchange(busy, number)
        if number in (0, 3):
            exchange(idle, number)
        if number == 1:
            short.now_ns = busy.now_ns
            exchange(short.open(), 7)
        if number == 2:
            short.now_ns = busy.now_ns
            short.client(request(8, bytes(9))).close()
    for each in sessions:
        segments += each.segments
    segments.sort(key=lambda segment: segment.time_ns)
    why = compare(tmp_path, segments, every)
    assert why[""] > sum(why.values()) * 0.8, why


def test_connections_from_before_the_capture(tmp_path: Path) -> None:
    """Nothing is known of them before their first request."""
    session = Session()
    session.server(response(1, bytes(9)))
    for number in range(2, 6):
        exchange(session, number)
    why = compare(tmp_path, session.segments, every)
    assert why[""] > sum(why.values()) * 0.4, why


def test_packets_that_come_again(tmp_path: Path) -> None:
    """Within the stretch, from before it, and changed."""
    for changed in (False, True):
        session = Session().open()
        for number in range(4):
            exchange(session, number)
        segments = list(session.segments)
        for at in (4, 9):
            again = segments[at]
            if changed:
                again = again.cut(0, len(again.payload))
                object.__setattr__(again, "payload", again.payload[:-1] + b"?")
            segments.insert(at + 3, again)
        why = compare(tmp_path, segments, every)
        assert why[""] > sum(why.values()) * 0.5, why


def test_what_looks_like_a_request(tmp_path: Path) -> None:
    """A response that could be a request is not taken for one, and text is left alone."""
    session, other = Session().open(), Session(client_end=("10.0.0.9", 50001)).open()
    inside = request(77, bytes(9))
    for number in range(3):
        session.client(request(number, inside), mss=20)
        session.server(response(number, inside), mss=20)
        other.now_ns = session.now_ns
        other.client(b"GET / HTTP/1.1\r\n\r\n").server(b"HTTP/1.1 200 OK\r\n\r\n")
        session.now_ns = other.now_ns
    segments = sorted(session.segments + other.segments, key=lambda segment: segment.time_ns)
    compare(tmp_path, segments, lambda places: every(places)[::3])


def test_a_byte_before_the_next_one(tmp_path: Path) -> None:
    """It keeps a connection alive; changed, or later, it is one that came again."""
    for byte in (b"\0", b"?"):
        for later in (1, 3, 4):
            session = Session().open()
            for number in range(5):
                exchange(session, number)
            segments = list(session.segments)
            known = segments[5]
            probe = replace(known, seq=known.seq + len(known.payload) - 1, payload=byte)
            segments.insert(5 + later, replace(probe, time_ns=segments[5 + later].time_ns))
            compare(tmp_path, segments, every)


def test_sequence_numbers_start_again(tmp_path: Path) -> None:
    """After the highest one; or anywhere, because a connection of the same ends is a new one."""
    session = Session(client_seq=(1 << 32) - 90, server_seq=(1 << 32) - 120).open()
    for number in range(5):
        exchange(session, number)
    why = compare(tmp_path, session.close().segments, every)
    assert why[""] > sum(why.values()) * 0.9, why
    for is_open in (False, True):
        first = Session().open()
        second = Session(client_seq=900_000_000, server_seq=700_000_000)
        for number in range(4):
            exchange(first, number)
        second.now_ns = first.now_ns
        if is_open:
            second.open()
        for number in range(4):
            exchange(second, number)
        compare(tmp_path, first.segments + second.segments, every)


def test_holes_where_times_go_backwards(tmp_path: Path) -> None:
    """Connections with holes are reviewed in the order in which they were before."""
    segments: list[Segment] = []
    for number, (seconds, has_hole) in enumerate([(20, 1), (0, 1), (12, 0), (12.5, 0)]):
        session = Session(client_end=("10.0.0.3", 1001 + number))
        session.now_ns += int(seconds * 1_000_000_000)
        exchange(session.open(), 0)
        if has_hole:
            session.client_seq += 50
            session.client(request(1, bytes(20)))
        segments += session.segments
    compare(tmp_path, segments, every)


@pytest.mark.parametrize("seed", range(8))
def test_damage(tmp_path: Path, seed: int) -> None:
    """Packets are lost, late, doubled or without an end to their connection."""
    random_ = random.Random(seed)
    sessions = [Session(client_end=("10.0.0.9", 50000 + number)) for number in range(3)]
    for number in range(12):
        for each in sessions:
            each.now_ns = max(other.now_ns for other in sessions)
            if not number and random_.random() < 0.7:
                each.open()
            exchange(each, number, size=random_.choice((10, 60)), mss=40)
    segments = sorted(
        (segment for each in sessions for segment in each.segments),
        key=lambda segment: segment.time_ns,
    )
    kept: list[Segment] = []
    for segment in segments:
        luck = random_.random()
        if luck > 0.02:
            kept += [segment] * (2 if luck < 0.05 else 1)
        if luck > 0.97:
            kept[-1:] = [kept[-1], *kept[-2:-1]] if segment.flags & PSH else kept[-1:]

    def some(places: list[int]) -> list[Stretch]:
        stretches = (sorted(random_.sample(places, 2)) for _ in range(120))
        return [(begin, end) for begin, end in stretches]

    compare(tmp_path, kept, some)
