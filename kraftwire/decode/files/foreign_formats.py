"""Files that hold packets or Kafka's files in a form that is not read here, and the way out.

Owns what people bring instead of a capture: other tools' captures, what tshark and tcpdump print,
archives.
"""

from __future__ import annotations

import re

_EDITCAP = "convert it with editcap -F pcapng IN OUT"
_UNPACK = "unpack it, and decode the files in it"
_PRINTED = (
    "without all bytes of the packets: write these with tshark -w FILE, or tcpdump -w FILE"
)

_MAGICS: tuple[tuple[bytes, str], ...] = (
    (b"snoop\0\0\0", f"a capture of snoop: {_EDITCAP}"),
    (b"GMBU", f"a capture of Network Monitor: {_EDITCAP}"),
    (b"RTSS", f"a capture of Network Monitor: {_EDITCAP}"),
    (b"\x34\xcd\xb2\xa1", f"a capture in the modified format of pcap: {_EDITCAP}"),
    (b"\xa1\xb2\xcd\x34", f"a capture in the modified format of pcap: {_EDITCAP}"),
    (b"XCP\0", f"a capture of NetXRay: {_EDITCAP}"),
    (b"TRSNIFF data    \x1a", f"a capture of Sniffer: {_EDITCAP}"),
    (b"iptrace ", f"a capture of iptrace: {_EDITCAP}"),
    (b"TR\0d\0\0\0\0", f"a capture of nettl: {_EDITCAP}"),
    (b"\x05VNF", f"a capture of Visual Networks: {_EDITCAP}"),
    (b"\xaa\xaa\xaa\xaa", f"a capture of 5Views: {_EDITCAP}"),
    (b"+---------+---------------+", f"a capture of K12 as text: {_EDITCAP}"),
    (b"PK\5\6", "a zip archive without files"),
    (b"7z\xbc\xaf\x27\x1c", f"a 7z archive: {_UNPACK}"),
    (b"Rar!\x1a\x07", f"a rar archive: {_UNPACK}"),
    (b"\x04\x22\x4d\x18", f"compressed by lz4: {_UNPACK}"),
    (b"\x5d\0\0", f"compressed by lzma: {_UNPACK}"),
    (b"\x1f\x9d", f"compressed by compress: {_UNPACK}"),
)
_TEXTS: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (rb"\s*\{\s*\"index\"\s*:\s*\{\s*\"_index\"", f"what tshark -T ek prints, {_PRINTED}"),
        (rb"\s*\[\s*\{\s*\"_index\"\s*:\s*\"packets-", f"what tshark -T json prints, {_PRINTED}"),
        (rb"\s*<\?xml.{0,300}<pdml\b", f"what tshark -T pdml prints, {_PRINTED}"),
        (rb"\s*<\?xml.{0,300}<psml\b", f"what tshark -T psml prints, {_PRINTED}"),
        (rb"%!.{0,200}Wireshark", f"what tshark -T ps prints, {_PRINTED}"),
        (rb"(?:frame|eth|ip|ipv6|tcp)\.[\w.]+[\t,\n]", f"what tshark -T fields prints, {_PRINTED}"),
        (rb"\"No\.\",\"Time\",", f"the list of packets as Wireshark exports it, {_PRINTED}"),
        (
            rb"\s*[0-9a-f]{4,8}:?  (?:[0-9a-f]{2} ?){4}",
            "a hex dump of packets: text2pcap makes a capture of what tshark -x prints",
        ),
        (
            rb"[0-9a-f]{8}: (?:[0-9a-f]{4} ){4}",
            "a hex dump of a file: xxd -r makes the file of what xxd prints",
        ),
        (rb"Frame \d+: \d+ bytes on wire", f"what tshark -V prints, {_PRINTED}"),
        (
            rb" *\d+\s+\d+\.\d+\s+\S+\s+(?:\xe2\x86\x92|->)\s+\S+",
            f"the list of packets that tshark prints, {_PRINTED}",
        ),
        (
            rb"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d+ (?:\S+ +(?:In|Out) +)?IP6? ",
            f"the list of packets that tcpdump prints, {_PRINTED}",
        ),
    )
)
# A file of Windows' event tracing begins with the size of its buffers; after the header of the
# first one, of 72 bytes, come a version, the kind of a system header, and a mark.
_ETL_HEADER = slice(74, 76)
_ETL_MARKS = (b"\1\xc0", b"\2\xc0")
_ETL_UNIT = 1024


def conversion_hint(head: bytes, name: str = "") -> str | None:
    """Return what a file is and how to convert it, by first bytes and name; None if unknown."""
    for magic, text in _MAGICS:
        if head.startswith(magic):
            return text
    if head[_ETL_HEADER] in _ETL_MARKS and int.from_bytes(head[:4], "little") % _ETL_UNIT == 0:
        return "a trace of Windows (ETL): convert it with etl2pcapng IN OUT"
    if name.endswith(".properties"):
        return "a configuration: there is nothing to decode in it"
    return next((text for pattern, text in _TEXTS if pattern.match(head)), None)
