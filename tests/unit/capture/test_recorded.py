"""What a capture recorded is known by its packets, in both ways of reading."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from kraftwire import engine
from kraftwire.capture.capture import Capture
from kraftwire.capture.packets.series import in_time_order
from kraftwire.capture.recorded import (
    HOLE_S,
    HOST_PAIRS_MAX,
    PAUSE_NS,
    STRETCHES_MAX,
    Recorded,
    Recordings,
    host_pair,
)
from kraftwire.spark.captures.packet_index import index_capture
from tests.support.captures.builder import START_NS, Session, pcap_of, request
from tests.support.captures.decoded import rotated

SECOND = 1_000_000_000
START = START_NS / SECOND


def _recorded(*seconds: float, pair: tuple[str, str] = ("a", "b")) -> Recorded:
    made = Recorded(pairs={pair})
    for each in seconds:
        made.note(round((START + each) * SECOND))
    return made


def _parts(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(round(a - START, 3), round(b - START, 3)) for a, b in spans]


@pytest.mark.parametrize("seed", range(20))
def test_stretches_are_those_of_the_sorted_times(seed: int) -> None:
    """Packets of several network cards and of merged files do not come in order."""
    chance = random.Random(seed)
    times = [START_NS + chance.randrange(60 * SECOND) for _ in range(chance.randrange(1, 120))]
    made = Recorded()
    for time in times:
        made.note(time)
    ordered = sorted(times)
    cuts = [at for at, (a, b) in enumerate(pairwise(ordered), 1) if b - a > PAUSE_NS]
    parts = [ordered[a:b] for a, b in pairwise([0, *cuts, len(ordered)])]
    assert made.stretches == [[part[0], part[-1]] for part in parts]


def test_a_run_of_packets_counts_as_each_of_them() -> None:
    """The engine gives only the first and the last time of many."""
    made = _recorded(0, 9, 20)
    made.note_run(START_NS + 2 * SECOND, START_NS + 12 * SECOND)
    made.note(START_NS + 12 * SECOND + PAUSE_NS)
    assert [(a - START_NS, b - START_NS) for a, b in made.stretches] == [
        (0, 0), (2 * SECOND, 12 * SECOND + PAUSE_NS), (20 * SECOND, 20 * SECOND),
    ]


def test_memory_does_not_grow_with_the_pauses() -> None:
    """A capture of a year with a packet a minute has half a million."""
    made = Recorded()
    for at in range(3 * STRETCHES_MAX):
        made.note(at * SECOND)
    assert len(made.stretches) <= STRETCHES_MAX
    assert (made.stretches[0][0], made.stretches[-1][1]) == (0, (3 * STRETCHES_MAX - 1) * SECOND)
    for at in range(HOST_PAIRS_MAX + 5):
        made.meet(f"10.0.{at // 256}.{at % 256}:1-[::1]:9092")
    assert len(made.pairs) == HOST_PAIRS_MAX


@pytest.mark.parametrize("is_pure", [True, False])
def test_a_capture_notes_pauses_and_hosts(
    is_pure: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both engines, and the index of the pipeline, must see the same."""
    if is_pure:
        monkeypatch.setattr(engine, "core", None)
    session = Session().open()
    for at in range(8):
        session.client(request(at)).server(b"")
        session.now_ns += SECOND if at in (2, 5) else SECOND // 2
    path = tmp_path / "pauses.pcap"
    path.write_bytes(pcap_of(session.segments))
    capture = Capture(str(path))
    assert list(capture)
    recorded = capture.health.recorded
    times = [segment.time_ns for segment in session.segments]
    assert recorded.stretches[0][0] == times[0]
    assert recorded.stretches[-1][1] == times[-1]
    assert len(recorded.stretches) == 3
    assert recorded.pairs == {("10.0.0.1", "10.0.0.2")}
    assert index_capture(path).recorded.stretches == recorded.stretches


def test_rotated_files_are_one_recording(tmp_path: Path) -> None:
    """No time is lost where one file ends and the next begins."""
    files = [str(each) for each in rotated(tmp_path, 4)]
    whole = Capture(*in_time_order(rotated(tmp_path / "one", 1)))
    parts = Capture(*in_time_order(files))
    assert list(whole)
    assert list(parts)
    assert parts.health.recorded.stretches == whole.health.recorded.stretches


def test_only_recordings_that_show_two_hosts_speak_about_them() -> None:
    """A capture with a filter, or at another host, runs on and proves nothing."""
    ours = _recorded(*[at / 2 for at in range(21)])
    others = _recorded(*[at / 2 for at in range(61)], pair=("a", "c"))
    both = Recordings([ours, others])
    end = START + 30
    assert both.pauses(START, end) == []
    assert _parts(both.pauses(START, end, ("a", "b"))) == [(10, 30)]
    assert both.until(START, end, ("a", "b")) == START + 10
    assert both.until(START, end, ("a", "c")) == end
    assert both.shows(("a", "b"), START + 10)
    assert not both.shows(("a", "b"), START + 10.1)
    assert not both.shows(("b", "c"), START + 1)
    assert _parts(both.pauses(START, end, ("b", "c"))) == [(0, 30)]


def test_a_short_pause_is_waited_through_and_a_long_one_is_a_hole() -> None:
    """Two seconds pass until followers give up a leader; two days are no silence."""
    all_of_it = Recordings([_recorded(0, 0.5, 2.5, 3, 3 + HOLE_S + 1, 8.5)])
    end = START + 8.5
    assert _parts(all_of_it.pauses(START, end)) == [(0.5, 2.5), (3, 8)]
    assert _parts(all_of_it.holes(START, end)) == [(3, 8)]
    assert all_of_it.until(START, end) == START + 3
    assert round(all_of_it.seconds(START, end), 3) == 3.5
    # Where it ends nothing is waited for.
    assert all_of_it.until(START + 8, START + 10) == START + 8.5


def test_a_clock_that_differs_is_taken_into_account() -> None:
    """Captures of two hosts are merged by one clock."""
    late = _recorded(0, 0.5)
    late.offset_ns = 10 * SECOND
    assert _parts(Recordings([late]).pauses(START, START + 12)) == [(0, 10), (10.5, 12)]
    assert Recordings([late]).shows(("a", "b"), START + 10.2)


def test_the_hosts_of_a_connection_have_no_order() -> None:
    """Either of two nodes may open a connection to the other."""
    assert host_pair("[fe80::1]:4-10.0.0.9:9092") == host_pair("10.0.0.9:5-[fe80::1]:9093")
