"""The active controller's life: leadership, bootstrap, queue, idle records, sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from kraftwire.controller import elections
from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image import METADATA_VERSION
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.errors import ApiError, StorageError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.update_features_request import FeatureUpdateKey
from kraftwire.node import controller as controller_module
from kraftwire.node import turns
from kraftwire.node.admission import CONNECTION
from kraftwire.node.controller import CHANGES_AT_ONCE, Controller
from kraftwire.node.metrics import contradiction_sample
from kraftwire.pieces import Pieces
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.batch import RecordBatch
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.nodes.stub import StubNode, batch_of, control_batch, in_virtual_time
from tests.unit.controller.test_brokers import LEVEL, registration


class ClockedNode(StubNode):
    """A node whose clock is trio's."""

    def now_ms(self) -> int:
        """Virtual time."""
        return 1_000_000 + round(trio.current_time() * 1000)


@asynccontextmanager
async def leader(
    level: VersionedRecord = LEVEL, **more: object
) -> AsyncIterator[ClockedNode]:
    """A node that leads epoch 1 and has written its bootstrap records."""
    node = ClockedNode(**({"idle_interval_ms": 0} | more))  # type: ignore[arg-type]
    node.controller = Controller(node.config, node, bootstrap=[level])
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
        answer = await node.controller.register_broker(registration(), 4)
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
async def test_a_controller_elected_again_gives_every_broker_a_fresh_session() -> None:
    """Its brokers told another leader meanwhile that they are there (C-HB-1)."""
    async with leader(session_timeout_ms=3000) as node:
        answer = await node.controller.register_broker(registration(), 4)
        assert isinstance(answer, BrokerRegistrationResponse)
        request = BrokerHeartbeatRequest(
            broker_id=7,
            broker_epoch=answer.broker_epoch,
            current_metadata_offset=answer.broker_epoch,
        )
        await node.controller.heartbeat(request)
        node.controller.leadership(2, 2, node.raft.end_offset)
        await trio.sleep(60)
        elect(node, epoch=3)
        await trio.sleep(2.9)
        assert [broker.id for broker in node.image.alive_brokers] == [7]
        await trio.sleep(0.2)
        assert not node.image.alive_brokers


@in_virtual_time
async def test_a_node_that_does_not_lead_refuses() -> None:
    """Brokers then ask the new leader."""
    node = ClockedNode()
    code = await refused(lambda: node.controller.register_broker(registration(), 4))
    assert code == ErrorCode.NOT_CONTROLLER


@in_virtual_time
async def test_a_leader_among_java_voters_refuses_and_writes_nothing() -> None:
    """Configured to hand over: a Java controller takes over, and brokers retry meanwhile."""
    node = ClockedNode(idle_interval_ms=500, handover="auto")
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
async def test_a_leader_that_never_hands_over_writes_among_java_voters() -> None:
    """It is the only one that may: without it, brokers would wait as long as it leads."""
    node = ClockedNode(idle_interval_ms=500)
    node.raft.foreign_voters = frozenset({2})
    node.controller = Controller(node.config, node, bootstrap=[LEVEL])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        elect(node)
        await trio.sleep(2)
        await node.controller.register_broker(registration(), 4)
        nursery.cancel_scope.cancel()
    assert list(node.image.brokers) == [registration().broker_id]


@in_virtual_time
async def test_waiting_requests_are_refused_when_the_leadership_ends() -> None:
    """A record that may never be committed must not be acknowledged."""
    async with leader() as node:
        node.is_stuck = True
        code = await refused(lambda: node.controller.register_broker(registration(), 4))
        assert code == ErrorCode.NOT_CONTROLLER
        await trio.testing.wait_all_tasks_blocked()
        assert node.resigned == [1]
        assert not node.controller.is_active


@in_virtual_time
async def test_a_change_of_voters_that_comes_between_costs_no_leadership() -> None:
    """A broker's epoch is by contract the offset of its record: it is decided again. Otherwise
    whoever changes voters at the right moment causes an election (SEC-VOTERS)."""
    async with leader() as node:
        append = node.append

        async def elsewhere(*arguments: object, **more: object) -> int:
            node.append = append  # type: ignore[method-assign]
            node.commit(control_batch(node.raft.end_offset))
            return await append(*arguments, **more)  # type: ignore[arg-type]

        node.append = elsewhere  # type: ignore[method-assign, assignment]
        expected = node.raft.end_offset + 1
        answer = await node.controller.register_broker(registration(), 4)
        assert answer == BrokerRegistrationResponse(broker_epoch=expected)
        assert node.image.brokers[7].offset == expected
        assert node.resigned == []


async def _register_all(node: StubNode, ids: Sequence[int], first: Mapping[int, int]) -> list[int]:
    """Register brokers at once, each from a connection; returns them in the order of their records.

    `first` are the numbers of connections that differ from the broker's id.
    """

    async def one(broker_id: int) -> None:
        CONNECTION.set(first.get(broker_id, broker_id))
        own = broker_id.to_bytes(16, "big")
        request = registration(broker_id=broker_id, log_dirs=[own], incarnation_id=own)
        answer = await node.controller.register_broker(request, 4)
        assert isinstance(answer, BrokerRegistrationResponse)
        assert node.image.brokers[broker_id].epoch == answer.broker_epoch

    async with trio.open_nursery() as nursery:
        for broker_id in ids:
            nursery.start_soon(one, broker_id)
            # In this order: trio's own is random.
            await trio.lowlevel.checkpoint()
    return sorted(ids, key=lambda one: node.image.brokers[one].epoch)


@in_virtual_time
async def test_a_crowd_registers_in_few_batches_and_the_oldest_connections_first() -> None:
    """One after the other, a flood of legal registrations made each honest one wait for all others
    (SEC-TURNS)."""
    async with leader() as node:
        release, append = trio.Event(), node.append

        async def held(*arguments: object, **more: object) -> int:
            await release.wait()
            return await append(*arguments, **more)  # type: ignore[arg-type]

        node.append = held  # type: ignore[method-assign, assignment]
        batches = len(node.batches)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_released, release)
            order = await _register_all(node, range(100, 140), first={139: 1})
        assert order.index(139) < 2 * CHANGES_AT_ONCE
        assert len(node.batches) - batches <= 40 // CHANGES_AT_ONCE + 1


async def _released(event: trio.Event) -> None:
    await trio.sleep(1)
    event.set()


@in_virtual_time
async def test_a_flood_of_requests_keeps_no_silent_broker_alive() -> None:
    """The queue need never be empty for what is due: fencing, idle records (C-MOD-2)."""
    async with leader(session_timeout_ms=3000, idle_interval_ms=500) as node:
        answer = await node.controller.register_broker(registration(), 4)
        assert isinstance(answer, BrokerRegistrationResponse)
        epoch = answer.broker_epoch
        beat = BrokerHeartbeatRequest(
            broker_id=7, broker_epoch=epoch, current_metadata_offset=epoch
        )
        await node.controller.heartbeat(beat)
        append = node.append

        async def slow(*arguments: object, **more: object) -> int:
            await trio.sleep(0.1)
            return await append(*arguments, **more)  # type: ignore[arg-type]

        async def flood(number: int) -> None:
            while True:
                await node.controller.register_controller(
                    ControllerRegistrationRequest(
                        controller_id=number, incarnation_id=node.raft.end_offset.to_bytes(16)
                    )
                )

        node.append = slow  # type: ignore[method-assign, assignment]
        records = node.log_records().count("NoOpRecord")
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(flood, number)
            await trio.sleep(4)
            nursery.cancel_scope.cancel()
        assert not node.image.alive_brokers
        assert node.log_records().count("NoOpRecord") - records >= 6


@in_virtual_time
async def test_a_broker_whose_heartbeat_waits_is_not_fenced() -> None:
    """However slow the controller is: no broker is silent because of that (C-HB-2)."""
    async with leader(session_timeout_ms=3000, heartbeat_interval_ms=60_000) as node:
        answer = await node.controller.register_broker(registration(), 4)
        assert isinstance(answer, BrokerRegistrationResponse)
        epoch = answer.broker_epoch
        beat = BrokerHeartbeatRequest(
            broker_id=7, broker_epoch=epoch, current_metadata_offset=epoch
        )
        await node.controller.heartbeat(beat)
        append = node.append

        async def stuck(*arguments: object, **more: object) -> int:
            await trio.sleep(3.1)
            return await append(*arguments, **more)  # type: ignore[arg-type]

        node.append = stuck  # type: ignore[method-assign, assignment]
        records = node.log_records()
        async with trio.open_nursery() as nursery:
            for number in (8, 9):
                other = ControllerRegistrationRequest(controller_id=number)
                nursery.start_soon(node.controller.register_controller, other)
                await trio.lowlevel.checkpoint()
            await trio.sleep(2)
            nursery.start_soon(node.controller.heartbeat, beat)
        assert node.log_records()[len(records) :] == ["RegisterControllerRecord"] * 2
        assert node.image.alive_brokers


@in_virtual_time
async def test_changes_of_the_same_broker_are_decided_one_after_the_other() -> None:
    """The second decision depends on the first."""
    async with leader() as node:
        batches, answers = len(node.batches), []

        async def one(number: int) -> None:
            request = registration(incarnation_id=bytes(15) + bytes([number]))
            answers.append(await node.controller.register_broker(request, 4))

        async with trio.open_nursery() as nursery:
            for number in (1, 2, 3):
                nursery.start_soon(one, number)
        epochs = [answer.broker_epoch for answer in answers]
        assert len(set(epochs)) == len(node.batches) - batches == 3
        assert node.image.brokers[7].epoch == max(epochs)


@in_virtual_time
async def test_levels_change_apart_from_everything_else() -> None:
    """Whether a broker may register depends on the levels."""
    before = FeatureLevelRecord(name=METADATA_VERSION, feature_level=29)
    async with leader((before, 0)) as node:
        batches = len(node.batches)
        raised = FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=30, upgrade_type=1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.controller.update_features, [raised], lambda _: None)
            nursery.start_soon(node.controller.register_broker, registration(), 4)
        assert len(node.batches) - batches == 2
        assert node.image.metadata_version == 30


@in_virtual_time
async def test_a_registration_that_fits_no_batch_is_refused() -> None:
    """No request of a peer may cost a leader its leadership."""
    async with leader() as node:

        async def too_large(*_: object, **__: object) -> int:
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, "too large")

        append, node.append = node.append, too_large  # type: ignore[method-assign, assignment]
        code = await refused(lambda: node.controller.register_broker(registration(), 4))
        assert code == ErrorCode.MESSAGE_TOO_LARGE
        node.append = append  # type: ignore[method-assign]
        answer = await node.controller.register_broker(registration(), 4)
        assert isinstance(answer, BrokerRegistrationResponse)
        assert not answer.error_code


@asynccontextmanager
async def _leading_five_partitions(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClockedNode]:
    """Broker 7, which has just fallen silent, leads more partitions than an append may change."""
    monkeypatch.setattr(controller_module, "APPENDED_MAX", 2)
    async with leader(session_timeout_ms=3000) as node:
        answer = await node.controller.register_broker(registration(), 4)
        assert isinstance(answer, BrokerRegistrationResponse)
        epoch = answer.broker_epoch
        beat = BrokerHeartbeatRequest(
            broker_id=7, broker_epoch=epoch, current_metadata_offset=epoch
        )
        await node.controller.heartbeat(beat)
        topic_id = bytes(15) + b"\x09"
        partitions = [
            PartitionRecord(
                topic_id=topic_id, partition_id=index, replicas=[7], isr=[7], leader=7,
                leader_epoch=0, partition_epoch=0, directories=[bytes(15) + b"\xc9"],
            )
            for index in range(5)
        ]  # fmt: skip
        node.commit_records(
            (TopicRecord(name="t", topic_id=topic_id), 0), *((one, 2) for one in partitions)
        )
        yield node


@in_virtual_time
async def test_a_broker_with_many_partitions_is_fenced_by_several_appends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one batch they would not fit, and each new leader would fail as well (C-MOD-7)."""
    async with _leading_five_partitions(monkeypatch) as node:
        batches = len(node.batches)
        await trio.sleep(3.1)
        assert not node.image.alive_brokers
        assert len(node.image.topics.without_leader) == 5
        sizes = [batch.last_offset_delta + 1 for batch in node.batches[batches:]]
        assert sizes == [2, 2, 2]
        assert node.resigned == []


@in_virtual_time
async def test_an_answer_whose_offsets_changed_ends_the_leadership(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A change of voters came between two appends of a controlled shutdown."""
    async with _leading_five_partitions(monkeypatch) as node:
        append = node.append

        async def interrupted(values: Sequence[bytes], **more: object) -> int:
            last = await append(values, **more)  # type: ignore[arg-type]
            node.commit(control_batch(node.raft.end_offset))
            return last

        node.append = interrupted  # type: ignore[method-assign, assignment]
        epoch = node.image.brokers[7].epoch
        beat = BrokerHeartbeatRequest(
            broker_id=7, broker_epoch=epoch, current_metadata_offset=99, want_shut_down=True
        )
        code = await refused(lambda: node.controller.heartbeat(beat))
        assert (code, node.resigned) == (ErrorCode.NOT_CONTROLLER, [1])


@in_virtual_time
async def test_a_bug_in_a_decision_ends_its_request_only() -> None:
    """Nothing was written; the next leader would only meet the same request (C-ERR-2)."""
    async with leader() as node:

        def broken(*_: object) -> StepResult:
            raise KeyError("a bug")

        code = await refused(lambda: node.controller.submit(broken))
        assert code == ErrorCode.UNKNOWN_SERVER_ERROR
        answer = await node.controller.register_broker(registration(), 4)
        assert isinstance(answer, BrokerRegistrationResponse)
        errors = [one for one in node.controller.samples() if "metadataerror" in one.name]
        assert [one.value for one in errors] == [1]


@in_virtual_time
async def test_a_bug_in_a_task_is_met_again_after_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller goes on with everything else (C-ERR-2)."""
    times: list[float] = []

    def broken(_: Cluster) -> Sequence[VersionedRecord]:
        times.append(trio.current_time())
        raise LookupError("a bug")

    monkeypatch.setattr(elections, "elect_preferred", broken)
    async with leader(rebalance_interval_ms=1000, idle_interval_ms=500) as node:
        await trio.sleep(400.2)
        assert [round(at) for at in times] == [1, 301]
        assert node.log_records().count("NoOpRecord") == 800


WRONG = BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=99, fenced=-1)


def test_a_contradiction_is_told_once_and_forbids_to_lead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka's controller would end; whoever acts on such a state makes it worse."""
    node = StubNode()
    node.commit_records((WRONG, 0))
    node.commit_records((WRONG, 0))
    (reason,) = node.forbidden
    assert "offset 0" in reason
    assert "broker 3 is not registered" in reason
    logged = [each for each in caplog.records if each.message == "metadata-contradiction"]
    assert [each.levelname for each in logged] == ["ERROR"]
    assert logged[0].fields["offset"] == 0  # type: ignore[attr-defined]
    assert contradiction_sample(node.image.contradiction).value == 0
    assert contradiction_sample(None).value == -1


@pytest.mark.parametrize(("name", "known"), [("streams.version", "0 to 1"), ("new", "0 to 0")])
def test_a_level_that_is_not_supported_ends_the_node(name: str, known: str) -> None:
    """As it ends Kafka's controller: another release knows what the level means (C-FEA-10)."""
    node = StubNode()
    node.commit_records((FeatureLevelRecord(name="other", feature_level=0), 0))
    with pytest.raises(StorageError) as raised:
        node.commit_records((FeatureLevelRecord(name=name, feature_level=9), 0))
    assert f"{name} is set to level 9, but known levels are {known}" in str(raised.value)
    assert node.forbidden == []


@in_virtual_time
async def test_a_node_on_a_log_that_contradicts_itself_writes_nothing() -> None:
    """Not even before its resignation."""
    node = ClockedNode(idle_interval_ms=0)
    node.controller = Controller(node.config, node, bootstrap=[LEVEL])
    node.commit_records((WRONG, 0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        elect(node)
        await trio.testing.wait_all_tasks_blocked()
        assert not node.controller.is_active
        assert node.log_records() == ["BrokerRegistrationChangeRecord"]
        nursery.cancel_scope.cancel()


@in_virtual_time
async def test_a_snapshot_that_contradicts_itself_is_not_led() -> None:
    """It is noticed at the next change of leader at the latest."""
    node = ClockedNode(idle_interval_ms=0)

    class Snapshot:
        id = OffsetAndEpoch(10, 1)

        def __iter__(self) -> Iterator[RecordBatch]:
            return iter([batch_of([LEVEL, (WRONG, 0)], 0)])

    node.controller.load(Snapshot())  # type: ignore[arg-type]
    node.controller.leadership(node.key.id, 2, 10)
    assert "the metadata record at offset 9 contradicts" in node.forbidden[0]
    assert not node.controller.is_active


@in_virtual_time
async def test_a_long_decision_is_made_in_turns_and_ends_with_the_leadership() -> None:
    """In between the image may have become that of another leader (SEC-WORK)."""
    done: list[int] = []
    rounds: list[int] = []

    def decide(_: Cluster, __: int) -> Pieces[StepResult]:
        for number in range(40):
            done.append(number)
            yield
        return StepResult(BrokerRegistrationResponse())

    async def look() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            rounds.append(len(done))

    async with leader() as node, trio.open_nursery() as nursery:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(turns, "PIECE_SECONDS", 0.0)
            nursery.start_soon(look)
            assert isinstance(await node.controller.submit(decide), BrokerRegistrationResponse)
            assert len(set(rounds)) > 20
            done.clear()

            async def lose() -> None:
                while len(done) < 20:
                    await trio.lowlevel.checkpoint()
                node.controller.leadership(2, 2, node.raft.end_offset)

            nursery.start_soon(lose)
            assert await refused(lambda: node.controller.submit(decide)) == (
                ErrorCode.NOT_CONTROLLER
            )
            assert len(done) < 30
        nursery.cancel_scope.cancel()
