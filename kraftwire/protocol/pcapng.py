"""Builds a pcapng capture from the bytes that connections sent and received.

The bytes get synthetic Ethernet, IP and TCP headers: handshake, segments, sequence numbers,
checksums, FIN. The module makes bytes and writes no file. Wireshark and `kraftwire decode` read the
result like any other capture.

Source: the pcapng specification (draft-ietf-opsawg-pcapng), RFC 9293, RFC 791, RFC 8200.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

from kraftwire import __version__
from kraftwire.errors import UsageError, check
from kraftwire.protocol.endpoint import Address, address_text

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_LINK_ETHERNET = 1
_OPTION_HARDWARE_NAME, _OPTION_RESOLUTION, _OPTION_SOFTWARE = 2, 9, 4
_OPTION_COMMENT = 1
_PASSES_ON = " passes on "
_NANOSECONDS = 9
_ETHERNET_IPV4, _ETHERNET_IPV6 = 0x0800, 0x86DD
_PROTOCOL_TCP = 6
_DO_NOT_FRAGMENT = 0x4000
_HOPS = 64
_FIN, _SYN, _RST, _PSH, _ACK = 1, 2, 4, 8, 16
_MASK = 0xFFFFFFFF
_PORT_MAX = 0xFFFF
# The payload that fits into an Ethernet frame of 1500 bytes after the headers.
_MSS_IPV4, _MSS_IPV6 = 1460, 1440
# A gigabyte, so that no reader of the capture concludes that the receiver is blocked.
_WINDOW, _WINDOW_SHIFT = 0xFFFF, 14
# A new connection between the same ends starts at another sequence number (RFC 9293, 3.4.1).
_NS_PER_SEQUENCE_NUMBER = 4000

_BLOCK = struct.Struct("<II")
_BLOCK_END = struct.Struct("<I")
_PACKET_HEAD = struct.Struct("<IIIII")
_TCP = struct.Struct(">HHIIBBHHH")
_IPV4 = struct.Struct(">BBHHHBBH")
_IPV6 = struct.Struct(">IHBB")
_PSEUDO = struct.Struct(">II")


def capture_start() -> bytes:
    """Return the first blocks of a capture file: one section with one Ethernet interface.

    Everything that a `TcpConnection` returns may follow, in any order of connections.
    """
    software = f"kraftwire {__version__}".encode()
    section = struct.pack("<IHHq", _BYTE_ORDER_MAGIC, 1, 0, -1) + _option(
        _OPTION_SOFTWARE, software
    )
    interface = (
        struct.pack("<HHI", _LINK_ETHERNET, 0, 0)
        + _option(_OPTION_HARDWARE_NAME, b"kraftwire")
        + _option(_OPTION_RESOLUTION, bytes([_NANOSECONDS]))
    )
    end = _option(0, b"")
    return _block(_SECTION, section + end) + _block(_INTERFACE, interface + end)


class TcpConnection:
    """One connection as packets; every method returns blocks to append to a capture.

    The ends are numeric addresses with ports. Order: `open`, then `send` in the order in
    which the bytes went over the connection, then `close` or `reset`; an end that has sent all may
    `end` before. Units: times are nanoseconds
    since the epoch. Raises: UsageError for an end without numeric address or possible port.
    """

    def __init__(self, client: Address, server: Address) -> None:
        ends = [_parse(client), _parse(server)]
        if {end.version for end in ends} == {4, 6}:
            ends = [_mapped(end) for end in ends]
        self._is_ipv4 = ends[0].version == 4
        self._mss = _MSS_IPV4 if self._is_ipv4 else _MSS_IPV6
        self._packed = [end.packed for end in ends]
        self._ports = (client[1], server[1])
        # Next sequence number of client and server.
        self._next = [0, 0]
        self._is_open = False
        self._has_ended = [False, False]

    @property
    def name(self) -> str:
        """Both ends: "client:port-server:port"."""
        ends = zip(map(ip_address, self._packed), self._ports, strict=True)
        return "-".join(address_text((str(host), port)) for host, port in ends)

    def open(self, time_ns: int, *, passes_on: TcpConnection | None = None) -> bytes:
        """Return the three-way handshake.

        A comment says if this connection of a proxy passes on what comes on another one.
        """
        check(not self._is_open, "a connection is opened once")
        self._is_open = True
        first = (time_ns // _NS_PER_SEQUENCE_NUMBER) & _MASK
        self._next = [first, first ^ 0x80000000]
        comment = "" if passes_on is None else f"{self.name}{_PASSES_ON}{passes_on.name}"
        return b"".join(
            (
                self._packet(time_ns, 0, _SYN, comment=comment),
                self._packet(time_ns, 1, _SYN | _ACK),
                self._packet(time_ns, 0, _ACK),
            )
        )

    def send(self, time_ns: int, data: bytes, *, from_client: bool) -> bytes:
        """Return bytes of one direction, cut into segments that fit into an Ethernet frame."""
        check(self._is_open, "bytes come after the handshake")
        side = 0 if from_client else 1
        return b"".join(
            self._packet(time_ns, side, _PSH | _ACK, data[start : start + self._mss])
            for start in range(0, len(data), self._mss)
        )

    def end(self, time_ns: int, *, from_client: bool) -> bytes:
        """Return the FIN of one end, which sends no more; nothing if it has ended before."""
        check(self._is_open, "a connection is opened first")
        side = 0 if from_client else 1
        if self._has_ended[side]:
            return b""
        self._has_ended[side] = True
        return self._packet(time_ns, side, _FIN | _ACK)

    def close(self, time_ns: int, *, from_client: bool) -> bytes:
        """Return the FIN of one end, and the FIN with which the other end answers."""
        return b"".join(
            (
                self.end(time_ns, from_client=from_client),
                self.end(time_ns, from_client=not from_client),
                self._packet(time_ns, 0 if from_client else 1, _ACK),
            )
        )

    def reset(self, time_ns: int, *, from_client: bool) -> bytes:
        """Return the RST with which one end breaks the connection."""
        check(self._is_open, "a connection is opened first")
        return self._packet(time_ns, 0 if from_client else 1, _RST | _ACK)

    def _packet(
        self, time_ns: int, side: int, flags: int, payload: bytes = b"", *, comment: str = ""
    ) -> bytes:
        segment = self._segment(side, flags, payload)
        self._next[side] += len(payload) + bool(flags & (_SYN | _FIN))
        source, target = self._packed[side], self._packed[1 - side]
        if self._is_ipv4:
            packet = _ipv4(source, target, segment)
        else:
            packet = _IPV6.pack(6 << 28, len(segment), _PROTOCOL_TCP, _HOPS) + source + target
            packet += segment
        kind = _ETHERNET_IPV4 if self._is_ipv4 else _ETHERNET_IPV6
        data = _hardware(target) + _hardware(source) + kind.to_bytes(2) + packet
        size = len(data)
        head = _PACKET_HEAD.pack(0, time_ns >> 32, time_ns & _MASK, size, size)
        if comment:
            data += bytes(-size % 4) + _option(_OPTION_COMMENT, comment.encode()) + _option(0, b"")
        return _block(_PACKET, head + data)

    def _segment(self, side: int, flags: int, payload: bytes) -> bytes:
        """Return a packet with this payload and correct checksums."""
        options = b""
        if flags & _SYN:
            options = struct.pack(">BBHBBBB", 2, 4, self._mss, 1, 3, 3, _WINDOW_SHIFT)
        size = _TCP.size + len(options)
        ports = (self._ports[side], self._ports[1 - side])
        seq = self._next[side] & _MASK
        ack = self._next[1 - side] & _MASK if flags & _ACK else 0
        # The length in 32-bit words stands in the upper half of its byte.
        head = (*ports, seq, ack, size // 4 << 4, flags, _WINDOW)
        pseudo = b"".join(self._packed) + _PSEUDO.pack(size + len(payload), _PROTOCOL_TCP)
        checksum = _checksum(pseudo + _TCP.pack(*head, 0, 0) + options + payload)
        return _TCP.pack(*head, checksum, 0) + options + payload


def read_passing_on(comment: str) -> tuple[str, str] | None:
    """Return the names in a comment of `TcpConnection.open`: a connection, and the one whose
    requests it passes on. None for another comment.
    """
    name, between, other = comment.partition(_PASSES_ON)
    return (name, other) if between else None


def _parse(address: Address) -> IPv4Address | IPv6Address:
    host, _, _ = address[0].partition("%")  # a link-local address may name its interface
    if not 0 <= address[1] <= _PORT_MAX:
        raise UsageError(f"{address[1]} is not a port, expected 0 to {_PORT_MAX}")
    try:
        return ip_address(host)
    except ValueError as error:
        raise UsageError(f"{address[0]!r} is not a numeric address") from error


def _mapped(address: IPv4Address | IPv6Address) -> IPv6Address:
    if isinstance(address, IPv6Address):
        return address
    return IPv6Address(bytes(10) + b"\xff\xff" + address.packed)


def _hardware(address: bytes) -> bytes:
    """Return a locally administered Ethernet address made from the IP address."""
    return b"\x02\x00" + address[-4:]


def _ipv4(source: bytes, target: bytes, segment: bytes) -> bytes:
    size = _IPV4.size + 8 + len(segment)
    fields = (0x45, 0, size, 0, _DO_NOT_FRAGMENT, _HOPS, _PROTOCOL_TCP)
    checksum = _checksum(_IPV4.pack(*fields, 0) + source + target)
    return _IPV4.pack(*fields, checksum) + source + target + segment


def _checksum(data: bytes) -> int:
    """The internet checksum: one's complement of the one's complement sum of 16-bit words."""
    # That sum is the remainder by 65535 of all the bytes as one number, save that it is never 0.
    number = int.from_bytes(data + bytes(len(data) % 2))
    return 0xFFFF - (number % 0xFFFF or 0xFFFF)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = len(body) + _BLOCK.size + _BLOCK_END.size
    return _BLOCK.pack(kind, size) + body + _BLOCK_END.pack(size)
