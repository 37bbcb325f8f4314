"""A small HTTP server: one request per connection, which a handler answers.

h11 parses and checks the request; time, size and the number of connections are limited here.
"""

from __future__ import annotations

import http
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from ssl import SSLContext

import h11
import trio

# The longest request head that is read; clients send a few hundred bytes.
HTTP_REQUEST_SIZE_MAX = 8 * 1024

# A peer has this time to send its request, and again for each piece of the answer. Prometheus gives
# up after ten seconds by default.
PATIENCE_S = 10
_CLOSE_S = 1

# Connections at a time. A scraper has one, a test a few.
HTTP_CONNECTIONS_MAX = 16

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request. Names of headers are in lower case; of equal ones the last counts."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """An answer. A body in pieces is sent as they come: only one is held at a time."""

    status: int = 200
    content_type: str = TEXT
    body: bytes | Iterator[bytes] = b""
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


class HttpServer:
    """Serves requests, a bounded number at a time.

    Beyond the bound a new connection takes the place of another: of the address with the most
    connections, the one that has been open for longest. A request takes milliseconds, so whoever
    holds connections loses one of them, and keeps nobody out. A body of up to `body_max` bytes is
    read; with 0 none is looked at.
    """

    def __init__(
        self, handler: Handler, *, body_max: int = 0, tls: SSLContext | None = None
    ) -> None:
        self._handler = handler
        self._body_max = body_max
        self._tls = tls
        # With their addresses, in the order in which they were opened.
        self._open: dict[trio.CancelScope, str] = {}

    async def accept(self, accepted: trio.SocketStream) -> None:
        """Answer the request of a connection, and close it."""
        try:
            address = accepted.socket.getpeername()[0]
        except OSError:  # the peer has already left
            accepted.socket.close()
            return
        stream: trio.abc.Stream = accepted
        if self._tls is not None:
            stream = trio.SSLStream(accepted, self._tls, server_side=True, https_compatible=True)
        await self.serve(stream, address)

    async def serve(self, stream: trio.abc.Stream, address: str) -> None:
        """Answer the request of a new connection from this address."""
        self._make_room()
        with trio.CancelScope() as scope:
            self._open[scope] = address
            try:
                await serve_http(stream, self._handler, body_max=self._body_max)
            finally:
                self._open.pop(scope, None)

    def _make_room(self) -> None:
        if len(self._open) < HTTP_CONNECTIONS_MAX:
            return
        [(most, _)] = Counter(self._open.values()).most_common(1)
        oldest = next(scope for scope, address in self._open.items() if address == most)
        del self._open[oldest]
        oldest.cancel()


async def serve_http(stream: trio.abc.Stream, handler: Handler, *, body_max: int = 0) -> None:
    """Answer one HTTP request, then close the stream.

    A request that is malformed or too long gets an error status. A peer that sends its request or
    reads its answer too slowly is disconnected; a handler may take its time.
    """
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HTTP_REQUEST_SIZE_MAX)
    has_more = False
    try:
        try:
            with trio.fail_after(PATIENCE_S):
                request = await _receive(connection, stream, body_max)
        except h11.RemoteProtocolError as error:
            has_more = body_max > 0
            answer = HttpResponse(status=error.error_status_hint, body=f"{error}\n".encode())
            await _send(connection, stream, answer)
        else:
            if request is not None:
                answer = await handler(request)
                await _send(connection, stream, answer, has_body=request.method != "HEAD")
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
        return
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_S):
            if has_more:
                await _drain(stream)
            await stream.aclose()


async def _receive(
    connection: h11.Connection, stream: trio.abc.Stream, body_max: int
) -> HttpRequest | None:
    """Read a request; None if the peer closes without sending anything.

    Raises: h11.RemoteProtocolError, also for a body that is too long.
    """
    head = await _next_event(connection, stream)
    if not isinstance(head, h11.Request):
        return None
    body = bytearray()
    if body_max:
        _check_length(int(dict(head.headers).get(b"content-length", 0)), body_max)
        while isinstance(event := await _next_event(connection, stream), h11.Data):
            body += event.data
            _check_length(len(body), body_max)
    path, _, query = head.target.decode("ascii").partition("?")
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
    method = head.method.decode("ascii")
    return HttpRequest(method=method, path=path, query=query, headers=headers, body=bytes(body))


async def _next_event(connection: h11.Connection, stream: trio.abc.Stream) -> object:
    """Read until h11 has an event. Raises: h11.RemoteProtocolError."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        if connection.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await stream.send_all(connection.send(go_on) or b"")
        connection.receive_data(bytes(await stream.receive_some(HTTP_REQUEST_SIZE_MAX)))
    return event


def _check_length(length: int, body_max: int) -> None:
    if length > body_max:
        problem = f"expected a body of at most {body_max} bytes, found more"
        raise h11.RemoteProtocolError(problem, http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


async def _send(
    connection: h11.Connection,
    stream: trio.abc.Stream,
    answer: HttpResponse,
    *,
    has_body: bool = True,
) -> None:
    """Send an answer. Raises: as the stream; trio.TooSlowError if the peer does not read it."""
    headers = [("Content-Type", answer.content_type), ("Connection", "close"), *answer.headers]
    body = answer.body
    if isinstance(body, bytes):
        headers.append(("Content-Length", str(len(body))))
        body = iter((body,))
    reason = http.HTTPStatus(answer.status).phrase
    head = h11.Response(status_code=answer.status, reason=reason.encode(), headers=headers)
    data = connection.send(head) or b""
    if has_body:
        for piece in body:
            data += connection.send(h11.Data(data=piece)) or b""
            await _send_in_time(stream, data)
            data = b""
    await _send_in_time(stream, data + (connection.send(h11.EndOfMessage()) or b""))


async def _send_in_time(stream: trio.abc.Stream, data: bytes) -> None:
    with trio.fail_after(PATIENCE_S):
        await stream.send_all(data)


async def _drain(stream: trio.abc.Stream) -> None:
    """Read what a peer still sends: a connection that is closed before loses the answer."""
    if isinstance(stream, trio.abc.HalfCloseableStream):
        await stream.send_eof()
        while await stream.receive_some(HTTP_REQUEST_SIZE_MAX):
            pass
