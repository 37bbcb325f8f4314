"""TLS connections: recognised and counted, and decrypted where their secrets are known."""

from __future__ import annotations

from typing import Protocol

from kraftwire.capture.framing.health import Health, TlsConnection
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tcp import Flow
from kraftwire.capture.tls import (
    CERTIFICATE,
    CLIENT_HELLO,
    SUITES,
    TLS_1_3,
    HandshakeMessages,
    Hello,
    KeyLog,
    Opener,
    certificate_name,
    openers_1_2,
    read_hello,
)

_CHANGE_CIPHER, _HANDSHAKE, _TEXT = 20, 22, 23
_CONTENT_TYPES = range(20, 24)
_RECORD_SIZE_MAX = 16_384 + 2048
VERSIONS = {
    0x0300: "SSLv3",
    0x0301: "TLSv1",
    0x0302: "TLSv1.1",
    0x0303: "TLSv1.2",
    0x0304: "TLSv1.3",
}


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
    """Counts the bytes of an encrypted connection and reads its handshake, while that is in clear.
    """

    __slots__ = ("_bytes", "_version", "client", "server", "summary")

    def __init__(self, name: str, client: Flow, server: Flow, health: Health) -> None:
        self.summary = TlsConnection(name)
        self._bytes = health.bytes
        self._version = 0
        self.client = _Side(client, self)
        self.server = _Side(server, self)
        health.add_tls(self.summary)

    is_waiting = False
    is_kafka = False

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits here."""
        return self.client.held_bytes + self.server.held_bytes

    def release_memory(self) -> None:
        """Stop reading the handshake."""
        self.client.forget()
        self.server.forget()

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
        del self.client, self.server

    def take_message(self, message: bytes, side: _Side) -> None:
        """Read a message of the handshake."""
        hello = read_hello(message)
        if hello is not None:
            note_hello(self.summary, hello)
            self._version = hello.version
        elif message[0] == CERTIFICATE and side is self.client:
            self.summary.certificate_name = certificate_name(message, self._version)


def note_hello(summary: TlsConnection, hello: Hello) -> None:
    """Note what a hello says of a connection."""
    if hello.kind == CLIENT_HELLO:
        summary.server_name = hello.server_name
    else:
        summary.version = VERSIONS.get(hello.version, f"0x{hello.version:04x}")


class _Side:
    """One direction: reads its handshake while that is in clear, then only counts."""

    __slots__ = ("_messages", "_start", "_tls", "count", "flow", "missing")

    def __init__(self, flow: Flow, tls: Tls) -> None:
        self.count = 0
        self.missing = 0
        self._start = bytearray()
        self._messages = HandshakeMessages()
        self.flow = flow
        self._tls = tls
        flow.sink = self
        flow.feed = self.feed

    @property
    def held_bytes(self) -> int:
        """The bytes of a message that is not complete."""
        return len(self._start) + self._messages.held_bytes

    def feed(self, data: bytes, start: int, end: int, _stamp: Stamp, /) -> None:
        """Collect records as long as they belong to the handshake."""
        self.count += end - start
        self._start += data[start:end]
        while len(self._start) >= _HEAD_SIZE:
            size = _record_size(self._start, 0)
            if not size or self._start[0] != _HANDSHAKE:
                self.forget()
                return
            if len(self._start) < size:
                return
            record = self._start[_HEAD_SIZE:size]
            del self._start[:size]
            for message in self._messages.take(record):
                self._tls.take_message(message, self)

    def forget(self) -> None:
        """Only count from now on."""
        self._start.clear()
        self._messages.clear()
        self.flow.feed = self._count

    def _count(self, _data: bytes, start: int, end: int, _stamp: Stamp, /) -> None:
        self.count += end - start

    def on_conflict(self, _count: int, /) -> None:
        """Ignore bytes that came again and differ."""

    def skip(self, count: int, _stamp: Stamp, _truncated: bool, /) -> None:
        """Count missing bytes too; a handshake with a hole is not read further."""
        self.count += count
        self.missing += count
        self.forget()


_FINISHED, _KEY_UPDATE = 20, 24
_KINDS = range(20, 25)
_HEAD_SIZE = 5

# Records that wait for the hello of the other side, which a capture may show later.
_WAITING_MAX = 64
# After a hole that hides where records begin, the next record is searched for in this many bytes,
# and tried under this many numbers.
_SEARCH_BYTES_MAX = 256 * 1024
_NUMBERS_MAX = 256


class TlsOwner(Protocol):
    """The connection that a direction belongs to."""

    summary: TlsConnection

    def take_message(self, message: bytes, side: TlsDirection) -> None:
        """Read a message of the handshake."""

    def fail(self, reason: str) -> None:
        """Stop decrypting, for a reason."""

    def count(self, wire: int, text: int) -> None:
        """Count a record's captured bytes, of which some are text."""

    def count_lost(self, wire: int) -> None:
        """Count captured bytes of records that stay closed."""


class TlsDirection:
    """One direction of a connection: its records, and the key that opens the next one.

    `later` are openers that come after the present one. `is_late` if records of the
    handshake come first, whose key is not known. `closed_bytes` count what was not decrypted.
    """

    __slots__ = (
        "_begin", "_buffer", "_handshake", "_handshakes", "_is_closed", "_lost_at",
        "_messages", "_missing", "_number", "_opener", "_tls", "_waiting", "closed_bytes", "flow",
        "is_late", "later", "text",
    )  # fmt: skip

    def __init__(self, flow: Flow, text: Flow, tls: TlsOwner) -> None:
        self.flow = flow
        self.text = text
        self.later: list[Opener] = []
        self.is_late = False
        self.closed_bytes = 0
        self._tls = tls
        self._opener: Opener | None = None
        self._number = 0
        self._handshakes = 0
        self._is_closed = False
        self._buffer = bytearray()
        self._begin = 0
        self._missing = 0
        self._lost_at = -1
        self._messages = HandshakeMessages()
        self._waiting: list[tuple[bytes, bytes, Stamp]] = []
        flow.sink = self
        flow.feed = self.feed

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits here."""
        waiting = sum(len(each[1]) for each in self._waiting)
        return len(self._buffer) + self._messages.held_bytes + waiting

    # -- bytes ---------------------------------------------------------------------------------

    def feed(self, data: bytes, start: int, end: int, stamp: Stamp, /) -> None:
        """Take bytes in order."""
        if self._is_closed:
            self._count_closed(end - start)
            return
        if not self._buffer:
            self._begin = stamp[1]
        self._buffer += data[start:end]
        if self._lost_at >= 0 and not self._search():
            return
        self._cut(stamp)

    def _cut(self, stamp: Stamp) -> None:
        """Take the records that are complete."""
        buffer, at = self._buffer, 0
        while len(buffer) - at >= _HEAD_SIZE and not self._is_closed:
            size = _record_size(buffer, at)
            if not size:
                self._buffer = buffer[at:]
                self._tls.fail("what follows is not a TLS record")
                return
            if len(buffer) - at < size:
                break
            whole = bytes(buffer[at : at + size])
            missing, self._missing = self._missing, 0
            at += size
            record = whole[:_HEAD_SIZE], whole[_HEAD_SIZE:], (stamp[0], self._begin, stamp[2])
            self._begin = stamp[1]
            if missing:
                self._lose_record(len(record[1]), size - missing)
            else:
                self._take(*record)
        if self._is_closed:
            self._count_closed(len(buffer) - at)
            self._buffer = bytearray()
        else:
            self._buffer = buffer[at:]

    def skip(self, count: int, stamp: Stamp, _truncated: bool, /) -> None:
        """Continue after missing bytes: inside a record, or where one has to be found again."""
        if self._is_closed:
            return
        if self._opener is None:
            self._tls.fail("bytes of its handshake are missing")
            return
        if self._lost_at >= 0:
            self._lost_at += count + len(self._buffer)
            self._tls.count_lost(len(self._buffer))
            self._buffer.clear()
            return
        size = _record_size(self._buffer, 0) if len(self._buffer) >= _HEAD_SIZE else 0
        if size:
            inside = min(count, size - len(self._buffer))
            self._buffer += bytes(inside)
            self._missing += inside
            count -= inside
            if len(self._buffer) == size:
                self._cut(stamp)
        if count:
            self._lost_at = count + len(self._buffer)
            self._tls.count_lost(len(self._buffer))
            self._buffer.clear()

    def on_conflict(self, count: int, /) -> None:
        """Note that bytes came again and differ."""
        if not self._is_closed:
            self.text.sink.on_conflict(count)

    def _search(self) -> bool:
        """Find a record again after a hole; only the right key and number open it."""
        opener, buffer = self._opener, self._buffer
        assert opener is not None
        for at in range(len(buffer) - _HEAD_SIZE + 1):
            size = _record_size(buffer, at) if buffer[at] == _TEXT else 0
            if not size or len(buffer) - at < size:
                continue
            head, body = bytes(buffer[at : at + 5]), bytes(buffer[at + 5 : at + size])
            lost = self._lost_at + at
            least = _HEAD_SIZE + opener.overhead
            for count in range(min(lost // least, _NUMBERS_MAX) + 1):
                if opener.open(head, body, self._number + count) is not None:
                    self._number += count
                    self._lost_at = -1
                    self._tls.summary.damaged_records += count
                    self._tls.count_lost(at)
                    del buffer[:at]
                    self._lose_text(lost - count * least)
                    return True
        if len(buffer) > _SEARCH_BYTES_MAX:
            self._tls.fail("no record is recognised after missing packets")
        return False

    # -- records -------------------------------------------------------------------------------

    def _take(self, head: bytes, body: bytes, stamp: Stamp) -> None:
        size = _HEAD_SIZE + len(body)
        if self._opener is not None and (head[0] != _CHANGE_CIPHER):
            self._open(head, body, stamp)
        elif head[0] == _TEXT:
            # In TLS 1.3 what the server answers may come later in the capture.
            self._waiting.append((head, body, stamp))
            if len(self._waiting) > _WAITING_MAX:
                self._tls.fail("the server's hello is missing")
        else:
            self._tls.count(size, 0)
            if head[0] == _HANDSHAKE:
                for message in self._messages.take(body):
                    self._tls.take_message(message, self)
            elif head[0] == _CHANGE_CIPHER and self._opener is None and self.later:
                self.begin_next()

    def begin_next(self) -> None:
        """Take the next key; records count from 0 again."""
        self._opener = self.later.pop(0)
        self._number = 0
        self._messages.clear()

    def resume(self) -> None:
        """Take the records that have waited for a key."""
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            if self._is_closed:
                self._count_closed(_HEAD_SIZE + len(record[1]))
            else:
                self._take(*record)

    def _open(self, head: bytes, body: bytes, stamp: Stamp) -> None:
        assert self._opener is not None
        found = self._opener.open(head, body, self._number)
        if found is None and self.later:
            # The key of the handshake may be the one that is not known.
            found = self.later[0].open(head, body, 0)
            if found is not None:
                self.begin_next()
        size = _HEAD_SIZE + len(body)
        if found is None and self.is_late:
            self._tls.count(size, 0)
            self._handshakes += 1
            if self._handshakes > _WAITING_MAX:
                self._tls.fail("its secrets do not open what it says")
            return
        if found is None:
            self._lose_record(len(body), size)
            return
        self.is_late = False
        self._number += 1
        kind, text = found
        self._tls.count(size, len(text) if kind == _TEXT else 0)
        if kind == _TEXT:
            if text:
                self.text.feed(text, 0, len(text), stamp)
        elif kind == _HANDSHAKE and head[0] == _TEXT:
            self._read_handshake(text)

    def _read_handshake(self, text: bytes) -> None:
        """Read handshake messages of TLS 1.3: some of them end the use of a key."""
        for message in self._messages.take(text):
            if message[0] == _FINISHED and self.later:
                self.begin_next()
            elif message[0] == _KEY_UPDATE and self._opener is not None:
                self.later = [self._opener.next()]
                self.begin_next()
            else:
                self._tls.take_message(message, self)

    def _lose_record(self, size: int, captured: int) -> None:
        """Skip a record that cannot be opened; its length gives that of its text."""
        assert self._opener is not None
        self._number += 1
        self._tls.summary.damaged_records += 1
        self._tls.count_lost(captured)
        if not self.later:
            self._lose_text(size - self._opener.overhead)

    def _lose_text(self, count: int) -> None:
        if count > 0:
            self.text.sink.skip(count, self.flow.stamp, False)

    # -- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Only count from now on."""
        if self._is_closed:
            return
        self._is_closed = True
        self._count_closed(sum(_HEAD_SIZE + len(each[1]) for each in self._waiting))
        self._waiting = []

    def finish(self) -> None:
        """Count the bytes of an incomplete record."""
        self._count_closed(len(self._buffer) - self._missing)
        self._buffer.clear()
        self._missing = 0
        self.close()

    def _count_closed(self, count: int) -> None:
        self.closed_bytes += count
        self._tls.count(count, 0)


def _record_size(buffer: bytearray, at: int) -> int:
    """The size of the record that begins here, its head included; 0 if none does."""
    if buffer[at] not in _KINDS or buffer[at + 1] != 3 or buffer[at + 2] > 4:
        return 0
    size = int.from_bytes(buffer[at + 3 : at + 5], "big")
    return _HEAD_SIZE + size if 0 < size <= _RECORD_SIZE_MAX else 0


class Inner(Protocol):
    """The stage of a connection that takes the text in clear."""

    @property
    def is_kafka(self) -> bool:
        """Whether the text is decoded as Kafka's."""

    @property
    def is_waiting(self) -> bool:
        """Whether the next packets may settle something that is open."""

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits in it."""

    def release_memory(self) -> None:
        """Stop waiting for anything that may complete what is held, to free memory."""

    def review(self, packet_number: int) -> None:
        """Let packets pass."""

    def finish(self, *, at_capture_end: bool) -> None:
        """Pass on what there is."""


class HasStage(Inner, Protocol):
    """Protocol detection: it has a stage once it knows the protocol."""

    @property
    def stage(self) -> Inner | None:
        """The stage that follows, None until the protocol is known."""

    def forget(self) -> None:
        """Let everything go."""


class Decrypted:
    """A TLS connection between two flows; its text goes to two others.

    `flows` are the outer ones and those of the text, each the client's first; `inner` takes
    what the text's get.
    """

    __slots__ = (
        "_health", "_hello", "_inner", "_keys", "_version", "client", "server", "summary",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        flows: tuple[tuple[Flow, Flow], tuple[Flow, Flow]],
        health: Health,
        keys: KeyLog,
        inner: HasStage,
    ) -> None:
        self.summary = TlsConnection(name)
        self._health = health
        self._keys = keys
        self._inner = inner
        self._hello: Hello | None = None
        self._version = 0
        outer, texts = flows
        self.client = TlsDirection(outer[0], texts[0], self)
        self.server = TlsDirection(outer[1], texts[1], self)

    @property
    def _stage(self) -> Inner:
        return self._inner.stage or self._inner

    @property
    def is_waiting(self) -> bool:
        """Whether the next packets may settle something that is open."""
        return self._stage.is_waiting

    @property
    def is_kafka(self) -> bool:
        """Whether the text is Kafka's."""
        return self._stage.is_kafka

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits here."""
        texts = self.client.text.held_bytes + self.server.text.held_bytes
        sides = self.client.held_bytes + self.server.held_bytes
        return sides + texts + self._stage.held_bytes

    def release_memory(self) -> None:
        """Stop waiting for anything that may complete what is held."""
        self._stage.release_memory()

    def is_client(self, flow: Flow) -> bool:
        """Whether the direction is the client's."""
        return flow is self.client.flow

    def review(self, packet_number: int) -> None:
        """Let the text's pairing decide what it can."""
        self._stage.review(packet_number)

    def finish(self, *, at_capture_end: bool) -> None:
        """Pass on what there is, and say what was not decrypted."""
        for side in (self.client, self.server):
            side.finish()
        self.summary.client_bytes = self.client.closed_bytes
        self.summary.server_bytes = self.server.closed_bytes
        if self.summary.reason or self.summary.damaged_records:
            self._health.add_tls(self.summary)
        else:
            self._health.add_decrypted(self.summary)
        self._stage.finish(at_capture_end=at_capture_end)
        self._inner.forget()
        del self.client, self.server

    def fail(self, reason: str) -> None:
        """Stop decrypting: further bytes of the connection are only counted."""
        self.summary.reason = self.summary.reason or reason
        for side in (self.client, self.server):
            side.close()

    def take_message(self, message: bytes, side: TlsDirection) -> None:
        """Read a message of the handshake; after the server's hello the keys are known."""
        hello = read_hello(message)
        if hello is None:
            if message[0] == CERTIFICATE and side is self.client:
                self.summary.certificate_name = certificate_name(message, self._version)
            return
        if hello.is_retry:
            return
        note_hello(self.summary, hello)
        if hello.kind == CLIENT_HELLO:
            self._hello = hello
        elif self._hello is None:
            self.fail("the client's hello is missing")
        else:
            self._version = hello.version
            self._agree(self._hello.random, hello)

    def _agree(self, random: bytes, hello: Hello) -> None:
        secrets = self._keys.find(random, hello.session)
        suite = SUITES.get(hello.suite)
        if not secrets:
            self.fail("its secrets are not among those that are known")
        elif suite is None:
            self.fail(f"cipher suite 0x{hello.suite:04x} is not supported")
        elif hello.version == TLS_1_3:
            for side, label in ((self.client, "CLIENT"), (self.server, "SERVER")):
                found = [
                    secrets.get(f"{label}_{name}")
                    for name in ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0")
                ]
                side.later = [Opener.of_secret(suite, each) for each in found if each is not None]
                if side.later:
                    side.is_late = len(side.later) == 1
                    side.begin_next()
                else:
                    self.fail("its traffic secrets are not among those that are known")
        elif (master := secrets.get("CLIENT_RANDOM")) is not None:
            made = openers_1_2(suite, master, random, hello.random)
            self.client.later, self.server.later = [made[0]], [made[1]]
        else:
            self.fail("its master secret is not among those that are known")
        self.client.resume()
        self.server.resume()

    def count(self, wire: int, text: int) -> None:
        """Count a record's captured bytes, of which some are text."""
        self._health.bytes.tls += wire - text

    def count_lost(self, wire: int) -> None:
        """Count captured bytes of records that stay closed."""
        self._health.bytes.undecoded += wire
