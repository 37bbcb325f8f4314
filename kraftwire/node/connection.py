"""One accepted connection: requests in, answers out, in order.

Reads frames, decodes requests, lets a `Service` answer them and writes the answers. On a listener
with TLS or logins a `Guard` comes first. `admission` decides when and how much; bytes that are not
a request end the connection, with a counter and a rate-limited log line.

Order: as in Kafka, a connection has one request in flight; later ones wait in the socket.

Source: Kafka's `SocketServer.Processor` and `ApiVersionsRequest`; R-SRV-2; KIP-511.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import trio

from kraftwire import messages
from kraftwire.errors import ApiError, SecurityError, StorageError, WireError
from kraftwire.limits import REQUEST_ELEMENTS_MAX, REQUEST_SIZE_MAX
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.node.admission import (
    LOGIN_READ_BYTES,
    Admission,
    has_more_elements,
    has_too_many_elements,
)
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.config_listeners import Listener
from kraftwire.node.context import Request
from kraftwire.node.guard import Guard, host_of
from kraftwire.node.handlers.api_versions import only_api_versions
from kraftwire.node.logs import FAULTS, RateLimit, log, log_fault
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.envelope import Buffers, response_buffers
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.headers import decode_request_header
from kraftwire.protocol.software import WITH_SOFTWARE, software_name
from kraftwire.security.principal import ANONYMOUS
from kraftwire.security.sasl_server import End, SaslServer, Step
from kraftwire.transport.paced_stream import PeerGone
from kraftwire.transport.streams import Stream, Tap, close_now
from kraftwire.wire.frame import FrameBuffer, frame
from kraftwire.wire.message import Message

# A node decodes longer requests in a thread. Those of replicas and of ordinary clients are shorter;
# decoding one of this size takes milliseconds, or a fifth of a second if it is a hostile one.
DECODE_INLINE_BYTES = 64 * 1024

# Responses of more elements are encoded in a thread, too: one of this size takes some milliseconds.
ENCODE_INLINE_ELEMENTS = 2_000

READ_SIZE = 64 * 1024

# Large bodies are decoded in a separate thread, one at a time: a hostile one takes half a second.
_LARGE_BODIES = trio.CapacityLimiter(1)
# Requests that may wait and write nothing: Fetch, DescribeQuorum and FetchSnapshot.
_READING_KEYS = (1, 55, 59)

# Python's overhead for a queued bytes object.
_PAYLOAD_COST_BYTES = 48


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
    """The service of a listener: versions by API key, the handler, and what comes before both."""

    listener: Listener
    versions: Mapping[int, tuple[int, int]]
    answer: Callable[[Request], Awaitable[Message | None]]
    guard: Guard | None = None


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
        admission: Admission | None = None,
    ) -> None:
        """Take over a stream. All connections of a node share `admission`."""
        self._service = service
        self._limits = limits
        self._stats = stats
        self._garbage = garbage
        self._peer = peer
        self._tap = tap
        self._frames = FrameBuffer(limit=min(limits.frame_max_bytes, REQUEST_SIZE_MAX))
        self._host = host_of(peer)
        self._principal = ANONYMOUS
        self._login: SaslServer | None = None
        self._share = (admission or Admission()).connection(stream)
        self._stream = self._share.stream
        self._software = ""
        self._throttle_ms = 0
        # When the incomplete request began, or the connection if it has not sent one yet.
        self._began: float | None = trio.current_time()
        self._login_deadline = trio.current_time() + limits.handshake_ms / 1000

    async def serve(self) -> None:
        """Answer requests until the connection ends. Raises: StorageError, which ends the node."""
        self._share.open()
        try:
            with self._share.scope:
                if self._service.guard is not None:
                    await self._enter(self._service.guard)
                await self._serve()
            if self._share.is_evicted:
                self._end(_Close("no-memory", "all connections together hold too much"))
        except _Close as end:
            self._end(end)
        except PeerGone:
            self._count_close("by-peer")
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._count_close("broken")
        finally:
            self._share.close()
            if self._tap:
                self._tap.closed()
            close_now(self._stream)

    async def _serve(self) -> None:
        while True:
            # No local variable keeps a request or answer alive while this waits.
            waiting = await self._next_frames()
            while waiting:
                self._share.backlog -= len(waiting[0]) + _PAYLOAD_COST_BYTES
                await self._exchange(waiting.popleft())

    async def _enter(self, guard: Guard) -> None:
        """Pass the listener's guard. Raises: _Close."""
        try:
            with trio.move_on_at(self._login_deadline) as scope:
                self._stream, self._principal = await guard.enter(self._stream)
        except SecurityError as error:
            raise _Close("tls-failed", str(error)) from None
        if scope.cancelled_caught:
            raise _Close("slow-request")
        self._login = guard.login()
        if self._login is not None:
            self._frames.limit = min(self._frames.limit, guard.receive_max_bytes)

    async def _answer_login(self, login: SaslServer, step: Step) -> None:
        """Send the answer to a part of a login, after a delay if it is a refusal (SEC-S9).

        Raises: _Close if the connection is to end.
        """
        if step.end is End.DELAYED:
            await self._delay_failure()
        if step.reply is not None:
            await self._write([frame(step.reply)])
        if step.end is not End.OPEN:
            raise _Close("login-refused", step.problem)
        if step.has_logged_in:
            assert login.principal is not None
            self._principal, self._software = login.principal, login.software
            self._frames.limit = min(self._limits.frame_max_bytes, REQUEST_SIZE_MAX)
            log("debug", "logged-in", principal=login.principal, peer=self._peer)

    async def _login_step(self, login: SaslServer, payload: bytes) -> Step:
        """Let the machine take a payload when its turn comes, as any request. Raises: _Close."""
        if login.is_ready:
            self._share.begin_login()
            self._login_deadline = trio.current_time() + self._limits.handshake_ms / 1000
        size = len(payload)
        with trio.move_on_at(self._login_deadline) as scope:
            await self._share.begin_token(size)
        if scope.cancelled_caught:
            raise _Close("slow-request")
        try:
            now_ms, epoch_ms = int(trio.current_time() * 1000), time.time_ns() // 1_000_000
            return login.receive(payload, now_ms=now_ms, epoch_ms=epoch_ms)
        finally:
            self._share.end_token(size)

    async def _delay_failure(self) -> None:
        await trio.sleep(self._limits.failed_login_delay_ms / 1000)

    @property
    def _is_logging_in(self) -> bool:
        return self._login is not None and not self._login.is_ready

    async def _next_frames(self) -> deque[bytes]:
        """Read until there are requests, or part of one. Raises: _Close."""
        data = await self._read()
        try:
            return self._frames_of(data)
        except _Close:
            if self._is_logging_in:
                await self._delay_failure()
            raise

    def _frames_of(self, data: bytes) -> deque[bytes]:
        """Return the requests that these bytes complete. Raises: _Close."""
        try:
            payloads = deque(self._frames.feed(data))
        except WireError as error:
            raise _Close("bad-frame", str(error)) from error
        incomplete = self._frames.pending_size
        waiting = sum(len(one) + _PAYLOAD_COST_BYTES for one in payloads)
        self._share.backlog = incomplete + waiting
        self._share.hold(0)
        if not incomplete:
            self._began = None
        elif payloads or self._began is None:
            self._began = trio.current_time()
        return payloads

    async def _exchange(self, payload: bytes) -> None:
        """Answer a request. Raises: _Close if the connection is to end."""
        login = self._login
        if login is not None and login.takes(payload):
            step = await self._login_step(login, payload)
            # A long token must not stay until a refusal may be sent.
            del payload
            await self._answer_login(login, step)
            return
        if login is not None and login.is_expired(int(trio.current_time() * 1000)):
            raise _Close("session-ended")
        answer = await self._answer(payload)
        # TLS has another copy, until it is sent.
        guard = self._service.guard
        copies = 2 if guard is not None and guard.has_tls else 1
        self._share.hold(copies * sum(map(len, answer)))
        await self._write(answer)
        self._share.hold(0)
        if self._throttle_ms:
            # Whoever is above a quota waits, whether or not the client does so by itself.
            muted = partial(trio.sleep, self._throttle_ms / 1000)
            self._throttle_ms = 0
            await self._share.while_connected(muted)

    async def _read(self) -> bytes:
        """Read some bytes. Raises: _Close at the end of the stream, or if the peer is too slow."""
        limits, began = self._limits, self._began
        patience_ms = limits.idle_ms if began is None else limits.handshake_ms
        if self._is_logging_in:
            with trio.move_on_at(self._login_deadline) as scope:
                await self._share.begin_login_read()
                data = await self._stream.receive_some(LOGIN_READ_BYTES)
                self._share.end_login_read(len(data))
            if scope.cancelled_caught:
                raise _Close("slow-request")
        elif patience_ms < 0:
            data = await self._stream.receive_some(READ_SIZE)
        else:
            # One deadline for the whole request: trickling bytes does not extend it.
            start = trio.current_time() if began is None else began
            with trio.move_on_at(start + patience_ms / 1000) as scope:
                data = await self._stream.receive_some(READ_SIZE)
            if scope.cancelled_caught:
                raise _Close("idle" if began is None else "slow-request")
        if not data:
            raise _Close("by-peer")
        data = bytes(data)
        if self._tap:
            self._tap.received(data)
        return data

    async def _write(self, answer: Buffers) -> None:
        """Send an answer. Raises: _Close if the peer does not take it in time."""
        with trio.move_on_after(self._limits.write_ms / 1000) as scope:
            for buffer in answer:
                await self._stream.send_all(buffer)
        if scope.cancelled_caught:
            raise _Close("slow-reader", "the answer was not read in time")
        if self._tap:
            self._tap.sent(b"".join(answer))

    async def _answer(self, payload: bytes) -> Buffers:
        """Return the response frame. Raises: _Close if there is nothing to answer."""
        try:
            header, position = decode_request_header(payload)
        except WireError as error:
            raise _Close("bad-request", str(error)) from error
        size = len(payload)
        await self._share.begin_request(size)
        try:
            body = await self._decode(header, payload, position)
        finally:
            self._share.end_request(size)
        if body is None:
            return _encode(header, only_api_versions(self._service.versions), version=0)
        name = messages.API_NAMES[header.request_api_key]
        self._stats.requests[name] = self._stats.requests.get(name, 0) + 1
        if isinstance(body, ApiVersionsRequest) and header.request_api_version >= WITH_SOFTWARE:
            software = software_name(body)
            if software is None:
                refusal = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
                return _encode(header, refusal)
            self._software = software
        return await self._dispatch(header, body)

    async def _decode(self, header: RequestHeader, payload: bytes, position: int) -> Message | None:
        """Decode a request; returns None for an ApiVersions request of an unknown version.

        Raises: _Close.
        """
        api_key, version = header.request_api_key, header.request_api_version
        name, size = messages.API_NAMES.get(api_key, "unknown"), len(payload)
        low, high = self._service.versions.get(api_key, (0, -1))
        if not low <= version <= high:
            if api_key == ApiKey.API_VERSIONS:
                return None
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
        if has_too_many_elements(body, size):
            problem = f"{name} of more than {REQUEST_ELEMENTS_MAX} elements"
            raise _Close("too-many-elements", problem)
        return body

    async def _dispatch(self, header: RequestHeader, body: Message) -> Buffers:
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
            listener.is_read_only,
            self._share.begin_answer,
            self._principal,
            self._host,
        )
        try:
            response = await self._answer_by_service(request)
            if response is None:
                raise _Close("unanswered")
            self._throttle_ms = getattr(response, "throttle_time_ms", 0)
            return await _encode_in_turn(header, response)
        except StorageError:
            raise
        except (ApiError, WireError, *FAULTS) as fault:
            log_fault("handler-failed", fault, request=type(body).__name__)
            raise _Close("fault") from fault
        finally:
            self._share.end_answer()

    async def _answer_by_service(self, request: Request) -> Message | None:
        if request.api_key not in _READING_KEYS:
            return await self._service.answer(request)
        # It may wait for a long time and writes nothing: cancel it when its peer leaves.
        response = await self._share.while_connected(partial(self._service.answer, request))
        if not self._share.has_begun_answer:
            # One commit completes all requests that wait for it, and each response takes time.
            await self._share.begin_answer(0)
        return response

    def _end(self, end: _Close) -> None:
        """Count the cause of the end, and log what the peer did wrong."""
        self._count_close(end.cause)
        if str(end):
            listener = self._service.listener.name
            self._garbage.log(end.cause, end.cause, peer=self._peer, listener=listener, problem=end)

    def _count_close(self, cause: str) -> None:
        self._stats.closed[cause] = self._stats.closed.get(cause, 0) + 1


async def _encode_in_turn(header: RequestHeader, response: Message) -> Buffers:
    """Return the frame of a response; a long one is encoded in a thread, one at a time."""
    if not has_more_elements(response, ENCODE_INLINE_ELEMENTS):
        return _encode(header, response)
    return await trio.to_thread.run_sync(partial(_encode, header, response), limiter=_LARGE_BODIES)


def _encode(header: RequestHeader, response: Message, version: int | None = None) -> Buffers:
    """Return the frame of a response, in the request's version unless another is given."""
    answered = ResponseHeader(correlation_id=header.correlation_id)
    if version is None:
        version = header.request_api_version
    return response_buffers(answered, response, version)
