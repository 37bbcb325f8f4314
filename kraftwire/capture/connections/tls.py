"""TLS connections: recognised and counted, and decrypted where their secrets are known."""

from __future__ import annotations

from kraftwire.capture.connections.stage import Detection, Stage
from kraftwire.capture.connections.tls_records import (
    CHANGE_CIPHER,
    HANDSHAKE,
    HEAD_SIZE,
    TEXT,
    TlsRecord,
    TlsRecords,
)
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

VERSIONS = {
    0x0300: "SSLv3",
    0x0301: "TLSv1",
    0x0302: "TLSv1.1",
    0x0303: "TLSv1.2",
    0x0304: "TLSv1.3",
}
_FINISHED, _KEY_UPDATE = 20, 24

# Records that wait for the hello of the other side, which a capture may show later.
_WAITING_MAX = 64
# After a hole, a record is tried under this many numbers.
_NUMBERS_MAX = 256


class TlsDirection:
    """One direction of a connection: its records, and the key that opens the next one.

    `text` gets what they hold, None if they cannot be opened. `later` are openers that come after
    the present one. `is_late` if records of the handshake come first, whose key is not known.
    `closed_bytes` count what was not decrypted.
    """

    __slots__ = (
        "_handshakes", "_is_closed", "_messages", "_number", "_opener", "_records", "_tls",
        "_waiting", "closed_bytes", "flow", "is_late", "later", "text",
    )  # fmt: skip

    def __init__(self, flow: Flow, text: Flow | None, tls: Tls) -> None:
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
        self._records = TlsRecords()
        self._messages = HandshakeMessages()
        self._waiting: list[TlsRecord] = []
        flow.sink = self
        flow.feed = self.feed

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits here."""
        waiting = sum(len(each.body) for each in self._waiting)
        text = 0 if self.text is None else self.text.held_bytes
        return self._records.held_bytes + self._messages.held_bytes + waiting + text

    # -- bytes ---------------------------------------------------------------------------------

    def feed(self, data: bytes, start: int, end: int, stamp: Stamp, /) -> None:
        """Take bytes in order."""
        if self._is_closed:
            self._count_closed(end - start)
            return
        self._records.add(data, start, end, stamp)
        if self._records.lost < 0 or self._search():
            self._take_records(stamp)

    def skip(self, count: int, stamp: Stamp, _truncated: bool, /) -> None:
        """Continue after missing bytes."""
        if self.text is None:
            self.closed_bytes += count
        if self._is_closed:
            return
        if self._opener is None:
            self._fail("bytes of its handshake are missing")
            return
        if self._records.lost < 0:
            count = self._records.fill_record(count)
            self._take_records(stamp)
        if count:
            self._tls.count_lost(self._records.lose_start(count))

    def on_conflict(self, count: int, /) -> None:
        """Note that bytes came again and differ."""
        if self.text is not None and not self._is_closed:
            self.text.sink.on_conflict(count)

    def _take_records(self, stamp: Stamp) -> None:
        """Take the records that are complete."""
        records = self._records
        while not self._is_closed and (record := records.next(stamp)) is not None:
            if record.missing:
                self._lose_record(record)
            else:
                self._take_record(record)
        if records.is_broken:
            self._fail("what follows is not a TLS record")

    def _search(self) -> bool:
        """Find a record again after a hole; only the right key and number open it."""
        assert self._opener is not None
        least = HEAD_SIZE + self._opener.overhead
        for at, record in self._records.candidates():
            lost = self._records.lost + at
            count = self._count_records(record, lost // least)
            if count >= 0:
                self._number += count
                self._records.go_on_at(at)
                self._tls.summary.damaged_records += count
                self._tls.count_lost(at)
                self._lose_text(lost - count * least)
                return True
        if self._records.is_searched_enough:
            self._fail("no record is recognised after missing packets")
        return False

    def _count_records(self, record: TlsRecord, count_max: int) -> int:
        """Return how many records were lost before this one; -1 if the key does not open it."""
        assert self._opener is not None
        for count in range(min(count_max, _NUMBERS_MAX) + 1):
            if self._opener.open(record.head, record.body, self._number + count) is not None:
                return count
        return -1

    # -- records -------------------------------------------------------------------------------

    def _take_record(self, record: TlsRecord) -> None:
        if self._opener is not None and record.kind != CHANGE_CIPHER:
            self._open(record)
        elif self.text is None and record.kind != HANDSHAKE:
            self._count_closed(record.size)
            self.close()
        elif record.kind == TEXT:
            # In TLS 1.3 what the server answers may come later in the capture.
            self._waiting.append(record)
            if len(self._waiting) > _WAITING_MAX:
                self._fail("the server's hello is missing")
        else:
            self._count_clear(record.size)
            if record.kind == HANDSHAKE:
                for message in self._messages.messages_of(record.body):
                    self._tls.take_message(message, self)
            elif record.kind == CHANGE_CIPHER and self._opener is None and self.later:
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
                self._count_closed(record.size)
            else:
                self._take_record(record)

    def _open(self, record: TlsRecord) -> None:
        assert self._opener is not None
        found = self._opener.open(record.head, record.body, self._number)
        if found is None and self.later:
            # The key of the handshake may be the one that is not known.
            found = self.later[0].open(record.head, record.body, 0)
            if found is not None:
                self.begin_next()
        if found is None and self.is_late:
            self._tls.count(record.size, 0)
            self._handshakes += 1
            if self._handshakes > _WAITING_MAX:
                self._fail("the logged secrets do not match")
            return
        if found is None:
            self._lose_record(record)
            return
        self.is_late = False
        self._number += 1
        kind, text = found
        self._tls.count(record.size, len(text) if kind == TEXT else 0)
        if kind == TEXT:
            if text and self.text is not None:
                self.text.feed(text, 0, len(text), record.stamp)
        elif kind == HANDSHAKE and record.kind == TEXT:
            self._read_handshake(text)

    def _read_handshake(self, text: bytes) -> None:
        """Read handshake messages of TLS 1.3: some of them end the use of a key."""
        for message in self._messages.messages_of(text):
            if message[0] == _FINISHED and self.later:
                self.begin_next()
            elif message[0] == _KEY_UPDATE and self._opener is not None:
                self.later = [self._opener.next()]
                self.begin_next()
            else:
                self._tls.take_message(message, self)

    def _lose_record(self, record: TlsRecord) -> None:
        """Skip a record that cannot be opened; its length gives that of its text."""
        assert self._opener is not None
        self._number += 1
        self._tls.summary.damaged_records += 1
        self._tls.count_lost(record.size - record.missing)
        if not self.later:
            self._lose_text(len(record.body) - self._opener.overhead)

    def _lose_text(self, count: int) -> None:
        if count > 0 and self.text is not None:
            self.text.sink.skip(count, self.flow.stamp, False)

    # -- the end -------------------------------------------------------------------------------

    def _fail(self, reason: str) -> None:
        """Close the direction; if its connection is decrypted, also that, for a reason."""
        if self.text is None:
            self.close()
        else:
            self._tls.fail(reason)

    def close(self) -> None:
        """Only count from now on."""
        if self._is_closed:
            return
        self._is_closed = True
        waiting = sum(each.size for each in self._waiting)
        self._count_closed(waiting + self._records.clear())
        self._waiting = []
        self._messages.clear()

    def _count_clear(self, count: int) -> None:
        """Count bytes of a handshake in clear."""
        if self.text is None:
            self._count_closed(count)
        else:
            self._tls.count(count, 0)

    def _count_closed(self, count: int) -> None:
        self.closed_bytes += count
        self._tls.count(count, 0)


class Tls:
    """A TLS connection between two flows: its handshake is read while that is in clear.

    With the secrets of a key log, its text goes to two other flows, the client's first, and `inner`
    takes what these get. Without, the bytes are counted.
    """

    __slots__ = (
        "_health", "_hello", "_inner", "_keys", "_version", "client", "server", "summary",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        flows: tuple[Flow, Flow],
        health: Health,
        *,
        keys: KeyLog | None = None,
        texts: tuple[Flow | None, Flow | None] = (None, None),
        inner: Detection | None = None,
    ) -> None:
        self.summary = TlsConnection(name)
        self._health = health
        self._keys = keys
        self._inner = inner
        self._hello: Hello | None = None
        self._version = 0
        self.client = TlsDirection(flows[0], texts[0], self)
        self.server = TlsDirection(flows[1], texts[1], self)
        if keys is None:
            health.add_tls(self.summary)

    @property
    def _stage(self) -> Stage | None:
        """What takes the text, None if there is none."""
        return None if self._inner is None else self._inner.stage or self._inner

    @property
    def is_waiting(self) -> bool:
        """Whether the next packets may settle something that is open."""
        return self._stage is not None and self._stage.is_waiting

    @property
    def is_kafka(self) -> bool:
        """Whether the text is Kafka's."""
        return self._stage is not None and self._stage.is_kafka

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits here."""
        inside = 0 if self._stage is None else self._stage.held_bytes
        return self.client.held_bytes + self.server.held_bytes + inside

    def release_memory(self) -> None:
        """Stop waiting for anything that may complete what is held."""
        if self._stage is not None:
            self._stage.release_memory()
            return
        self.client.close()
        self.server.close()

    def is_client(self, flow: Flow, /) -> bool:
        """Whether the direction is the client's."""
        return flow is self.client.flow

    def review(self, packet_number: int) -> None:
        """Decide what packets that have passed may settle in the text."""
        if self._stage is not None:
            self._stage.review(packet_number)

    def finish(self, *, at_capture_end: bool) -> None:
        """Pass on the rest of the text, and list the connection by whether it was decrypted."""
        for side in (self.client, self.server):
            side.close()
        self.summary.client_bytes = self.client.closed_bytes
        self.summary.server_bytes = self.server.closed_bytes
        if self._keys is not None:
            is_closed = self.summary.reason or self.summary.damaged_records
            (self._health.add_tls if is_closed else self._health.add_decrypted)(self.summary)
        if self._stage is not None:
            self._stage.finish(at_capture_end=at_capture_end)
        if self._inner is not None:
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
        elif hello.kind == CLIENT_HELLO:
            self.summary.server_name = hello.server_name
            self._hello = hello
        elif self._keys is None or not hello.is_retry:
            self._version = hello.version
            self.summary.version = VERSIONS.get(hello.version, f"0x{hello.version:04x}")
            if self._keys is not None:
                self._agree(self._keys, hello)

    def _agree(self, keys: KeyLog, hello: Hello) -> None:
        """Find the keys by the hellos of both sides."""
        if self._hello is None:
            self.fail("the client's hello is missing")
            return
        random = self._hello.random
        secrets = keys.find(random, hello.session)
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
