"""How a node registers with the active controller."""

from __future__ import annotations

from dataclasses import replace

import trio

from kraftwire.controller import controllers
from kraftwire.errors import ApiError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.controller_registration_response import ControllerRegistrationResponse
from kraftwire.node.controller import Controller
from kraftwire.node.registration import Registration
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message
from tests.support.nodes.stub import (
    CLUSTER_ID,
    StubNode,
    control_batch,
    in_virtual_time,
    with_brokers,
)
from tests.unit.controller.test_brokers import LEVEL

INCARNATION = bytes(15) + b"\x33"


class ClockedNode(StubNode):
    """A node on trio's clock that talks to a controller in the same process."""

    def now_ms(self) -> int:
        """Virtual time."""
        return 1_000_000 + round(trio.current_time() * 1000)

    async def wait_high_watermark(self, above: int, timeout_ms: int) -> int:
        """Virtual time passes."""
        with trio.move_on_after(timeout_ms / 1000):
            while self.raft.high_watermark <= above:
                await trio.sleep(0.05)
        return self.raft.high_watermark


@in_virtual_time
async def test_a_node_registers_its_controller_and_its_broker() -> None:
    """After that, clients find the broker and tools find the controller."""
    node = ClockedNode(idle_interval_ms=0)
    node.controller = Controller(node.config, node, bootstrap=[LEVEL])
    registration = Registration(node, INCARNATION)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        nursery.start_soon(registration.run)
        node.commit(control_batch(0))
        node.controller.leadership(1, 1, 1)
        await trio.sleep(3)
        (broker,) = node.image.alive_brokers
        assert (broker.id, broker.incarnation_id) == (1, INCARNATION)
        assert [e.listener for e in broker.endpoints] == ["PLAINTEXT"]
        assert broker.log_dirs == (node.key.directory_id,)
        controller = node.image.controllers[1]
        assert [e.listener for e in controller.endpoints] == ["CONTROLLER"]
        await trio.sleep(60)
        assert node.image.alive_brokers
        await registration.leave()
        assert not node.image.alive_brokers
        nursery.cancel_scope.cancel()


@in_virtual_time
async def test_nothing_is_sent_before_the_bootstrap_records() -> None:
    """A Java controller refuses registrations while metadata.version is unknown."""
    node = ClockedNode()
    node.raft.leader_id = 2
    with trio.move_on_after(5):
        await Registration(node, INCARNATION).run()
    assert node.forwarded == []


@in_virtual_time
async def test_a_controller_that_has_moved_registers_again() -> None:
    """Others would go on to dial the old endpoint, which the log still has."""
    node = ClockedNode(roles=frozenset({"controller"}))
    node.raft.leader_id = 2
    registration = Registration(node, INCARNATION)
    sent = []

    async def leader(message: Message, version: int | None = None) -> Message:
        del version
        assert isinstance(message, ControllerRegistrationRequest)
        sent.append([(one.host, one.port) for one in message.listeners])
        result = controllers.register_controller(node.image, message)
        node.commit_records(*result.records)
        return ControllerRegistrationResponse()

    node.forward = leader  # type: ignore[method-assign]
    node.commit_records(LEVEL)
    (own,) = [one for one in node.endpoints if one.listener == "CONTROLLER"]
    for port in (own.port, own.port + 1):
        moved = tuple(replace(one, port=port) for one in node.endpoints if one == own)
        node.endpoints = moved
        own = moved[0]
        # Once, and not again while nothing changes.
        with trio.move_on_after(30):
            await registration.run()
    assert sent == [[(own.host, own.port - 1)], [(own.host, own.port)]]


@in_virtual_time
async def test_no_broker_registers_among_java_voters() -> None:
    """A Java controller would give it partitions to host."""
    node = with_brokers(ClockedNode())
    node.raft.leader_id, node.raft.foreign_voters = 2, frozenset({2})
    node.forward_answer = ControllerRegistrationResponse()
    with trio.move_on_after(5):
        await Registration(node, INCARNATION).run()
    assert {message.NAME for message in node.forwarded} == {"ControllerRegistrationRequest"}


@in_virtual_time
async def test_a_broker_asks_to_be_fenced_when_java_voters_come() -> None:
    """It registered while those were down, and hosts nothing."""
    node = with_brokers(ClockedNode(roles=frozenset({"broker"})))
    node.raft.leader_id = 2
    wishes = []

    async def leader(message: Message, version: int | None = None) -> Message:
        del version
        if not isinstance(message, BrokerHeartbeatRequest):
            return BrokerRegistrationResponse(broker_epoch=40)
        wishes.append(message.want_fence)
        node.raft.foreign_voters = frozenset({2})
        return BrokerHeartbeatResponse(is_fenced=message.want_fence)

    node.forward = leader  # type: ignore[method-assign]
    with trio.move_on_after(7):
        await Registration(node, INCARNATION).run()
    assert wishes == [False, True, True, True]


@in_virtual_time
async def test_a_refusal_is_tried_again_with_growing_pauses() -> None:
    """A controller that is just elected needs a moment; a broken one must not be flooded."""
    node = with_brokers(ClockedNode(roles=frozenset({"broker"})))
    node.raft.leader_id = 2
    node.forward_answer = ApiError(ErrorCode.NOT_CONTROLLER, "no leader")
    with trio.move_on_after(60):
        await Registration(node, INCARNATION).run()
    assert 20 < len(node.forwarded) < 60


@in_virtual_time
async def test_a_stale_epoch_leads_to_a_new_registration() -> None:
    """The broker was unregistered, or the log was replaced."""
    node = with_brokers(ClockedNode(roles=frozenset({"broker"})))
    node.raft.leader_id = 2
    epochs = []

    async def leader(message: Message, version: int | None = None) -> Message:
        del version
        await trio.sleep(0.01)
        if isinstance(message, BrokerHeartbeatRequest):
            epochs.append(message.broker_epoch)
            return BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        assert getattr(message, "cluster_id", None) == CLUSTER_ID
        return BrokerRegistrationResponse(broker_epoch=40 + len(epochs))

    node.forward = leader  # type: ignore[method-assign]
    with trio.move_on_after(0.5):
        await Registration(node, INCARNATION).run()
    assert epochs[:3] == [40, 41, 42]
