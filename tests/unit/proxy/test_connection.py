"""A proxied connection on trio: bounded memory, its clock, and every way in which it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio
import trio.testing

from kraftwire.faults.rows import new_rule
from kraftwire.faults.rules import FaultRules
from kraftwire.proxy.connection import ProxiedConnection
from kraftwire.proxy.events import Side
from kraftwire.transport.secured_stream import SecuredStream
from kraftwire.transport.streams import Stream, Tap
from tests.support.nodes.stub import in_virtual_time
from tests.support.proxy.layers import layer, request, response

ASKED = request("ListGroups", 4, 1)
ANSWERED = response("ListGroups", 4, 1)


@dataclass
class _Ends:
    """A connection whose far ends are a test's; `said` is what it says."""

    client: trio.abc.Stream
    node: trio.abc.Stream
    connection: ProxiedConnection
    is_over: trio.Event = field(default_factory=trio.Event)
    said: list[str] = field(default_factory=list)


class _Recorder:
    """A tap that names what it gets, beside that of the other side."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self._name, self._seen = name, seen

    def sent(self, _: bytes) -> None:
        self._seen.append(f"{self._name} sent to")

    def received(self, _: bytes) -> None:
        self._seen.append(f"{self._name} received from")

    def ended(self, *, by_peer: bool = False) -> None:
        self._seen.append(f"{self._name} ended{' by itself' if by_peer else ''}")

    def closed(self, *, by_peer: bool = False) -> None:
        self._seen.append(f"{self._name} closed{' by itself' if by_peer else ''}")


Pair = tuple[trio.abc.Stream, trio.abc.Stream]


async def _proxied(
    test: Callable[[_Ends], Awaitable[None]],
    rules: FaultRules | None = None,
    pair: Callable[[], Pair] = trio.testing.memory_stream_pair,
    wrap: Callable[[Stream], Stream] = lambda stream: stream,
    taps: dict[Side, Tap] | None = None,
) -> None:
    """Run a test on both ends of a connection."""
    client, near = pair()
    node, far = pair()
    said: list[str] = []
    streams: dict[Side, Stream] = {Side.CLIENT: near, Side.UPSTREAM: wrap(far)}
    one = layer(rules, records=taps is not None)
    connection = ProxiedConnection(one, streams, say=said.append, taps=taps)
    ends = _Ends(client, node, connection, said=said)

    async def run() -> None:
        await connection.run()
        ends.is_over.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await test(ends)
        nursery.cancel_scope.cancel()


async def _all(stream: trio.abc.ReceiveStream) -> bytes:
    """What comes until the end."""
    return b"".join([piece async for piece in stream])


@in_virtual_time
async def test_both_directions_pass() -> None:
    """A request, its response, and the end."""

    async def test(ends: _Ends) -> None:
        await ends.client.send_all(ASKED)
        assert await ends.node.receive_some() == ASKED
        await ends.node.send_all(ANSWERED)
        assert await ends.client.receive_some() == ANSWERED
        await ends.client.aclose()
        assert await ends.node.receive_some() == b""
        await ends.is_over.wait()

    await _proxied(test)


@in_virtual_time
async def test_a_client_that_does_not_read_stops_the_node() -> None:
    """What is held is what was read at once, in this direction as in the other."""

    async def test(ends: _Ends) -> None:
        for sender in (ends.client, ends.node):
            sent = 0
            with trio.move_on_after(60):
                while True:
                    await sender.send_all(bytes(4) * 25)
                    sent += 1
            assert sent == 1

    # A sender waits until all that it sends has been read.
    await _proxied(test, pair=trio.testing.lockstep_stream_pair)


@in_virtual_time
async def test_a_response_is_delayed_by_the_clock() -> None:
    """By the time that the rule says, and no longer."""
    rules = FaultRules()
    rules.add(new_rule({"api": "ListGroups", "delay": 5}), trio.current_time())

    async def test(ends: _Ends) -> None:
        await ends.client.send_all(ASKED)
        await ends.node.receive_some()
        await ends.node.send_all(ANSWERED)
        began = trio.current_time()
        assert await ends.client.receive_some() == ANSWERED
        assert trio.current_time() - began == 5

    await _proxied(test, rules)


@in_virtual_time
async def test_a_response_trickles() -> None:
    """17 bytes at 100 a second."""
    rules = FaultRules()
    rules.add(new_rule({"api": "ListGroups", "throttle": 100}), trio.current_time())

    async def test(ends: _Ends) -> None:
        await ends.client.send_all(ASKED)
        await ends.node.receive_some()
        began = trio.current_time()
        await ends.node.send_all(ANSWERED)
        assert await ends.client.receive_some() == ANSWERED[:10]
        assert await ends.client.receive_some() == ANSWERED[10:]
        assert round(trio.current_time() - began, 6) == 0.1

    await _proxied(test, rules)


@in_virtual_time
async def test_what_a_rule_held_goes_on_when_it_is_removed() -> None:
    """The proxy tells its connections that the rules have changed."""
    rules = FaultRules()
    rule = rules.add(new_rule({"api": "ListGroups", "hold": True}), trio.current_time())

    async def test(ends: _Ends) -> None:
        await ends.client.send_all(ASKED)
        await ends.node.receive_some()
        await ends.node.send_all(ANSWERED)
        with trio.move_on_after(1000) as waiting:
            await ends.client.receive_some()
        assert waiting.cancelled_caught
        rule.remove()
        ends.connection.resume()
        assert await ends.client.receive_some() == ANSWERED

    await _proxied(test, rules)


@in_virtual_time
async def test_the_end_of_the_node_is_that_of_the_client() -> None:
    """What it has sent before arrives."""

    async def test(ends: _Ends) -> None:
        await ends.client.send_all(ASKED)
        await ends.node.receive_some()
        await ends.node.send_all(ANSWERED[:9])
        await ends.node.aclose()
        assert await _all(ends.client) == ANSWERED[:9]
        await ends.is_over.wait()

    await _proxied(test)


@in_virtual_time
async def test_a_client_that_has_only_stopped_sending_gets_its_answer() -> None:
    """The node sees the end too."""

    async def test(ends: _Ends) -> None:
        assert isinstance(ends.client, trio.StapledStream)
        await ends.client.send_all(ASKED)
        await ends.client.send_eof()
        assert await _all(ends.node) == ASKED
        await ends.node.send_all(ANSWERED)
        assert await _all(ends.client) == ANSWERED

    await _proxied(test)


@in_virtual_time
async def test_a_capture_has_the_end_of_a_client_when_it_comes() -> None:
    """Not when the answer does that a rule has held: it is what clients do about a node that hangs.
    """
    rules = FaultRules()
    rule = rules.add(new_rule({"api": "ListGroups", "hold": True}), trio.current_time())
    seen: list[str] = []

    async def test(ends: _Ends) -> None:
        assert isinstance(ends.client, trio.StapledStream)
        await ends.client.send_all(ASKED)
        assert await ends.node.receive_some() == ASKED
        await ends.node.send_all(ANSWERED)
        await trio.testing.wait_all_tasks_blocked()
        await ends.client.send_eof()
        assert await _all(ends.node) == b""
        seen.append("held")
        rule.remove()
        ends.connection.resume()
        assert await _all(ends.client) == ANSWERED

    taps: dict[Side, Tap] = {side: _Recorder(side.value, seen) for side in Side}
    await _proxied(test, rules, taps=taps)
    at = seen.index("held")
    assert seen[at - 2 : at] == ["client ended by itself", "upstream ended"]
    assert seen[at + 1 :] == ["client sent to", "client closed by itself", "upstream closed"]


@in_virtual_time
async def test_a_client_that_does_not_read_cannot_keep_a_connection_that_ends() -> None:
    """What was to be sent gets ten seconds."""
    rules = FaultRules()
    rules.add(new_rule({"api": "Heartbeat", "drop": "before"}), trio.current_time())

    async def test(ends: _Ends) -> None:
        await ends.client.send_all(ASKED)
        await ends.node.receive_some()
        await ends.node.send_all(ANSWERED)
        began = trio.current_time()
        await ends.client.send_all(request("Heartbeat", 4, 2))
        await ends.is_over.wait()
        assert trio.current_time() - began == 10

    await _proxied(test, rules, pair=trio.testing.lockstep_stream_pair)


class _Renewed(SecuredStream):
    """A node's stream on which the proxy has logged in; the session ends as a test says."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.is_due = False
        self.readers = 0
        self.renewed: list[int] = []

    @property
    def is_renewal_due(self) -> bool:
        return self.is_due

    async def renew(self) -> None:
        await trio.sleep(1)
        self.renewed.append(self.readers)
        self.is_due = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.stream.send_all(data)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        self.readers += 1
        try:
            return bytes(await self.stream.receive_some(max_bytes))
        finally:
            self.readers -= 1

    @property
    def transport_stream(self) -> trio.SocketStream:
        return self.stream  # type: ignore[return-value]


@in_virtual_time
async def test_the_proxys_own_login_is_renewed_between_two_requests() -> None:
    """While nobody reads: its answers are not responses."""
    made: list[_Renewed] = []

    def wrap(stream: Stream) -> Stream:
        made.append(_Renewed(stream))
        return made[0]

    async def test(ends: _Ends) -> None:
        (renewed,) = made
        await ends.client.send_all(ASKED)
        await ends.node.receive_some()
        renewed.is_due = True
        await ends.client.send_all(ASKED)
        assert await ends.node.receive_some() == ASKED
        assert renewed.renewed == []
        await ends.node.send_all(ANSWERED + ANSWERED)
        assert await ends.client.receive_some() == ANSWERED + ANSWERED
        await ends.client.send_all(ASKED)
        assert await ends.node.receive_some() == ASKED
        assert renewed.renewed == [0]
        await ends.node.send_all(ANSWERED)
        assert await ends.client.receive_some() == ANSWERED

    await _proxied(test, wrap=wrap)
