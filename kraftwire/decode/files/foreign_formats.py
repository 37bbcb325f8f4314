"""Files that hold packets or Kafka's files in a form that is not read here, and the way out.

Owns what people bring instead of a capture: other tools' captures, what tshark and tcpdump print,
archives.
"""

from __future__ import annotations

import re
import struct

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
    (b"ObserverPktBufferVersion=", f"a capture of Observer: {_EDITCAP}"),
    (b"\x01\x10\x4c\x00\x01\x05Trace Display", f"a capture of LANalyzer: {_EDITCAP}"),
    (b"\x07\x10\x4c\x00\x01\x05Trace Display", f"a capture of LANalyzer: {_EDITCAP}"),
    (b"PK\5\6", "a zip archive without files"),
    (b"7z\xbc\xaf\x27\x1c", f"a 7z archive: {_UNPACK}"),
    (b"Rar!\x1a\x07", f"a rar archive: {_UNPACK}"),
    (b"\x04\x22\x4d\x18", f"compressed by lz4: {_UNPACK}"),
    (b"\x02\x21\x4c\x18", f"compressed by lz4: {_UNPACK}"),
    (b"\xff\x06\0\0sNaPpY", f"compressed by snappy: {_UNPACK}"),
    (b"LZIP\1", f"compressed by lzip: {_UNPACK}"),
    (b"\x89LZO\0\r\n\x1a\n", f"compressed by lzop: {_UNPACK}"),
    (b"MSCF\0\0\0\0", f"a cabinet archive: {_UNPACK}"),
    (b"070701", f"a cpio archive: {_UNPACK}"),
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
        (
            rb"\"?(?:frame|eth|ip|ipv6|tcp|kafka)\.[\w.]+\"?[\t,;|\r\n]",
            f"what tshark -T fields prints, {_PRINTED}",
        ),
        (
            rb"(?:\"No\.\",\"Time\",|No\.\s+Time\s+Source\s)",
            f"the list of packets as Wireshark exports it, {_PRINTED}",
        ),
        (
            rb"(?:/\* Frame \(\d+ bytes\) \*/|char peer\d+_\d+\[\])",
            f"arrays of C as Wireshark exports them, {_PRINTED}",
        ),
        (
            rb".{0,64}Net[Ss]caler (?:V\d\d )?Performance Data",
            f"a trace of NetScaler: {_EDITCAP}",
        ),
        (
            # The lengths of a packet, then its date and time.
            rb".{4}\x00?[\xb2-\xff]\x07[\x01-\x0c][\x01-\x1f][\x00-\x17][\x00-\x3b]{2}",
            f"a capture of CommView: {_EDITCAP}",
        ),
        (rb"=+\r?\nFollow: ", f"a stream as Wireshark follows it, {_PRINTED}"),
        (
            rb"(?:1MOyoQ|obLD1A|TTyyoQ|obI8TQ|Cg0NC|H4sI)[A-Za-z0-9+/]{20}",
            "a capture in base64: base64 -d makes the file of it",
        ),
        (
            rb"0{4,8} {1,2}(?:d4 ?c3 b2 ?a1|a1 ?b2 c3 ?d4|0a ?0d 0d ?0a|c3d4 a1b2|0d0a 0a0d) ",
            "a hex dump of a capture, not of its packets: bring the file itself",
        ),
        (
            rb"\s*[0-9a-f]{4,8}:?  (?:[0-9a-f]{2} ?){4}",
            "a hex dump of packets: text2pcap makes a capture of what tshark -x prints",
        ),
        (
            rb"[0-9a-f]{8}: (?:[0-9a-f]{2,4} ){4}",
            "a hex dump of a file: xxd -r makes the file of what xxd prints",
        ),
        (rb"Frame \d+: \d+ bytes on wire", f"what tshark -V prints, {_PRINTED}"),
        (
            rb" *\d+\s+\d+\.\d+\s+\S+\s+(?:\xe2\x86\x92|->)\s+\S+",
            f"the list of packets that tshark prints, {_PRINTED}",
        ),
        (
            rb"\s*(?:\d{4}-\d\d-\d\d )?(?:[\d:]+\.\d+ )?(?:\S+ +(?:In|Out) +)?"
            rb"(?:[0-9a-f:]{17} (?:\(oui \w+\) )?> [0-9a-f:]{17}[ ,]|IP6? (?:\(|\S+ > ))",
            f"the list of packets that tcpdump prints, {_PRINTED}",
        ),
        (rb"interface: \S+ \([\d./]+\)\r?\n", f"what ngrep prints, {_PRINTED}"),
        (
            rb"Dumping \S+\.(?:log|checkpoint|index|timeindex|txnindex|snapshot)\s",
            "what kafka-dump-log prints: decode the file that it names",
        ),
    )
)
# A file of Windows' event tracing begins with the size of its buffers; after the header of the
# first one, of 72 bytes, come a version, the kind of a system header, and a mark.
_ETL_HEADER = slice(74, 76)
_ETL_MARKS = (b"\1\xc0", b"\2\xc0")
_ETL_UNIT = 1024
# A record of ERF begins with its time, its kind, flags, its length, a count of losses and the
# length of the packet.
_ERF = struct.Struct(">8xBBHHH")
_ERF_KIND_MAX, _ERF_UNIT = 48, 8
_ERF_WIRE_MAX = 9_600
_UTF_16, _UTF_8 = (b"\xff\xfe", b"\xfe\xff"), b"\xef\xbb\xbf"


def conversion_hint(head: bytes, name: str = "") -> str | None:
    """Return what a file is and how to convert it, by first bytes and name; None if unknown."""
    for magic, text in _MAGICS:
        if head.startswith(magic):
            return text
    if _is_erf(head):
        return f"a capture of Endace (ERF): {_EDITCAP}"
    if head[_ETL_HEADER] in _ETL_MARKS and int.from_bytes(head[:4], "little") % _ETL_UNIT == 0:
        return "a trace of Windows (ETL): convert it with etl2pcapng IN OUT"
    if name.endswith(".properties"):
        return "a configuration: there is nothing to decode in it"
    if head.startswith(_UTF_16):  # as a shell of Windows redirects what a program prints
        head = head.decode("utf-16", "ignore").encode()
    head = head.removeprefix(_UTF_8)
    return next((text for pattern, text in _TEXTS if pattern.match(head)), None)


def _is_erf(head: bytes) -> bool:
    """Whether two records of the extensible record format follow each other."""
    size = _erf_size(head)
    return bool(size) and bool(_erf_size(head[size:]))


def _erf_size(head: bytes) -> int:
    """Return the length of a record, 0 if none begins so."""
    if len(head) < _ERF.size:
        return 0
    kind, _, size, _, wire_size = _ERF.unpack_from(head)
    is_one = 0 < kind & 0x7F <= _ERF_KIND_MAX and size >= _ERF.size and not size % _ERF_UNIT
    return size if is_one and wire_size <= _ERF_WIRE_MAX else 0
