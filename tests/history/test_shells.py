"""Bugs of what surrounds a core: the task that drives it, and the controller on top of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import trio
from trio.testing import MockClock

from kraftwire.controller.activation import activate
from kraftwire.controller.image import METADATA_VERSION, MetadataImage
from kraftwire.errors import StorageError
from kraftwire.messages.abort_transaction_record import AbortTransactionRecord
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.node.driver import Driver
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.raft import effects, events
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.core import RaftCore
from kraftwire.raft.ports import StoredState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import encode_metadata
from kraftwire.records.plain import data_batch
from tests.history.putting_back import Edit, history
from tests.support.nodes.stub import request_of
from tests.support.raft.disk import Disk
from tests.support.raft.messages import CLUSTER_ID, directory_id, endpoint, voted, voter_set

Persist = Callable[[effects.PersistQuorumState], None]


class _Store(Disk):
    """A disk as the driver wants it."""

    def __init__(self, persist: Persist) -> None:
        super().__init__()
        self.log = self
        self.snapshots = None
        self.persist = persist

    def append(  # type: ignore[override]
        self, data: bytes | memoryview, base_offset: int, end_offset: int
    ) -> None:
        assert base_offset == self.end_offset
        super().append(bytes(data))
        assert end_offset == self.end_offset

    def flush(self) -> int:  # type: ignore[override]
        super().flush(self.end_offset)
        return self.end_offset

    def truncate(self, end_offset: int) -> int:  # type: ignore[override]
        super().truncate(end_offset)
        return self.end_offset

    def read(  # type: ignore[override]
        self, offset: int, max_bytes: int, end_offset: int
    ) -> bytes:
        return super().read(effects.LogSlice(offset, max_bytes, end_offset))


class _Voters:
    """A network in which all nodes vote for this one and send nothing else."""

    def __init__(self, core: RaftCore) -> None:
        self._core = core

    def send(
        self, request: effects.SendRequest, answered: Callable[[events.ResponseReceived], None]
    ) -> None:
        """Answer requests for votes."""
        if request.message.NAME == "VoteRequest":
            answer = voted(self._core.epoch, is_granted=True)
            answered(events.ResponseReceived(request.request_id, answer))

    def reset(self) -> None:
        """Nothing is remembered."""


def _driver(persist: Persist) -> Driver:
    """The driver of node 1 of three voters."""
    config = RaftConfig(
        key=ReplicaKey(1, directory_id(1)),
        cluster_id=CLUSTER_ID,
        voters=voter_set([1, 2, 3]),
        endpoints=(endpoint(1),),
    )
    core = RaftCore(config, StoredState(), Random(1))
    return Driver(core, _Store(persist), _Voters(core))  # type: ignore[arg-type]


def _play(story: Callable[[], Awaitable[None]]) -> None:
    trio.run(story, clock=MockClock(autojump_threshold=0))


@history(
    20,
    "KAFKA-14644",
    "R-FATAL-1, D9",
    Edit(
        "kraftwire.node.driver:Driver.run",
        "self._handle_events()",
        "try:\n    self._handle_events()\n"
        "except Exception:\n    await trio.sleep_forever()",
    ),
    red="continues as if nothing had happened",
)
def test_a_node_whose_disk_fails_ends() -> None:
    """A process without its Raft task keeps its port and its lock, and is not restarted."""
    written: list[effects.PersistQuorumState] = []

    def persist(state: effects.PersistQuorumState) -> None:
        if written:
            raise StorageError("syncing failed", file="quorum-state", fatal=True)
        written.append(state)

    async def story() -> None:
        has_ended = False
        driver = _driver(persist)
        with trio.move_on_after(60):
            try:
                await driver.run()
            except* StorageError:
                has_ended = True
        assert has_ended, "continues as if nothing had happened"

    _play(story)


@history(
    35,
    "etcd 20418",
    "R-CQ-1, S21",
    Edit(
        "kraftwire.node.driver:Driver._handle_events",
        "if now >= deadline:",
        "if now >= deadline and not queue:",
    ),
    red="answered as the leader that it was",
)
def test_a_leader_that_was_stopped_for_a_while_does_not_answer_as_one() -> None:
    """Others may have led and committed meanwhile: what it knows is outdated."""

    async def story() -> None:
        driver = _driver(lambda state: None)  # noqa: ARG005
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.run)
            while driver.core.role != "leader":  # type: ignore[attr-defined]
                await trio.sleep(0.1)
            clock = trio.lowlevel.current_clock()
            assert isinstance(clock, MockClock)
            clock.jump(20)
            topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData()])
            answer = await driver.request(request_of(DescribeQuorumRequest(topics=[topic]), 2))
            error = answer.topics[0].partitions[0].error_code  # type: ignore[attr-defined]
            nursery.cancel_scope.cancel()
        assert error == 6, "answered as the leader that it was"

    _play(story)


@history(
    25,
    "KAFKA-20839",
    "S15",
    Edit(
        "kraftwire.controller.activation:activate",
        "if image.transaction_offset >= 0:",
        "if image.transaction_offset >= 1 << 40:",
    ),
    red="continues the transaction of another controller",
)
def test_a_bootstrap_that_was_cut_short_is_undone_and_written_again() -> None:
    """Its remaining records are unknown; a Java node ends on a transaction inside another."""
    version = FeatureLevelRecord(name=METADATA_VERSION, feature_level=25)
    half = [BeginTransactionRecord(name="Bootstrap records"), version]
    values = [encode_metadata(record, 0) for record in half]
    image = MetadataImage()
    image.replay(RecordBatch(data_batch(1, 1, 0, values)))
    records = activate(image, [(version, 0)], {})
    is_undone = isinstance(records[0][0], AbortTransactionRecord)
    assert is_undone, "continues the transaction of another controller"
    again = [encode_metadata(record, number) for record, number in records]
    image.replay(RecordBatch(data_batch(3, 2, 0, again)))
    assert image.metadata_version == 25
    assert image.transaction_offset < 0
