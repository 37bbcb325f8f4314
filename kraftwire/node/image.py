"""What the committed metadata records say: features, controllers, brokers, configurations.

Owns the replay and nothing else: no decision is taken here, and records that are unknown or
damaged are counted, never fatal. Records of topics, quotas and the like are counted by name.

Source: Kafka's `MetadataBatchLoader` (transactions) and `ClusterImage`, `FeaturesImage`,
`ConfigurationsImage`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace

from kraftwire.errors import WireError
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.fence_broker_record import FenceBrokerRecord
from kraftwire.messages.register_broker_record import BrokerFeature, RegisterBrokerRecord
from kraftwire.messages.register_controller_record import (
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftwire.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.raft.voters import Endpoint
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import decode_metadata
from kraftwire.wire.message import Message

__all__ = [
    "BROKER_RESOURCE",
    "CLUSTER_ID_CONFIG",
    "METADATA_VERSION",
    "TOPIC_RESOURCE",
    "BrokerImage",
    "ControllerImage",
    "MetadataImage",
]

METADATA_VERSION = "metadata.version"

# Resource types of configurations. Source: Kafka's `ConfigResource.Type`.
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4

# Where a quorum that was started without a formatted directory keeps its cluster id: a broker
# configuration that is the default of all brokers, which Java stores without knowing its name.
CLUSTER_ID_CONFIG = "kraftwire.cluster.id"

_BEGIN = "BeginTransactionRecord"
_END = "EndTransactionRecord"
_ABORT = "AbortTransactionRecord"


@dataclass(frozen=True, slots=True)
class ControllerImage:
    """A registered controller. Shape: `features` are (lowest, highest) supported level by name."""

    id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: dict[str, tuple[int, int]]

    @staticmethod
    def of(record: RegisterControllerRecord) -> ControllerImage:
        """What a record says."""
        return ControllerImage(
            record.controller_id,
            record.incarnation_id,
            tuple(Endpoint(e.name, e.host, e.port) for e in record.end_points),
            _ranges(record.features),
        )


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A registered broker.

    Shape: `offset` is that of its registration's record, which its heartbeats must have passed
    before it is unfenced.
    """

    id: int
    epoch: int
    offset: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: dict[str, tuple[int, int]]
    rack: str | None = None
    is_fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None

    def endpoint(self, listener: str) -> Endpoint | None:
        """The address under a listener name, if it has one."""
        return next((e for e in self.endpoints if e.listener == listener), None)


class MetadataImage:
    """The state after the records so far.

    Shape: `next_offset` and `epoch` say how far; `counts` has the number of records by schema name
    or by what made them unreadable. A transaction counts when it ends; `transaction_offset` is
    where an open one began, else -1.
    """

    def __init__(self) -> None:
        self.next_offset = 0
        self.epoch = 0
        self.features: dict[str, int] = {}
        self.controllers: dict[int, ControllerImage] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.counts: Counter[str] = Counter()
        self.unreadable_count = 0
        self.last_problem = ""
        self.transaction_offset = -1
        self._pending: list[tuple[int, Message]] = []
        self._epochs: list[int] = []
        self._epoch_starts: list[int] = []

    @property
    def highest_offset(self) -> int:
        """The offset of the last record, -1 if there is none."""
        return self.next_offset - 1

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, if the log tells it."""
        return self.configs.get((BROKER_RESOURCE, ""), {}).get(CLUSTER_ID_CONFIG)

    @property
    def metadata_version(self) -> int | None:
        """The finalized level of metadata.version, None before the bootstrap records."""
        return self.features.get(METADATA_VERSION)

    @property
    def alive_brokers(self) -> list[BrokerImage]:
        """The brokers that are not fenced, by id."""
        brokers = (self.brokers[key] for key in sorted(self.brokers))
        return [broker for broker in brokers if not broker.is_fenced]

    def epoch_end(self, epoch: int, high_watermark: int) -> tuple[int, int]:
        """The largest epoch not above the given one, and where it ends; (-1, -1) without one."""
        position = bisect_right(self._epochs, epoch)
        if not position:
            return -1, -1
        starts = self._epoch_starts
        end = starts[position] if position < len(starts) else high_watermark
        return self._epochs[position - 1], end

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of an offset, -1 if none is known."""
        position = bisect_right(self._epoch_starts, offset)
        return self._epochs[position - 1] if position else -1

    def replay(self, batch: RecordBatch) -> None:
        """Take a committed batch. Order: batches as in the log; one seen before is passed over."""
        if batch.last_offset < self.next_offset:
            return
        self._note_epoch(batch)
        if not batch.is_control:
            self._replay_records(batch)
        self.next_offset = batch.last_offset + 1
        self.epoch = batch.partition_leader_epoch

    def _note_epoch(self, batch: RecordBatch) -> None:
        if not self._epochs or batch.partition_leader_epoch > self._epochs[-1]:
            self._epochs.append(batch.partition_leader_epoch)
            self._epoch_starts.append(batch.base_offset)

    def _replay_records(self, batch: RecordBatch) -> None:
        try:
            records = batch.records()
        except WireError as error:
            self._note_problem("a batch", error)
            return
        for record in records:
            try:
                decoded = decode_metadata(record.value)
            except WireError as error:
                self._note_problem("a record", error)
                continue
            self.counts[decoded.type] += 1
            if decoded.message is not None:
                self._take(record.offset, decoded.message)

    def _note_problem(self, what: str, error: WireError) -> None:
        self.unreadable_count += 1
        self.last_problem = f"{what} of the metadata log cannot be read: {error}"

    def _take(self, offset: int, message: Message) -> None:
        """Apply a record, or keep it until its transaction ends (KIP-866)."""
        name = message.NAME
        if name == _BEGIN:
            self.transaction_offset = offset
            self._pending.clear()
        elif name in (_END, _ABORT):
            pending, self._pending = self._pending, []
            self.transaction_offset = -1
            if name == _END:
                for at, kept in pending:
                    self._apply(at, kept)
        elif self.transaction_offset >= 0:
            self._pending.append((offset, message))
        else:
            self._apply(offset, message)

    def _apply(self, offset: int, message: Message) -> None:
        match message:
            case FeatureLevelRecord():
                self._apply_feature(message)
            case ConfigRecord():
                self._apply_config(message)
            case RegisterControllerRecord():
                self.controllers[message.controller_id] = ControllerImage.of(message)
            case RegisterBrokerRecord():
                self._apply_broker(offset, message)
            case BrokerRegistrationChangeRecord():
                self._apply_change(message)
            case FenceBrokerRecord():
                self._apply_fence(message.id, message.epoch, is_fenced=True)
            case UnfenceBrokerRecord():
                self._apply_fence(message.id, message.epoch, is_fenced=False)
            case UnregisterBrokerRecord():
                if self._registered(message.broker_id, message.broker_epoch):
                    del self.brokers[message.broker_id]

    def _apply_feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _apply_config(self, record: ConfigRecord) -> None:
        values = self.configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _apply_broker(self, offset: int, record: RegisterBrokerRecord) -> None:
        cordoned = record.cordoned_log_dirs
        self.brokers[record.broker_id] = BrokerImage(
            record.broker_id,
            record.broker_epoch,
            offset,
            record.incarnation_id,
            tuple(Endpoint(e.name, e.host, e.port) for e in record.end_points),
            _ranges(record.features),
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            tuple(record.log_dirs),
            None if cordoned is None else tuple(cordoned),
        )

    def _apply_change(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._registered(record.broker_id, record.broker_epoch)
        if broker is None:
            return
        if record.fenced:
            broker = replace(broker, is_fenced=record.fenced > 0)
        if record.in_controlled_shutdown:
            broker = replace(broker, in_controlled_shutdown=record.in_controlled_shutdown > 0)
        if record.log_dirs:
            broker = replace(broker, log_dirs=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = replace(broker, cordoned_log_dirs=tuple(record.cordoned_log_dirs))
        self.brokers[broker.id] = broker

    def _apply_fence(self, broker_id: int, epoch: int, *, is_fenced: bool) -> None:
        broker = self._registered(broker_id, epoch)
        if broker is not None:
            self.brokers[broker_id] = replace(broker, is_fenced=is_fenced)

    def _registered(self, broker_id: int, epoch: int) -> BrokerImage | None:
        """The broker that a record of this epoch is about; None for one that came too late."""
        broker = self.brokers.get(broker_id)
        return broker if broker is not None and broker.epoch == epoch else None


def _ranges(
    features: list[BrokerFeature] | list[ControllerFeature],
) -> dict[str, tuple[int, int]]:
    return {f.name: (f.min_supported_version, f.max_supported_version) for f in features}
