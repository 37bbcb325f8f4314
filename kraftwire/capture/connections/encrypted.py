"""Encrypted connections: recognised, named and counted, not decoded.

Owns what a TLS handshake shows in clear: the server name and the version.

Source: RFC 8446, section 4 (and 4.2.1 for the version that TLS 1.3 hides in an extension).
"""

from __future__ import annotations

from kraftwire.capture.framing.health import Health, TlsConnection
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tcp.streams import Flow

__all__ = ["VERSIONS", "Tls", "is_tls"]

_HANDSHAKE = 22
_CONTENT_TYPES = range(20, 24)
_RECORD_SIZE_MAX = 16_384 + 2048
_CLIENT_HELLO = 1
_SERVER_HELLO = 2
_SERVER_NAME = 0
_SUPPORTEDVERSIONS = 43
VERSIONS = {
    0x0300: "SSLv3",
    0x0301: "TLSv1",
    0x0302: "TLSv1.1",
    0x0303: "TLSv1.2",
    0x0304: "TLSv1.3",
}

# Hellos are found in this many bytes or not at all: one record, which post-quantum keys fill.
_HELLO_BYTES_MAX = 5 + _RECORD_SIZE_MAX


def is_tls(data: bytes | bytearray) -> bool:
    """Whether a direction starts with a TLS record."""
    return (
        len(data) >= 5
        and data[0] in _CONTENT_TYPES
        and data[1] == 3
        and data[2] <= 4
        and 0 < int.from_bytes(data[3:5], "big") <= _RECORD_SIZE_MAX
    )


class Tls:
    """Counts the bytes of an encrypted connection and reads its hellos."""

    def __init__(self, name: str, client: Flow, server: Flow, health: Health) -> None:
        self.summary = TlsConnection(name)
        self._bytes = health.bytes
        self.client = _Side(client, self)
        self.server = _Side(server, self)
        health.add_tls(self.summary)

    is_waiting = False
    is_kafka = False
    held_bytes = 0

    def release_memory(self) -> None:
        """Do nothing: at most a hello is held."""

    def is_client(self, flow: Flow) -> bool:
        """Whether the direction is the client's."""
        return flow is self.client.flow

    def review(self, packet_number: int) -> None:
        """Do nothing: nothing waits for packets."""

    def finish(self, *, at_capture_end: bool) -> None:  # noqa: ARG002 (as of every stage)
        """Note how many bytes there were."""
        self.summary.client_bytes = self.client.count
        self.summary.server_bytes = self.server.count
        self._bytes.tls += self.client.count - self.client.missing
        self._bytes.tls += self.server.count - self.server.missing

    def read_hello(self, data: bytes) -> bool:
        """Read a hello; returns False while bytes of it are missing."""
        size = int.from_bytes(data[3:5], "big") + 5
        if len(data) < size:
            return not is_tls(data) and len(data) >= 5
        try:
            self._read_handshake(data[5:size])
        except IndexError:
            return True
        return True

    def _read_handshake(self, data: bytes) -> None:
        kind = data[0]
        if kind not in (_CLIENT_HELLO, _SERVER_HELLO):
            return
        version = int.from_bytes(data[4:6], "big")
        at = 4 + 2 + 32
        at += 1 + data[at]
        if kind == _CLIENT_HELLO:
            at += 2 + int.from_bytes(data[at : at + 2], "big")
            at += 1 + data[at]
        else:
            at += 3
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        at += 2
        while at + 4 <= min(end, len(data)):
            extension = int.from_bytes(data[at : at + 2], "big")
            value = data[at + 4 : at + 4 + int.from_bytes(data[at + 2 : at + 4], "big")]
            at += 4 + len(value)
            if extension == _SERVER_NAME and kind == _CLIENT_HELLO:
                self.summary.server_name = value[5:].decode("ascii", "backslashreplace")
            elif extension == _SUPPORTEDVERSIONS and kind == _SERVER_HELLO:
                version = int.from_bytes(value, "big")
        if kind == _SERVER_HELLO:
            self.summary.version = VERSIONS.get(version, f"0x{version:04x}")


class _Side:
    """One direction: collects its hello, then only counts."""

    def __init__(self, flow: Flow, tls: Tls) -> None:
        self.count = 0
        self.missing = 0
        self._start = b""
        self.flow = flow
        self._tls = tls
        flow.sink = self
        flow.feed = self.feed

    def feed(self, data: bytes, start: int, end: int, _stamp: Stamp, /) -> None:
        """Collect bytes until the hello is complete."""
        self.count += end - start
        self._start += data[start:end]
        if self._tls.read_hello(self._start) or len(self._start) > _HELLO_BYTES_MAX:
            self._start = b""
            self.flow.feed = self._count

    def _count(self, _data: bytes, start: int, end: int, _stamp: Stamp, /) -> None:
        self.count += end - start

    def on_conflict(self, _count: int, /) -> None:
        """Ignore bytes that came again and differ."""

    def skip(self, count: int, _stamp: Stamp, _truncated: bool, /) -> None:
        """Count missing bytes too; a hello with a hole is not read."""
        self.count += count
        self.missing += count
        self._start = b""
        self.flow.feed = self._count
