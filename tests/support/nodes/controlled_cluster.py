"""A cluster as the controller's decisions see it: brokers, topics, the records so far."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image import METADATA_VERSION, MetadataImage
from kraftwire.controller.image.topics import PartitionKey
from kraftwire.controller.mutation_quotas import MutationQuotas
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.controller.topics import create_topics
from kraftwire.controller.versions import ELR_VERSION, SUPPORTED_FEATURES
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.register_broker_record import BrokerFeature, RegisterBrokerRecord
from kraftwire.pieces import Pieces, whole
from tests.support.nodes.stub import batch_of


class ControlledCluster:
    """Replays what is decided, so that the next decision sees it.

    Brokers have one log directory each, whose id is 1000 above theirs.
    """

    def __init__(
        self, level: int = 30, *, has_elr: bool = True, brokers: Sequence[int] = ()
    ) -> None:
        self.image = MetadataImage()
        self.settings: dict[str, str] = {}
        self.mutations = MutationQuotas()
        features = {METADATA_VERSION: level} | ({ELR_VERSION: 1} if has_elr else {})
        self.replay(
            (FeatureLevelRecord(name=name, feature_level=value), 0)
            for name, value in features.items()
        )
        self._ids = Random(7)
        for broker_id in brokers:
            self.register(broker_id)
            self.fence(broker_id, is_fenced=False)

    @property
    def view(self) -> Cluster:
        """The cluster as it is now."""
        return Cluster(self.image, 1, self.settings, mutations=self.mutations)

    def replay(self, records: Any) -> None:
        """Append records to the log."""
        records = list(records)
        if records:
            self.image.replay(batch_of(records, self.image.next_offset))
        assert self.image.problem == ""

    def do(self, decision: StepResult | Pieces[StepResult]) -> Any:
        """Apply a decision; returns its answer."""
        result = decision if isinstance(decision, StepResult) else whole(decision)
        self.replay(result.records)
        if result.on_committed is not None:
            result.on_committed()
        return result.response

    def register(self, broker_id: int, rack: str | None = None) -> None:
        """Write a broker's registration, fenced."""
        record = RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=self.image.next_offset,
            incarnation_id=broker_id.to_bytes(16, "big"),
            features=[
                BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            rack=rack,
            fenced=True,
            log_dirs=[(1000 + broker_id).to_bytes(16, "big")],
        )
        self.replay([(record, 3)])

    def fence(self, broker_id: int, *, is_fenced: bool = True) -> None:
        """Write that a broker is fenced or not, and nothing about its partitions."""
        change = BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=self.image.brokers[broker_id].epoch,
            fenced=1 if is_fenced else -1,
        )
        self.replay([(change, 0)])

    def topic(self, name: str, *replicas: Sequence[int], **configs: str) -> bytes:
        """Create a topic with these replicas; returns its id. In keys, _ stands for a dot."""
        wanted = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
                for index, ids in enumerate(replicas)
            ],
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        answer = self.do(self.create(wanted))
        assert answer.topics[0].error_code == 0, answer
        return bytes(answer.topics[0].topic_id)

    def create(self, *topics: CreatableTopic, **more: Any) -> StepResult:
        """Decide on the creation of topics."""
        request = CreateTopicsRequest(topics=list(topics), **more)
        return create_topics(
            self.view, request, random=self._ids, new_id=lambda: self._ids.randbytes(16)
        )

    def partition(self, key: PartitionKey) -> PartitionRecord:
        """A partition as it is now."""
        partition = self.image.topics.partition(key)
        assert partition is not None
        return partition


def changes(records: Sequence[VersionedRecord]) -> list[dict[str, Any]]:
    """What records change of partitions, without what stays."""
    found = []
    for record, _ in records:
        if isinstance(record, PartitionChangeRecord):
            same = PartitionChangeRecord(
                topic_id=record.topic_id, partition_id=record.partition_id
            )
            names = [name for name in record.__slots__ if name != "unknown_tagged_fields"]
            found.append(
                {
                    name: getattr(record, name)
                    for name in names
                    if getattr(record, name) != getattr(same, name)
                }
            )
    return found
