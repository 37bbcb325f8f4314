"""What may stand between the start of a packet and IP: links, tags, tunnels.

Owns one table of them. A step reads the header of one wrapping and says what follows; steps are
taken until IP is found, at most `WRAPPINGS_MAX` of them. A tunnel over UDP is known by its header,
whatever its port, where that leaves no doubt.

Source: RFC 7348, draft-ietf-nvo3-vxlan-gpe and draft-smith-vxlan-group-policy (VXLAN), RFC 8926
(Geneve), RFC 2784, 2890, 2637 and 8086 (GRE), draft-foschiano-erspan, RFC 3032 and 7510 (MPLS), RFC
2516 (PPPoE), RFC 1661 (PPP), RFC 2661 (L2TP), RFC 8300 (NSH), RFC 3378 (EtherIP), RFC 9300 (LISP),
RFC 4380 (Teredo), draft-ietf-intarea-gue (GUE; FOU is Linux's, and has no header), RFC 6325
(TRILL), RFC 5415 (CAPWAP), 3GPP TS 29.281 (GTP-U), IEEE 802.1Q, 802.1AE, 802.1BR, 802.1CB, 802.2,
802.5 and 802.11, IEC 62439-3 (HSR, PRP), RFC 2427 (frame relay), RFC 4391 (InfiniBand), the headers
of Linux for batman-adv, draft-davie-stt (STT); the link types of tcpdump.org.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

# Nested more deeply, a packet is not opened.
WRAPPINGS_MAX = 8

_U16 = struct.Struct(">H").unpack_from
_U32 = struct.Struct(">I").unpack_from

# What follows a header: the space of a number, the number in it, and where it begins.
_LINK, _ETHER, _PPP, _IP, _NSH = "link", "ether", "ppp", "ip", "nsh"

_ETHERNET = 1
_IPV4, _IPV6 = 0x0800, 0x86DD
_BRIDGED = 0x6558  # an Ethernet frame
_MPLS, _MPLS_MULTICAST = 0x8847, 0x8848
_ERSPAN, _ERSPAN_3 = 0x88BE, 0x22EB
_TCP = 6
# Labels, tags and attributes are read this far: those of real packets end long before, and a packet
# may consist of nothing else.
_LIST_BYTES_MAX = 1024
_LENGTH_MAX = 1500  # a smaller number in place of Ethernet's protocol is a length


class _Next(NamedTuple):
    """What follows a header. `name` is that of the wrapping; empty for parts of a link."""

    space: str
    number: int
    at: int
    name: str = ""


_Step = Callable[[bytes, int, int], _Next | None]


# The port of STT, in place of TCP's; the size of the header of its frames.
STT_PORT = struct.pack(">H", 7471)
_STT, _STT_SIZE = "STT (TCP 7471)", 18


class Found(NamedTuple):
    """Where IP begins, -1 if it was not found, and the names of the wrappings around it.

    Without IP, `is_closed` says that the last one cannot be read, as it is encrypted or unknown.
    """

    at: int
    names: tuple[str, ...] = ()
    is_closed: bool = False


# What is found where wrappings are nested more deeply than they are opened.
TOO_DEEP = Found(-1, (f"more than {WRAPPINGS_MAX} wrappings",), is_closed=True)


def is_known_link(link: int) -> bool:
    """Whether packets of a link type can be read."""
    return (_LINK, link) in _STEPS


def find_ip(link: int, data: bytes, start: int, end: int) -> Found:
    """Find IP in a packet of a link type: `data[start:end]`."""
    return _find(_Next(_LINK, link, start), data, end)


def find_ip_in_ip(protocol: int, data: bytes, start: int, end: int) -> Found:
    """Find IP in what an IP packet carries, by its protocol number."""
    return _find(_Next(_IP, protocol, start), data, end)


def find_in_stt(data: bytes, start: int, end: int) -> Found | None:
    """Find IP in a frame of STT: after a header of version 0; None if none begins here."""
    at = start + _STT_SIZE
    if at >= end or data[start] or _known(_ethernet(data, at, end)) is None:
        return None
    found = find_ip(_ETHERNET, data, at, end)
    return found._replace(names=(_STT, *found.names))


def _find(place: _Next, data: bytes, end: int) -> Found:
    names: tuple[str, ...] = ()
    for _ in range(WRAPPINGS_MAX):
        space, number, at, _ = place
        if (space, number) in _PLAIN_IP:
            is_ip = at < end and data[at] >> 4 in (4, 6)
            return Found(at if is_ip else -1, names)
        if (space, number) in _CLOSED:
            return Found(-1, (*names, _CLOSED[space, number]), is_closed=True)
        step = _STEPS.get((space, number))
        found = step(data, at, end) if step is not None and at < end else None
        if found is None:
            return Found(-1, names)
        if found.name:
            names = (*names, found.name)
        if found.space == "":
            return Found(-1, names, is_closed=True)
        place = found
    return TOO_DEEP


def _ethernet(data: bytes, at: int, end: int) -> _Next | None:
    return _ether(data, at + 12, end)


def _ether(data: bytes, at: int, end: int) -> _Next | None:
    """Read a protocol of Ethernet, or the length that stands in its place before LLC."""
    if at + 2 > end:
        return None
    (kind,) = _U16(data, at)
    return _llc(data, at + 2, end) if kind <= _LENGTH_MAX else _Next(_ETHER, kind, at + 2)


def _llc(data: bytes, at: int, end: int) -> _Next | None:
    """Read SNAP; other services of LLC carry no IP."""
    if at + 8 > end or data[at : at + 3] != b"\xaa\xaa\x03":
        return None
    return _ether(data, at + 6, end) if data[at + 3 : at + 6] in _SNAP_ETHERNET else None


_SNAP_ETHERNET = (b"\0\0\0", b"\0\0\xf8")


def _tag(size: int) -> _Step:
    """Step over a tag of so many bytes, after which the protocol stands."""

    def step(data: bytes, at: int, end: int) -> _Next | None:
        return _ether(data, at + size, end)

    return step


def _cisco_metadata(data: bytes, at: int, end: int) -> _Next | None:
    return _ether(data, at + 2 + 4 * data[at + 1], end) if at + 2 < end else None


def _mpls(data: bytes, at: int, end: int) -> _Next | None:
    """Step over labels up to the bottom of the stack; what they stand for is not written anywhere.
    """
    end = min(end, at + _LIST_BYTES_MAX)
    while at + 4 < end:
        is_last = data[at + 2] & 1
        at += 4
        if is_last:
            kind = data[at] >> 4
            if kind in (4, 6):
                return _Next(_ETHER, _IPV4, at, "MPLS")
            # A pseudowire: Ethernet, perhaps after a control word.
            return _Next(_LINK, _ETHERNET, at if kind else at + 4, "MPLS")
    return None


def _pppoe(data: bytes, at: int, end: int) -> _Next | None:
    if at + 8 > end or data[at] != 0x11:
        return None
    found = _ppp(data, at + 6, end)
    return None if found is None else found._replace(name="PPPoE")


def _ppp(data: bytes, at: int, end: int) -> _Next | None:
    if data.startswith(b"\xff\x03", at):
        at += 2
    if at + 2 > end:
        return None
    if data[at] & 1:  # compressed to one byte
        return _Next(_PPP, data[at], at + 1)
    return _Next(_PPP, _U16(data, at)[0], at + 2)


def _gre(data: bytes, at: int, end: int) -> _Next | None:
    if at + 8 > end:
        return None
    flags, kind = _U16(data, at)[0], _U16(data, at + 2)[0]
    has_sequence = bool(flags & 0x1000)
    after = at + 4 + 4 * bool(flags & 0xC000) + 4 * bool(flags & 0x2000) + 4 * has_sequence
    if flags & 7 == 1:  # that of PPTP
        return _ppp_in(data, after + 4 * bool(flags & 0x80), end)
    if flags & 7:
        return None
    if kind == _ERSPAN:
        return _Next(_LINK, _ETHERNET, after + 8 * has_sequence, "ERSPAN")
    if kind == _ERSPAN_3:
        return _erspan_3(data, after, end)
    if kind == _WCCP and after < end and data[after] >> 4 != 4:
        after += 4
    return _Next(_ETHER, _IPV4 if kind == _WCCP else kind, after, "GRE")


_WCCP = 0x883E


def _ppp_in(data: bytes, at: int, end: int) -> _Next | None:
    found = _ppp(data, at, end)
    return None if found is None else found._replace(name="PPTP")


def _erspan_3(data: bytes, at: int, end: int) -> _Next | None:
    if at + 12 > end:
        return None
    (fields,) = _U16(data, at + 10)
    after = at + 12 + 8 * (fields & 1)
    is_ip = fields >> 10 & 0x1F == 2
    return _Next(_ETHER, _IPV4, after, "ERSPAN") if is_ip else _Next(_LINK, 1, after, "ERSPAN")


def _ip_in_ip(_data: bytes, at: int, _end: int) -> _Next | None:
    return _Next(_ETHER, _IPV4, at, "IP in IP")


def _ether_ip(_data: bytes, at: int, _end: int) -> _Next | None:
    return _Next(_LINK, _ETHERNET, at + 2, "EtherIP")


def _authentication(data: bytes, at: int, end: int) -> _Next | None:
    if at + 12 > end:
        return None
    return _Next(_IP, data[at], at + 4 * (data[at + 1] + 2), "IPsec AH")


def _nsh(data: bytes, at: int, end: int) -> _Next | None:
    """Read a network service header. Its numbers are those of VXLAN-GPE."""
    if at + 8 > end:
        return None
    return _Next(_NSH, data[at + 3], at + 4 * (data[at + 1] & 0x3F), "NSH")


def _udp(data: bytes, at: int, end: int) -> _Next | None:
    """Recognize tunnels; an ordinary datagram has nothing inside."""
    inside = at + 8
    if inside + 8 > end:
        return None
    ports = _U16(data, at)[0], _U16(data, at + 2)[0]
    for step in (_vxlan, _geneve, _gtp_u, _tzsp):
        found = step(data, inside, end, ports)
        if found is not None:
            return found
    for port in ports:
        known = _OVER_UDP.get(port)
        found = None if known is None else known[1](data, inside, end)
        if known is not None and found is not None:
            return found._replace(name=f"{known[0]} (UDP {port})")
    for port in ports:
        if port in _CLOSED_UDP and data[inside] in _CLOSED_UDP[port][1]:
            return _Next("", 0, inside, f"{_CLOSED_UDP[port][0]} (UDP {port})")
    is_ip = _is_whole_ipv4(data, inside, end)
    return _Next(_ETHER, _IPV4, inside, f"FOU (UDP {ports[1]})") if is_ip else None


def _is_whole_ipv4(data: bytes, at: int, end: int) -> bool:
    """Whether bytes are an IPv4 packet of TCP without options, with the right checksum."""
    if at + 20 > end or data[at] != 0x45 or data[at + 9] != _TCP:
        return False
    total = sum(struct.unpack_from(">10H", data, at))
    size: int = _U16(data, at + 2)[0]
    return total % 0xFFFF == 0 and at + size <= end


# Of the sender and of the receiver.
_Ports = tuple[int, int]

_VXLAN, _GENEVE, _GTP_U, _TZSP = 4789, 6081, 2152, 37008
# Port -> name, and first bytes of the datagrams that carry packets.
_CLOSED_UDP: dict[int, tuple[str, tuple[int, ...]]] = {
    51820: ("WireGuard", (4,)),
    4500: ("IPsec ESP", tuple(range(1, 255))),
    5247: ("CAPWAP", (0, 1)),
    9060: ("HEP", tuple(b"H")),
}


def _vxlan(data: bytes, at: int, end: int, ports: _Ports) -> _Next | None:
    """Read VXLAN on any port, and its extension GPE, which names the protocol inside."""
    flags = data[at]
    if at + 8 >= end:
        return None
    name = f"VXLAN (UDP {ports[1]})"
    if flags & 0x88 == 0x88 and _VXLAN in ports:  # a group of Cisco's between flags and network
        return _Next(_LINK, _ETHERNET, at + 8, name)
    is_reserved_zero = data[at + 1 : at + 3] == b"\0\0" and not data[at + 7]
    if not is_reserved_zero:
        return None
    if flags == 0x08 and not data[at + 3]:
        # Other datagrams begin so too: then no frame follows.
        frame = _ether(data, at + 20, end)
        is_frame = frame is not None and (frame.space, frame.number) in _INSIDE
        return _Next(_LINK, _ETHERNET, at + 8, name) if is_frame else None
    if flags & 0xF4 == 0x04 and flags & 0x08 and (_NSH, data[at + 3]) in _STEPS | _PLAIN_NSH:
        return _Next(_NSH, data[at + 3], at + 8, name.replace("VXLAN", "VXLAN-GPE"))
    return None


def _geneve(data: bytes, at: int, _end: int, ports: _Ports) -> _Next | None:
    if _GENEVE not in ports or data[at] >> 6:
        return None
    after = at + 8 + 4 * (data[at] & 0x3F)
    return _Next(_ETHER, _U16(data, at + 2)[0], after, f"Geneve (UDP {_GENEVE})")


def _gtp_u(data: bytes, at: int, end: int, ports: _Ports) -> _Next | None:
    """Read a packet of a user in a mobile network, after the extension headers."""
    flags = data[at]
    if _GTP_U not in ports or flags >> 4 != 3 or data[at + 1] != 0xFF:
        return None
    name = f"GTP-U (UDP {_GTP_U})"
    if not flags & 7:
        return _Next(_ETHER, _IPV4, at + 8, name)
    end = min(end, at + _LIST_BYTES_MAX)
    extension, after = (data[at + 11] if at + 11 < end else 0) * bool(flags & 4), at + 12
    while extension and after + 4 <= end and data[after]:
        size = 4 * data[after]
        extension = data[after + size - 1] if after + size <= end else 0
        after += size
    return _Next(_ETHER, _IPV4, after, name)


def _tzsp(data: bytes, at: int, end: int, ports: _Ports) -> _Next | None:
    """Read what sniffers of access points send: tags up to an end tag, then the frame."""
    if _TZSP not in ports or data[at] != 1 or _U16(data, at + 2)[0] != _ETHERNET:
        return None
    after, end = at + 4, min(end, at + _LIST_BYTES_MAX)
    while after + 1 < end and data[after] != 1:
        after += 1 if data[after] == 0 else 2 + data[after + 1]
    return _Next(_LINK, _ETHERNET, after + 1, f"TZSP (UDP {_TZSP})")


def _l2tp(data: bytes, at: int, end: int) -> _Next | None:
    """Read a data message of version 2: optional fields, then PPP."""
    (flags,) = _U16(data, at)
    if flags & 0x800F == 3:  # only the two ends know what follows
        return _Next("", 0, at)
    if flags & 0x800F != 2:
        return None
    after = at + 6 + 2 * bool(flags & 0x4000) + 4 * bool(flags & 0x0800)
    if flags & 0x0200 and after + 2 <= end:
        after += 2 + _U16(data, after)[0]
    return _ppp(data, after, end)


def _teredo(data: bytes, at: int, _end: int) -> _Next | None:
    return _Next(_ETHER, _IPV6, at) if data[at] >> 4 == 6 else None


def _gue(data: bytes, at: int, _end: int) -> _Next | None:
    if data[at] >> 6 == 1:  # IP follows without a header
        return _Next(_ETHER, _IPV4, at)
    if data[at] >> 5:
        return None
    return _Next(_IP, data[at + 1], at + 4 + 4 * (data[at] & 0x1F))


def _lisp(_data: bytes, at: int, _end: int) -> _Next | None:
    return _Next(_ETHER, _IPV4, at + 8)


def _capwap(data: bytes, at: int, end: int) -> _Next | None:
    """Read the header of plain frames of an access point, if they are Ethernet's and whole."""
    if at + 8 > end or data[at]:
        return None
    (fields,) = _U32(data, at)
    is_ethernet = not fields & 0x180
    return _known(_ethernet(data, at + 4 * (fields >> 19 & 0x1F), end)) if is_ethernet else None


# Tunnels over UDP that only the port tells: port -> name, and how its header is read.
_OVER_UDP: dict[int, tuple[str, _Step]] = {
    1701: ("L2TP", _l2tp),
    3544: ("Teredo", _teredo),
    4341: ("LISP", _lisp),
    4754: ("GRE", _gre),
    5247: ("CAPWAP", _capwap),
    6080: ("GUE", _gue),
    6635: ("MPLS", _mpls),
}


def _fabric_path(_data: bytes, at: int, _end: int) -> _Next | None:
    return _Next(_LINK, _ETHERNET, at + 2, "FabricPath")


def _backbone(_data: bytes, at: int, _end: int) -> _Next | None:
    return _Next(_LINK, _ETHERNET, at + 4, "MAC-in-MAC")


def _trill(data: bytes, at: int, end: int) -> _Next | None:
    if at + 6 > end:
        return None
    options = _U16(data, at)[0] >> 6 & 0x1F
    return _Next(_LINK, _ETHERNET, at + 6 + 4 * options, "TRILL")


def _ppi(data: bytes, at: int, end: int) -> _Next | None:
    """Read a header with facts about the packet: its length, and the link type of what follows."""
    if at + 8 > end:
        return None
    size, link = struct.unpack_from("<2xHI", data, at)
    return _Next(_LINK, link, at + size)


def _pflog(data: bytes, at: int, _end: int) -> _Next | None:
    """Read the header of a firewall's log, whose length is its first byte, in steps of four."""
    return _Next(_ETHER, _IPV4, at + data[at] + -data[at] % 4)


def _cooked(data: bytes, at: int, end: int) -> _Next | None:
    return _ether(data, at + 14, end)


def _cooked_2(data: bytes, at: int, end: int) -> _Next | None:
    return _Next(_ETHER, _U16(data, at)[0], at + 20) if at + 20 <= end else None


def _skip(size: int) -> _Step:
    """Step over a header of so many bytes before IP."""

    def step(_data: bytes, at: int, _end: int) -> _Next | None:
        return _Next(_ETHER, _IPV4, at + size)

    return step


def _ppp_of_daemon(data: bytes, at: int, end: int) -> _Next | None:
    """Read PPP after a byte for its direction."""
    return _ppp(data, at + 1, end)


def _infiniband(data: bytes, at: int, end: int) -> _Next | None:
    """Read IP over InfiniBand: a routing header, a protocol of Ethernet, two bytes without use."""
    return _Next(_ETHER, _U16(data, at + 40)[0], at + 44) if at + 44 <= end else None


def _cisco_hdlc(data: bytes, at: int, end: int) -> _Next | None:
    return _ether(data, at + 2, end)


def _llc_after(size: int) -> _Step:
    """Step over a header of so many bytes before LLC."""

    def step(data: bytes, at: int, end: int) -> _Next | None:
        return _llc(data, at + size, end)

    return step


def _token_ring(data: bytes, at: int, end: int) -> _Next | None:
    if at + 15 > end:
        return None
    has_route = data[at + 8] & 0x80
    return _llc(data, at + 14 + (data[at + 14] & 0x1F if has_route else 0), end)


def _frame_relay(data: bytes, at: int, end: int) -> _Next | None:
    """Read an address of two bytes, and what RFC 2427 puts after it."""
    if at + 9 > end or not data[at + 1] & 1 or data[at + 2] != 3:
        return None
    if data[at + 3] in (0xCC, 0x8E):
        return _Next(_ETHER, _IPV4, at + 4)
    at += 2 + len(_PADDED_SNAP)
    is_snap = data.startswith(_PADDED_SNAP, at - len(_PADDED_SNAP))
    return _ether(data, at + 3, end) if is_snap else None


_PADDED_SNAP = b"\x03\x00\x80"


def _prism(data: bytes, at: int, end: int) -> _Next | None:
    """Read a header of a wireless driver, which has its length in the order of the host."""
    if at + 8 > end:
        return None
    size = min(struct.unpack_from("<I", data, at + 4)[0], _U32(data, at + 4)[0])
    return _Next(_LINK, _WIRELESS, at + size)


def _symantec(data: bytes, at: int, end: int) -> _Next | None:
    """Read the header of a firewall: an address, a protocol of Ethernet, 36 bytes more."""
    return _Next(_ETHER, _U16(data, at + 6)[0], at + 44) if at + 44 <= end else None


def _radio(data: bytes, at: int, end: int) -> _Next | None:
    """Read a header with facts about reception, and its length."""
    if at + 4 > end:
        return None
    return _Next(_LINK, _WIRELESS, at + int.from_bytes(data[at + 2 : at + 4], "little"))


_WIRELESS = 105
_DATA, _NO_DATA, _OF_SERVICE = 0x08, 0x40, 0x80
_BOTH_SYSTEMS, _PROTECTED, _HAS_CONTROL = 0x03, 0x40, 0x80
_MANY_INSIDE = 0x80


def _wireless(data: bytes, at: int, end: int) -> _Next | None:
    """Read a frame of 802.11, which has data of one packet."""
    if at + 26 > end or data[at] & 0x0C != _DATA or data[at] & _NO_DATA:
        return None
    flags, size = data[at + 1], 24
    if flags & _PROTECTED:
        return _Next("", 0, at, "encrypted 802.11")
    if flags & _BOTH_SYSTEMS == _BOTH_SYSTEMS:
        size += 6
    if data[at] & _OF_SERVICE:
        if at + size >= end or data[at + size] & _MANY_INSIDE:
            return None
        size += 2 + 4 * bool(flags & _HAS_CONTROL)
    return _llc(data, at + size, end)


def _macsec(data: bytes, at: int, end: int) -> _Next | None:
    """Read what is only authenticated, and no cipher text."""
    closed = _Next("", 0, at, "MACsec")
    if at + 8 > end or data[at] & 0x0C:
        return closed
    inside = _known(_ether(data, at + 6 + 8 * bool(data[at] & 0x20), end))
    return closed if inside is None else inside._replace(name="MACsec")


def _known(found: _Next | None) -> _Next | None:
    """Return what follows if it is of a known kind: where that is the only sign of a header."""
    return found if found is not None and found[:2] in _INSIDE else None


def _batman(data: bytes, at: int, end: int) -> _Next | None:
    """Read a frame for one node of a mesh."""
    if at + 10 > end or data[at : at + 2] != b"\x40\x0f":
        return None
    return _Next(_LINK, _ETHERNET, at + 10, "batman-adv")


def _pktap(data: bytes, at: int, end: int) -> _Next | None:
    """Read Apple's header: its length, and the link type of what follows."""
    if at + 12 > end:
        return None
    size, _, link = struct.unpack_from("<III", data, at)
    return _Next(_LINK, link, at + size)


def _nflog(data: bytes, at: int, end: int) -> _Next | None:
    """Find the packet among the attributes, whose numbers are in the order of the host that wrote.
    """
    end = min(end, at + _LIST_BYTES_MAX)
    for order in "<>":
        place = at + 4
        while place + 4 <= end:
            size, kind = struct.unpack_from(f"{order}HH", data, place)
            if kind & 0x7FFF == _NFLOG_PAYLOAD:
                return _Next(_ETHER, _IPV4, place + 4)
            if size < 4:
                break
            place += size + -size % 4
    return None


_NFLOG_PAYLOAD = 9
# Where IP itself follows; its version is in its first byte.
_PLAIN_IP = frozenset(
    {(_ETHER, _IPV4), (_ETHER, _IPV6), (_PPP, 0x21), (_PPP, 0x57), (_NSH, 1), (_NSH, 2)}
)
_PLAIN_NSH = {key: None for key in _PLAIN_IP if key[0] == _NSH}

_STEPS: dict[tuple[str, int], _Step] = {
    (_LINK, 0): _skip(4),  # four bytes of address family, in the order of the capturing host
    (_LINK, _ETHERNET): _ethernet,
    (_LINK, 6): _token_ring,
    (_LINK, 9): _ppp,
    (_LINK, 10): _llc_after(13),
    (_LINK, 11): _llc_after(0),  # the number of 100 inside some systems
    (_LINK, 12): _skip(0),
    (_LINK, 14): _skip(0),
    (_LINK, 50): _ppp,
    (_LINK, 51): _pppoe,
    (_LINK, 99): _symantec,
    (_LINK, 100): _llc_after(0),
    (_LINK, 101): _skip(0),
    (_LINK, 104): _cisco_hdlc,
    (_LINK, _WIRELESS): _wireless,
    (_LINK, 107): _frame_relay,
    (_LINK, 108): _skip(4),
    (_LINK, 109): _skip(12),
    (_LINK, 113): _cooked,
    (_LINK, 117): _pflog,
    (_LINK, 119): _prism,
    (_LINK, 122): _llc_after(16),
    (_LINK, 123): _llc_after(4),
    (_LINK, 127): _radio,
    (_LINK, 138): _tag(16),
    (_LINK, 163): _prism,
    (_LINK, 166): _ppp_of_daemon,
    (_LINK, 192): _ppi,
    (_LINK, 204): _ppp_of_daemon,
    (_LINK, 226): _skip(24),
    (_LINK, 228): _skip(0),
    (_LINK, 229): _skip(0),
    (_LINK, 239): _nflog,
    (_LINK, 242): _infiniband,
    (_LINK, 258): _pktap,
    (_LINK, 276): _cooked_2,
    (_ETHER, 0x8100): _tag(2),
    (_ETHER, 0x88A8): _tag(2),
    (_ETHER, 0x9100): _tag(2),
    (_ETHER, 0x8926): _tag(4),
    (_ETHER, 0xF1C1): _tag(4),
    (_ETHER, 0x8903): _fabric_path,
    (_ETHER, 0x8909): _cisco_metadata,
    (_ETHER, 0x892F): _tag(4),
    (_ETHER, 0x88E5): _macsec,
    (_ETHER, 0x4305): _batman,
    (_ETHER, _MPLS): _mpls,
    (_ETHER, _MPLS_MULTICAST): _mpls,
    (_ETHER, 0x8864): _pppoe,
    (_ETHER, 0x88E7): _backbone,
    (_ETHER, 0x894F): _nsh,
    (_ETHER, 0x22F3): _trill,
    (_ETHER, _BRIDGED): _ethernet,
    (_PPP, 0x281): _mpls,
    (_IP, 4): _ip_in_ip,
    (_IP, 41): _ip_in_ip,
    (_IP, 17): _udp,
    (_IP, 47): _gre,
    (_IP, 51): _authentication,
    (_IP, 97): _ether_ip,
    (_IP, 137): _mpls,
    (_NSH, 3): _ethernet,
    (_NSH, 4): _nsh,
    (_NSH, 5): _mpls,
}

# The protocols over IP that may carry packets.
MAY_WRAP = frozenset(number for space, number in _STEPS if space == _IP)

# Wrappings that are known and cannot be opened.
_CLOSED: dict[tuple[str, int], str] = {
    (_IP, 50): "IPsec ESP",
    (_IP, 115): "L2TPv3",
    (_PPP, 0xFD): "compressed PPP",
}

# What a frame inside of VXLAN begins with: ARP and IP above all.
_INSIDE = frozenset(
    {key for key in (*_STEPS, *_CLOSED) if key[0] == _ETHER} | _PLAIN_IP | {(_ETHER, 0x0806)}
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
