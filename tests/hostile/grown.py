"""A node whose cluster has grown: many topics, partitions, ACLs, users, quotas and long values."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import trio

from kraftwire import messages
from kraftwire.controller.cluster import ELR_VERSION
from kraftwire.controller.image import METADATA_VERSION
from kraftwire.controller.step import VersionedRecord, config_record
from kraftwire.limits import STRING_SIZE_MAX
from kraftwire.messages import client_quota_record
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.messages.client_quota_record import ClientQuotaRecord
from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.node.authorization import Authorization
from kraftwire.node.config_security import AuthorizerSettings, NodeSecurity
from kraftwire.node.context import Request
from kraftwire.node.handlers import route
from kraftwire.node.logs import RateLimit
from kraftwire.protocol.config_resources import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftwire.security.acls import ALLOW, LITERAL, PREFIXED, ResourceType
from kraftwire.wire.message import Message
from tests.support.nodes.stub import StubNode

BROKERS = range(1, 201)

SUPER_USER = "User:admin"
# As long as a value may be, with elements as short as they can be.
LONG_LIST = ",".join(f"{n:x}" for n in range(7600))[: STRING_SIZE_MAX - 1].rpartition(",")[0]


def topic_id(number: int) -> bytes:
    """The id of a topic."""
    return (1_000_000 + number).to_bytes(16, "big")


def topic_name(number: int) -> str:
    """The name of a topic."""
    return f"topic-{number}"


class Size(NamedTuple):
    """How far a cluster has grown.

    `partitions` are those of the first topic, each other one has one; `long_lists` are topics whose
    lists are as long as values may be; `others` are users, quotas and tokens.
    """

    topics: int = 10_000
    partitions: int = 10_000
    long_lists: int = 100
    acls: int = 20_000
    others: int = 1_000


class GrownNode(StubNode):
    """The active controller of such a cluster. Every request passes the authorizer."""

    def __init__(self, size: Size) -> None:
        settings = AuthorizerSettings(frozenset((SUPER_USER,)), allow_if_no_acl=False)
        super().__init__(security=NodeSecurity(authorizer=settings), idle_interval_ms=0)
        self._authorization = Authorization(settings, {}, RateLimit(trio.current_time))
        for records in _records(size):
            self.commit_records(*records)
        self.batches.clear()
        self.controller.leadership(1, 1, self.raft.end_offset)

    async def answer(self, request: Request) -> Message | None:
        """Answer a request if its principal may ask for that."""
        handler = route(request)
        assert handler is not None
        context: Any = self
        return await self._authorization.answer(request, context, handler)

    async def raft_request(self, request: Request) -> Message:
        """An empty answer: what the core does is tested elsewhere."""
        return messages.response_class(request.api_key)()

    def commit(self, batch: Any) -> None:
        """Keep no log."""
        super().commit(batch)
        self.batches.clear()


@asynccontextmanager
async def grown(size: Size) -> AsyncIterator[GrownNode]:
    """Such a node at work."""
    node = GrownNode(size)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        yield node
        nursery.cancel_scope.cancel()


def _records(size: Size) -> Iterable[list[VersionedRecord]]:
    levels = {METADATA_VERSION: 30, ELR_VERSION: 1}
    yield [
        (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels.items()
    ]
    yield [(_broker(number), 4) for number in BROKERS]
    for number in range(size.topics):
        record = TopicRecord(name=topic_name(number), topic_id=topic_id(number))
        count = 1 if number else size.partitions
        yield [(record, 0), *((_partition(number, n), 2) for n in range(count))]
    for number in range(size.long_lists):
        yield [
            config_record(TOPIC_RESOURCE, topic_name(number), key, LONG_LIST)
            for key in ("cleanup.policy", "leader.replication.throttled.replicas")
        ]
    yield [config_record(BROKER_RESOURCE, "", "min.insync.replicas", "1")]
    yield [(_acl(number), 0) for number in range(size.acls)]
    yield [(_quota(number), 0) for number in range(size.others)]
    yield [(_user(number), 0) for number in range(size.others)]
    yield [(_token(number), 0) for number in range(size.others)]


def _broker(number: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=number,
        broker_epoch=number,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9000 + number)],
        log_dirs=[(2_000_000 + number).to_bytes(16, "big")],
        fenced=False,
    )


def _partition(number: int, index: int) -> PartitionRecord:
    replicas = [1 + (number + index + each) % len(BROKERS) for each in range(3)]
    return PartitionRecord(
        topic_id=topic_id(number),
        partition_id=index,
        replicas=replicas,
        isr=replicas[1:],
        leader=replicas[1],
        leader_epoch=0,
        partition_epoch=0,
        directories=[(2_000_000 + each).to_bytes(16, "big") for each in replicas],
    )


def _acl(number: int) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=number.to_bytes(16, "big"),
        resource_type=ResourceType.TOPIC,
        resource_name="topic-" + "9" * (number % 249 + 1) if number < 500 else f"acl-{number}",
        pattern_type=PREFIXED if number % 2 else LITERAL,
        principal=f"User:u{number % 500}",
        host="*",
        operation=3,
        permission_type=ALLOW,
    )


def _quota(number: int) -> ClientQuotaRecord:
    part = client_quota_record.EntityData(entity_type="user", entity_name=f"n{number}")
    return ClientQuotaRecord(entity=[part], key="producer_byte_rate", value=5.0)


def _user(number: int) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=f"n{number}", mechanism=1, salt=bytes(20), stored_key=bytes(32), iterations=4096,
        server_key=bytes(32),
    )  # fmt: skip


def _token(number: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner="User:u1", requester="User:u1", token_id=f"token-{number}", max_timestamp=1 << 60,
        expiration_timestamp=1 << 60,
    )  # fmt: skip
