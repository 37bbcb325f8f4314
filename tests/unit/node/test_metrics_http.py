"""The metrics endpoint: what it serves, and what it does with requests that are not scrapes."""

from __future__ import annotations

import contextlib

import pytest
import trio
import trio.testing

from kraftwire.node.metrics_http import scrapes
from kraftwire.transport.http_server import HTTP_REQUEST_SIZE_MAX, PATIENCE_S, serve_http
from tests.support.suite.autojump import autojump

pytestmark = pytest.mark.trio

CONTENT = b"up 1\n"
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
HANDLER = scrapes(lambda: CONTENT)


async def fetch(nursery: trio.Nursery, asked: bytes) -> bytes:
    """Send bytes to an endpoint, and return what it answers until it closes."""
    stream, own = trio.testing.memory_stream_pair()
    nursery.start_soon(serve_http, own, HANDLER)
    await stream.send_all(asked)
    return b"".join([bytes(data) async for data in stream])


async def send_without_end(stream: trio.abc.SendStream, data: bytes, interval: float) -> int:
    """Send the same bytes until the endpoint closes; returns how many it took."""
    taken = 0
    with contextlib.suppress(trio.BrokenResourceError):
        while True:
            await stream.send_all(data)
            taken += len(data)
            await trio.sleep(interval)
    return taken


@pytest.mark.parametrize(
    ("asked", "status", "has_content"),
    [
        (GET, b"200 OK", True),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", b"200 OK", True),
        (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK", False),
        (b"GET /secret HTTP/1.1\r\nHost: x\r\n\r\n", b"404 Not Found", False),
        (b"POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"405 Method Not Allowed", False),
    ],
)
async def test_the_endpoint_serves_the_metrics_and_nothing_else(
    nursery: trio.Nursery, asked: bytes, status: bytes, has_content: bool
) -> None:
    """The port is open to every client that can reach it."""
    answer = await fetch(nursery, asked)
    assert answer.startswith(b"HTTP/1.1 " + status + b"\r\n")
    assert answer.endswith(b"\r\n\r\n" + CONTENT) is has_content


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", b"400 "),
        (b"GET /metrics\r\n\r\n", b"400 "),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n", b"400 "),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", b"400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400 "),
        (b"\x00\x00\x00\x10\x00\x12\x00\x03\x00\x00\x00\x01", b"400 "),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"405 "),
        (b"x" * (HTTP_REQUEST_SIZE_MAX + 1), b"431 "),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * HTTP_REQUEST_SIZE_MAX, b"431 "),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b"405 "),
    ],
    ids=("no-host", "no-version", "nul", "length", "tls", "kafka", "http2", "long", "many", "body"),
)
async def test_what_is_not_a_scrape_gets_a_status_and_no_metrics(
    nursery: trio.Nursery, asked: bytes, status: bytes
) -> None:
    """The peer learns what is wrong, whatever its protocol, and the connection closes."""
    answer = await fetch(nursery, asked)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert CONTENT not in answer


async def test_requests_after_the_first_are_not_answered(nursery: trio.Nursery) -> None:
    """One connection costs one rendering of the metrics, however many requests it pipelines."""
    assert (await fetch(nursery, GET * 100)).count(CONTENT) == 1


@autojump
@pytest.mark.parametrize("asked", [b"", b"GET /metrics"])
async def test_half_a_request_is_dropped_in_time(nursery: trio.Nursery, asked: bytes) -> None:
    """A peer that falls silent does not keep its connection."""
    begin = trio.current_time()
    assert await fetch(nursery, asked) == b""
    assert trio.current_time() - begin == pytest.approx(PATIENCE_S)


@autojump
async def test_a_request_that_trickles_is_dropped_in_time(nursery: trio.Nursery) -> None:
    """Each byte is progress, but the time allowed is that of the whole request."""
    stream, own = trio.testing.memory_stream_pair()
    nursery.start_soon(serve_http, own, HANDLER)
    begin = trio.current_time()
    await send_without_end(stream, b"G", 1)
    assert trio.current_time() - begin <= PATIENCE_S + 1


@autojump
async def test_a_request_without_end_is_not_kept(nursery: trio.Nursery) -> None:
    """The endpoint stops reading once the head is longer than any scraper's."""
    stream, own = trio.testing.lockstep_stream_pair()
    nursery.start_soon(serve_http, own, HANDLER)
    taken = await send_without_end(stream, b"x" * 1024, 0)
    assert taken <= HTTP_REQUEST_SIZE_MAX + 1024


@autojump
async def test_a_peer_that_does_not_read_is_dropped_in_time() -> None:
    """A full socket buffer does not keep the connection either."""
    stream, own = trio.testing.lockstep_stream_pair()
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_http, own, HANDLER)
        await stream.send_all(GET)
    assert trio.current_time() - begin == pytest.approx(PATIENCE_S)


async def test_a_peer_that_leaves_ends_its_task(nursery: trio.Nursery) -> None:
    """A port scan connects and closes again."""
    stream, own = trio.testing.memory_stream_pair()
    await stream.aclose()
    nursery.start_soon(serve_http, own, HANDLER)
    await trio.testing.wait_all_tasks_blocked()
    assert not nursery.child_tasks
