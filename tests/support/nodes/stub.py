"""A node for handlers and the controller: no sockets, no core, a log in memory.

Owns a `Context` whose appends are committed at once, unless a test holds them back.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec, cast

import trio
from trio.testing import MockClock

from kraftwire.controller.image import METADATA_VERSION, MetadataImage
from kraftwire.controller.step import VersionedRecord
from kraftwire.errors import ApiError
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraftwire.node import handlers
from kraftwire.node.config import NodeConfig
from kraftwire.node.config_listeners import Listener
from kraftwire.node.context import Request
from kraftwire.node.controller import Controller
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.control import ControlType, control_key, control_value
from kraftwire.records.metadata import decode_metadata, encode_metadata
from kraftwire.records.reader import read_batches
from kraftwire.wire.message import Message

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAg"

P = ParamSpec("P")


def in_virtual_time(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run a test on a clock that jumps to the next deadline."""

    @functools.wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        clock = MockClock(autojump_threshold=0)
        trio.run(functools.partial(test, *arguments, **named), clock=clock)

    return run


def batch_of(
    records: Sequence[VersionedRecord], base_offset: int, *, epoch: int = 1, timestamp: int = 1000
) -> RecordBatch:
    """A committed batch of metadata records."""
    return raw_batch([encode_metadata(m, v) for m, v in records], base_offset, epoch, timestamp)


def raw_batch(
    values: Sequence[bytes], base_offset: int, epoch: int = 1, timestamp: int = 1000
) -> RecordBatch:
    """A committed batch of any values."""
    header = BatchHeader(base_offset=base_offset, partition_leader_epoch=epoch)
    count = len(values)
    return RecordBatch(build_columns([timestamp] * count, [None] * count, values, header=header))


def control_batch(base_offset: int, *, epoch: int = 1, timestamp: int = 1000) -> RecordBatch:
    """The batch that begins an epoch of node 1."""
    header = BatchHeader(
        base_offset=base_offset, partition_leader_epoch=epoch, is_control=True
    )
    key = control_key(ControlType.LEADER_CHANGE)
    value = control_value(LeaderChangeMessage(version=0, leader_id=1))
    return RecordBatch(build_columns([timestamp], [key], [value], header=header))


@dataclass
class RaftStub:
    """The visible state of a core."""

    role: str = "leader"
    epoch: int = 1
    leader_id: int = 1
    leader_endpoint: Endpoint | None = None
    high_watermark: int = 0
    start_offset: int = 0
    end_offset: int = 0
    epoch_start_offset: int = 0
    voters: VoterSet = field(default_factory=VoterSet)
    is_voter: bool = True
    kraft_version: int = 0
    cluster_id: str | None = CLUSTER_ID
    foreign_voters: frozenset[int] = frozenset()
    replica_count: int = 3


def config_of(node_id: int = 1, **more: object) -> NodeConfig:
    """A combined node with a listener for clients and one for peers."""
    client = Listener("PLAINTEXT", "127.0.0.1", 9090 + node_id, False, True)
    peer = Listener("CONTROLLER", "127.0.0.1", 9190 + node_id, True, False)
    listeners = (client, peer)
    values: dict[str, object] = {
        "path": "node.properties",
        "node_id": node_id,
        "roles": frozenset(("broker", "controller")),
        "listeners": listeners,
        "advertised": tuple(Endpoint(e.name, e.host, e.port) for e in listeners),
        "controller_listeners": ("CONTROLLER",),
        "log_dirs": ("data",),
        "metadata_log_dir": "data",
    }
    return NodeConfig(**(values | more))  # type: ignore[arg-type]


class StubNode:
    """A `Context` and a `Quorum`. `batches` is the log; `is_stuck` holds commits back."""

    def __init__(self, node_id: int = 1, voter_count: int = 3, **more: object) -> None:
        self.config = config_of(node_id, **more)
        self.key = ReplicaKey(node_id, bytes(15) + bytes([100 + node_id]))
        voters = (
            Voter(ReplicaKey(n), (Endpoint("CONTROLLER", "127.0.0.1", 9190 + n),))
            for n in range(1, voter_count + 1)
        )
        self.raft = RaftStub(voters=VoterSet.of(*voters))
        self.endpoints = self.config.advertised
        quorum: Any = self  # it shows as much of a quorum as handlers use
        self.controller = Controller(self.config, quorum, bootstrap=())
        self.batches: list[RecordBatch] = []
        self.clock_ms = 1_000_000
        self.is_stuck = False
        self.resigned: list[int] = []
        self.forbidden: list[str] = []
        self.upgrades: list[tuple[int, bool]] = []
        self.upgrade_refusal: ApiError | None = None
        self.forwarded: list[Message] = []
        self.core_answer: Message | None = None
        self.forward_answer: Message | ApiError | None = None

    @property
    def image(self) -> MetadataImage:
        """The controller's image."""
        return self.controller.image

    def commit(self, batch: RecordBatch) -> None:
        """Append a batch to the log and replay it."""
        self.batches.append(batch)
        self.raft.end_offset = self.raft.high_watermark = batch.last_offset + 1
        self.controller.apply([batch])

    def commit_records(self, *records: VersionedRecord, timestamp: int = 1000) -> int:
        """Commit metadata records as one batch; returns the offset of the first."""
        base = self.raft.end_offset
        self.commit(batch_of(records, base, epoch=self.raft.epoch, timestamp=timestamp))
        return base

    def now_ms(self) -> int:
        """The test's clock."""
        return self.clock_ms

    def wall_ms(self) -> int:
        """The test's clock, which began with the epoch."""
        return self.clock_ms

    async def answer(self, request: Request) -> Message | None:
        """What the handler of a request answers; everybody may ask everything."""
        handler = handlers.route(request)
        return None if handler is None else await handler(request, cast("Any", self))

    async def raft_request(self, _: Request) -> Message:
        """The answer that the test has set for the core."""
        assert self.core_answer is not None
        return self.core_answer

    def committed_size(self, offset: int, max_bytes: int) -> int:
        """How many bytes `read_committed` would return."""
        return len(self.read_committed(offset, max_bytes))

    async def forward(self, message: Message, version: int | None = None) -> Message:
        """The answer that the test has set for the leader."""
        del version
        self.forwarded.append(message)
        if isinstance(self.forward_answer, ApiError):
            raise self.forward_answer
        assert self.forward_answer is not None
        return self.forward_answer

    def read_committed(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches, beginning with the one that has the offset."""
        parts: list[bytes] = []
        size = 0
        for batch in self.batches:
            if batch.last_offset < offset:
                continue
            if parts and size + batch.size > max_bytes:
                break
            parts.append(bytes(batch.raw))
            size += batch.size
        return b"".join(parts)

    async def append(
        self, values: Sequence[bytes], *, epoch: int, expected_end_offset: int | None = None
    ) -> int:
        """Append and commit at once."""
        raft = self.raft
        if epoch != raft.epoch or raft.role != "leader":
            raise ApiError(ErrorCode.NOT_CONTROLLER, "not the leader")
        if expected_end_offset not in (None, raft.end_offset):
            raise ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, "another offset")
        batch = raw_batch(values, raft.end_offset, epoch, self.clock_ms)
        self.commit(batch)
        return batch.last_offset

    async def committed(self, offset: int, *, epoch: int) -> None:
        """Everything is committed unless the test lets this node lose its epoch."""
        del offset
        if self.is_stuck or epoch != self.raft.epoch:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "the leadership ended")

    async def wait_high_watermark(self, above: int, timeout_ms: int) -> int:
        """Let the time pass at once."""
        del above
        self.clock_ms += timeout_ms
        return self.raft.high_watermark

    async def upgrade_kraft_version(self, version: int, *, validate_only: bool) -> None:
        """The result that the test has set for the core."""
        self.upgrades.append((version, validate_only))
        if self.upgrade_refusal is not None:
            raise self.upgrade_refusal
        if not validate_only:
            self.raft.kraft_version = version

    def resign(self, epoch: int) -> None:
        """Record which epoch was resigned."""
        self.resigned.append(epoch)

    def forbid_leadership(self, reason: str) -> None:
        """Record why this node must not lead."""
        self.forbidden.append(reason)

    def log_records(self) -> list[str]:
        """The names of the records in the log, in order."""
        return [
            decode_metadata(record.value).type
            for batch in read_batches(b"".join(bytes(b.raw) for b in self.batches))
            if not batch.is_control
            for record in batch.records()
        ]


def request_of(message: Message, version: int, *, to: str = "client", **more: Any) -> Request:
    """A request that came in on a listener for clients, for peers (`peer`) or for `both`."""
    return Request(
        message.API_KEY,
        version,
        message,
        listener="CONTROLLER" if to == "peer" else "PLAINTEXT",
        from_controller_listener=to != "client",
        from_client_listener=to != "peer",
        **more,
    )


async def answer_of(node: StubNode, request: Request) -> Any:
    """The answer of the right handler."""
    handler = handlers.route(request)
    assert handler is not None
    context: Any = node
    return await handler(request, context)


def with_brokers(node: StubNode, *broker_ids: int, is_fenced: bool = False) -> StubNode:
    """Commit metadata.version 30 and registrations of brokers."""
    level = FeatureLevelRecord(name=METADATA_VERSION, feature_level=30)
    brokers = [
        RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=broker_id,
            end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9090 + broker_id)],
            fenced=is_fenced,
        )
        for broker_id in broker_ids
    ]
    node.commit_records((level, 0), *((broker, 4) for broker in brokers))
    return node


def active_node(**config: object) -> StubNode:
    """The active controller, with broker 1 registered at epoch 1."""
    node = with_brokers(StubNode(**config), 1)  # type: ignore[arg-type]
    node.controller.leadership(1, 1, node.raft.end_offset)
    return node


@asynccontextmanager
async def deciding(**config: object) -> AsyncIterator[StubNode]:
    """The active controller at work."""
    node = active_node(**config)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        yield node
        nursery.cancel_scope.cancel()
