"""Tables of captures whose packets are in tunnels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.capture.capture import Capture
from kraftwire.spark.captures import decode_tables
from kraftwire.spark.run.conservation import unbalanced
from kraftwire.spark.tables.files import FileBytes
from tests.support.captures.builder import ethernet, ip_packet, pcap
from tests.unit.capture.test_wrappings import CLOSED, WRAPPINGS, _segments, _with_timestamp


@pytest.mark.parametrize("name", ["vxlan", "gre with frames", "mpls", "pktap"])
def test_exchanges_in_wrappings_are_rows(tmp_path: Path, name: str) -> None:
    """The index and the decoder both look inside."""
    link, wrap, _ = WRAPPINGS[name]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(s.time_ns, wrap(ip_packet(s))) for s in _segments()], link=link))
    tables = decode_tables(str(path), tables=("exchanges", "bad_input"))
    (row,) = tables["exchanges"].to_pylist()
    assert (row["client"], row["server"]) == ("10.0.0.1:40000", "10.0.0.2:9092")
    assert "unopened-packets" not in tables["bad_input"]["id"].to_pylist()


def test_what_cannot_be_opened_is_bad_input(tmp_path: Path) -> None:
    """A report must not end with "nothing stands out" when nothing was understood."""
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(1, CLOSED["MACsec"])] * 271))
    (row,) = decode_tables(str(path), tables=("bad_input",))["bad_input"].to_pylist()
    assert row["id"] == "unopened-packets"
    assert row["detail"] == "271 packets inside MACsec, which is not opened"


def test_what_is_inside_and_outside_of_a_tunnel_counts_once(tmp_path: Path) -> None:
    """A mirror of an overlay network shows both."""
    _, wrap, _ = WRAPPINGS["vxlan"]
    packets = []
    for segment in _segments():
        inner = ip_packet(segment)
        packets += [(segment.time_ns, wrap(inner)), (segment.time_ns + 1, ethernet(inner))]
    file = _once(tmp_path, packets)
    with_payload = sum(bool(segment.payload) for segment in _segments())
    assert file["copied_packets"] >= with_payload
    assert file["translated_connections"] == 0


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_before_and_after_address_translation_counts_once(
    tmp_path: Path, count: int
) -> None:
    """The address of a service, and the one of the pod behind it; also in a rotated recording."""
    packets = []
    for at, segment in enumerate(_segments()):
        for shift, server in enumerate(("10.0.0.2", "10.9.9.9")):
            packet = ethernet(_with_timestamp(segment, server, 70 + at))
            packets.append((segment.time_ns + shift, packet))
    file = _once(tmp_path, packets, files=count)
    assert file["translated_connections"] == 1


def _once(
    folder: Path, packets: list[tuple[int, bytes]], files: int = 1
) -> dict[str, Any]:
    """Check that a recording has one connection and exchange; return the row of its first file."""
    share = len(packets) // files
    paths = [folder / f"{at}.pcap" for at in range(files)]
    for at, path in enumerate(paths):
        path.write_bytes(pcap(packets[at * share : (at + 1) * share if at < files - 1 else None]))
    tables = decode_tables(paths)
    assert tables["exchanges"].num_rows == tables["connections"].num_rows == 1
    assert tables["frames"].num_rows == 2
    rows = tables["files"].to_pylist()
    assert not any(unbalanced(FileBytes(**row)) for row in rows)
    capture = Capture(*map(str, paths))
    assert sum(1 for _ in capture) == 2
    health = capture.health
    assert sum(row["copied_packets"] for row in rows) == health.copies
    assert sum(row["translated_connections"] for row in rows) == health.translated_connections
    assert sum(row["duplicate_bytes"] for row in rows) == health.bytes.duplicates
    return dict(rows[0])
