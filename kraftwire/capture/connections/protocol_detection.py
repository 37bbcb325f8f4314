"""Detects the protocol of each connection: Kafka on any port, TLS or other.

Owns the decision and the bytes that come before it. The first bytes of a client decide at once; of
a connection that was open before the capture began, requests are searched for in both directions.
"""

from __future__ import annotations

import struct

from kraftwire import messages
from kraftwire.capture.connections.kafka_connection import KafkaConnection
from kraftwire.capture.connections.proxy_protocol import read_proxy_header
from kraftwire.capture.connections.stage import Stage
from kraftwire.capture.connections.tls import Tls
from kraftwire.capture.connections.tls_records import is_tls
from kraftwire.capture.framing.frames import (
    CaptureFinding,
    Ending,
    FrameQueue,
    add_finding,
    note_conflict,
)
from kraftwire.capture.framing.headers import (
    HEADER_SIZE,
    Before,
    Header,
    is_controlled_shutdown_v0,
    is_gssapi_token,
    parse_header,
    unknown_client,
)
from kraftwire.capture.framing.health import ByteCounts
from kraftwire.capture.framing.search import (
    DATA,
    TRUNCATED,
    RequestSearch,
    are_responses,
    first_responses,
)
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tcp import Flow
from kraftwire.errors import WireError
from kraftwire.limits import FRAME_SIZE_MAX, UNCONFIRMED_FRAME_SIZE_MAX
from kraftwire.messages.request_header import RequestHeader
from kraftwire.protocol.versions import request_header_version
from kraftwire.wire.size_estimate import is_message_bomb

# A connection that was open before the capture began and shows no frame in this many bytes of a
# direction is not considered Kafka.
RECOGNITION_BYTES_MAX = 4 * 1024 * 1024

# After this much of a server alone, responses are looked for; a search drops bytes soon after.
ANSWERS_BYTES_MIN = 128 * 1024
# The length and the correlation id of a response.
_ANSWER_HEADER = struct.Struct(">ii").unpack_from
_ANSWER_HEADER_SIZE = 8

# Headers of load balancers before the first request of a connection.
_PROXIES_MAX = 16


class Other:
    """A connection that is not decoded."""

    __slots__ = ("_counts",)

    is_waiting = False
    is_kafka = False

    def __init__(self, counts: ByteCounts, *flows: Flow) -> None:
        self._counts = counts
        for flow in flows:
            flow.sink = self
            flow.feed = self.feed

    held_bytes = 0

    def release_memory(self) -> None:
        """Do nothing: no bytes are held."""

    def feed(self, _data: bytes, start: int, end: int, _stamp: Stamp, /) -> None:
        """Count bytes."""
        self._counts.other += end - start

    def skip(self, _count: int, _stamp: Stamp, _truncated: bool, /) -> None:
        """Skip missing bytes."""

    def on_conflict(self, _count: int, /) -> None:
        """Ignore bytes that came again and differ."""

    def is_client(self, _flow: Flow, /) -> bool:
        """Return False: it is not known which side is the client's."""
        return False

    def review(self, packet_number: int) -> None:
        """Do nothing: nothing waits for packets."""

    def finish(self, *, at_capture_end: bool) -> None:
        """Do nothing: nothing is held."""


class ProtocolDetection:
    """Collects the bytes of both directions until their protocol is clear.

    `flows` are the two directions, the client's first if `is_client_known`. `stage` is what
    follows once the protocol is known, None until then; the bytes so far are passed to it.
    """

    __slots__ = ("_frame_queue", "is_client_known", "sides", "stage")

    is_waiting = False
    is_kafka = False

    def __init__(
        self, flows: tuple[Flow, Flow], ends: tuple[str, str], frame_queue: FrameQueue
    ) -> None:
        self.stage: Stage | None = None
        self.is_client_known = False
        self._frame_queue = frame_queue
        self.sides = (_Side(flows[0], ends[0], self), _Side(flows[1], ends[1], self))
        for side in self.sides:
            side.flow.sink = side
            side.flow.feed = side.feed

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what was collected."""
        return sum(side.held_bytes for side in self.sides)

    def release_memory(self) -> None:
        """Decide with what there is."""
        self._judge_midstream(final=True)
        if self.stage is None:
            self._become_other()

    def set_client(self, flow: Flow) -> None:
        """Learn which direction is the client's."""
        if self.stage is None:
            self.is_client_known = True
            if flow is not self.sides[0].flow:
                self.sides = (self.sides[1], self.sides[0])

    def begin_midstream(self) -> None:
        """Learn that the first bytes of the connection are missing."""
        for side in self.sides:
            side.is_whole = False
            side.is_early = True
            detail = "the connection was open before the capture began"
            add_finding(side.notes, "midstream-start", None, detail)

    def forget(self) -> None:
        """Break reference cycles and discard further bytes."""
        flows = self.sides[0].flow, self.sides[1].flow
        self.stage = Other(self._frame_queue.health.bytes, *flows)
        del self.sides

    def is_client(self, flow: Flow) -> bool:
        """Whether the direction is known to be the client's."""
        return self.is_client_known and flow is self.sides[0].flow

    def judge(self, side: _Side) -> None:
        """Decide, if the bytes suffice."""
        if not self._is_past_proxy(side):
            return
        buffer = side.search.pieces.buffer
        if side.count == len(buffer) and is_tls(buffer):
            self._become_tls()
        elif self.is_client_known and self.sides[0].is_whole:
            self._judge_start()
        else:
            self._judge_midstream(final=False)
        if self.stage is None and side.count > ANSWERS_BYTES_MIN and not side.is_examined:
            side.is_examined = True
            self._judge_answers()
        if self.stage is None and side.count > RECOGNITION_BYTES_MAX:
            self._become_other()

    def _is_past_proxy(self, side: _Side) -> bool:
        """Pass over a header of the PROXY protocol; returns whether the client's own bytes begin.
        """
        if side.is_begun or not side.is_whole or not self.is_client(side.flow):
            return True
        # Each of several load balancers in a row adds its own.
        while (header := read_proxy_header(side.search.pieces.buffer)) is not None:
            if not header.size or len(side.notes) >= _PROXIES_MAX:
                side.is_begun = bool(side.count)
                break
            side.pass_over(header.size)
            add_finding(side.notes, "proxy-header", None, header.text)
            self._frame_queue.health.bytes.other += header.size
        return side.is_begun

    def _judge_start(self) -> None:
        """Decide by the first bytes of the client."""
        data = bytes(self.sides[0].search.pieces.buffer)
        if len(data) < 4:
            return
        size = int.from_bytes(data[:4], "big", signed=True)
        if not 0 < size <= FRAME_SIZE_MAX:
            self._become_other()
        elif is_controlled_shutdown_v0(data, 0) or is_gssapi_token(data[4:]):
            self._become_kafka(self.sides[0], 0)
        elif len(data) >= HEADER_SIZE:
            verdict = _is_first_request(data)
            if verdict is None and not self.sides[1].count:
                # A server that waits for the rest may speak Kafka.
                if len(data) <= RECOGNITION_BYTES_MAX // 2:
                    return
                verdict = True
            if verdict:
                self._become_kafka(self.sides[0], 0)
            elif not self._may_be_of_a_vendor(data):
                self._become_other()

    def _may_be_of_a_vendor(self, data: bytes) -> bool:
        """Judge a first request of an unknown API by its answer; returns False if it is none."""
        sought = unknown_client(data)
        answer = self.sides[1].search.pieces.buffer
        if sought is None or len(data) > ANSWERS_BYTES_MIN:
            return False
        if len(answer) < _ANSWER_HEADER_SIZE:
            return not len(answer) or self.sides[1].is_whole
        size, correlation_id = _ANSWER_HEADER(answer)
        if correlation_id != sought[1] or not 4 <= size <= UNCONFIRMED_FRAME_SIZE_MAX:
            return False
        self._become_kafka(self.sides[0], 0, before=(sought[0], sought[1] - 1))
        return True

    def _judge_midstream(self, *, final: bool) -> None:
        """Decide by a request in the middle of the client's bytes, whichever side that is."""
        for side in self.sides[: 1 if self.is_client_known else 2]:
            other = self.sides[1] if side is self.sides[0] else self.sides[0]
            at = side.search.find(other.has_answer)
            if at < 0 and final:
                at = side.search.find_last()
            if at >= 0:
                self._become_kafka(side, at)
                return

    def _judge_answers(self) -> None:
        """Decide by responses alone: a capture may hold nothing of the client."""
        for side in self.sides[1:] if self.is_client_known else self.sides:
            client = self.sides[1] if side is self.sides[0] else self.sides[0]
            at = -1 if client.count else side.first_answer()
            if at >= 0:
                self._become_answers(client, side, at)
                return

    def review(self, packet_number: int) -> None:
        """Do nothing: nothing waits for packets to pass."""

    def finish(self, *, at_capture_end: bool) -> None:
        """Decide with what there is."""
        self._judge_midstream(final=True)
        if self.stage is None:
            self._judge_answers()
        if self.stage is None:
            self._become_other()
        else:
            self.stage.finish(at_capture_end=at_capture_end)

    def report_ending(self, flow: Flow, time_ns: int, *, is_reset: bool) -> None:
        """Report that a Kafka connection ends."""
        stage, report = self.stage, self._frame_queue.on_ending
        if report is not None and stage is not None and stage.is_kafka:
            is_by_client = stage.is_client(flow)
            report(Ending(self.name, time_ns, is_by_client=is_by_client, is_reset=is_reset))

    def _become_kafka(self, client: _Side, at: int, before: Before | None = None) -> None:
        """Read both directions again, this time as Kafka.

        `before` stands for a request before the first one, whose API is unknown.
        """
        server = self.sides[1] if client is self.sides[0] else self.sides[0]
        self.sides = (client, server)
        pairing = KafkaConnection(self.name, client.flow, server.flow, self._frame_queue)
        self.stage = pairing
        pairing.requests.expect(before)
        pairing.requests.notes.extend(client.notes)
        pairing.responses.notes.extend(server.notes)
        counts = self._frame_queue.health.bytes
        counts.undecoded += server.search.pieces.dropped
        if client.is_whole:
            counts.undecoded += client.search.pieces.dropped
            _replay(client)
        else:
            pairing.requests.begin_lost(client.search, is_early=client.is_early)
            pairing.requests.resume(at)
            pairing.requests.is_early = False
        if not server.is_whole:
            pairing.responses.begin_lost(None, is_early=server.is_early)
        _replay(server)
        self._release_sides()

    def _become_answers(self, client: _Side, server: _Side, at: int) -> None:
        """Read the server's direction as Kafka, from a response on."""
        self.sides = (client, server)
        pairing = KafkaConnection(self.name, client.flow, server.flow, self._frame_queue)
        self.stage = pairing
        pairing.requests.begin_lost(client.search, is_early=client.is_early)
        responses = pairing.responses
        responses.notes.extend(server.notes)
        responses.is_early = server.is_early
        pieces = server.search.pieces
        if lost := pieces.dropped + at:
            self._frame_queue.health.bytes.undecoded += lost
            responses.note_skipped(lost, f"{lost} bytes were skipped")
        _replay(server, at)
        self._release_sides()

    def _become_tls(self) -> None:
        if not self.is_client_known and self.sides[0].port < self.sides[1].port:
            self.sides = (self.sides[1], self.sides[0])
        client, server = self.sides
        health, keys = self._frame_queue.health, self._frame_queue.keys
        if keys is None or not (client.is_whole and server.is_whole):
            self.stage = Tls(self.name, (client.flow, server.flow), health)
        else:
            texts = Flow(health), Flow(health)
            inner = ProtocolDetection(texts, (client.name, server.name), self._frame_queue)
            inner.set_client(texts[0])
            flows = client.flow, server.flow
            self.stage = Tls(self.name, flows, health, keys=keys, texts=texts, inner=inner)
        dropped = client.search.pieces.dropped + server.search.pieces.dropped
        self._frame_queue.health.bytes.tls += dropped
        _replay(client)
        _replay(server)
        self._release_sides()

    def _become_other(self) -> None:
        counts = self._frame_queue.health.bytes
        counts.other += self.sides[0].count + self.sides[1].count
        self.stage = Other(counts, self.sides[0].flow, self.sides[1].flow)
        # A connection that was refused carried no data.
        if self.sides[0].count or self.sides[1].count:
            self._frame_queue.health.other_connections += 1
        self._release_sides()

    def _release_sides(self) -> None:
        for side in self.sides:
            side.release()

    @property
    def name(self) -> str:
        """Both ends, the client's first if it is known which that is."""
        return f"{self.sides[0].name}-{self.sides[1].name}"


class _Side:
    """One direction of a connection whose protocol is not known yet.

    `is_whole` if nothing is missing since the first byte of the connection; `is_early` if only
    bytes from before the capture are missing; `is_begun` once its first bytes were looked at,
    `is_examined` once responses were looked for in it.
    """

    __slots__ = (
        "_detection", "_search", "count", "flow", "is_begun", "is_early", "is_examined",
        "is_whole", "name", "notes",
    )  # fmt: skip

    def __init__(self, flow: Flow, name: str, detection: ProtocolDetection) -> None:
        self.flow = flow
        self.name = name
        self.notes: list[CaptureFinding] = []
        self._search: RequestSearch | None = None
        self.count = 0
        self.is_whole = True
        self.is_early = False
        self.is_begun = False
        self.is_examined = False
        self._detection = detection

    @property
    def search(self) -> RequestSearch:
        """The bytes so far; of many connections none ever come."""
        if self._search is None:
            self._search = RequestSearch()
        return self._search

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of the bytes so far."""
        return 0 if self._search is None else self._search.pieces.held_bytes

    def release(self) -> None:
        """Drop the bytes so far, because they were passed on or belong to no frame."""
        self._search = None

    def feed(self, data: bytes, start: int, end: int, stamp: Stamp) -> None:
        """Keep bytes and try to decide."""
        self.count += end - start
        self.search.pieces.add(data[start:end], stamp)
        self._detection.judge(self)

    def pass_over(self, size: int) -> None:
        """Forget the first bytes: they belong to no frame."""
        pieces = self.search.pieces
        pieces.drop(size)
        pieces.dropped -= size
        if pieces.buffer and pieces.starts[:1] != [0]:
            pieces.starts.insert(0, 0)
        self.count -= size

    def skip(self, count: int, stamp: Stamp, truncated: bool, /) -> None:
        """Continue after missing bytes."""
        self.is_whole = self.is_early = False
        if not self.search.pieces.add_hole(count, stamp, truncated=truncated):
            self.search.clear()
            id = "truncated-packet" if truncated else "gap"
            add_finding(self.notes, id, None, f"{count} bytes are missing")

    def on_conflict(self, count: int, /) -> None:
        """Note that bytes came again and differ."""
        note_conflict(self.notes, count)

    @property
    def port(self) -> int:
        """The port at this end."""
        return int(self.name.rpartition(":")[2])

    def first_answer(self) -> int:
        """Return where the first response begins, if all bytes from there on are responses; or -1.
        """
        pieces = self.search.pieces
        if self.is_whole and not pieces.dropped:
            return 0 if are_responses(pieces.buffer, 0) else -1
        return first_responses(pieces)

    def has_answer(self, correlation_id: int) -> bool:
        """Whether a packet of this direction starts like a response with this id."""
        buffer = self.search.pieces.buffer
        needle = correlation_id.to_bytes(4, "big", signed=True)
        for start in self.search.pieces.starts:
            if buffer.startswith(needle, start + 4):
                size = int.from_bytes(buffer[start : start + 4], "big")
                if 4 <= size <= UNCONFIRMED_FRAME_SIZE_MAX:
                    return True
        return False


def _replay(side: _Side, start: int = 0) -> None:
    for data, stamp, kind in side.search.pieces.split(start):
        if kind == DATA:
            side.flow.feed(data, 0, len(data), stamp)
        else:
            side.flow.sink.skip(len(data), stamp, kind == TRUNCATED)


def _is_first_request(data: bytes) -> bool | None:
    """Whether a connection can start with these bytes, if it speaks Kafka; None without the rest
    of them.
    """
    header = parse_header(data, 0, strict=False)
    if header is None or header[2] not in messages.API_VERSIONS:
        return False
    if header[5] is not None and not header[5].decode("utf-8", "replace").isprintable():
        # The first message of another protocol may look like a header with such a client id.
        return _is_request(data, header)
    # ZooKeeper's first frame is mostly zeros: a Produce request without a client id.
    return not (header[2] == 0 and header[4] == 0 and not header[5])


def _is_request(data: bytes, header: Header) -> bool | None:
    """Whether the body of a request follows a header; None if it has not come yet."""
    _, size, api_key, api_version, _, _ = header
    low, high = messages.API_VERSIONS[api_key]
    if not low <= api_version <= high:
        return True
    if len(data) < 4 + size:
        return None
    payload = data[4 : 4 + size]
    cls = messages.request_class(api_key)
    try:
        _, start = RequestHeader.decode(payload, request_header_version(api_key, api_version))
        if is_message_bomb(cls, payload, api_version, start):
            return False
        cls.decode(payload, api_version, start)
    except WireError:
        return False
    return True


def end_name(address: bytes, port: bytes) -> str:
    """Return an end of a connection as text, with brackets around an IPv6 address."""
    number = int.from_bytes(port, "big")
    if len(address) == 4:
        return f"{address[0]}.{address[1]}.{address[2]}.{address[3]}:{number}"
    from ipaddress import IPv6Address

    return f"[{IPv6Address(address)}]:{number}"
