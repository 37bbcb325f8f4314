"""Captures of several nodes: in the order of time, each frame once, on one clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.inspect.run.merged import MergedEndings, compare, merged, overlapping
from tests.support.captures.builder import MILLISECOND, Segment, Session, pcap_of, request, response
from tests.support.commands.run import run_decode

WAY = MILLISECOND // 2
CLIENT, SERVER, OTHER = ("10.0.0.1", 40000), ("10.0.0.2", 9092), ("10.0.0.3", 41000)


def _session(
    client: tuple[str, int], start: int, *, is_closed: bool = False
) -> list[Segment]:
    session = Session(client_end=client, server_end=SERVER).open()
    for number in range(20):
        session.client(request(start + number)).server(response(start + number, bytes(9)))
        session.now_ns += 30 * MILLISECOND
    return (session.close() if is_closed else session).segments


def _at(segments: list[Segment], end: tuple[str, int], skew_ns: int) -> list[Segment]:
    """A node's view: its own packets when it sends them, others after transit, by its clock."""
    return [
        replace(each, time_ns=each.time_ns + skew_ns + (0 if each.source == end else WAY))
        for each in segments
    ]


def _files(folder: Path, skew_ns: int, *, is_closed: bool = False) -> list[str]:
    """A client's capture, and its server's, which also has another client."""
    shared = _session(CLIENT, 0, is_closed=is_closed)
    alone = _session(OTHER, 500, is_closed=is_closed)
    of_server = sorted((*_at(shared, SERVER, skew_ns), *_at(alone, SERVER, skew_ns)), key=_time)
    client, server = folder / "client.pcap", folder / "server.pcap"
    client.write_bytes(pcap_of(_at(shared, CLIENT, 0)))
    server.write_bytes(pcap_of(of_server))
    return [str(client), str(server)]


def _time(segment: Segment) -> int:
    return segment.time_ns


@pytest.mark.parametrize("skew_ms", [0, 250, -40, 3])
def test_clocks_are_aligned_by_frames_that_both_saw(tmp_path: Path, skew_ms: int) -> None:
    """The transit time does not count as a difference of clocks."""
    paths = _files(tmp_path, skew_ms * MILLISECOND)
    clocks = compare(paths)
    assert clocks.offsets_ns == [0, -skew_ms * MILLISECOND]
    assert clocks.alone == []
    frames = list(merged([Capture(path) for path in paths], clocks))
    assert len(frames) == 80
    times = [each.time_ns for each in frames]
    assert times == sorted(times)
    assert {each.file for each in frames if each.connection.startswith(CLIENT[0])} == {paths[0]}


@pytest.mark.parametrize("skew_ms", [0, 250, -40])
def test_latencies_are_those_of_one_clock(tmp_path: Path, skew_ms: int) -> None:
    """A response answers as late as in its own capture, whatever is added to its time."""
    paths = _files(tmp_path, skew_ms * MILLISECOND)
    alone = {each.latency_ms for path in paths for each in Capture(path) if not each.is_request}
    frames = merged([Capture(path) for path in paths], compare(paths))
    assert {each.latency_ms for each in frames if not each.is_request} <= alone


@pytest.mark.parametrize("skew_ms", [0, 250, -40])
def test_ends_of_connections_are_on_the_same_clock(tmp_path: Path, skew_ms: int) -> None:
    """Each is told once, after the frames before it and before those after it."""
    paths = _files(tmp_path, skew_ms * MILLISECOND, is_closed=True)
    clocks = compare(paths)
    came: list[tuple[str, str, int]] = []
    endings = MergedEndings(clocks, lambda e: came.append(("end", e.connection, e.time_ns)))
    captures = [Capture(path, on_ending=endings.of(at)) for at, path in enumerate(paths)]
    for frame in merged(captures, clocks, endings):
        came.append(("frame", frame.connection, frame.time_ns))
    ends = [(connection, time) for kind, connection, time in came if kind == "end"]
    assert sorted(connection.partition(":")[0] for connection, _ in ends) == [
        CLIENT[0], OTHER[0],
    ]  # fmt: skip
    times = [time for _, _, time in came]
    assert times == sorted(times)
    last = max(time for kind, _, time in came if kind == "frame")
    assert all(0 < time - last < 100 * MILLISECOND for _, time in ends)


def test_captures_of_other_times_are_not_a_pair(tmp_path: Path) -> None:
    """They are read one after the other, as without merging."""
    first, late = tmp_path / "a.pcap", tmp_path / "late.pcap"
    segments = _session(CLIENT, 0)
    first.write_bytes(pcap_of(segments))
    late.write_bytes(pcap_of(replace(each, time_ns=each.time_ns + 10**12) for each in segments))
    assert overlapping([str(first), str(late)]) == []


def test_the_command_line_merges_and_reports_clocks(tmp_path: Path) -> None:
    """Lines are in order of time, and standard error reports how far a clock was off."""
    paths = _files(tmp_path, 250 * MILLISECOND)
    done = run_decode(*paths)
    assert "server.pcap: its clock is 250.000 ms ahead" in done.err
    lines = [line for line in done.out.splitlines() if not line.startswith("#")]
    assert len(lines) == 40
    assert [line[:15] for line in lines] == sorted(line[:15] for line in lines)
    apart = run_decode(*paths, "--no-merge")
    assert len([line for line in apart.out.splitlines() if not line.startswith("#")]) == 60


def test_a_capture_with_nothing_in_common_keeps_its_times(tmp_path: Path) -> None:
    """This is reported."""
    one, other = tmp_path / "one.pcap", tmp_path / "other.pcap"
    one.write_bytes(pcap_of(_session(CLIENT, 0)))
    other.write_bytes(pcap_of(_session(OTHER, 100)))
    clocks = compare([str(one), str(other)])
    assert (clocks.offsets_ns, clocks.alone, clocks.owner) == ([0, 0], [1], {})
    done = run_decode(str(one), str(other))
    assert "no frame in common" in done.err
    assert len([line for line in done.out.splitlines() if not line.startswith("#")]) == 40
