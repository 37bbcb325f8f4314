"""Captures whose packets are not in the order of time: merged files, directions recorded apart."""

from __future__ import annotations

import lzma
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.packets import time_order
from kraftwire.capture.packets.time_order import begins_in_order
from kraftwire.decode.exchange import exchanges
from tests.engine.captures import same_frames
from tests.support.captures.builder import (
    START_NS,
    Segment,
    Session,
    decode_segments,
    request,
    response,
)
from tests.support.captures.decoded import Decoded, decode, golden

_HEAD, _SERVER = 24, 23010
_NS = 1_000_000_000
# Time, whether it is a server's, record.
_Record = tuple[int, bool, bytes]


def _records() -> tuple[bytes, list[_Record]]:
    """The header of a recording on a loopback, and its packets."""
    data = lzma.decompress(golden("clients").read_bytes())
    at, found = _HEAD, []
    while at < len(data):
        seconds, fraction, size, _ = struct.unpack_from("<IIII", data, at)
        record = data[at : at + 16 + size]
        (source,) = struct.unpack_from(">H", record, 16 + 14 + 20)
        found.append((seconds * _NS + fraction * 1000, source == _SERVER, record))
        at += 16 + size
    return data[:_HEAD], found


def _late(is_server: bool, lag_ns: float) -> Callable[[_Record], float]:
    return lambda each: each[0] + (lag_ns if each[1] == is_server else 0)


def _write(path: Path, records: list[_Record]) -> Path:
    path.write_bytes(_records()[0] + b"".join(record for _, _, record in records))
    return path


def _in_order(folder: Path) -> Decoded:
    return decode(_write(folder / "a.pcap", _records()[1]))


@pytest.mark.parametrize("lag_ns", [10**7, 10**9, 10**12])
@pytest.mark.parametrize("is_server", [False, True])
def test_a_direction_that_is_behind_is_sorted(
    tmp_path: Path, is_server: bool, lag_ns: int
) -> None:
    """By some packets, or as a whole, as where two files were appended: every line is the same."""
    right = _in_order(tmp_path)
    path = _write(tmp_path / "a.pcap", sorted(_records()[1], key=_late(is_server, lag_ns)))
    assert not begins_in_order(str(path))
    found = decode(path)
    assert found.text == right.text
    (health,) = found.totals.captures.values()
    assert health.sorted_packets > 0
    assert (health.late_packets, health.disorder) == (0, "")
    for frame in Capture(path):
        packet = path.read_bytes()[frame.position + 16 : frame.end_position]
        assert frame.missing or len(frame.data) > 1448 or frame.data[:8] in packet


@pytest.mark.parametrize("distance", [15, 40, 100, 1000])
def test_packets_in_any_order_within_the_window_are_sorted(tmp_path: Path, distance: int) -> None:
    """Also within a direction: an acknowledgement may come after the bytes that followed it."""
    right = _in_order(tmp_path)
    chance = random.Random(5)
    places = sorted(
        (at + chance.random() * distance, each) for at, each in enumerate(_records()[1])
    )
    found = decode(_write(tmp_path / "a.pcap", [each for _, each in places]))
    assert found.text == right.text


def test_both_engines_agree_where_time_goes_back() -> None:
    """In a stream, where only what has come so far can be sorted."""
    header, records = _records()
    for key in (_late(False, 10**7), _late(True, 10**8), lambda each: -each[0] // 10**8):
        mixed = sorted(records, key=key)
        pieces = [b"".join(record for _, _, record in mixed[at : at + 40])
                  for at in range(0, len(mixed), 40)]
        same_frames(header, *pieces)


@pytest.mark.parametrize(("limit", "size"), [("WINDOW_BYTES", 3_000), ("WINDOW_PACKETS", 20)])
def test_what_comes_too_late_is_named_with_a_way_out(
    limit: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, not for each packet; the rest of the file is read as fast as ever."""
    monkeypatch.setattr(time_order, limit, size)
    path = _write(tmp_path / "a.pcap", sorted(_records()[1], key=_late(True, 10**12)))
    (health,) = decode(path).totals.captures.values()
    assert health.late_packets > 10
    assert "reordercap" in health.disorder
    assert f"{health.late_packets} packets up to 296.6" in health.disorder


@pytest.mark.parametrize("back_ns", [2 * 10**6, 5 * _NS, 10**13])
def test_a_clock_that_is_set_back_mixes_nothing(tmp_path: Path, back_ns: int) -> None:
    """The order of the file is right there: a direction goes on at an earlier time."""
    records = []
    for at, (time_ns, is_server, record) in enumerate(_records()[1]):
        shown_ns = time_ns - (back_ns if at > 60 else 0)
        stamp = struct.pack("<II", shown_ns // _NS, shown_ns % _NS // 1000)
        records.append((shown_ns, is_server, stamp + record[8:]))
    found = list(exchanges(Capture(_write(tmp_path / "a.pcap", records))))
    assert len(found) == len(list(exchanges(Capture(golden("clients")))))
    assert all(each.request and each.response for each in found)


@pytest.mark.parametrize("back_ns", [0, 2 * 10**6, 5 * _NS])
def test_a_port_that_is_opened_again_at_earlier_times_is_not_mixed(
    tmp_path: Path, back_ns: int
) -> None:
    """Nothing of the second connection belongs to the first, though their numbers are alike."""
    segments: list[Segment] = []
    for number in (1, 2, 3):
        session = Session(now_ns=START_NS - number * back_ns).open().client(request(number))
        segments += session.server(response(number)).close().segments
    frames, capture = decode_segments(tmp_path, segments)
    assert [frame.correlation_id for frame in frames] == [1, 1, 2, 2, 3, 3]
    assert not any(frame.packet_findings for frame in frames)
    assert (capture.health.connections, capture.health.conflicts) == (3, 0)


def test_the_usual_jitter_is_left_to_the_engine(tmp_path: Path) -> None:
    """Queues of a network card confuse packets by microseconds."""
    records = _records()[1]
    for at in range(0, len(records) - 1, 7):
        if records[at + 1][0] - records[at][0] < time_order.DISORDER_NS:
            records[at : at + 2] = records[at + 1], records[at]
    path = _write(tmp_path / "a.pcap", records)
    capture = Capture(path)
    assert len(list(capture)) == 2 * 76
    assert capture.health.sorted_packets == 0
    assert capture._in_order is None or capture._in_order.payload > 0
