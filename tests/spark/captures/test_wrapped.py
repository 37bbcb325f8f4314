"""Tables of captures whose packets are in tunnels."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.captures import decode_tables
from tests.support.pcap_builder import ip_packet, pcap
from tests.unit.capture.test_wrappings import CLOSED, WRAPPINGS, _segments


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
