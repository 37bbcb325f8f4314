"""Decrypts TLS connections whose secrets are known, and passes their text on.

Owns the handshake, which names the secrets that are needed, and what becomes of the text. How
keys follow from secrets is up to `tls.ciphers`, how they open records to `tls_records`.
"""

from __future__ import annotations

from typing import Protocol

from kraftwire.capture.connections.encrypted import VERSIONS
from kraftwire.capture.connections.tls_records import TlsDirection
from kraftwire.capture.framing.health import Health, TlsConnection
from kraftwire.capture.tcp.streams import Flow
from kraftwire.capture.tls.ciphers import SUITES, TLS_1_3, Opener, openers_1_2
from kraftwire.capture.tls.hello import CLIENT_HELLO, Hello, read_hello
from kraftwire.capture.tls.keylog import KeyLog

__all__ = ["Decrypted", "Inner"]

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
    """A recogniser: it has a stage once it knows the protocol."""

    @property
    def stage(self) -> Inner | None:
        """The stage that follows, None until the protocol is known."""


class Decrypted:
    """A TLS connection between two flows; its text goes to two others.

    `flows` are the outer ones and those of the text, each the client's first; `inner` takes
    what the text's get.
    """

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
        self._stage.finish(at_capture_end=at_capture_end)

    def fail(self, reason: str) -> None:
        """Give up: the rest of the connection is only counted."""
        self.summary.reason = self.summary.reason or reason
        for side in (self.client, self.server):
            side.close()

    def take_hello(self, data: bytes) -> None:
        """Read a hello; after the server's the keys are known."""
        hello = read_hello(data)
        if hello is None or hello.is_retry:
            return
        if hello.kind == CLIENT_HELLO:
            self._hello = hello
            self.summary.server_name = hello.server_name
            return
        self.summary.version = VERSIONS.get(hello.version, f"0x{hello.version:04x}")
        if self._hello is None:
            self.fail("the client's hello is missing")
        else:
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
        self.client.go_on()
        self.server.go_on()

    def count(self, wire: int, text: int) -> None:
        """Count a record's captured bytes, of which some are text."""
        self._health.bytes.tls += wire - text

    def count_lost(self, wire: int) -> None:
        """Count captured bytes of records that stay closed."""
        self._health.bytes.undecoded += wire
