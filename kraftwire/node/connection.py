"""One accepted connection: frames in, answers out, in order, within limits.

Owns the state of the ApiVersions exchange, deadlines, and the handling of bytes that are not a
request: a counter, a rate-limited log line, and the end of the connection. ApiVersions is the only
API it knows; the `Service` handles all others.

Order: as in Kafka, a connection has one request in flight; later ones wait in the socket.

Source: Kafka's `SocketServer.Processor` and `ApiVersionsRequest`; R-SRV-2; KIP-511.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import trio

from kraftwire import messages
from kraftwire.errors import ApiError, StorageError, WireError
from kraftwire.limits import (
    CONNECTION_BYTES_MAX,
    DECODE_INLINE_BYTES,
    DECODED_FACTOR,
    OPEN_REQUEST_BYTES,
    REQUEST_ELEMENTS_MAX,
    REQUEST_SIZE_MAX,
    SOFTWARE_NAME_SIZE_MAX,
)
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.node.budget import Budget
from kraftwire.node.config import ConnectionLimits, Listener
from kraftwire.node.context import Request
from kraftwire.node.limits import LONG_REQUEST_BYTES_MIN
from kraftwire.node.link import Stream, Tap, close_now
from kraftwire.node.logs import RateLimit, log
from kraftwire.node.pacing import Pacer
from kraftwire.node.presence import PeerGone, answer_while_there
from kraftwire.node.sizes import is_too_much
from kraftwire.protocol.envelope import encode_response
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.headers import decode_request_header
from kraftwire.protocol.pieces import Pieces, response_pieces
from kraftwire.protocol.versions import API_VERSIONS_KEY
from kraftwire.wire.frame import FrameBuffer, frame
from kraftwire.wire.message import Message

__all__ = ["Connection", "ConnectionStats", "Service"]

READ_SIZE = 64 * 1024

# Large bodies are decoded in a separate thread, one at a time: a hostile one takes half a second.
_LARGE_BODIES = trio.CapacityLimiter(1)
# Requests that may wait and write nothing: Fetch and FetchSnapshot.
_READING_KEYS = (1, 59)

# Python's overhead for a queued bytes object.
_PAYLOAD_COST_BYTES = 48

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# The exceptions of a bug in a handler. They end one connection, never the node.
_FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(slots=True)
class ConnectionStats:
    """Counters over all accepted connections. `requests` by API name, `closed` by cause."""

    accepted: int = 0
    refused: int = 0
    open: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Service:
    """What a listener offers: versions by API key, and the handler."""

    listener: Listener
    versions: Mapping[int, tuple[int, int]]
    answer: Callable[[Request], Awaitable[Message | None]]


class _Close(Exception):
    """Ends the connection. `cause` is a short word from a fixed set, for counting."""

    def __init__(self, cause: str, problem: str = "") -> None:
        self.cause = cause
        super().__init__(problem)


class Connection:
    """Serves one stream until either side closes it."""

    def __init__(
        self,
        stream: Stream,
        service: Service,
        limits: ConnectionLimits,
        *,
        stats: ConnectionStats,
        garbage: RateLimit,
        peer: str = "",
        tap: Tap | None = None,
        budget: Budget | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        """Take over a stream. All connections of a node share `budget` and `pacer`."""
        self._stream = stream
        self._service = service
        self._limits = limits
        self._stats = stats
        self._garbage = garbage
        self._peer = peer
        self._tap = tap
        self._frames = FrameBuffer(limit=min(limits.frame_max_bytes, REQUEST_SIZE_MAX))
        self._budget = budget or Budget(CONNECTION_BYTES_MAX)
        self._pacer = pacer or Pacer()
        self._number = self._pacer.join()
        self._scope = trio.CancelScope()
        self._is_evicted = False
        self._software = ""
        self._is_known = False
        self._waiting_bytes = 0
        # Bytes read for the current answer; -1 before that.
        self._turn_size = -1
        # When the incomplete request began, or the connection if it has not sent one yet.
        self._began: float | None = trio.current_time()

    async def serve(self) -> None:
        """Answer requests until the connection ends. Raises: StorageError, which ends the node."""
        self._budget.enter()
        try:
            with self._scope:
                await self._serve()
            if self._is_evicted:
                self._end(_Close("no-memory", "all connections together hold too much"))
        except _Close as end:
            self._end(end)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._count_close("broken")
        finally:
            self._budget.hold(self, 0)
            self._budget.leave()
            if self._tap:
                self._tap.closed()
            close_now(self._stream)

    def evict(self) -> None:
        """End this connection because all connections together hold too much."""
        self._is_evicted = True
        self._scope.cancel()

    async def _serve(self) -> None:
        while True:
            # No local variable keeps a request or answer alive while this waits.
            waiting = self._frames_of(await self._read())
            while waiting:
                self._waiting_bytes -= len(waiting[0]) + _PAYLOAD_COST_BYTES
                await self._exchange(waiting.popleft())

    def _frames_of(self, data: bytes) -> deque[bytes]:
        """Return the requests that these bytes complete. Raises: _Close."""
        try:
            payloads = deque(self._frames.feed(data))
        except WireError as error:
            raise _Close("bad-frame", str(error)) from error
        self._waiting_bytes = sum(len(one) + _PAYLOAD_COST_BYTES for one in payloads)
        self._hold(0)
        if not self._frames.pending_size:
            self._began = None
        elif payloads or self._began is None:
            self._began = trio.current_time()
        return payloads

    async def _exchange(self, payload: bytes) -> None:
        """Answer a request. Raises: _Close if the connection is to end."""
        answer = await self._answer(payload)
        self._is_known = True
        self._hold(sum(map(len, answer)))
        await self._write(answer)
        self._hold(0)

    async def _read(self) -> bytes:
        """Read some bytes. Raises: _Close at the end of the stream, or if the peer is too slow."""
        limits, began = self._limits, self._began
        patience_ms = limits.idle_ms if began is None else limits.handshake_ms
        if patience_ms < 0:
            data = await self._stream.receive_some(READ_SIZE)
        else:
            # One deadline for the whole request: trickling bytes does not extend it.
            start = trio.current_time() if began is None else began
            with trio.move_on_at(start + patience_ms / 1000) as scope:
                data = await self._stream.receive_some(READ_SIZE)
            if scope.cancelled_caught:
                raise _Close("idle" if began is None else "slow-request")
        if not data:
            # Thousands may be closed at once, and each takes time to clean up.
            await self._leave()
            raise _Close("by-peer")
        data = bytes(data)
        if self._tap:
            self._tap.received(data)
        return data

    async def _write(self, answer: Pieces) -> None:
        """Send an answer. Raises: _Close if the peer does not take it in time."""
        with trio.move_on_after(self._limits.write_ms / 1000) as scope:
            for piece in answer:
                await self._stream.send_all(piece)
        if scope.cancelled_caught:
            raise _Close("slow-reader", "the answer was not read in time")
        if self._tap:
            self._tap.sent(b"".join(answer))

    async def _answer(self, payload: bytes) -> Pieces:
        """Return the response frame. Raises: _Close if there is nothing to answer."""
        try:
            header, position = decode_request_header(payload)
        except WireError as error:
            raise _Close("bad-request", str(error)) from error
        api_key, version = header.request_api_key, header.request_api_version
        name = messages.API_NAMES.get(api_key, "unknown")
        size = len(payload)
        decoded = size if size < LONG_REQUEST_BYTES_MIN else size * DECODED_FACTOR
        self._hold(OPEN_REQUEST_BYTES + decoded)
        await self._take_turn(size)
        try:
            body = await self._decode(header, payload, position)
        finally:
            self._pacer.decoded(size)
        if isinstance(body, bytes):
            return [body]
        self._stats.requests[name] = self._stats.requests.get(name, 0) + 1
        if isinstance(body, ApiVersionsRequest) and not self._note_software(body, version):
            return [self._refuse_version(header, ErrorCode.INVALID_REQUEST, version)]
        return await self._dispatch(header, body)

    async def _decode(
        self, header: RequestHeader, payload: bytes, position: int
    ) -> Message | bytes:
        """Decode a request; returns an error response if its version is unknown. Raises: _Close."""
        api_key, version = header.request_api_key, header.request_api_version
        name, size = messages.API_NAMES.get(api_key, "unknown"), len(payload)
        low, high = self._service.versions.get(api_key, (0, -1))
        if not low <= version <= high:
            if api_key == API_VERSIONS_KEY:
                return self._refuse_version(header, ErrorCode.UNSUPPORTED_VERSION, 0)
            problem = f"API key {api_key} ({name}) version {version} is not offered here"
            raise _Close("not-offered", problem)
        try:
            decode = partial(messages.request_class(api_key).decode, payload, version, position)
            if size <= DECODE_INLINE_BYTES:
                body, _ = decode()
            else:
                body, _ = await trio.to_thread.run_sync(decode, limiter=_LARGE_BODIES)
        except WireError as error:
            raise _Close("bad-request", str(error)) from error
        if is_too_much(body, size):
            problem = f"{name} of more than {REQUEST_ELEMENTS_MAX} elements"
            raise _Close("too-many-elements", problem)
        return body

    async def _take_turn(self, size: int) -> None:
        """Wait until a request of this size may be answered. Raises: _Close if its peer is gone."""
        admit = partial(self._pacer.admit, self._number, size)
        if size < LONG_REQUEST_BYTES_MIN:
            await admit()
            return
        try:
            await answer_while_there(self._stream, admit, self._leave)
        except PeerGone as gone:
            raise _Close("by-peer") from gone

    async def _dispatch(self, header: RequestHeader, body: Message) -> Pieces:
        listener = self._service.listener
        request = Request(
            header.request_api_key,
            header.request_api_version,
            body,
            header.client_id,
            listener.name,
            self._software,
            listener.is_controller,
            listener.is_client,
            self._turn,
        )
        name = type(body).__name__
        try:
            if request.api_key in _READING_KEYS:
                # It may wait for a long time and writes nothing: cancel it when its peer leaves.
                self._turn_size = -1
                ask = partial(self._service.answer, request)
                reply = await answer_while_there(self._stream, ask, self._leave)
                if self._turn_size < 0:
                    # One commit completes all requests that wait for it, and each response takes
                    # time.
                    await self._turn(0)
            else:
                reply = await self._service.answer(request)
            if reply is None:
                raise _Close("unanswered")
            return _encode(header, reply)
        except StorageError:
            raise
        except PeerGone as gone:
            raise _Close("by-peer") from gone
        except (ApiError, WireError, *_FAULTS) as fault:
            place = _place(fault)
            log("error", "handler-failed", request=name, fault=repr(fault), at=place)
            raise _Close("fault") from fault
        finally:
            self._pacer.answered(self._turn_size)
            self._turn_size = -1

    async def _leave(self) -> None:
        await self._pacer.leave(self._number)

    async def _turn(self, size: int) -> None:
        """Wait until this many bytes may be read for an answer."""
        self._pacer.answered(self._turn_size)
        self._turn_size = -1
        await self._pacer.admit_answer(self._number, size)
        self._turn_size = size
        self._hold(OPEN_REQUEST_BYTES + size)

    def _note_software(self, body: ApiVersionsRequest, version: int) -> bool:
        """Keep the client's software name; returns False if KIP-511 forbids it."""
        if version < 3:
            return True
        for text in (body.client_software_name, body.client_software_version):
            if len(text) > SOFTWARE_NAME_SIZE_MAX or not _SOFTWARE.fullmatch(text):
                return False
        self._software = body.client_software_name
        return True

    def _refuse_version(self, header: RequestHeader, error: int, version: int) -> bytes:
        """Answer ApiVersions with an error that lists ApiVersions alone, so that the client can
        retry (R-SRV-2)."""
        low, high = self._service.versions[API_VERSIONS_KEY]
        own = ApiVersion(api_key=API_VERSIONS_KEY, min_version=low, max_version=high)
        keys = [own] if error == ErrorCode.UNSUPPORTED_VERSION else []
        reply = ApiVersionsResponse(error_code=error, api_keys=keys)
        response = ResponseHeader(correlation_id=header.correlation_id)
        return frame(encode_response(response, reply, version))

    def _hold(self, size: int) -> None:
        """Report how much this connection holds besides waiting and incomplete requests."""
        self._budget.hold(self, size + self._waiting_bytes + self._frames.pending_size)

    def _end(self, end: _Close) -> None:
        """Count the cause of the end, and log what the peer did wrong."""
        self._count_close(end.cause)
        if str(end):
            listener = self._service.listener.name
            self._garbage.log(end.cause, end.cause, peer=self._peer, listener=listener, problem=end)

    def _count_close(self, cause: str) -> None:
        self._stats.closed[cause] = self._stats.closed.get(cause, 0) + 1


def _encode(header: RequestHeader, reply: Message) -> Pieces:
    response = ResponseHeader(correlation_id=header.correlation_id)
    return response_pieces(response, reply, header.request_api_version)


def _place(fault: BaseException) -> str:
    """Return the file and line of our code that raised an exception."""
    trace = fault.__traceback__
    place = ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
