"""The HTTP endpoint that Prometheus scrapes: `/metrics`, one request per connection.

h11 parses and checks the request; time, size and the number of connections are limited here.
"""

from __future__ import annotations

import http
from collections import Counter
from collections.abc import Callable

import h11
import trio

# The longest request head that the metrics endpoint reads; a scraper sends a few hundred bytes.
HTTP_REQUEST_SIZE_MAX = 8 * 1024

# A scrape takes milliseconds; Prometheus itself gives up after ten seconds by default.
SCRAPE_SECONDS_MAX = 10
_CLOSE_SECONDS_MAX = 1

# Connections at a time. A scraper has one.
METRICS_CONNECTIONS_MAX = 16

_CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class MetricsEndpoint:
    """Serves scrapes, a bounded number at a time.

    Beyond the bound a new connection takes the place of another: of the address with the most
    connections, the one that has been open for longest. A scrape takes milliseconds, so whoever
    holds connections loses one of them, and keeps no scraper out.
    """

    def __init__(self, content: Callable[[], bytes]) -> None:
        self._content = content
        # With their addresses, in the order in which they were opened.
        self._open: dict[trio.CancelScope, str] = {}

    async def serve(self, stream: trio.abc.Stream, address: str) -> None:
        """Answer the request of a new connection from this address."""
        self._make_room()
        with trio.CancelScope() as scope:
            self._open[scope] = address
            try:
                await serve_http(stream, self._content)
            finally:
                self._open.pop(scope, None)

    def _make_room(self) -> None:
        if len(self._open) < METRICS_CONNECTIONS_MAX:
            return
        [(most, _)] = Counter(self._open.values()).most_common(1)
        oldest = next(scope for scope, address in self._open.items() if address == most)
        del self._open[oldest]
        oldest.cancel()


async def serve_http(stream: trio.abc.Stream, content: Callable[[], bytes]) -> None:
    """Answer one HTTP request with the metrics, then close the stream.

    A request that is malformed or too long gets an error status. A peer that sends its request or
    reads its answer too slowly is disconnected.
    """
    # Only the head of a request is read: a body that follows is never looked at.
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HTTP_REQUEST_SIZE_MAX)
    try:
        with trio.move_on_after(SCRAPE_SECONDS_MAX):
            try:
                request = await _receive(connection, stream)
            except h11.RemoteProtocolError as error:
                await stream.send_all(_refusal(connection, error))
                return
            if request is not None:
                await stream.send_all(_answer(connection, request, content))
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        return
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_SECONDS_MAX):
            await stream.aclose()


async def _receive(connection: h11.Connection, stream: trio.abc.Stream) -> h11.Request | None:
    """Read the head of a request. Returns None if the peer closes without sending anything."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(bytes(await stream.receive_some(HTTP_REQUEST_SIZE_MAX)))
    return event if isinstance(event, h11.Request) else None


def _answer(
    connection: h11.Connection, request: h11.Request, content: Callable[[], bytes]
) -> bytes:
    if request.method not in (b"GET", b"HEAD"):
        return _encode(connection, 405, b"only GET and HEAD\n", ((b"Allow", b"GET, HEAD"),))
    if request.target.partition(b"?")[0] not in (b"/metrics", b"/"):
        return _encode(connection, 404, b"see /metrics\n")
    return _encode(connection, 200, content(), with_body=request.method == b"GET")


def _refusal(connection: h11.Connection, error: h11.RemoteProtocolError) -> bytes:
    return _encode(connection, error.error_status_hint, f"{error}\n".encode())


def _encode(
    connection: h11.Connection,
    status: int,
    body: bytes,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    *,
    with_body: bool = True,
) -> bytes:
    response = h11.Response(
        status_code=status,
        reason=http.HTTPStatus(status).phrase,
        headers=[
            (b"Content-Type", _CONTENT_TYPE),
            (b"Content-Length", b"%d" % len(body)),
            (b"Connection", b"close"),
            *headers,
        ],
    )
    sent = connection.send(response) or b""
    if with_body:
        sent += connection.send(h11.Data(data=body)) or b""
    return sent
