"""What people bring instead of a capture is named, with the way out."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.decode.files.foreign_formats import conversion_hint

KNOWN = {
    b"snoop\0\0\0\0\0\0\2": "editcap -F pcapng",
    b"GMBU\0\2\1\0": "editcap -F pcapng",
    b"\x34\xcd\xb2\xa1\2\0\4\0": "editcap -F pcapng",
    b"\0\0\1\0".ljust(72, b"\0") + b"\0\0\2\xc0" + bytes(100): "etl2pcapng",
    b"PK\5\6".ljust(22, b"\0"): "zip archive without files",
    b'{"index":{"_index":"packets-2026-11-01","_type":"doc"}}': "tshark -w",
    b'[\n  {\n    "_index": "packets-2026-11-01",\n': "tshark -w",
    '[\n  {\n    "_index": "packets-2026-11-01",'.encode("utf-16"): "tshark -w",
    b'<?xml version="1.0"?>\n<?xml-stylesheet?>\n<pdml version="0">': "tshark -w",
    b"0000  02 00 00 00 00 01 02 00  ........\n": "text2pcap",
    b"Frame 1: 74 bytes on wire (592 bits)": "tshark -w",
    b"    1\t0.000000\t127.0.0.1\t\xe2\x86\x92\t127.0.0.1\tTCP": "tshark -w",
    b"    1   0.000000    127.0.0.1 \xe2\x86\x92 127.0.0.1    TCP 74": "tshark -w",
    b"frame.number\tip.src\n1\t127.0.0.1\n": "tshark -w",
    b'"frame.number","ip.src"\n"1","127.0.0.1"\n': "tshark -w",
    b'"No.","Time","Source","Destination","Protocol","Length","Info"\n': "tshark -w",
    b"No.     Time           Source                Destination": "tshark -w",
    b"/* Frame (74 bytes) */\nstatic const unsigned char pkt1[74] = {": "tshark -w",
    b"=" * 67 + b"\nFollow: tcp,ascii\n": "tshark -w",
    b"12:00:01.123456 IP 10.0.0.1.40000 > 10.0.0.2.9092: Flags [S]": "tcpdump -w",
    b"12:00:01.123456 eth0  In  IP 10.0.0.1.40000 > 10.0.0.2.9092:": "tcpdump -w",
    b"1760000000.123456 IP 10.0.0.1.40000 > 10.0.0.2.9092: Flags [S]": "tcpdump -w",
    b" 00:00:00.000000 IP6 fd00::1.40000 > fd00::2.9092: Flags [S]": "tcpdump -w",
    b"12:00:01.123456 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype": "tcpdump -w",
    b"IP 10.0.0.1.40000 > 10.0.0.2.9092: Flags [S]": "tcpdump -w",
    b"TRSNIFF data    \x1a": "if it is a capture, convert it with editcap",
}


@pytest.mark.parametrize("head", KNOWN, ids=lambda head: head[:12].hex())
def test_the_way_out_is_named(
    head: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rather than sixteen bytes of hex."""
    path = tmp_path / "x"
    path.write_bytes(head.ljust(600, b" "))
    assert main(["decode", str(path)]) == 1
    assert KNOWN[head] in capsys.readouterr().err


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_what_is_compressed_twice_is_named(
    pack: Callable[[bytes], bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Archives of archives come from ticket systems."""
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(pack(b"x" * 100)))
    assert main(["decode", str(path)]) == 1
    assert "compressed twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    "head",
    [
        b"", b"hello", b"tcp.sh", b"%!PS", b"{}", b"[]", b"0000", bytes(200), b"\xff" * 200,
        b"IP is good", b"\xff\xfea", b"12:00 IP", b"00:00:00:00:00:00:00:00:00",
    ],
)
def test_other_bytes_are_not_guessed(head: bytes) -> None:
    """A wrong guess sends people the wrong way."""
    assert conversion_hint(head) is None


@pytest.mark.parametrize(
    "text", [b"broker.id=0\nlog.dirs=/x\n", b"node.id=1\nssl.key.password=x\n"]
)
def test_a_configuration_is_no_damaged_state_file(
    text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People put server.properties beside the data; its secrets are not shown."""
    (tmp_path / "server.properties").write_bytes(text)
    (tmp_path / "recovery-point-offset-checkpoint").touch()
    assert main(["decode", str(tmp_path)]) == 0
    err = capsys.readouterr().err
    assert "a configuration: there is nothing to decode in it" in err
    assert "unreadable-state" not in err
    assert "password" not in err


def test_a_copy_of_meta_properties_is_known_by_its_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever somebody called it."""
    (tmp_path / "meta.copy").write_text("#\n#date\nnode.id=1\nversion=1\ncluster.id=abc\n")
    assert main(["decode", str(tmp_path / "meta.copy")]) == 0
    assert '"cluster.id"' in capsys.readouterr().out
