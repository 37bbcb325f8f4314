"""One accepted connection: requests in, answers out, in order.

Reads frames, decodes requests, passes them to a `Service` and writes the answers. On a listener
with TLS or logins a `Guard` comes first. `admission` decides when and how much; bytes that are not
a request end the connection, with a counter and a rate-limited log line.

Order: as in Kafka, a connection has one request in flight; later ones wait in the socket.

Source: Kafka's `SocketServer.Processor` and `ApiVersionsRequest`; R-SRV-2; KIP-511.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

import trio

from kraftwire import messages
from kraftwire.errors import FAULTS, ApiError, SecurityError, StorageError, WireError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.node.admission import Admission
from kraftwire.node.config import ConnectionLimits
from kraftwire.node.config_listeners import Listener
from kraftwire.node.connection_end import ConnectionEnded, ConnectionStats
from kraftwire.node.connection_login import ConnectionLogin
from kraftwire.node.context import Request
from kraftwire.node.guard import Guard, host_of
from kraftwire.node.handlers.api_versions import only_api_versions
from kraftwire.node.logs import RateLimit, log, log_fault
from kraftwire.node.request_codec import decode_body, encode, encode_in_turn
from kraftwire.node.request_frames import RequestFrames
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import Buffers, decode_request_header
from kraftwire.protocol.software import WITH_SOFTWARE, software_name
from kraftwire.security.principal import ANONYMOUS
from kraftwire.transport.paced_stream import PeerGone
from kraftwire.transport.streams import Stream, Tap, close_now
from kraftwire.wire.message import Message

# Requests that may wait and write nothing.
_READING_KEYS = (ApiKey.FETCH, ApiKey.DESCRIBE_QUORUM, ApiKey.FETCH_SNAPSHOT)


@dataclass(frozen=True, slots=True)
class Service:
    """The service of a listener: versions by API key, the handler, and what comes before both."""

    listener: Listener
    versions: Mapping[int, tuple[int, int]]
    answer: Callable[[Request], Awaitable[Message | None]]
    guard: Guard | None = None


class AcceptedConnection:
    """Serves one stream until either side closes it."""

    def __init__(
        self,
        stream: Stream,
        service: Service,
        limits: ConnectionLimits,
        *,
        stats: ConnectionStats,
        refusals: RateLimit,
        peer: str = "",
        tap: Tap | None = None,
        admission: Admission | None = None,
    ) -> None:
        """Take over a stream. All connections of a node share `admission`."""
        self._service = service
        self._limits = limits
        self._stats = stats
        self._refusals = refusals
        self._peer = peer
        self._host = host_of(peer)
        self._tap = tap
        self._budget = (admission or Admission()).connection(stream)
        self._stream = self._budget.stream
        self._frames = RequestFrames(limits, self._budget, tap)
        self._login: ConnectionLogin | None = None
        # The principal by the peer's certificate, if it needs no login.
        self._certified = ANONYMOUS
        # The client's software, if it has said so after its login.
        self._software = ""

    async def serve(self) -> None:
        """Answer requests until the connection ends. Raises: StorageError, which ends the node."""
        self._budget.open()
        is_by_peer = False
        try:
            with self._budget.scope:
                if self._service.guard is not None:
                    await self._enter(self._service.guard)
                while True:
                    await self._exchange(await self._frames.next(self._stream, self._login))
            self._end(ConnectionEnded("no-memory", "all connections together hold too much"))
        except ConnectionEnded as end:
            self._end(end)
        except PeerGone:
            is_by_peer = True
            self._stats.count_close("by-peer")
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._stats.count_close("broken")
        finally:
            self._budget.close()
            if self._tap:
                self._tap.closed(by_peer=is_by_peer)
            close_now(self._stream)

    async def _enter(self, guard: Guard) -> None:
        """Pass the listener's guard. Raises: ConnectionEnded."""
        deadline = trio.current_time() + self._limits.handshake_ms / 1000
        try:
            with trio.move_on_at(deadline) as scope:
                self._stream, self._certified = await guard.enter(self._stream)
        except SecurityError as error:
            raise ConnectionEnded("tls-failed", str(error)) from None
        if scope.cancelled_caught:
            raise ConnectionEnded("slow-request")
        server = guard.login()
        if server is not None:
            self._login = ConnectionLogin(
                server,
                self._budget,
                self._limits,
                receive_max_bytes=guard.receive_max_bytes,
                deadline=deadline,
            )

    async def _exchange(self, payload: bytes) -> None:
        """Answer a request. Raises: ConnectionEnded if the connection is to end."""
        login = self._login
        if login is not None and login.is_of_login(payload):
            step = await login.receive(payload)
            # A long token must not stay until a refusal may be sent.
            del payload
            await login.answer(step, self._write)
            if step.has_logged_in:
                log("debug", "logged-in", principal=login.principal, peer=self._peer)
            return
        if login is not None and login.is_expired:
            raise ConnectionEnded("session-ended")
        answer, throttle_ms = await self._response_frame(payload)
        # TLS has another copy, until it is sent.
        guard = self._service.guard
        copies = 2 if guard is not None and guard.has_tls else 1
        self._budget.hold(copies * sum(map(len, answer)))
        await self._write(answer)
        self._budget.hold(0)
        if throttle_ms:
            # A client above a quota waits, whether or not it does so by itself.
            await self._budget.while_connected(partial(trio.sleep, throttle_ms / 1000))

    async def _write(self, answer: Buffers) -> None:
        """Send an answer. Raises: ConnectionEnded if the peer does not take it in time."""
        with trio.move_on_after(self._limits.write_ms / 1000) as scope:
            for buffer in answer:
                await self._stream.send_all(buffer)
        if scope.cancelled_caught:
            raise ConnectionEnded("slow-reader", "the answer was not read in time")
        if self._tap:
            self._tap.sent(b"".join(answer))

    async def _response_frame(self, payload: bytes) -> tuple[Buffers, int]:
        """Return the frame of the response, and for how long the client is muted after it.

        Units: milliseconds. Raises: ConnectionEnded if there is nothing to answer.
        """
        try:
            header, position = decode_request_header(payload)
        except WireError as error:
            raise ConnectionEnded("bad-request", str(error)) from error
        size = len(payload)
        await self._budget.admit_request(size)
        try:
            body = await decode_body(header, payload, position, self._service.versions)
        finally:
            self._budget.end_request(size)
        if body is None:
            return encode(header, only_api_versions(self._service.versions), version=0), 0
        self._stats.count_request(messages.API_NAMES[header.request_api_key])
        if isinstance(body, ApiVersionsRequest) and header.request_api_version >= WITH_SOFTWARE:
            software = software_name(body)
            if software is None:
                refusal = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
                return encode(header, refusal), 0
            self._software = software
        return await self._encoded_response(header, body)

    async def _encoded_response(self, header: RequestHeader, body: Message) -> tuple[Buffers, int]:
        try:
            response = await self._response_to(self._request(header, body))
            if response is None:
                raise ConnectionEnded("unanswered")
            throttle_ms = getattr(response, "throttle_time_ms", 0)
            return await encode_in_turn(header, response), throttle_ms
        except StorageError:
            raise
        except (ApiError, WireError, *FAULTS) as fault:
            log_fault("handler-failed", fault, request=type(body).__name__)
            raise ConnectionEnded("fault") from fault
        finally:
            self._budget.end_answer()

    def _request(self, header: RequestHeader, body: Message) -> Request:
        listener, login = self._service.listener, self._login
        return Request(
            header.request_api_key,
            header.request_api_version,
            body,
            header.client_id,
            listener.name,
            self._software or (login.software if login is not None else ""),
            listener.is_controller,
            listener.is_client,
            listener.is_read_only,
            self._budget.admit_answer,
            self._certified if login is None else login.principal,
            self._host,
        )

    async def _response_to(self, request: Request) -> Message | None:
        if request.api_key not in _READING_KEYS:
            return await self._service.answer(request)
        # It may wait for a long time and writes nothing: cancel it when its peer leaves.
        response = await self._budget.while_connected(partial(self._service.answer, request))
        if not self._budget.has_begun_answer:
            # One commit completes all requests that wait for it, and each response takes time.
            await self._budget.admit_answer(0)
        return response

    def _end(self, end: ConnectionEnded) -> None:
        """Count the cause of the end, and log what the peer did wrong."""
        self._stats.count_close(end.cause)
        if str(end):
            listener = self._service.listener.name
            fields = {"peer": self._peer, "listener": listener}
            self._refusals.log(end.cause, end.cause, **fields, problem=end)
