"""Large captures made of small ones: copies take as much work as a recording."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.protocol.pcapng import TcpConnection, capture_start
from tests.support.captures.decoded import decode, golden
from tools.repeat_capture import main, repeat

SERVER = ("10.1.2.3", 9092)


def recording(folder: Path) -> Path:
    """Two connections of a client within a second."""
    blocks = [capture_start()]
    for time_ns, port in ((1_000_000_000, 40001), (1_500_000_000, 60999)):
        connection = TcpConnection(("10.1.2.4", port), SERVER)
        blocks += [
            connection.open(time_ns),
            connection.send(time_ns + 1, b"\xff\xfe" * 1001 + b"x", from_client=True),
            connection.close(time_ns + 500_000_000, from_client=True),
        ]
    path = folder / "one.pcapng"
    path.write_bytes(b"".join(blocks))
    return path


def packets(path: Path) -> list[tuple[int, bytes]]:
    """Times and bytes of a capture's packets."""
    with CaptureSource(str(path)) as source:
        found = read_packets(source, Health())
        return [(time, bytes(data[at : at + size])) for time, _, data, at, size, *_ in found]


def words(data: bytes) -> int:
    """The one's complement sum of bytes, which a right checksum makes 0 or 65535."""
    data += bytes(len(data) % 2)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    return total % 0xFFFF


def test_copies_have_their_own_ends_and_right_checksums(tmp_path: Path) -> None:
    """A server keeps its port; every packet's checksums hold."""
    one, out = recording(tmp_path), tmp_path / "many.pcap"
    count = repeat(one, out, 300 * one.stat().st_size)
    assert count >= 300
    clients = set()
    for _, data in packets(out):
        size = len(data) - 34
        assert words(data[14:34]) == 0
        assert words(data[26:34] + struct.pack(">HHI", 0, 6, size) + data[34:]) == 0
        ends = {(data[26:30], data[34:36]), (data[30:34], data[36:38])}
        (client,) = (each for each in ends if int.from_bytes(each[1]) != SERVER[1])
        clients.add((frozenset(ends), client[1]))
    assert len(clients) == 2 * count


def test_copies_overlap_in_the_order_of_time(tmp_path: Path) -> None:
    """Traffic of several copies is interleaved, as on a network with many clients."""
    one, out = recording(tmp_path), tmp_path / "four.pcap"
    repeat(one, out, 4 * one.stat().st_size, overlap=2)
    found = packets(out)
    times = [time for time, _ in found]
    assert times == sorted(times)
    networks = [data[28] for _, data in found]
    assert networks != sorted(networks)
    assert sorted(set(networks)) == list(range(2, 2 + len(set(networks))))


def test_copies_take_as_much_work_as_the_recording(tmp_path: Path) -> None:
    """Copies that merged into one connection would be retransmissions, and cost nothing."""
    one, out = golden("quorum"), tmp_path / "three.pcap"
    count = repeat(one, out, 1_000_000)
    small, large = decode(one).lines, decode(out).lines
    assert count > 1
    assert len(large) == count * len(small)
    assert sum(line["size"] for line in large) == count * sum(line["size"] for line in small)


def test_a_capture_without_tcp_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, no traceback."""
    path = tmp_path / "empty.pcapng"
    path.write_bytes(capture_start())
    assert main([str(path), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
