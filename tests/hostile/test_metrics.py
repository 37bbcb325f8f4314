"""The metrics endpoint: it shows what connections hold, and that stays below the cap (SEC-MEMORY);
nobody keeps a scraper out (SEC-METRICS)."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
import trio.testing

from kraftwire.limits import CONNECTION_BYTES_MAX, REQUEST_SIZE_MAX
from kraftwire.node.admission import OPEN_CONNECTION_BYTES, OPEN_REQUEST_BYTES
from kraftwire.node.metrics_http import scrapes
from kraftwire.transport.http_server import HTTP_CONNECTIONS_MAX, HttpServer
from tests.hostile.served import request_frame
from tests.support.kafka.process import free_ports
from tests.support.nodes.process import NodeQuorum, describe
from tests.support.raft.messages import fetch
from tests.support.suite.autojump import autojump

_PARKED, _PARKED_MAX = 20, 200
_GREEDY = 150


def _held(port: int) -> int:
    """What the endpoint shows."""
    connection = http.client.HTTPConnection("localhost", port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.search(r"^kraftwire_connections_held_bytes (\S+)$", text, re.MULTILINE)
    assert found, text
    return int(float(found[1]))


def _until(port: int, is_right: Callable[[int], bool]) -> int:
    """Ask until the answer is right; it must never be above the cap."""
    while True:
        held = _held(port)
        assert 0 <= held <= CONNECTION_BYTES_MAX
        if is_right(held):
            return held


def _parked_fetch(port: int) -> bytes:
    """The Fetch of an observer that has all of the log and waits for a record."""
    partition = describe(port).topics[0].partitions[0]
    message = fetch(
        -1,
        partition.current_voters[0].log_end_offset,
        partition.leader_epoch,
        partition.leader_epoch,
        max_wait_ms=2**31 - 1,
    )
    message.replica_state.replica_id = 10_000
    message.cluster_id = None
    return request_frame(message, 17)


def test_the_endpoint_shows_what_connections_hold(tmp_path: Path) -> None:
    """Fetches that wait, then requests that are never complete: half of the 300 MB are evicted."""
    (metrics,) = free_ports(1)
    with NodeQuorum(tmp_path, 1) as quorum, ExitStack() as held:
        listener = f"kraftwire.prometheus.listener=localhost:{metrics}"
        node = quorum.start(1, listener, "metadata.max.idle.interval.ms=0")
        node.wait_for("^ready ")
        address = "localhost", quorum.ports[1]
        while describe(quorum.ports[1]).topics[0].partitions[0].leader_id != 1:
            pass
        idle = _until(metrics, lambda _: True)
        count = 0

        def are_parked(now: int) -> bool:
            """Send another one if any of them was answered because the log was still growing."""
            nonlocal count
            least = idle + count * OPEN_CONNECTION_BYTES + _PARKED * OPEN_REQUEST_BYTES
            if count >= _PARKED and now >= least:
                return True
            assert count < _PARKED_MAX, f"{now} bytes held"
            waiting = _parked_fetch(quorum.ports[1])
            held.enter_context(socket.create_connection(address)).sendall(waiting)
            count += 1
            return False

        _until(metrics, are_parked)
        half = REQUEST_SIZE_MAX.to_bytes(4, "big") + bytes(REQUEST_SIZE_MAX - 1)
        for _ in range(_GREEDY):
            one = held.enter_context(socket.create_connection(address))
            try:
                one.sendall(half)
            except OSError:
                continue
        assert _GREEDY * REQUEST_SIZE_MAX > CONNECTION_BYTES_MAX
        _until(metrics, lambda now: now > CONNECTION_BYTES_MAX // 2)
        held.close()
        _until(metrics, lambda now: now < CONNECTION_BYTES_MAX // 4)
        assert not node.has_ended


GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
STRANGER, SCRAPER = "203.0.113.1", "192.0.2.1"


async def _scrape(endpoint: HttpServer, nursery: trio.Nursery, address: str) -> bytes:
    """The answer to an honest scrape, which has to come within a second."""
    stream, far = trio.testing.memory_stream_pair()
    nursery.start_soon(endpoint.serve, far, address)
    with trio.fail_after(1):
        await stream.send_all(GET)
        return b"".join([bytes(data) async for data in stream])


@autojump
@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\n", GET])
@pytest.mark.parametrize("address", [STRANGER, SCRAPER])
async def test_held_connections_keep_no_scraper_out(
    nursery: trio.Nursery, sent: bytes, address: str
) -> None:
    """They send nothing, half a request, or a whole one whose answer they never read; some of them
    come from the scraper's own machine."""
    endpoint = HttpServer(scrapes(lambda: b"up 1\n"))
    held = []
    for _ in range(2 * HTTP_CONNECTIONS_MAX):
        stream, far = trio.testing.lockstep_stream_pair()
        nursery.start_soon(endpoint.serve, far, address)
        if sent:
            nursery.start_soon(stream.send_all, sent)
        held.append(stream)
        await trio.testing.wait_all_tasks_blocked()
    for _ in range(3):
        assert (await _scrape(endpoint, nursery, SCRAPER)).endswith(b"\r\n\r\nup 1\n")
    nursery.cancel_scope.cancel()


@autojump
async def test_one_who_opens_connections_without_a_pause_loses_only_its_own(
    nursery: trio.Nursery
) -> None:
    """A scraper on a slow line, which sends its request while they come."""
    endpoint = HttpServer(scrapes(lambda: b"up 1\n"))
    slow, far = trio.testing.memory_stream_pair()
    nursery.start_soon(endpoint.serve, far, SCRAPER)
    for part in (GET[:9], GET[9:]):
        for _ in range(5 * HTTP_CONNECTIONS_MAX):
            _, strange = trio.testing.memory_stream_pair()
            nursery.start_soon(endpoint.serve, strange, STRANGER)
        await trio.testing.wait_all_tasks_blocked()
        await slow.send_all(part)
    with trio.fail_after(1):
        answer = b"".join([bytes(data) async for data in slow])
    assert answer.endswith(b"\r\n\r\nup 1\n")
    nursery.cancel_scope.cancel()
