"""The proxy over real sockets: its listeners, what it prints, what it refuses, its capture."""

from __future__ import annotations

import math
import resource
import signal
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from kraftwire.errors import ApiError, UsageError
from kraftwire.faults.rows import new_rule
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.list_groups_request import ListGroupsRequest
from kraftwire.messages.list_groups_response import ListGroupsResponse
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kraftwire.protocol.endpoint import Address
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.proxy.server import Proxy
from kraftwire.proxy.settings import ProxySettings
from kraftwire.transport.client_connection import ClientConnection
from kraftwire.wire.message import Message
from tests.support.nodes.fake_node import (
    DESCRIBE_CLUSTER,
    METADATA,
    FakeNode,
    HangUpError,
    controllers,
    metadata,
)

LIST_GROUPS = 16


@dataclass
class Run:
    """A proxy that runs, what it has printed, and what it has said."""

    proxy: Proxy
    lines: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def address(self, name: str = "bootstrap") -> Address:
        """The address that a line names."""
        (line,) = [one for one in self.lines if one.startswith(f"{name} ")]
        host, _, port = line.rpartition(" ")[2].rpartition(":")
        return host.strip("[]"), int(port)

    async def ask(self, address: Address, message: Message) -> Any:
        """The answer to a request of a client that has just connected."""
        connection = await ClientConnection.connect(address, client_id="tester", timeout_s=10)
        try:
            return await connection.request(message, timeout_s=10)
        finally:
            connection.close()


def proxied(
    settings: ProxySettings,
    use: Callable[[Run], Awaitable[None]],
    clock: MockClock | None = None,
) -> Run:
    """Run a proxy, and a test on it."""
    lines: list[str] = []
    said: list[str] = []
    made = Run(Proxy(settings, announce=lines.append, say=said.append), lines, said)

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(made.proxy.run)
            await use(made)
            nursery.cancel_scope.cancel()

    try:
        trio.run(run, clock=clock)
    except BaseExceptionGroup as group:
        (error,) = group.exceptions
        raise error from None
    return made


@contextmanager
def brokers(*ids: int) -> Iterator[dict[int, FakeNode]]:
    """Brokers that know one another; each answers ListGroups with its id as the throttle time."""
    with ExitStack() as stack:
        nodes = {number: stack.enter_context(FakeNode()) for number in ids}
        for number, node in nodes.items():
            node.answers[METADATA] = lambda _: metadata(nodes)
            node.answers[LIST_GROUPS] = partial(_listed, number)
        yield nodes


def _listed(number: int, _: Message) -> Message:
    return ListGroupsResponse(throttle_time_ms=number)


def to(node: FakeNode, **more: Any) -> ProxySettings:
    """A proxy in front of a node."""
    return ProxySettings(upstream=(("127.0.0.1", node.port),), **more)


def _addresses(answer: MetadataResponse) -> dict[int, Address]:
    return {one.node_id: (one.host, one.port) for one in answer.brokers}


def test_each_broker_has_a_line_and_a_listener() -> None:
    """Clients see no other address, and reach through each the broker that they mean."""
    with brokers(1, 2) as nodes:

        async def use(run: Run) -> None:
            answer = await run.ask(run.address(), MetadataRequest())
            expected = {number: run.address(f"broker {number}") for number in nodes}
            assert _addresses(answer) == expected
            for number, address in expected.items():
                assert (await run.ask(address, ListGroupsRequest())).throttle_time_ms == number

        run = proxied(to(nodes[1]), use)
    assert [line.rpartition(" ")[0] for line in run.lines] == ["bootstrap", "broker 1", "broker 2"]
    assert run.said == []
    assert list(run.proxy.summary()) == ["tester: Metadata 1, ListGroups 2, ApiVersions 3"]


def test_the_first_upstream_that_answers_is_enough() -> None:
    """The others may be down."""
    with brokers(1) as nodes, socket.create_server(("127.0.0.1", 0)) as taken:
        unused = taken.getsockname()
        taken.close()

        async def use(run: Run) -> None:
            assert (await run.ask(run.address(), ListGroupsRequest())).throttle_time_ms == 1

        settings = ProxySettings(upstream=(unused, ("127.0.0.1", nodes[1].port)))
        assert len(proxied(settings, use).lines) == 2


def test_ports_follow_that_of_the_listener_where_they_are_free() -> None:
    """The printed line is what counts."""
    with brokers(1, 2, 3) as nodes, ExitStack() as stack:
        port = _three_ports(stack)

        async def use(run: Run) -> None:
            assert run.address() == ("127.0.0.1", port)
            assert run.address("broker 1") == ("127.0.0.1", port + 1)
            assert run.address("broker 2")[1] not in (port, port + 1, port + 2)
            assert run.address("broker 3") == ("127.0.0.1", port + 3)

        proxied(to(nodes[1], listen=("127.0.0.1", port)), use)


def _three_ports(stack: ExitStack) -> int:
    """A free port with free ones after it, of which the second is taken."""
    while True:
        with ExitStack() as found:
            first = found.enter_context(socket.create_server(("127.0.0.1", 0)))
            port: int = first.getsockname()[1]
            try:
                for number in (1, 3):
                    found.enter_context(socket.create_server(("127.0.0.1", port + number)))
                stack.enter_context(socket.create_server(("127.0.0.1", port + 2)))
            except OSError:
                continue
            return port


def test_a_broker_keeps_its_port_here_when_it_comes_back_elsewhere() -> None:
    """And one that comes later gets a line."""
    with brokers(1) as nodes, brokers(1, 2) as later:

        async def use(run: Run) -> None:
            before = run.address("broker 1")
            nodes[1].answers[METADATA] = lambda _: metadata(later)
            answer = await run.ask(run.address(), MetadataRequest())
            assert _addresses(answer) == {1: before, 2: run.address("broker 2")}
            asked = len(later[1].requests)
            await run.ask(before, ListGroupsRequest())
            assert len(later[1].requests) == asked + 1

        proxied(to(nodes[1]), use)


def test_controllers_are_described_by_themselves() -> None:
    """They have no Metadata."""
    with FakeNode() as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({7: node}, 7)

        async def use(run: Run) -> None:
            request = DescribeClusterRequest(endpoint_type=2)
            (found,) = (await run.ask(run.address(), request)).brokers
            assert (found.broker_id, (found.host, found.port)) == (7, run.address("controller 7"))

        proxied(to(node), use)


def test_an_advertised_host_is_what_clients_see() -> None:
    """In the lines and in the answers."""
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            host, port = run.address("broker 1")
            assert host == "localhost"
            answer = await run.ask(run.address(), MetadataRequest())
            assert _addresses(answer) == {1: ("localhost", port)}

        proxied(to(nodes[1], listen=("0.0.0.0", 0), advertised_host="localhost"), use)
        with pytest.raises(UsageError, match="--advertised-host"):
            to(nodes[1], listen=("0.0.0.0", 0))


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_an_address_may_be_of_ipv6() -> None:
    """With brackets in the lines."""
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            assert run.lines[0].startswith("bootstrap [::1]:")
            answer = await run.ask(run.address(), MetadataRequest())
            assert _addresses(answer) == {1: run.address("broker 1")}

        proxied(to(nodes[1], listen=("::1", 0)), use)


async def _nothing(_: Run) -> None:
    pass


def test_a_port_that_is_taken_is_an_error() -> None:
    """With the address."""
    with brokers(1) as nodes, socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
        with pytest.raises(OSError, match="Address already in use") as caught:
            proxied(to(nodes[1], listen=address), _nothing)
        assert caught.value.filename == f"127.0.0.1:{address[1]}"


def test_a_cluster_that_does_not_answer_is_an_error_after_ten_seconds() -> None:
    """Nothing is printed before."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lines: list[str] = []
        settings = ProxySettings(upstream=(silent.getsockname(),))
        proxy = Proxy(settings, announce=lines.append, say=lines.append)
        with pytest.raises(ApiError, match="in 10 s") as caught:
            trio.run(proxy.run, clock=MockClock(autojump_threshold=0.1))
        assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT
        assert lines == []


def test_brokers_behind_a_login_are_known_after_the_first_client() -> None:
    """Such a listener answers ApiVersions alone, until a client has logged in."""
    with brokers(1) as nodes:
        known = nodes[1].answers[METADATA]

        def refuse(_: Message) -> Message:
            raise HangUpError

        nodes[1].answers[METADATA] = refuse

        async def use(run: Run) -> None:
            assert len(run.lines) == 1
            (said,) = run.said
            assert "wants a login" in said
            nodes[1].answers[METADATA] = known
            answer = await run.ask(run.address(), MetadataRequest())
            assert _addresses(answer) == {1: run.address("broker 1")}

        proxied(to(nodes[1]), use)


def test_a_node_that_is_down_ends_the_connections_to_it() -> None:
    """With a line, once."""
    with brokers(1) as nodes, socket.create_server(("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()
        taken.close()
        down = MetadataResponseBroker(node_id=2, host=host, port=port)
        known = metadata(nodes)
        known.brokers.append(down)
        nodes[1].answers[METADATA] = lambda _: known

        async def use(run: Run) -> None:
            for _ in range(3):
                with pytest.raises(ApiError):
                    await run.ask(run.address("broker 2"), ListGroupsRequest())
            assert run.said == [f"127.0.0.1:{port}: Connection refused"]
            assert (await run.ask(run.address("broker 1"), ListGroupsRequest())).error_code == 0

        proxied(to(nodes[1]), use)


def test_a_rule_that_is_removed_in_another_thread_lets_go_what_it_held() -> None:
    """Tests run in a thread of their own."""
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            rule = run.proxy.add_rule(new_rule({"api": "ListGroups", "hold": True, "node": 1}))

            def remove() -> None:
                rule.wait(1, 10)
                rule.remove()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, remove)
                answer = await run.ask(run.address("broker 1"), ListGroupsRequest())
                assert answer.throttle_time_ms == 1
            assert rule.count == 1

        proxied(to(nodes[1]), use)


def test_a_capture_has_both_sides_and_is_private(tmp_path: Path) -> None:
    """Each request twice, on connections of their own; an older capture is replaced."""
    from kraftwire import decode

    path = tmp_path / "out.pcapng"
    path.write_bytes(b"older")
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            await run.ask(run.address("broker 1"), ListGroupsRequest())

        run = proxied(to(nodes[1], capture=str(path)), use)
        node_port = nodes[1].port
    here = run.address("broker 1")[1]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with decode.open(str(path)) as frames:
        found = [
            (one.api_name, one.direction, int(one.connection.rpartition(":")[2]))
            for one in frames
        ]
    sides = [("request", here), ("request", node_port), ("response", node_port), ("response", here)]
    names = ("ApiVersions", "ListGroups")
    assert sorted(found) == sorted((name, *side) for name in names for side in sides)


def test_a_long_rule_is_short_in_the_summary() -> None:
    """A rule may have values of many thousand characters."""
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            run.proxy.add_rule(new_rule({"api": "Fetch", "observe": True, "client_id": "x" * 9000}))

        run = proxied(to(nodes[1]), use)
    (line,) = run.proxy.summary()
    assert line.startswith("rule 1 (api Fetch, observe True, client_id xxx")
    assert line.endswith("xxx): 0 requests")
    assert len(line) < 600


def test_a_capture_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    """Requests pass all the same."""
    path = tmp_path / "out.pcapng"
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
            try:
                answer = await run.ask(run.address("broker 1"), ListGroupsRequest())
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                signal.signal(signal.SIGXFSZ, before)
            assert answer.throttle_time_ms == 1

        run = proxied(to(nodes[1], capture=str(path)), use)
    assert run.said == [f"the capture ends: {path}: File too large"]


def test_garbage_is_a_line_and_not_one_for_each_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was found differs, and it is said once in a while."""
    monkeypatch.setattr("kraftwire.proxy.server._QUIET_S", math.inf)
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            for number in range(5):
                stream = await trio.open_tcp_stream(*run.address())
                await stream.send_all(bytes([0xFF, 0, 0, number]))
                assert await stream.receive_some() == b""
                await stream.aclose()

        run = proxied(to(nodes[1]), use)
    (line,) = run.said
    assert line.startswith("a connection is ended: a frame of negative length (expected 0 or more")


def test_connections_are_as_many_as_descriptors_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is closed at once, with a line; listeners and files keep theirs."""
    monkeypatch.setattr("kraftwire.proxy.server.raise_descriptor_limit", lambda: 2 * 2 * 2)
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            host, port = run.address()
            first, second = [await trio.open_tcp_stream(host, port) for _ in range(2)]
            with pytest.raises(ApiError):
                await run.ask((host, port), ListGroupsRequest())
            assert run.said == ["a connection is refused: 2 are open, as many as there may be"]
            await first.aclose()
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert (await run.ask((host, port), ListGroupsRequest())).throttle_time_ms == 1
            await second.aclose()

        proxied(to(nodes[1]), use)


def test_unlimited_descriptors_allow_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS has no limit, of which the system says -1: one connection was accepted then."""
    monkeypatch.setattr(
        "kraftwire.proxy.server.raise_descriptor_limit", lambda: resource.RLIM_INFINITY
    )
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            streams = [await trio.open_tcp_stream(*run.address()) for _ in range(3)]
            assert (await run.ask(run.address(), ListGroupsRequest())).throttle_time_ms == 1
            for stream in streams:
                await stream.aclose()

        proxied(to(nodes[1]), use)


def test_two_hundred_clients_at_a_time() -> None:
    """Each gets its own answers."""
    with brokers(1) as nodes:

        async def use(run: Run) -> None:
            address = run.address("broker 1")
            answers: list[Any] = []
            ready = trio.Event()
            open_count = 0

            async def client() -> None:
                nonlocal open_count
                connection = await ClientConnection.connect(address, client_id="c", timeout_s=60)
                open_count += 1
                if open_count == 200:
                    ready.set()
                await ready.wait()
                answers.append(await connection.request(ListGroupsRequest(), timeout_s=60))
                connection.close()

            async with trio.open_nursery() as nursery:
                for _ in range(200):
                    nursery.start_soon(client)
            assert [one.throttle_time_ms for one in answers] == [1] * 200

        proxied(to(nodes[1]), use)
