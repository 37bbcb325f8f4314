"""Options in groups, and a client id that is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.cli.main import main
from tests.support.captures.builder import Session, ethernet, ip_packet, pcap, request, response

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", [["decode"], ["stats"], ["records"], ["story", "raft"]])
def test_options_stand_below_what_they_are_for(command: list[str], capsys: Captured) -> None:
    """Three dozen in a row are read by nobody."""
    assert main([*command, "--help"]) == 0
    text = capsys.readouterr().out
    filters = text.partition("Filters:")[2].partition("\n\n")[0]
    assert "--api NAME" in filters
    assert "--topic NAME" in filters
    assert "--quiet" not in filters
    assert "FILE..." not in text.partition("Options:")[2]
    every = [line.split()[0] for line in text.splitlines() if line.startswith("  -")]
    assert len(every) == len(set(every))


@pytest.mark.parametrize(
    ("option", "count"), [("", 1), ("tester", 1), (",tester", 1), ("!tester", 1)]
)
def test_a_client_without_an_id_can_be_selected(
    option: str, count: int, tmp_path: Path, capsys: Captured
) -> None:
    """An empty client id is a legal value, and many scripts have none."""
    packets = []
    for port, client in ((40000, "tester"), (40001, "")):
        session = Session(client_end=("10.0.0.1", port)).open()
        session.client(request(1, bytes(4), client_id=client)).server(response(1, bytes(8)))
        packets += [(s.time_ns, ethernet(ip_packet(s))) for s in session.segments]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(packets))
    main(["decode", str(path), "--client-id", option, "-q"])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert len(lines) == count
