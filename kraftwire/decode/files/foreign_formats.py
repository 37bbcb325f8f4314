"""Files that hold packets in a form that is not read here, and how to convert them.

Owns what people bring most often instead of a capture: captures of other tools, what Wireshark
exports, what tshark and tcpdump print.
"""

from __future__ import annotations

import re

EDITCAP = "convert it with editcap -F pcapng IN OUT"
_MODIFIED = f"a capture in the modified format of pcap: {EDITCAP}"
_NETMON = f"a capture of Network Monitor: {EDITCAP}"
_ETL = "a trace of Windows (ETL): convert it with etl2pcapng IN OUT"
_HEX = "a hex dump of packets: text2pcap makes a capture of what tshark -x prints"
_PRINTED = (
    "without all bytes of the packets: write these with tshark -w FILE, or tcpdump -w FILE"
)

_FORMATS: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (rb"snoop\0\0\0", f"a capture of snoop: {EDITCAP}"),
        (rb"GMBU|RTSS", _NETMON),
        (rb"\x34\xcd\xb2\xa1|\xa1\xb2\xcd\x34", _MODIFIED),
        # After the size of buffers, and the first one's header: a system header and its mark.
        (rb"\0.{73}[\x01\x02]\xc0", _ETL),
        (rb"PK\x05\x06", "a zip archive without files"),
        (rb"\s*\{\s*\"index\"\s*:\s*\{\s*\"_index\"", f"what tshark -T ek prints, {_PRINTED}"),
        (rb"\s*\[\s*\{\s*\"_index\"\s*:\s*\"packets-", f"what tshark -T json prints, {_PRINTED}"),
        (rb"\s*<\?xml.{0,300}<p[ds]ml\b", f"what tshark -T pdml prints, {_PRINTED}"),
        (rb"\"?(?:frame|ip|tcp|kafka)\.\w+\"?[\t,\r\n]",
         f"what tshark -T fields prints, {_PRINTED}"),
        (rb"Frame \d+: \d+ bytes on wire", f"what tshark -V prints, {_PRINTED}"),
        (rb"[0-9a-f]{4}  (?:[0-9a-f]{2} ){4}", _HEX),
        (rb" *\d+\s+\d+\.\d+\s+\S+\s+(?:\xe2\x86\x92|->)\s",
         f"the list of packets that tshark prints, {_PRINTED}"),
        (rb"\"No\.\",|No\.\s+Time\s|/\* Frame \(\d|char peer\d+_|=+\r?\nFollow: ",
         f"what Wireshark exports, {_PRINTED}"),
        (rb"[-\d:. ]*(?:\S+ +(?:In|Out) +)?(?:[0-9a-f:]{17} .{0,20}> |IP6? (?:\(|\S+ > ))",
         f"the list of packets that tcpdump prints, {_PRINTED}"),
    )
)  # fmt: skip
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def conversion_hint(head: bytes, name: str = "") -> str | None:
    """Return what a file is and how to convert it, by first bytes and name; None if unknown."""
    if name.endswith(".properties"):
        return "a configuration: there is nothing to decode in it"
    if head.startswith(_UTF_16):  # as a shell of Windows redirects what a program prints
        head = head.decode("utf-16", "ignore").encode()
    return next((text for pattern, text in _FORMATS if pattern.match(head)), None)
