"""Writes conversations that passed through a proxy as a pcap file of TCP packets.

The bytes and their times are real; the packets around them are invented, since a program without
privileges cannot see the real ones. Every chunk becomes packets of at most 1500 bytes and one
acknowledgement, as on an Ethernet.
"""

from __future__ import annotations

import struct
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

PACKET_SIZE_MAX = 1500
SERVER_PORT = 9092

_FILE_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)  # Ethernet
_RECORD = struct.Struct("<IIII")
_ETHERNET = bytes.fromhex("020000000002 020000000001 0800")
_IP = struct.Struct(">BBHHHBBH4s4s")
_TCP = struct.Struct(">HHIIBBHHH")
_HEADERS_SIZE = _IP.size + _TCP.size
_SEGMENT_SIZE_MAX = PACKET_SIZE_MAX - _HEADERS_SIZE

_CLIENT_ADDRESS = bytes((10, 0, 0, 1))
_SERVER_ADDRESS = bytes((10, 0, 0, 2))

_SEQUENCE_MASK = 0xFFFFFFFF
_FIN, _SYN, _PUSH, _ACK = 0x01, 0x02, 0x08, 0x10


class CaptureFile:
    """A pcap file that several threads write packets to.

    Order: `close` after the last conversation has ended.
    """

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._file.write(_FILE_HEADER)
        self._lock = threading.Lock()
        self.size = len(_FILE_HEADER)
        self.packet_count = 0

    def write(self, packets: list[bytes]) -> None:
        """Append IP packets, all with the present time."""
        with self._lock:
            # Taken under the lock, so that times never run backwards in the file.
            seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
            for packet in packets:
                size = len(_ETHERNET) + len(packet)
                head = _RECORD.pack(seconds, nanoseconds // 1000, size, size)
                self._file.write(head + _ETHERNET + packet)
                self.size += len(head) + size
            self.packet_count += len(packets)

    def close(self) -> None:
        """Write the rest of the buffer and close the file."""
        with self._lock:
            self._file.close()


@dataclass(slots=True)
class _Side:
    """One end of a conversation: its address and its next sequence number."""

    address: bytes
    port: int
    sequence: int

    def advance(self, count: int) -> None:
        """Count what has been sent: bytes, and one for each of SYN and FIN."""
        self.sequence = (self.sequence + count) & _SEQUENCE_MASK


@dataclass(slots=True)
class Conversation:
    """One TCP connection between a client and the server, as packets.

    Order: `open`, then `data` as it comes, then `close`.
    """

    capture: CaptureFile
    client_port: int
    _client: _Side = field(init=False)
    _server: _Side = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        # A clock of 4 microseconds, as in early TCP: ports are reused, sequence numbers are not.
        clock = time.time_ns() // 4000
        self._client = _Side(_CLIENT_ADDRESS, self.client_port, clock & _SEQUENCE_MASK)
        self._server = _Side(_SERVER_ADDRESS, SERVER_PORT, ~clock & _SEQUENCE_MASK)

    def open(self) -> None:
        """Write the three packets that open a connection."""
        client, server = self._client, self._server
        packets = [_packet(client, server, _SYN)]
        client.advance(1)
        packets.append(_packet(server, client, _SYN | _ACK))
        server.advance(1)
        packets.append(_packet(client, server, _ACK))
        self.capture.write(packets)

    def data(self, chunk: bytes, *, from_client: bool) -> None:
        """Write bytes of one direction, cut into packets, and the other side's acknowledgement."""
        with self._lock:
            sender, receiver = self._sides(from_client)
            packets = []
            for start in range(0, len(chunk), _SEGMENT_SIZE_MAX):
                part = chunk[start : start + _SEGMENT_SIZE_MAX]
                is_last = start + len(part) == len(chunk)
                flags = _ACK | _PUSH if is_last else _ACK
                packets.append(_packet(sender, receiver, flags, part))
                sender.advance(len(part))
            packets.append(_packet(receiver, sender, _ACK))
            self.capture.write(packets)

    def close(self, *, by_client: bool) -> None:
        """Record that one side has sent everything."""
        with self._lock:
            sender, receiver = self._sides(by_client)
            packets = [_packet(sender, receiver, _FIN | _ACK)]
            sender.advance(1)
            packets.append(_packet(receiver, sender, _ACK))
            self.capture.write(packets)

    def _sides(self, from_client: bool) -> tuple[_Side, _Side]:
        if from_client:
            return self._client, self._server
        return self._server, self._client


def _packet(sender: _Side, receiver: _Side, flags: int, payload: bytes = b"") -> bytes:
    size = _HEADERS_SIZE + len(payload)
    addresses = (sender.address, receiver.address)
    checksum = _checksum(_IP.pack(0x45, 0, size, 0, 0x4000, 64, 6, 0, *addresses))
    acknowledged = receiver.sequence if flags & _ACK else 0
    # Captures made on the sending machine have no TCP checksum either: network cards fill it in.
    tcp = _TCP.pack(
        sender.port, receiver.port, sender.sequence, acknowledged, 0x50, flags, 65535, 0, 0
    )
    return _IP.pack(0x45, 0, size, 0, 0x4000, 64, 6, checksum, *addresses) + tcp + payload


def _checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
