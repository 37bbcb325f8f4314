"""A Kafka connection: its requests, and which response belongs to which of them.

Owns pairing. A server answers the requests of a connection in their order, so responses are
matched by correlation id, in order. A capture may show a response before its request, or lose
either; a response that matches nothing waits until it is clear which of that happened.

Source: Kafka's `SocketServer` (one request of a connection at a time).
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from sys import getsizeof

from kraftwire.capture.framing.frames import (
    BEFORE_CAPTURE,
    CaptureFinding,
    FrameQueue,
    Request,
    UnfinishedBudget,
    add_finding,
)
from kraftwire.capture.framing.health import Health
from kraftwire.capture.framing.requests import RequestReader
from kraftwire.capture.framing.responses import ResponseReader
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tcp import Flow
from kraftwire.limits import PIECE_OBJECT_BYTES
from kraftwire.protocol.api_keys import ApiKey

# Requests that a connection keeps waiting for after it had to give up the rest.
PENDING_REQUESTS_KEPT = 16

# Requests that wait for their responses, per connection. Clients allow 5 in flight by default; in
# a capture of one direction only, responses never come.
PENDING_REQUESTS_MAX = 10_000

# Responses that wait for their requests, per connection: captures may show a response before its
# request, and a gap in the requests keeps those after it waiting.
PARKED_RESPONSES_MAX = 256
PARKED_PACKETS_MAX = 64
PARKED_BYTES_MAX = 4 * 1024 * 1024

# The length before each frame.
_PREFIX_SIZE = 4


class _Parked:
    """A response that waits for its request, with what was noted before it in its direction."""

    __slots__ = (
        "correlation_id", "data", "lost_bytes", "missing", "notes", "packet", "size", "stamp",
    )  # fmt: skip

    def __init__(
        self, data: bytes, size: int, stamp: Stamp, missing: tuple[tuple[int, int], ...]
    ) -> None:
        self.correlation_id = int.from_bytes(data[:4], "big", signed=True)
        self.data = data
        self.size = size
        self.stamp = stamp
        self.missing = missing
        self.packet = 0
        self.notes: list[CaptureFinding] = []
        self.lost_bytes = 0


class KafkaConnection:
    """Pairs requests with responses on one connection.

    `pending` are the requests without a response, in order; `parked` the responses without
    a request.
    """

    __slots__ = (
        "_client", "_packet", "_parked_bytes", "budget", "frame_queue", "health", "name", "parked",
        "pending", "requests", "responses",
    )  # fmt: skip

    def __init__(self, name: str, client: Flow, server: Flow, frame_queue: FrameQueue) -> None:
        self.name = name
        self.frame_queue = frame_queue
        self.health: Health = frame_queue.health
        self.budget: UnfinishedBudget = frame_queue.budget
        self.pending: deque[Request] = deque()
        # A list, since an empty deque takes far more and few responses ever wait here.
        self.parked: list[_Parked] = []
        self._parked_bytes = 0
        self._packet = 0
        self._client = client
        self.requests = RequestReader(self, client)
        self.responses = ResponseReader(self, server)
        self.health.kafka_connections += 1
        self.health.recorded.meet(name)

    is_kafka = True

    def is_client(self, flow: Flow) -> bool:
        """Whether the direction is the client's."""
        return flow is self._client

    @property
    def is_waiting(self) -> bool:
        """Whether the next packets may settle something that is open."""
        return bool(self.parked)

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of what waits here."""
        pieces = len(self.parked) + len(self.pending)
        size = self._parked_bytes + pieces * PIECE_OBJECT_BYTES
        if len(self.pending) > PENDING_REQUESTS_KEPT:
            size += sum(getsizeof(request.client_id) for request in self.pending)
        return size + self.requests.held_bytes + self.responses.held_bytes

    def release_memory(self) -> None:
        """Stop waiting for anything that may complete what is held."""
        self.requests.release_memory()
        self.responses.release_memory()
        while self.parked:
            self._release(self.responses.is_sure)
        self._give_up(PENDING_REQUESTS_KEPT)

    def register(self, request: Request) -> None:
        """Remember a request that will be answered."""
        self.pending.append(request)
        if len(self.pending) > PENDING_REQUESTS_MAX:
            self._give_up(PENDING_REQUESTS_MAX)
        if self.responses.is_lost:
            self.responses.look(request.correlation_id)

    def _give_up(self, kept: int) -> None:
        """Wait no more for the responses to all requests but the last, of which some are `kept`."""
        lost_bytes = self.responses.lost_bytes + self.responses.flow.unseen_bytes(self._client)
        count = len(self.pending) - kept
        if count > 0:
            is_sent = lost_bytes > 0 or self.responses.flow.is_cut
            self._drop_requests(count, lost_bytes, is_sent=is_sent)

    def _drop_requests(self, count: int, lost_bytes: int, *, is_sent: bool) -> None:
        """Remove the first requests, whose responses were sent, among lost bytes if it is known
        how many those are.
        """
        size = max(lost_bytes - _PREFIX_SIZE * count, 1) if lost_bytes else 0
        lost = (count, size) if is_sent else None
        for _ in range(count):
            self.pending.popleft().lost = lost
        if lost:
            self.health.lost_responses += count
        else:
            self.health.unanswered_requests += count

    def is_parked(self, correlation_id: int) -> bool:
        """Whether a response with this id waits for its request."""
        return any(parked.correlation_id == correlation_id for parked in self.parked)

    def respond(
        self, data: bytes, size: int, stamp: Stamp, missing: tuple[tuple[int, int], ...]
    ) -> None:
        """Take a response that was not matched at once."""
        parked = _Parked(data, size, stamp, missing)
        parked.packet = self._packet
        parked.notes, self.responses.notes = self.responses.notes, parked.notes
        parked.lost_bytes, self.responses.lost_bytes = self.responses.lost_bytes, 0
        self.parked.append(parked)
        self._parked_bytes += len(data)
        self.match_parked()
        while len(self.parked) > PARKED_RESPONSES_MAX or self._parked_bytes > PARKED_BYTES_MAX:
            self._release(self.responses.is_sure)

    def match_parked(self) -> None:
        """Pass on every response whose request is known by now, and those before it."""
        while self.parked:
            found = self._first_match()
            if found is None:
                return
            before, lost = found
            for _ in range(before):
                # A later response matches, so this one was cut right and its request is lost.
                self._release(True)
            self._answer(lost)

    def _first_match(self) -> tuple[int, int] | None:
        """Return how many parked responses and pending requests precede the first pair."""
        for before, parked in enumerate(self.parked):
            token = -1
            for lost, request in enumerate(self.pending):
                if request.time_ns < 0:
                    break
                if request.api_key < 0:
                    token = lost if token < 0 else token
                elif request.correlation_id == parked.correlation_id:
                    return before, lost
            if token >= 0:
                return before, token
        return None

    def _answer(self, lost: int) -> None:
        parked = self._unpark()
        skipped = tuple(islice(self.pending, lost))
        if lost:
            # Responses come in the order of requests: those before this one were sent. Only of
            # Produce is it unknown, as its acks may be among the bytes that are missing.
            is_sent = parked.lost_bytes > 0 or all(
                each.api_key != ApiKey.PRODUCE for each in islice(self.pending, lost)
            )
            self._drop_requests(lost, parked.lost_bytes, is_sent=is_sent)
            detail = f"{lost} requests before this one in order have no response"
            add_finding(parked.notes, "responses-lost", None, detail)
        request = self.pending.popleft()
        request.skipped = skipped
        self._emit(request, parked)

    def _emit(self, request: Request | None, parked: _Parked) -> None:
        each, reader = parked, self.responses
        later = reader.notes, reader.lost_bytes
        reader.notes = each.notes
        reader.emit(request, each.data, each.size, each.stamp, each.missing)
        reader.notes, reader.lost_bytes = later

    def _unpark(self) -> _Parked:
        parked = self.parked.pop(0)
        self._parked_bytes -= len(parked.data)
        return parked

    def _release(self, is_sure: bool) -> None:
        """Give up waiting for the request of the first parked response.

        Return it without a request if `is_sure`; bytes that merely were cut like a
        response are better skipped than taken for one.
        """
        parked = self._unpark()
        is_early = self.responses.is_early and not parked.missing
        if is_early:
            self.health.early_responses += 1
        else:
            self.health.unmatched_responses += 1
        if len(parked.data) < 4 or not is_sure:
            self.health.skipped_bytes += len(parked.data)
            self.health.bytes.undecoded += 4 + parked.size
            self.health.bytes.undecoded -= sum(size for _, size in parked.missing)
            detail = f"{len(parked.data)} bytes were skipped: a response without a request"
            self.responses.note_skipped(len(parked.data), detail, parked.notes)
            self._carry(parked.notes, parked.lost_bytes)
            return
        detail = "no request with this correlation id is in the capture"
        id = BEFORE_CAPTURE if is_early else "unmatched-response"
        add_finding(parked.notes, id, None, detail)
        self._emit(None, parked)
        self._carry([], parked.lost_bytes)

    def _carry(self, notes: list[CaptureFinding], lost_bytes: int) -> None:
        """Add to the next response what was noted before one that has no request."""
        next_one = self.parked[0] if self.parked else self.responses
        next_one.notes[:0] = notes
        next_one.lost_bytes += lost_bytes

    def review(self, packet_number: int) -> None:
        """Decide what has been open for long enough; called after each packet of the connection."""
        self._packet = packet_number
        is_open = self._client.has_hole or self.requests.is_lost
        while (
            self.parked
            and not is_open
            and packet_number - self.parked[0].packet > PARKED_PACKETS_MAX
        ):
            self._release(self.responses.is_sure)

    def finish(self, *, at_capture_end: bool) -> None:
        """Pass on what there is: the connection or the capture ended.

        Order: nothing follows. Both directions are let go, without waiting for a garbage collector.
        """
        self.requests.finish(at_capture_end=at_capture_end)
        self.responses.finish(at_capture_end=at_capture_end)
        while self.parked:
            self._release(self.responses.is_sure)
        self._give_up(0)
        del self.requests, self.responses
