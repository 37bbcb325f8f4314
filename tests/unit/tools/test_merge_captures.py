"""Merging the captures that nodes record themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.protocol.pcapng import TcpConnection, capture_start
from tools.merge_captures import main, merge

NODES = (("127.0.0.1", 9001), ("127.0.0.1", 9002))


def record(folder: Path, number: int, connections: list[tuple[int, int, int]]) -> Path:
    """A node's capture of connections, each (time, client port, server's place in NODES)."""
    blocks = [capture_start()]
    for time_ns, port, server in connections:
        connection = TcpConnection(("127.0.0.1", port), NODES[server])
        blocks += [
            connection.open(time_ns),
            connection.send(time_ns + 1, b"x" * 8, from_client=True),
            connection.close(time_ns + 2, from_client=True),
        ]
    path = folder / f"node{number}.pcapng"
    path.write_bytes(b"".join(blocks))
    return path


def times(path: Path) -> list[int]:
    """When the packets of a capture were seen."""
    with CaptureSource(str(path)) as source:
        return [packet[0] for packet in read_packets(source, Health())]


def test_a_connection_between_two_nodes_appears_once(tmp_path: Path) -> None:
    """Both ends record it; twice in one capture it would look like another connection."""
    first = record(tmp_path, 1, [(2_000, 50001, 1), (5_000, 50002, 0), (6_000, 50003, 0)])
    second = record(tmp_path, 2, [(2_100, 50001, 1), (7_000, 50004, 1), (5_100, 50002, 0)])
    out = tmp_path / "whole.pcap"
    count = merge([first, second], out)
    found = times(out)
    assert len(found) == count
    assert found == sorted(found)
    seen = {time // 1000 for time in found}
    assert seen == {2, 5, 6, 7}
    assert 2_000 not in found
    assert 2_100 in found, "the capture of the node that accepted"


def test_a_missing_file_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback for a mistyped name."""
    assert main([str(tmp_path / "out"), str(tmp_path / "absent")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
