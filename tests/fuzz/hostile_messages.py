"""What hostile peers send: messages that fit the wire and need not make sense.

They are close enough to what the core knows to pass its first checks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.raft.epochs import EPOCH_MAX
from kraftwire.records import RecordBatch
from kraftwire.records.control import control_batch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.plain import data_batch
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message
from tests.support.messages.random_messages import random_message
from tests.support.raft import messages as peer
from tests.support.raft.disk import Control, snapshot_bytes
from tests.support.raft.lone import Lone
from tests.support.raft.messages import (
    FEATURES,
    JAVA_FEATURES,
    LISTENER,
    directory_id,
    dynamic_set,
    features,
    voters_control,
)

REQUESTS = (
    "VoteRequest",
    "BeginQuorumEpochRequest",
    "EndQuorumEpochRequest",
    "FetchRequest",
    "FetchSnapshotRequest",
    "DescribeQuorumRequest",
    "AddRaftVoterRequest",
    "RemoveRaftVoterRequest",
    "UpdateRaftVoterRequest",
)

_OFFSET_MAX = (1 << 63) - 1
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
ERRORS = [0, 0, 0, 6, 8, 13, 31, 35, 42, 74, 75, 94, 98, 99, 104, 125, -1, 999, 32767, -32768]


class Speech:
    """Chooses messages for a core."""

    def __init__(self, lone: Lone, source: Random) -> None:
        self.lone = lone
        self.source = source
        # In half of the runs epochs stay, so that roles last.
        self._is_calm = source.random() < 0.5
        # In others most messages are right, so that exchanges of many messages get far.
        self.is_careful = source.random() < 0.5

    def request(self) -> tuple[Message, int] | None:
        """A request and its version; None if it cannot be encoded."""
        source, core = self.source, self.lone.core
        name = source.choice([*REQUESTS, "FetchRequest", "VoteRequest"])
        who, epoch = source.choice([-1, 1, 2, 2, 3, 4, 9]), self._epoch()
        last = (core.last_epoch + source.choice([-1, 0, 0, 0, 1]), self._offset())
        if source.random() < 0.5:
            who, last = source.choice([2, 3]), self._position()
        made: dict[str, Callable[[], Message]] = {
            "VoteRequest": lambda: peer.vote(
                who,
                epoch,
                last,
                pre_vote=source.random() < 0.5,
                directory=directory_id(max(who, 0)),
            ),
            "BeginQuorumEpochRequest": lambda: peer.begin(who, epoch),
            "EndQuorumEpochRequest": lambda: peer.end(who, epoch, *source.sample(range(5), 3)),
            "FetchRequest": lambda: peer.fetch(who, last[1], last[0], epoch),
            **self._changes(max(who, 0), epoch),
        }
        kind = messages.find(name)
        version = source.randint(kind.VERSIONS.low, kind.VERSIONS.high)
        if name in made and source.random() < 0.9:
            return self._mutated(made[name](), version)
        message = random_message(kind, version, source)
        self._aim(message)
        return self._mutated(message, version)

    def _changes(self, who: int, epoch: int) -> dict[str, Callable[[], Message]]:
        """Requests about voters and snapshots."""
        source = self.source
        directory = source.choice([None, None, None, b"another one dir."])
        known = [*self.lone.core.snapshots, OffsetAndEpoch(10, 1)]
        return {
            "AddRaftVoterRequest": lambda: peer.add_voter(
                source.choice([4, 4, 5, who]), directory=directory, waits=source.random() < 0.5
            ),
            "RemoveRaftVoterRequest": lambda: peer.remove_voter(
                source.choice([1, 2, 3, 4]), directory=directory
            ),
            "UpdateRaftVoterRequest": lambda: peer.update_voter(who, epoch, directory=directory),
            "FetchSnapshotRequest": lambda: peer.fetch_snapshot(
                who, source.choice(known), epoch, position=source.choice([0, 0, 7, 1 << 40])
            ),
        }

    def response(self, request: Message) -> tuple[Message, int] | None:
        """A response to a request."""
        source, core = self.source, self.lone.core
        who, epoch = source.choice([-1, 1, 2, 2, 3, 9]), self._epoch()
        error = source.choice(ERRORS)
        if source.random() < (0.95 if self.is_careful else 0.7):
            who, error = core.leader_id, 0
        name = request.NAME.replace("Request", "Response")
        kind = messages.find(name)
        granted = source.random() < 0.6
        made: dict[str, Callable[[], Message]] = {
            "FetchResponse": lambda: self._fetched(who, epoch, error),
            "FetchSnapshotResponse": lambda: self._part(request, who, epoch, error),
            "VoteResponse": lambda: peer.voted(
                epoch, is_granted=granted, leader=who, error=error
            ),
            "UpdateRaftVoterResponse": lambda: peer.updated(who, epoch, error),
            "ApiVersionsResponse": self._features,
        }
        if name in made and source.random() < 0.9:
            message = made[name]()
        else:
            message = random_message(kind, kind.VERSIONS.high, source)
            self._aim(message)
        if source.random() < 0.3:
            self._add_address(message, who)
        return self._mutated(message, kind.VERSIONS.high)

    def _fetched(self, who: int, epoch: int, error: int) -> Message:
        """Records, an offset to truncate to, or a snapshot to load."""
        source, core = self.source, self.lone.core
        base = core.end_offset + source.choice([0, 0, 0, 1, -1])
        base = min(max(base, 0), _OFFSET_MAX)
        written = min(max(epoch, 0), EPOCH_MAX)
        records = data_batch(base, written, 0, [b"r"] * source.randint(1, 3))
        if source.random() < 0.2:
            records = control_batch(base, written, 0, self._voters())
        diverging = snapshot = None
        choice = source.random()
        if choice < 0.25:
            diverging = (core.last_epoch - source.randrange(3), self._offset())
        elif choice < 0.45:
            snapshot = OffsetAndEpoch(self._offset() + source.choice([0, 5, 6]), core.last_epoch)
        return peer.fetched(
            who,
            epoch,
            source.choice([b"", records, records, records[:-1], source.randbytes(80)]),
            high_watermark=source.choice([-1, 0, core.end_offset, self._offset()]),
            diverging=diverging,
            snapshot=snapshot,
            error=error,
        )

    def _part(self, request: Any, who: int, epoch: int, error: int) -> Message:
        """Bytes of the requested snapshot, which is a correct one in most cases."""
        source = self.source
        partition = request.topics[0].partitions[0]
        named = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        # The voters differ by snapshot, not by part: otherwise no file would be correct.
        voters = voters_control(dynamic_set([1, 2, 3, 4][named.offset % 3 :]))
        data = snapshot_bytes(named, voters if named.offset % 2 else (), [b"v"])
        position = max(partition.position + source.choice([0] * 8 + [1, -1]), 0)
        size = len(data) + source.choice([0] * 12 + [1, -1])
        part = data[position : position + source.choice([1, 100, 1 << 20, 1 << 20])]
        if source.random() < 0.05:
            part = source.randbytes(len(part))
        return peer.snapshot_part(
            who, epoch, named, data=part, position=position, size=size, error=error
        )

    def _voters(self) -> Control:
        """Control records that state voters, this node among them or not, or nobody at all."""
        ids = self.source.sample([1, 2, 3, 4, 5], self.source.randrange(6))
        control = list(voters_control(dynamic_set(ids)))
        return self.source.choice([control, control[:1], control[1:]])

    def _features(self) -> Message:
        """The features that a node claims."""
        names = self.source.choice([FEATURES, JAVA_FEATURES, (), ("kraft.version",)])
        found = features(names, self.source.choice([(0, 1), (0, 0), (1, 1), (2, 3), (-1, -5)]))
        found.error_code = self.source.choice([0, 0, 0, 0, 35, -1])
        return found

    def _add_address(self, message: Any, leader_id: int) -> None:
        """Add the leader's address to an answer; it need not be a valid one."""
        for field in type(message).facts().root.fields:
            if field.attribute == "node_endpoints" and field.struct is not None:
                port = self.source.choice([0, 9002, 9002, 70_000, -1])
                host = self.source.choice(["node2", "", "a..b"])
                place = field.struct.cls(node_id=leader_id, host=host, port=port)
                message.node_endpoints = [place]

    def _epoch(self) -> int:
        epoch = self.lone.core.epoch
        if self._is_calm and self.source.random() < 0.97:
            return epoch
        far = [0, -1, epoch + 1000] if self.source.random() < 0.2 else [epoch]
        if self.source.random() < 0.002:
            far = [EPOCH_MAX, EPOCH_MAX - 1]
        return self.source.choice([epoch, epoch, epoch + 1, epoch - 1, *far])

    def _position(self) -> tuple[int, int]:
        """A place in the core's log, as a follower with the same log would name it."""
        batches = self.lone.disk.batches
        number = self.source.randint(max(0, len(batches) - 3), len(batches))
        if not number:
            return 0, 0
        batch = RecordBatch(batches[number - 1])
        return batch.partition_leader_epoch, batch.last_offset + 1

    def _offset(self) -> int:
        end = self.lone.core.end_offset
        return self.source.choice([end, end, end + 1, end - 1, 0, -1, end // 2, _OFFSET_MAX])

    def _aim(self, message: Any) -> None:
        """Make a random message refer to this log and an epoch near this one."""
        if self.source.random() < 0.3:
            return
        for holder in ("topics", "responses"):
            topics = getattr(message, holder, None)
            if not topics:
                continue
            del topics[1:]
            for attribute, value in (
                ("topic_name", METADATA_TOPIC),
                ("name", METADATA_TOPIC),
                ("topic_id", METADATA_TOPIC_ID),
            ):
                if hasattr(topics[0], attribute):
                    setattr(topics[0], attribute, value)
            del topics[0].partitions[1:]
            for partition in topics[0].partitions:
                self._aim_at(partition)
        if hasattr(message, "cluster_id"):
            message.cluster_id = peer.CLUSTER_ID
        self._aim_at(message)
        self._aim_at(getattr(message, "current_leader", None))

    def _aim_at(self, struct: Any) -> None:
        values = {
            "partition_index": 0,
            "partition": 0,
            "index": 0,
            "leader_epoch": self._epoch(),
            "current_leader_epoch": self._epoch(),
            "replica_epoch": self._epoch(),
            "leader_id": self.source.choice([-1, 1, 2, 3]),
            "voter_id": self.source.choice([-1, 1, 2, 3]),
            "voter_directory_id": directory_id(2),
        }
        for attribute, value in values.items():
            if struct is not None and hasattr(struct, attribute):
                setattr(struct, attribute, value)

    def _mutated(self, message: Message, version: int) -> tuple[Message, int] | None:
        """A message with some values changed, as decoded from its bytes; None if it has none."""
        source = self.source
        changed: Any = copy.deepcopy(message)
        counts = [0] * 9 + [1] if self.is_careful else [0, 0, 1, 1, 2, 4]
        for _ in range(source.choice(counts)):
            places = _places(changed, type(message).facts().root)
            struct, field = source.choice(places)
            setattr(struct, field.attribute, self._value(field, getattr(struct, field.attribute)))
        try:
            data = changed.encode(version)
        except WireError:
            return None
        return type(message).decode(data, version)[0], version

    def _value(self, field: FieldFacts, old: Any) -> Any:
        source = self.source
        if field.nullable and source.random() < 0.2:
            return None
        if field.is_array:
            return source.choice([[], list(old or []) * 2, list(old or [])[:1] * 5])
        if field.attribute == "error_code":
            return source.choice(ERRORS)
        if field.type in _BITS:
            low = -1 << (_BITS[field.type] - 1)
            near = [old + 1, old - 1, -1, 0, 1, 2] if isinstance(old, int) else [0]
            rare = [low, -low - 1] if "epoch" not in field.attribute else []
            return source.choice([*near, *near, *rare])
        values: dict[str, list[Any]] = {
            "uint16": [0, 1, 65535],
            "bool": [True, False],
            "string": ["", "x", METADATA_TOPIC, LISTENER, "x" * 300],
            "uuid": [bytes(16), directory_id(1), directory_id(2), b"\xff" * 16],
        }
        return source.choice(values.get(field.type, [old]))


def _places(struct: Any, facts: StructFacts) -> list[tuple[Any, FieldFacts]]:
    """Every field of a struct and of those inside it."""
    found = []
    for field in facts.fields:
        found.append((struct, field))
        value = getattr(struct, field.attribute)
        if field.struct is not None and value is not None:
            for inner in value if field.is_array else [value]:
                found += _places(inner, field.struct)
    return found
