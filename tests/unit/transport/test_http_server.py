"""Requests with bodies, answers in pieces; tests/unit/node/test_metrics_http.py has the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
import trio.testing

from kraftwire.transport.http_server import (
    HTTP_REQUEST_SIZE_MAX,
    PATIENCE_S,
    HttpRequest,
    HttpResponse,
    HttpServer,
    serve_http,
)
from tests.support.suite.autojump import autojump

pytestmark = pytest.mark.trio

BODY_MAX = 20_000
POST = b"POST /rules?a=b HTTP/1.1\r\nHost: x\r\n"


async def echo(request: HttpRequest) -> HttpResponse:
    """Answer with what came."""
    shown = f"{request.method} {request.path} {request.query} {request.headers['host']} "
    return HttpResponse(body=shown.encode() + request.body)


async def fetch(nursery: trio.Nursery, *sent: bytes) -> bytes:
    """The answer to bytes that come one after the other."""
    stream, own = trio.testing.memory_stream_pair()

    async def serve() -> None:
        await serve_http(own, echo, body_max=BODY_MAX)

    nursery.start_soon(serve)
    for data in sent:
        await stream.send_all(data)
        await trio.testing.wait_all_tasks_blocked()
    answer = await stream.receive_some()
    return bytes(answer)


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        (b"Content-Length: 10", (b"0123456789",)),
        (b"Content-Length: 10", (b"01234", b"56789")),
        (b"Transfer-Encoding: chunked", (b"4\r\n0123\r\n", b"6\r\n456789\r\n0\r\n\r\n")),
    ],
)
async def test_a_body_is_read_whole(
    nursery: trio.Nursery, headers: bytes, sent: tuple[bytes, ...]
) -> None:
    """However it is cut, and whoever knows its length."""
    answer = await fetch(nursery, POST + headers + b"\r\n\r\n", *sent)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nPOST /rules a=b x 0123456789")


@autojump
@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        (b"Content-Length: %d" % (BODY_MAX + 1), ()),
        (b"Content-Length: %d\r\nExpect: 100-continue" % 10**12, ()),
        (b"Transfer-Encoding: chunked", (b"ffffff\r\n", bytes(BODY_MAX + 1))),
    ],
)
async def test_a_body_that_is_too_long_is_not_read(
    nursery: trio.Nursery, headers: bytes, sent: tuple[bytes, ...]
) -> None:
    """The answer says how long it may be."""
    answer = await fetch(nursery, POST + headers + b"\r\n\r\n", *sent)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(b"expected a body of at most %d bytes, found more\n" % BODY_MAX)


async def test_a_client_that_waits_with_its_body_is_told_to_send_it(
    nursery: trio.Nursery
) -> None:
    """As curl does with a long one."""
    stream, own = trio.testing.memory_stream_pair()

    async def serve() -> None:
        await serve_http(own, echo, body_max=BODY_MAX)

    nursery.start_soon(serve)
    await stream.send_all(POST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert (await stream.receive_some()).startswith(b"HTTP/1.1 100 ")
    await stream.send_all(b"ab")
    assert (await stream.receive_some()).endswith(b"x ab")


async def test_a_client_that_still_sends_gets_its_answer() -> None:
    """A connection that is closed with bytes unread is reset, and the answer is lost."""
    server = HttpServer(echo, body_max=BODY_MAX)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    length = 4 * 1024 * 1024
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, server.accept, [listener])
        async with await trio.open_tcp_stream(*listener.socket.getsockname()) as client:
            await client.send_all(POST + b"Content-Length: %d\r\n\r\n" % length)
            await client.send_all(bytes(length))
            with trio.fail_after(PATIENCE_S):
                answer = b"".join([bytes(data) async for data in client])
        nursery.cancel_scope.cancel()
    assert answer.startswith(b"HTTP/1.1 413 ")


@autojump
async def test_a_body_that_does_not_come_ends_the_connection(nursery: trio.Nursery) -> None:
    """Its bytes are progress, but the time is that of the whole request."""
    begin = trio.current_time()
    assert await fetch(nursery, POST + b"Content-Length: 10\r\n\r\n01234") == b""
    assert trio.current_time() - begin == pytest.approx(PATIENCE_S)


def _pieces(count: int, made: list[int]) -> Iterator[bytes]:
    for number in range(count):
        made.append(number)
        yield bytes(HTTP_REQUEST_SIZE_MAX)


@autojump
async def test_pieces_are_made_as_they_are_read(nursery: trio.Nursery) -> None:
    """A peer that stops reading holds one, and not for long."""
    made: list[int] = []

    async def send_pieces(_: HttpRequest) -> HttpResponse:
        return HttpResponse(body=_pieces(5, made))

    for does_read in (True, False):
        made.clear()
        stream, own = trio.testing.lockstep_stream_pair()
        nursery.start_soon(serve_http, own, send_pieces)
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        begin = trio.current_time()
        if does_read:
            received = b"".join([bytes(data) async for data in stream])
        await trio.sleep(PATIENCE_S + 1)
        assert (len(made) == 5) is does_read
        assert received.endswith(b"\r\n0\r\n\r\n") is does_read
        assert received.count(0) == (5 * HTTP_REQUEST_SIZE_MAX if does_read else 0)
        assert trio.current_time() - begin == pytest.approx(PATIENCE_S + 1)
        assert not nursery.child_tasks
