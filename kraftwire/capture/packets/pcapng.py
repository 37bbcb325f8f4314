"""Packets of a pcapng file: sections, interfaces and the four kinds of packet blocks.

Owns the block structure, time stamps of any resolution and the byte order of each section. Blocks
with secrets of TLS go to `source.on_secrets`; others (names, statistics) are skipped.

Source: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from kraftwire.capture.framing.health import PASSED_ON_MAX, Health
from kraftwire.capture.packets.packet import PAUSE, Packet, new_packet
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.limits import PACKET_BYTES_MAX
from kraftwire.protocol.pcapng import read_passing_on

SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"

_INTERFACE = 1
_OLD_PACKET = 2
_SIMPLE_PACKET = 3
_PACKET = 6
_SECRETS = 10
_SECRETS_SIZE_MIN = 20
_TLS_KEYS = 0x544C534B
_LITTLE = "<"
_BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": _LITTLE, b"\x1a\x2b\x3c\x4d": ">"}
_BLOCK_SIZE_MIN = 12
_PACKET_HEADER_SIZE = 28
_PACKET_SIZES = range(_PACKET_HEADER_SIZE, PACKET_BYTES_MAX + 1, 4)
# Of a packet block without options, less what the packet takes.
_PLAIN_BLOCK_SIZE = _PACKET_HEADER_SIZE + 4 + 3
_OPTION_COMMENT = 1
_OPTION_RESOLUTION = 9
_OPTION_OFFSET = 14
_SECOND_NS = 1_000_000_000


class _Interface:
    """The values that an interface block defines for its packets.

    `tick_ns` is the length of a tick where that is a whole number, else 0, and
    `ticks` is how many make a second.
    """

    __slots__ = ("link", "offset_ns", "snap_length", "tick_ns", "ticks")

    def __init__(self, link: int, snap_length: int) -> None:
        self.link = link
        self.snap_length = snap_length
        self.offset_ns = 0
        self.set_resolution(6)

    def set_resolution(self, value: int) -> None:
        """Take the option's byte: a power of ten, or of two if the highest bit is set."""
        self.ticks = 2 ** (value & 0x7F) if value & 0x80 else int(10**value)
        self.tick_ns = _SECOND_NS // self.ticks if _SECOND_NS % self.ticks == 0 else 0

    def time_ns(self, ticks: int) -> int:
        """A time stamp in nanoseconds since the epoch."""
        if self.tick_ns:
            return ticks * self.tick_ns + self.offset_ns
        return ticks * _SECOND_NS // self.ticks + self.offset_ns


class _Section:
    """A section's byte order and interfaces; `on_secrets` is called with key logs of TLS."""

    def __init__(self, order: str, on_secrets: Callable[[bytes], None] | None) -> None:
        self._on_secrets = on_secrets
        self.order = order
        self.interfaces: list[_Interface] = []
        self.block = struct.Struct(f"{order}II").unpack_from
        self.packet = struct.Struct(f"{order}IIIIIII").unpack_from
        self.old_packet = struct.Struct(f"{order}IIHHIIII").unpack_from

    def add_interface(self, data: bytes, start: int, end: int) -> None:
        """Take an interface block's body and options."""
        link, _, snap_length = struct.unpack_from(f"{self.order}HHI", data, start)
        interface = _Interface(link, snap_length)
        self.interfaces.append(interface)
        for code, at, size in self._options(data, start + 8, end):
            if code == _OPTION_RESOLUTION and size == 1:
                interface.set_resolution(data[at])
            elif code == _OPTION_OFFSET and size == 8:
                (seconds,) = struct.unpack_from(f"{self.order}q", data, at)
                interface.offset_ns = seconds * _SECOND_NS

    def note_comment(self, data: bytes, start: int, end: int, health: Health) -> None:
        """Take the options of a packet block: a proxy says which connection passes on which."""
        for code, at, size in self._options(data, start, end):
            if code == _OPTION_COMMENT and len(health.passed_on) < PASSED_ON_MAX:
                names = read_passing_on(bytes(data[at : at + size]).decode(errors="replace"))
                health.passed_on.update([names] if names else ())

    def _options(self, data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield code, position and size of each option of a block."""
        option = struct.Struct(f"{self.order}HH")
        while at + option.size <= end:
            code, size = option.unpack_from(data, at)
            at += option.size
            if code == 0 or at + size > end:
                break
            yield code, at, size
            at += (size + 3) & ~3

    def tell_secrets(self, data: bytes, at: int, size: int) -> None:
        """Pass on the lines of a key log of TLS."""
        kind, length = self.block(data, at + 8)
        is_whole = length <= size - _SECRETS_SIZE_MIN
        if kind == _TLS_KEYS and is_whole and self._on_secrets is not None:
            self._on_secrets(bytes(data[at + 16 : at + 16 + length]))

    def simple_packet(
        self, data: bytes, base: int, start: int, end: int, time_ns: int
    ) -> Packet | None:
        """Return a packet that has no time of its own: it gets that of the packet before it."""
        if not self.interfaces:
            return None
        (wire,) = struct.unpack_from(f"{self.order}I", data, start + 8)
        interface = self.interfaces[0]
        captured = min(wire, interface.snap_length or wire, end - start - 16)
        return Packet(
            time_ns, interface.link, data, start + 12, captured, wire, base, start, end
        )


def read_blocks(source: CaptureSource, health: Health, data: bytes) -> Iterator[Packet]:
    """Yield the packets of a pcapng capture whose first bytes were read already.

    Pauses, problems and errors are those of `pcap.read_packets`.
    """
    section: _Section | None = None
    time_ns = at = 0
    base = source.position
    while True:
        end = len(data)
        size = _BLOCK_SIZE_MIN
        while at + _BLOCK_SIZE_MIN <= end:
            # The fast path: usual packet blocks, one after the other, with their headers whole.
            while section is not None and at + _PACKET_HEADER_SIZE <= end:
                at, taken, last_ns = _follow(source, section, data, at, base)
                if taken:
                    health.packets += taken
                    time_ns = last_ns
                    yield PAUSE
                    continue
                kind, size, which, high, low, captured, wire = section.packet(data, at)
                stop = at + size
                if kind != _PACKET or stop > end or size not in _PACKET_SIZES:
                    break
                if which < len(section.interfaces) and _PACKET_HEADER_SIZE + captured < size:
                    interface = section.interfaces[which]
                    time_ns = interface.time_ns(high << 32 | low)
                    start, link = at + _PACKET_HEADER_SIZE, interface.link
                    health.packets += 1
                    if size > _PLAIN_BLOCK_SIZE + captured:
                        section.note_comment(data, start + (captured + 3 & ~3), stop - 4, health)
                    yield new_packet((time_ns, link, data, start, captured, wire, base, at, stop))
                at = stop
            size = _BLOCK_SIZE_MIN
            if at + _BLOCK_SIZE_MIN > end:
                break
            if data.startswith(SECTION_MAGIC, at):
                section = _section(data, at, source)
            size = _block_size(source, section, data, at)
            if section is None or not size:
                return
            if at + size > end:
                break
            packet = _rare(section, data, base, at, time_ns)
            if packet is not None:
                time_ns = packet.time_ns
                health.packets += 1
                yield packet
            at += size
            size = _BLOCK_SIZE_MIN
        if source.has_pauses:
            yield PAUSE
        more = source.read(max(1, at + size - end))
        if not more:
            break
        data, at = data[at:], 0
        base = source.position - len(data)
        data += more
    if at < len(data) and not source.problem:
        source.problem = f"the file ends inside a block, {len(data) - at} bytes after the last one"


def _follow(
    source: CaptureSource, section: _Section, data: bytes, at: int, base: int
) -> tuple[int, int, int]:
    """Take packets by the source's `follow`, which returns this: none where it does not apply."""
    kind, _, which, *_ = section.packet(data, at)
    if source.follow is None or section.order != _LITTLE or kind != _PACKET:
        return at, 0, 0
    interface = section.interfaces[which] if which < len(section.interfaces) else None
    if interface is None or not interface.tick_ns or interface.offset_ns:
        return at, 0, 0
    return source.follow(data, at, base, interface.tick_ns, interface.link, which)


def _block_size(source: CaptureSource, section: _Section | None, data: bytes, at: int) -> int:
    """The size of the block at a position; 0 if the file makes no sense there."""
    if section is None:
        source.fail("the byte order of a section is unknown")
        return 0
    _, size = section.block(data, at)
    if not _BLOCK_SIZE_MIN <= size <= PACKET_BYTES_MAX or size & 3:
        source.fail(f"a block of {size} bytes cannot be")
        return 0
    return int(size)


def _section(data: bytes, at: int, source: CaptureSource) -> _Section | None:
    order = _BYTE_ORDERS.get(data[at + 8 : at + 12])
    return _Section(order, source.on_secrets) if order else None


def _rare(
    section: _Section, data: bytes, base: int, at: int, time_ns: int
) -> Packet | None:
    """Handle every block but the usual packet block; the packet, if it holds one."""
    kind, size = section.block(data, at)
    if kind == _INTERFACE and size >= 20:
        section.add_interface(data, at + 8, at + size - 4)
    elif kind == _SECRETS and size >= _SECRETS_SIZE_MIN:
        section.tell_secrets(data, at, size)
    elif kind == _SIMPLE_PACKET and size >= 16:
        return section.simple_packet(data, base, at, at + size, time_ns)
    elif kind == _OLD_PACKET and size >= 32:
        _, _, which, _, high, low, captured, wire = section.old_packet(data, at)
        if which < len(section.interfaces) and _PACKET_HEADER_SIZE + captured < size:
            interface = section.interfaces[which]
            time_ns = interface.time_ns(high << 32 | low)
            start = at + _PACKET_HEADER_SIZE
            return Packet(
                time_ns, interface.link, data, start, captured, wire, base, at, at + size
            )
    return None
