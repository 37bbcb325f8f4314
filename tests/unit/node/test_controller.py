"""The active controller's life: leadership, bootstrap, queue, idle records, sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from kraftwire.errors import ApiError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.node.controller import Controller
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.node_stub import StubNode, control_batch, in_virtual_time
from tests.unit.node.test_controller_steps import LEVEL, registration


class ClockedNode(StubNode):
    """A node whose clock is trio's."""

    def now_ms(self) -> int:
        """Virtual time."""
        return 1_000_000 + round(trio.current_time() * 1000)


@asynccontextmanager
async def leader(**more: object) -> AsyncIterator[ClockedNode]:
    """A node that leads epoch 1 and has written its bootstrap records."""
    node = ClockedNode(**({"idle_interval_ms": 0} | more))  # type: ignore[arg-type]
    node.controller = Controller(node.config, node, bootstrap=[LEVEL])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        elect(node)
        await trio.testing.wait_all_tasks_blocked()
        yield node
        nursery.cancel_scope.cancel()


def elect(node: StubNode, epoch: int = 1) -> None:
    """Let a node lead an epoch."""
    node.raft.epoch = epoch
    node.commit(control_batch(node.raft.end_offset, epoch=epoch))
    node.controller.leadership(node.key.id, epoch, node.raft.end_offset)


async def refused(call: Callable[[], Awaitable[object]]) -> int:
    """The code of the error that a call ends with."""
    with pytest.raises(ApiError) as caught:
        await call()
    return caught.value.code


@in_virtual_time
async def test_a_first_leader_writes_the_bootstrap_records_once() -> None:
    """The second leader finds them in the log."""
    async with leader() as node:
        assert node.log_records() == [
            "BeginTransactionRecord",
            "FeatureLevelRecord",
            "EndTransactionRecord",
        ]
        elect(node, 2)
        await trio.testing.wait_all_tasks_blocked()
        assert len(node.log_records()) == 3


@in_virtual_time
async def test_a_leader_generates_the_cluster_id_where_the_log_keeps_it() -> None:
    """Without a formatted directory the log is the only place that all nodes share."""
    node = ClockedNode(idle_interval_ms=0)
    node.raft.cluster_id = None
    node.controller = Controller(
        node.config, node, bootstrap=[LEVEL], new_cluster_id=lambda: "new-id"
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        elect(node)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert node.image.cluster_id == "new-id"


@in_virtual_time
async def test_the_idle_record_comes_at_every_interval() -> None:
    """Observers take the log's growth for the quorum's sign of life."""
    async with leader(idle_interval_ms=500) as node:
        await trio.sleep(2.2)
        assert node.log_records().count("NoOpRecord") == 4


@in_virtual_time
async def test_a_registered_broker_is_unfenced_and_fenced_when_it_falls_silent() -> None:
    """The whole life of a broker in the log."""
    async with leader(session_timeout_ms=3000) as node:
        answer = await node.controller.register_broker(registration())
        assert isinstance(answer, BrokerRegistrationResponse)
        epoch = answer.broker_epoch
        assert node.image.brokers[7].offset == epoch
        request = BrokerHeartbeatRequest(
            broker_id=7, broker_epoch=epoch, current_metadata_offset=epoch
        )
        await node.controller.heartbeat(request)
        assert [broker.id for broker in node.image.alive_brokers] == [7]
        await trio.sleep(2.9)
        assert node.image.alive_brokers
        await trio.sleep(0.2)
        assert not node.image.alive_brokers


@in_virtual_time
async def test_a_node_that_does_not_lead_refuses() -> None:
    """Brokers then ask the new leader."""
    node = ClockedNode()
    code = await refused(lambda: node.controller.register_broker(registration()))
    assert code == ErrorCode.NOT_CONTROLLER


@in_virtual_time
async def test_a_leader_among_java_voters_refuses_and_writes_nothing() -> None:
    """A Java controller serves them better; it takes over, and brokers retry meanwhile."""
    node = ClockedNode(idle_interval_ms=500)
    node.raft.foreign_voters = frozenset({2})
    node.controller = Controller(node.config, node, bootstrap=[LEVEL])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        elect(node)
        await trio.sleep(2)
        code = await refused(
            lambda: node.controller.register_controller(ControllerRegistrationRequest())
        )
        nursery.cancel_scope.cancel()
    assert code == ErrorCode.NOT_CONTROLLER
    assert node.log_records() == []


@in_virtual_time
async def test_waiting_requests_are_refused_when_the_leadership_ends() -> None:
    """A record that may never be committed must not be acknowledged."""
    async with leader() as node:
        node.is_stuck = True
        code = await refused(lambda: node.controller.register_broker(registration()))
        assert code == ErrorCode.NOT_CONTROLLER
        await trio.testing.wait_all_tasks_blocked()
        assert node.resigned == [1]
        assert not node.controller.is_active


@in_virtual_time
async def test_an_append_elsewhere_than_expected_ends_the_leadership() -> None:
    """A broker's epoch is by contract the offset of its record."""
    async with leader() as node:
        node.raft.end_offset += 1
        append = node.append

        async def elsewhere(*arguments: object, **more: object) -> int:
            node.raft.end_offset += 1
            return await append(*arguments, **more)  # type: ignore[arg-type]

        node.append = elsewhere  # type: ignore[method-assign, assignment]
        code = await refused(lambda: node.controller.register_broker(registration()))
        assert code == ErrorCode.NOT_CONTROLLER


@in_virtual_time
async def test_a_registration_that_fits_no_batch_is_refused() -> None:
    """No request of a peer may cost a leader its leadership."""
    async with leader() as node:

        async def too_large(*_: object, **__: object) -> int:
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, "too large")

        append, node.append = node.append, too_large  # type: ignore[method-assign, assignment]
        code = await refused(lambda: node.controller.register_broker(registration()))
        assert code == ErrorCode.MESSAGE_TOO_LARGE
        node.append = append  # type: ignore[method-assign]
        answer = await node.controller.register_broker(registration())
        assert isinstance(answer, BrokerRegistrationResponse)
        assert not answer.error_code
