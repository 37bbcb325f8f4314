"""What may stand between the start of a packet and IP: links, tags, tunnels.

Owns one table of them, in the order of the layers. A reader takes the header of one wrapping and
returns what follows; readers are called until IP is found, at most `WRAPPINGS_MAX` times. Tunnels
that take more than a few lines to read are named, and not opened.

Source: RFC 7348 and draft-smith-vxlan-group-policy (VXLAN), RFC 8926 (Geneve), RFC 2784 and 2890
(GRE), draft-foschiano-erspan, RFC 3032 (MPLS), RFC 2516 (PPPoE), RFC 1661 (PPP), RFC 3378
(EtherIP), RFC 4302 (AH), 3GPP TS 29.281 (GTP-U), IEEE 802.1Q, 802.1BR and 802.2; the link types of
tcpdump.org.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

# Nested more deeply, a packet is not opened.
WRAPPINGS_MAX = 8

_U16 = struct.Struct(">H").unpack_from

# The protocol after a header: the space of a number, the number in it, and where it begins.
_LINK, _ETHER, _PPP, _IP = "link", "ether", "ppp", "ip"
# The space of wrappings that are not opened.
_CLOSED = "closed"

_ETHERNET = 1
_IPV4, _IPV6 = 0x0800, 0x86DD
_ERSPAN, _ERSPAN_3 = 0x88BE, 0x22EB
# Labels and attributes are read this far: those of real packets end long before, and a packet may
# consist of nothing else.
_LIST_BYTES_MAX = 1024
_LENGTH_MAX = 1500  # a smaller number in place of Ethernet's protocol is a length


class _NextHeader(NamedTuple):
    """What follows a header. `name` is that of the wrapping; empty for parts of a link."""

    space: str
    number: int
    at: int
    name: str = ""


_Reader = Callable[[bytes, int, int], _NextHeader | None]


class IpLocation(NamedTuple):
    """Where IP begins, -1 if it was not found, and the names of the wrappings around it.

    Without IP, `is_closed` says that the last one cannot be read, as it is encrypted or unknown.
    """

    at: int
    names: tuple[str, ...] = ()
    is_closed: bool = False


# The result where wrappings are nested more deeply than they are opened.
TOO_DEEP = IpLocation(-1, (f"more than {WRAPPINGS_MAX} wrappings",), is_closed=True)


def is_known_link(link: int) -> bool:
    """Whether packets of a link type can be read."""
    return (_LINK, link) in _READERS


def find_ip(link: int, data: bytes, start: int, end: int) -> IpLocation:
    """Find IP in a packet of a link type: `data[start:end]`."""
    return _find(_NextHeader(_LINK, link, start), data, end)


def find_ip_in_ip(protocol: int, data: bytes, start: int, end: int) -> IpLocation:
    """Find IP in what an IP packet carries, by its protocol number."""
    return _find(_NextHeader(_IP, protocol, start), data, end)


def _find(place: _NextHeader, data: bytes, end: int) -> IpLocation:
    names: tuple[str, ...] = ()
    for _ in range(WRAPPINGS_MAX):
        space, number, at, _ = place
        key = space, number
        if key in _PLAIN_IP:
            is_ip = at < end and data[at] >> 4 in (4, 6)
            return IpLocation(at if is_ip else -1, names)
        reader = _READERS.get(key)
        found = reader(data, at, end) if reader is not None and at < end else None
        if found is None:
            return IpLocation(-1, names)
        if found.name:
            names = (*names, found.name)
        if found.space is _CLOSED:
            return IpLocation(-1, names, is_closed=True)
        place = found
    return TOO_DEEP


def _ip(size: int, name: str = "") -> _Reader:
    """Read a header of so many bytes before IP."""
    return lambda _data, at, _end: _NextHeader(_ETHER, _IPV4, at + size, name)


def _frame(size: int, name: str) -> _Reader:
    """Read a header of so many bytes before a frame of Ethernet."""
    return lambda _data, at, _end: _NextHeader(_LINK, _ETHERNET, at + size, name)


def _protocol(size: int) -> _Reader:
    """Read a header of so many bytes before a protocol of Ethernet."""
    return lambda data, at, end: _ether(data, at + size, end)


def _closed(name: str) -> _Reader:
    """Name a wrapping that is not opened."""
    return lambda _data, at, _end: _NextHeader(_CLOSED, 0, at, name)


def _ether(data: bytes, at: int, end: int) -> _NextHeader | None:
    """Read a protocol of Ethernet, or the length that stands in its place before LLC with SNAP."""
    if at + 2 > end:
        return None
    (kind,) = _U16(data, at)
    if kind > _LENGTH_MAX:
        return _NextHeader(_ETHER, kind, at + 2)
    is_snap = at + 10 <= end and data[at + 2 : at + 8] in _SNAP
    return _NextHeader(_ETHER, _U16(data, at + 8)[0], at + 10) if is_snap else None


_SNAP = (b"\xaa\xaa\x03\0\0\0", b"\xaa\xaa\x03\0\0\xf8")


def _cooked_2(data: bytes, at: int, end: int) -> _NextHeader | None:
    return _NextHeader(_ETHER, _U16(data, at)[0], at + 20) if at + 20 <= end else None


def _pktap(data: bytes, at: int, end: int) -> _NextHeader | None:
    """Read Apple's header: its length, and the link type of what follows."""
    if at + 12 > end:
        return None
    size, _, link = struct.unpack_from("<III", data, at)
    return _NextHeader(_LINK, link, at + size)


def _nflog(data: bytes, at: int, end: int) -> _NextHeader | None:
    """Find the packet among the attributes, whose numbers are in the order of the host that wrote.
    """
    end = min(end, at + _LIST_BYTES_MAX)
    for order in "<>":
        place = at + 4
        while place + 4 <= end:
            size, kind = struct.unpack_from(f"{order}HH", data, place)
            if kind & 0x7FFF == _NFLOG_PAYLOAD:
                return _NextHeader(_ETHER, _IPV4, place + 4)
            if size < 4:
                break
            place += size + -size % 4
    return None


_NFLOG_PAYLOAD = 9


def _cisco_metadata(data: bytes, at: int, end: int) -> _NextHeader | None:
    return _ether(data, at + 2 + 4 * data[at + 1], end) if at + 2 < end else None


def _mpls(data: bytes, at: int, end: int) -> _NextHeader | None:
    """Read labels up to the bottom of the stack; what they stand for is not written anywhere."""
    end = min(end, at + _LIST_BYTES_MAX)
    while at + 4 < end:
        is_last = data[at + 2] & 1
        at += 4
        if is_last:
            kind = data[at] >> 4
            if kind in (4, 6):
                return _NextHeader(_ETHER, _IPV4, at, "MPLS")
            # A pseudowire: Ethernet, perhaps after a control word.
            return _NextHeader(_LINK, _ETHERNET, at if kind else at + 4, "MPLS")
    return None


def _ppp(data: bytes, at: int, end: int, name: str = "") -> _NextHeader | None:
    if data.startswith(b"\xff\x03", at):
        at += 2
    if at + 2 > end:
        return None
    if data[at] & 1:  # compressed to one byte
        return _NextHeader(_PPP, data[at], at + 1, name)
    return _NextHeader(_PPP, _U16(data, at)[0], at + 2, name)


def _pppoe(data: bytes, at: int, end: int) -> _NextHeader | None:
    is_session = at + 8 <= end and data[at] == 0x11
    return _ppp(data, at + 6, end, "PPPoE") if is_session else None


def _gre(data: bytes, at: int, end: int) -> _NextHeader | None:
    if at + 8 > end:
        return None
    flags, kind = _U16(data, at)[0], _U16(data, at + 2)[0]
    if flags & 7:
        return _NextHeader(_CLOSED, 0, at, "PPTP") if flags & 7 == 1 else None
    has_sequence = bool(flags & 0x1000)
    after = at + 4 + 4 * bool(flags & 0xC000) + 4 * bool(flags & 0x2000) + 4 * has_sequence
    if kind == _ERSPAN:
        return _NextHeader(_LINK, _ETHERNET, after + 8 * has_sequence, "ERSPAN")
    if kind == _ERSPAN_3:
        has_more = after + 12 <= end and data[after + 11] & 1
        return _NextHeader(_LINK, _ETHERNET, after + 12 + 8 * has_more, "ERSPAN")
    return _NextHeader(_ETHER, kind, after, "GRE")


def _authentication(data: bytes, at: int, end: int) -> _NextHeader | None:
    if at + 12 > end:
        return None
    return _NextHeader(_IP, data[at], at + 4 * (data[at + 1] + 2), "IPsec AH")


def _udp(data: bytes, at: int, end: int) -> _NextHeader | None:
    """Recognize tunnels; an ordinary datagram has nothing inside."""
    inside = at + 8
    if inside + 8 > end:
        return None
    ports = _U16(data, at)[0], _U16(data, at + 2)[0]
    found = _vxlan(data, inside, end, ports)
    if found is None and _GENEVE in ports and not data[inside] >> 6:
        after = inside + 8 + 4 * (data[inside] & 0x3F)
        found = _NextHeader(_ETHER, _U16(data, inside + 2)[0], after, f"Geneve (UDP {_GENEVE})")
    if found is None and _GTP_U in ports:
        found = _gtp_u(data, inside, end)
    for port in ports:
        name, starts = _CLOSED_UDP.get(port, ("", ()))
        if found is None and data[inside] in starts:
            found = _NextHeader(_CLOSED, 0, inside, f"{name} (UDP {port})")
    return found


_VXLAN, _GENEVE, _GTP_U = 4789, 6081, 2152


def _vxlan(data: bytes, at: int, end: int, ports: tuple[int, int]) -> _NextHeader | None:
    """Read VXLAN on any port, by its header and the frame that follows."""
    found = _NextHeader(_LINK, _ETHERNET, at + 8, f"VXLAN (UDP {ports[1]})")
    if data[at] & 0x88 == 0x88 and _VXLAN in ports:  # with a group of Cisco's
        return found
    if data[at : at + 4] != b"\x08\0\0\0" or data[at + 7]:
        return None
    frame = _ether(data, at + 20, end)  # other datagrams begin so too
    return found if frame is not None and frame[:2] in _INSIDE else None


def _gtp_u(data: bytes, at: int, end: int) -> _NextHeader | None:
    """Read a packet of a user in a mobile network, after the extension headers."""
    flags = data[at]
    if flags >> 4 != 3 or data[at + 1] != 0xFF:
        return None
    end = min(end, at + _LIST_BYTES_MAX)
    extension = data[at + 11] if flags & 4 and at + 11 < end else 0
    after = at + 12 if flags & 7 else at + 8
    while extension and after + 4 <= end and data[after]:
        after += 4 * data[after]
        extension = data[after - 1] if after <= end else 0
    return _NextHeader(_ETHER, _IPV4, after, f"GTP-U (UDP {_GTP_U})")


# Tunnels over UDP that are not opened. Port -> name, and first bytes of datagrams with packets.
_CLOSED_UDP: dict[int, tuple[str, tuple[int, ...]]] = {
    1701: ("L2TP", (0x00, 0x02, 0x40, 0x42, 0x48, 0x4A)),
    3544: ("Teredo", tuple(range(0x60, 0x70))),
    4341: ("LISP", tuple(range(256))),
    4500: ("IPsec ESP", tuple(range(1, 255))),
    4754: ("GRE", (0x00, 0x10, 0x20, 0x30, 0x80, 0x90, 0xA0, 0xB0)),
    4790: ("VXLAN-GPE", (0x0C, 0x0D)),
    5247: ("CAPWAP", (0, 1)),
    6080: ("GUE", tuple(range(0x20)) + tuple(range(0x40, 0x70))),
    6635: ("MPLS", tuple(range(256))),
    9060: ("HEP", tuple(b"H")),
    37008: ("TZSP", (1,)),
    51820: ("WireGuard", (4,)),
}

# Where IP itself follows; its version is in its first byte.
_PLAIN_IP = frozenset({(_ETHER, _IPV4), (_ETHER, _IPV6), (_PPP, 0x21), (_PPP, 0x57)})

_READERS: dict[tuple[str, int], _Reader] = {
    (_LINK, 0): _ip(4),  # four bytes of address family, in the order of the capturing host
    (_LINK, _ETHERNET): _protocol(12),
    (_LINK, 9): _ppp,
    (_LINK, 12): _ip(0),
    (_LINK, 14): _ip(0),
    (_LINK, 50): _ppp,
    (_LINK, 101): _ip(0),
    (_LINK, 104): _protocol(2),
    (_LINK, 108): _ip(4),
    (_LINK, 109): _ip(12),
    (_LINK, 113): _protocol(14),
    (_LINK, 226): _ip(24),
    (_LINK, 228): _ip(0),
    (_LINK, 229): _ip(0),
    (_LINK, 239): _nflog,
    (_LINK, 258): _pktap,
    (_LINK, 276): _cooked_2,
    (_ETHER, 0x8100): _protocol(2),
    (_ETHER, 0x88A8): _protocol(2),
    (_ETHER, 0x9100): _protocol(2),
    (_ETHER, 0x8926): _protocol(4),
    (_ETHER, 0x8909): _cisco_metadata,
    (_ETHER, 0x6558): _frame(0, ""),
    (_ETHER, 0x8847): _mpls,
    (_ETHER, 0x8848): _mpls,
    (_ETHER, 0x8864): _pppoe,
    (_ETHER, 0x22F3): _closed("TRILL"),
    (_ETHER, 0x4305): _closed("batman-adv"),
    (_ETHER, 0x883E): _closed("WCCP"),
    (_ETHER, 0x88E5): _closed("MACsec"),
    (_ETHER, 0x88E7): _closed("MAC-in-MAC"),
    (_ETHER, 0x8903): _closed("FabricPath"),
    (_ETHER, 0x892F): _closed("HSR"),
    (_ETHER, 0x894F): _closed("NSH"),
    (_ETHER, 0xF1C1): _closed("a redundancy tag"),
    (_PPP, 0x281): _mpls,
    (_PPP, 0xFD): _closed("compressed PPP"),
    (_IP, 4): _ip(0, "IP in IP"),
    (_IP, 41): _ip(0, "IP in IP"),
    (_IP, 17): _udp,
    (_IP, 47): _gre,
    (_IP, 51): _authentication,
    (_IP, 97): _frame(2, "EtherIP"),
    (_IP, 137): _mpls,
    (_IP, 50): _closed("IPsec ESP"),
    (_IP, 115): _closed("L2TPv3"),
}

# The protocols over IP that may carry packets.
MAY_WRAP = frozenset(number for space, number in _READERS if space == _IP)

# The protocols that begin a frame inside of VXLAN: ARP and IP above all.
_INSIDE = frozenset(
    {key for key in _READERS if key[0] == _ETHER} | _PLAIN_IP | {(_ETHER, 0x0806)}
)

# The names of link types that a capture of a network may have, as tcpdump writes them.
LINK_NAMES: dict[int, str] = {
    0: "NULL", 1: "ETHERNET", 6: "IEEE802_5", 7: "ARCNET_BSD", 8: "SLIP", 9: "PPP", 10: "FDDI",
    50: "PPP_HDLC", 51: "PPP_ETHER", 99: "SYMANTEC_FIREWALL", 100: "ATM_RFC1483", 101: "RAW",
    104: "C_HDLC", 105: "IEEE802_11", 107: "FRELAY", 108: "LOOP", 109: "ENC", 113: "LINUX_SLL",
    117: "PFLOG", 119: "IEEE802_11_PRISM", 122: "IP_OVER_FC", 123: "SUNATM",
    127: "IEEE802_11_RADIOTAP", 129: "ARCNET_LINUX", 138: "APPLE_IP_OVER_IEEE1394", 143: "DOCSIS",
    144: "LINUX_IRDA", 147: "USER0", 163: "IEEE802_11_AVS", 166: "PPP_PPPD",
    187: "BLUETOOTH_HCI_H4", 189: "USB_LINUX", 192: "PPI", 195: "IEEE802_15_4_WITHFCS",
    202: "LINUX_LAPD", 204: "PPP_WITH_DIR", 220: "USB_LINUX_MMAPPED", 224: "FC_2", 226: "IPNET",
    227: "CAN_SOCKETCAN",
    228: "IPV4", 229: "IPV6", 239: "NFLOG", 240: "NETANALYZER", 242: "IPOIB", 247: "INFINIBAND",
    253: "NETLINK", 258: "PKTAP", 272: "NORDIC_BLE", 276: "LINUX_SLL2", 288: "USB_2_0",
}  # fmt: skip
