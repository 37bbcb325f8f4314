"""Invented histories of a metadata log: every type of record, in the orders that Kafka writes.

Owns what exists at each moment, so that a history never refers to anything that does not exist.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.clear_elr_record import ClearElrRecord
from kraftwire.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.fence_broker_record import FenceBrokerRecord
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.producer_ids_record import ProducerIdsRecord
from kraftwire.messages.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraftwire.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftwire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftwire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftwire.messages.remove_topic_record import RemoveTopicRecord
from kraftwire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.message import Message

_ELR = "eligible.leader.replicas.version"
# In separate batches: within one delta, which Kafka's controller never writes like this, Kafka's
# image keeps the configurations of a deleted topic, and loses a user that is added where the last
# one of the mechanism is deleted.
_ALONE = (RemoveTopicRecord, RemoveUserScramCredentialRecord)

_NO_DIRECTORY = bytes(15) + b"\1"

# Levels of metadata.version that introduce records, and the newest of Kafka 4.3.
_LEVELS = (7, 8, 12, 14, 15, 17, 22, 23, 26, 30)


class History:
    """A history that continues with every `batch`. It depends on its seed alone."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.level = self._random.choice(_LEVELS)
        self._has_elr = False
        self._brokers: dict[int, int] = {}
        self._topics: dict[bytes, tuple[str, dict[int, list[int]]]] = {}
        self._configs: list[tuple[int, str, str]] = []
        self._quotas: list[tuple[tuple[tuple[str, str | None], ...], str]] = []
        self._acls: list[bytes] = []
        self._users: list[tuple[str, int]] = []
        self._tokens: list[str] = []
        self._producer_id = 0
        self._offset = 0
        self._records: list[tuple[Message, int]] = []

    def batch(self) -> list[bytes]:
        """The values of the records of the next batch."""
        if not self._offset:
            self._add(FeatureLevelRecord(name="metadata.version", feature_level=self.level))
            if self.level >= 23 and self._random.random() < 0.7:
                self._has_elr = True
                self._add(FeatureLevelRecord(name=_ELR, feature_level=1))
        for _ in range(self._random.randint(1, 12)):
            self._random.choice(self._steps())()
            if self._records and isinstance(self._records[0][0], _ALONE):
                break
        if not self._records:
            self._no_op()
        records, self._records = self._records, []
        self._offset += len(records)
        return [encode_metadata(message, version) for message, version in records]

    def _steps(self) -> list[Callable[[], None]]:
        steps = [
            *(self._register_broker, self._change_broker, self._change_broker, self._unregister),
            *(self._make_topic, self._make_topic, self._remove_topic, self._no_op),
            *(self._change_partition,) * 6,
            *(self._set_config, self._set_config, self._remove_config, self._producer_ids),
            *(self._set_quota, self._remove_quota, self._add_acl, self._remove_acl),
            *(self._feature, self._upgrade),
        ]
        if self.level >= 12:
            steps += [self._add_user, self._remove_user]
        if self.level >= 14:
            steps += [self._add_token, self._remove_token]
        if self.level >= 15:
            steps.append(self._register_controller)
        if self._has_elr:
            steps.append(self._clear_elr)
        return steps

    def _add(self, message: Message, version: int = 0) -> None:
        self._records.append((message, version))

    def _uuid(self) -> bytes:
        return self._random.randbytes(16)

    def _some_ids(self, low: int = 1) -> list[int]:
        return self._random.sample(range(100, 106), self._random.randint(low, 3))

    def _no_op(self) -> None:
        self._add(NoOpRecord())

    def _upgrade(self) -> None:
        later = [level for level in _LEVELS if level > self.level]
        if later and self._random.random() < 0.3:
            self.level = later[0]
            self._add(FeatureLevelRecord(name="metadata.version", feature_level=self.level))

    def _feature(self) -> None:
        name = self._random.choice(("group.version", "share.version", "kraft.version"))
        self._add(FeatureLevelRecord(name=name, feature_level=self._random.randint(0, 1)))

    def _register_broker(self) -> None:
        broker_id = self._random.randint(100, 105)
        epoch = self._brokers[broker_id] = self._offset + len(self._records)
        level = self.level
        version = 4 if level >= 30 else 3 if level >= 17 else 2 if level >= 8 else 1
        record = RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=self._uuid(),
            broker_epoch=epoch,
            end_points=[
                BrokerEndpoint(name=name, host=f"h{broker_id}", port=port, security_protocol=0)
                for name, port in (("PLAINTEXT", 9092), ("SECOND", 9093))
            ],
            features=[
                BrokerFeature(
                    name="metadata.version", min_supported_version=7, max_supported_version=30
                )
            ],
            rack=self._random.choice((None, "a", "")),
            fenced=self._random.random() < 0.5,
            in_controlled_shutdown=self._random.random() < 0.2,
        )
        if version >= 3:
            record.log_dirs = sorted(self._uuid() for _ in range(self._random.randint(1, 3)))
        if version >= 4 and self._random.random() < 0.5:
            record.cordoned_log_dirs = record.log_dirs[:1]
        self._add(record, version)

    def _change_broker(self) -> None:
        if not self._brokers:
            return
        broker_id = self._random.choice(list(self._brokers))
        epoch = self._brokers[broker_id]
        kind = self._random.random()
        if kind < 0.2:
            self._add(FenceBrokerRecord(id=broker_id, epoch=epoch))
            return
        if kind < 0.4:
            self._add(UnfenceBrokerRecord(id=broker_id, epoch=epoch))
            return
        record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch)
        record.fenced = self._random.choice((-1, 0, 1))
        version = 0
        if self._random.random() < 0.4:
            record.in_controlled_shutdown, version = 1, 1
        if self.level >= 17 and self._random.random() < 0.4:
            record.log_dirs, version = [self._uuid()], 2
        if self.level >= 30 and self._random.random() < 0.4:
            record.cordoned_log_dirs, version = self._random.choice(([], [self._uuid()])), 3
        self._add(record, version)

    def _unregister(self) -> None:
        if self._brokers and self._random.random() < 0.3:
            broker_id = self._random.choice(list(self._brokers))
            epoch = self._brokers.pop(broker_id)
            self._add(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch))

    def _register_controller(self) -> None:
        controller_id = self._random.randint(1, 3)
        self._add(
            RegisterControllerRecord(
                controller_id=controller_id,
                incarnation_id=self._uuid(),
                zk_migration_ready=False,
                end_points=[
                    ControllerEndpoint(
                        name="CONTROLLER", host="c", port=9090, security_protocol=0
                    )
                ],
                features=[
                    ControllerFeature(
                        name="kraft.version", min_supported_version=0, max_supported_version=1
                    )
                ],
            )
        )

    def _make_topic(self) -> None:
        topic_id = self._uuid()
        # Names repeat, as that of a deleted topic may.
        name = f"t{self._random.randint(0, 9)}"
        if name in (known for known, _ in self._topics.values()):
            return
        self._add(TopicRecord(name=name, topic_id=topic_id))
        partitions: dict[int, list[int]] = {}
        for index in range(self._random.randint(1, 4)):
            partitions[index] = self._make_partition(topic_id, index)
        self._topics[topic_id] = name, partitions

    def _make_partition(self, topic_id: bytes, index: int) -> list[int]:
        replicas = self._some_ids()
        version = 2 if self.level >= 23 else 1 if self.level >= 17 else 0
        record = PartitionRecord(
            topic_id=topic_id,
            partition_id=index,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            leader_recovery_state=self._random.choice((0, 1)),
        )
        if version >= 1:
            record.directories = [self._uuid() for _ in replicas]
        self._add(record, version)
        return replicas

    def _change_partition(self) -> None:
        if not self._topics:
            return
        topic_id = self._random.choice(list(self._topics))
        _, partitions = self._topics[topic_id]
        index = self._random.choice(list(partitions))
        change = PartitionChangeRecord(topic_id=topic_id, partition_id=index)
        replicas = partitions[index]

        def flip() -> bool:
            return self._random.random() < 0.4

        if flip() and self.level >= 17:
            change.replicas = replicas = partitions[index] = self._some_ids()
            change.directories = [self._uuid() for _ in replicas]
        elif flip() and self.level >= 17:
            change.directories = [self._random.choice((_NO_DIRECTORY, self._uuid()))] * len(
                replicas
            )
        if flip():
            change.isr = replicas[: self._random.randint(1, len(replicas))]
        if flip():
            change.leader = self._random.choice((-1, replicas[0]))
        if flip():
            change.removing_replicas = self._random.choice(([], replicas[:1]))
            change.adding_replicas = self._random.choice(([], replicas[1:]))
        if flip():
            change.leader_recovery_state = self._random.choice((0, 1))
        if flip() and self._has_elr:
            change.eligible_leader_replicas = self._random.choice(([], replicas[:1]))
            change.last_known_elr = self._random.choice(([], [replicas[-1]]))
        self._add(change, 2 if self.level >= 23 else 1 if self.level >= 17 else 0)

    def _remove_topic(self) -> None:
        if self._topics and not self._records and self._random.random() < 0.7:
            topic_id = self._random.choice(list(self._topics))
            name, _ = self._topics.pop(topic_id)
            self._configs = [key for key in self._configs if key[:2] != (2, name)]
            self._add(RemoveTopicRecord(topic_id=topic_id))

    def _clear_elr(self) -> None:
        names = [name for name, _ in self._topics.values()]
        self._add(ClearElrRecord(topic_name=self._random.choice(["", *names])))

    def _set_config(self) -> None:
        names = [name for name, _ in self._topics.values()]
        resources = [(2, name) for name in names] + [(4, ""), (4, "101"), (16, "clients")]
        resource_type, resource = self._random.choice(resources)
        name = self._random.choice(("retention.ms", "min.insync.replicas", "x"))
        self._configs.append((resource_type, resource, name))
        self._add(
            ConfigRecord(
                resource_type=resource_type,
                resource_name=resource,
                name=name,
                value=self._random.choice(("", "1", "\u00fc")),
            )
        )

    def _remove_config(self) -> None:
        if self._configs:
            resource_type, resource, name = self._random.choice(self._configs)
            self._add(
                ConfigRecord(
                    resource_type=resource_type, resource_name=resource, name=name, value=None
                )
            )

    def _producer_ids(self) -> None:
        self._producer_id += 1000
        self._add(
            ProducerIdsRecord(broker_id=101, broker_epoch=3, next_producer_id=self._producer_id)
        )

    def _quota(self, entity: Any, key: str, *, remove: bool) -> None:
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        value = 0.0 if remove else self._random.choice((0.5, 1000.0))
        self._add(ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove))

    def _set_quota(self) -> None:
        entity = self._random.choice(
            (
                (("user", "u1"), ("client-id", None)),
                (("client-id", None), ("user", "u1")),
                (("user", None),),
                (("ip", "10.0.0.1"),),
            )
        )
        key = self._random.choice(("producer_byte_rate", "request_percentage"))
        self._quotas.append((entity, key))
        self._quota(entity, key, remove=False)

    def _remove_quota(self) -> None:
        if self._quotas:
            self._quota(*self._random.choice(self._quotas), remove=True)

    def _add_acl(self) -> None:
        self._acls.append(self._uuid())
        self._add(
            AccessControlEntryRecord(
                id=self._acls[-1],
                resource_type=2,
                resource_name="t",
                pattern_type=3,
                principal="User:a",
                host="*",
                operation=3,
                permission_type=3,
            )
        )

    def _remove_acl(self) -> None:
        if self._acls:
            chosen = self._acls.pop(self._random.randrange(len(self._acls)))
            self._add(RemoveAccessControlEntryRecord(id=chosen))

    def _add_user(self) -> None:
        user = self._random.choice(("a", "b")), self._random.choice((1, 2))
        self._users.append(user)
        self._add(
            UserScramCredentialRecord(
                name=user[0],
                mechanism=user[1],
                salt=self._uuid(),
                stored_key=self._uuid(),
                server_key=self._uuid(),
                iterations=4096,
            )
        )

    def _remove_user(self) -> None:
        if self._users and not self._records:
            user = self._random.choice(self._users)
            self._users = [one for one in self._users if one != user]
            self._add(RemoveUserScramCredentialRecord(name=user[0], mechanism=user[1]))

    def _add_token(self) -> None:
        token_id = f"token-{self._random.randint(0, 3)}"
        self._tokens.append(token_id)
        self._add(
            DelegationTokenRecord(
                owner="User:a",
                requester="User:b",
                renewers=["User:c"],
                issue_timestamp=1,
                max_timestamp=self._random.randint(10, 20),
                expiration_timestamp=9,
                token_id=token_id,
            )
        )

    def _remove_token(self) -> None:
        if self._tokens:
            token_id = self._random.choice(self._tokens)
            self._tokens = [one for one in self._tokens if one != token_id]
            self._add(RemoveDelegationTokenRecord(token_id=token_id))
