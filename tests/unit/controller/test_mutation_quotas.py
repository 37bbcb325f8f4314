"""How many partitions a user or client may create and delete (C-QUO-1)."""

from __future__ import annotations

from itertools import combinations

import pytest

from kraftwire.controller import mutation_quotas
from kraftwire.controller.mutation_quotas import Charge, MutationQuotas
from kraftwire.errors import ApiError
from kraftwire.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftwire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.node.handlers.cluster_changes import CHANGES
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message
from tests.support.nodes.controlled_cluster import ControlledCluster
from tests.support.nodes.stub import request_of

USER, CLIENT = "user", "client-id"
EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def limited(rate: float, **entity: str | None) -> ControlledCluster:
    """A cluster with a rate for an entity; in types, _ stands for a dash."""
    cluster = ControlledCluster(brokers=(1,))
    limit(cluster, rate, **entity)
    return cluster


def limit(cluster: ControlledCluster, rate: float, **entity: str | None) -> None:
    """Set the rate of an entity."""
    parts = [
        EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in entity.items()
    ]
    record = ClientQuotaRecord(entity=parts, key="controller_mutation_rate", value=rate)
    cluster.replay([(record, 0)])


def charge(
    cluster: ControlledCluster,
    quotas: MutationQuotas,
    *counts: int,
    now_ms: int = 0,
    strict: bool = True,
    owner: tuple[str, str] = ("a", "c"),
) -> tuple[list[int], int]:
    """Take so many partitions, one topic each; returns the codes and the time to wait."""
    taken = quotas.charge(cluster.image, owner, now_ms, is_strict=strict)
    codes = [_code(taken, count) for count in counts]
    taken.commit()
    return codes, taken.throttle_ms


def _code(taken: Charge, count: int) -> int:
    try:
        taken(count)
    except ApiError as error:
        return error.code
    return 0


def test_a_bucket_of_which_nobody_asked_is_full_at_another_rate() -> None:
    """As with Kafka: a request that takes nothing, as it names no topic that is there, is no use of
    the bucket."""
    quotas, cluster = MutationQuotas(), limited(1.0, user="a")
    assert charge(cluster, quotas) == ([], 0)
    limit(cluster, 3.0, user="a")
    assert charge(cluster, quotas, 33, 1) == ([0, 0], 0)
    limit(cluster, 10.0, user="a")
    assert charge(cluster, quotas, 1) == ([EXCEEDED], 100)


def test_a_topic_passes_until_the_bucket_is_overdrawn() -> None:
    """A bucket for 11 seconds starts full, and refills at its rate."""
    cluster, quotas = limited(1.0, user="a"), MutationQuotas()
    assert charge(cluster, quotas, 20, 20) == ([0, EXCEEDED], 9000)
    assert charge(cluster, quotas, 1, now_ms=8999) == ([EXCEEDED], 1)
    assert charge(cluster, quotas, 1, now_ms=9000) == ([0], 0)
    assert charge(cluster, quotas, 11, 1, now_ms=10**9) == ([0, 0], 0)


def test_old_versions_are_never_refused_and_learn_how_long_to_wait() -> None:
    """Their clients do not know the error."""
    cluster, quotas = limited(2.0, user="a"), MutationQuotas()
    assert charge(cluster, quotas, 20, 20, strict=False) == ([0, 0], 9000)
    assert charge(cluster, quotas, 1, strict=False) == ([0], 9500)
    assert charge(cluster, quotas, 0, now_ms=9500) == ([0], 0)


def test_a_clock_that_goes_back_gives_nothing() -> None:
    """The time of day may be set."""
    cluster, quotas = limited(1.0, user="a"), MutationQuotas(1)
    assert charge(cluster, quotas, 2, now_ms=10_000) == ([0], 0)
    assert charge(cluster, quotas, 1, now_ms=0) == ([EXCEEDED], 1000)


ENTITIES: tuple[dict[str, str | None], ...] = (
    {"user": "a", "client_id": "c"},
    {"user": "a", "client_id": None},
    {"user": "a"},
    {"user": None, "client_id": "c"},
    {"user": None, "client_id": None},
    {"user": None},
    {"client_id": "c"},
    {"client_id": None},
)


@pytest.mark.parametrize(("exact", "other"), [*combinations(ENTITIES, 2)])
def test_the_most_exact_entity_counts(
    exact: dict[str, str | None], other: dict[str, str | None]
) -> None:
    """The user comes before the client id, a name before the default."""
    cluster, quotas = limited(1.0, **other), MutationQuotas(1)
    limit(cluster, 100.0, **exact)
    assert charge(cluster, quotas, 50, 1) == ([0, 0], 0)


def test_who_shares_a_quota_shares_its_bucket_or_has_one_each() -> None:
    """All clients of a user share that user's; a default gives one to each name."""
    cluster, quotas = limited(1.0, user="a"), MutationQuotas(1)
    limit(cluster, 1.0, client_id=None)
    assert charge(cluster, quotas, 5, owner=("a", "c")) == ([0], 0)
    assert charge(cluster, quotas, 5, owner=("a", "d"))[0] == [EXCEEDED]
    assert charge(cluster, quotas, 5, owner=("b", "c"))[0] == [0]
    assert charge(cluster, quotas, 5, owner=("b", "d"))[0] == [0]
    assert charge(cluster, quotas, 5, owner=("e", "d"))[0] == [EXCEEDED]


def test_names_that_clients_make_up_cost_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets that are full again are dropped, then the oldest."""
    monkeypatch.setattr(mutation_quotas, "BUCKETS_MAX", 3)
    cluster, quotas = limited(1.0, client_id=None), MutationQuotas(1)
    for number in range(6):
        charge(cluster, quotas, 5 if number else 0, owner=("", str(number)))
    assert len(quotas._buckets) == 3
    assert charge(cluster, quotas, 1, owner=("", "5"))[0] == [EXCEEDED]
    assert charge(cluster, quotas, 1, owner=("", "1"))[0] == [0]


def _create(*counts: int, validate_only: bool = False) -> CreateTopicsRequest:
    topics = [
        CreatableTopic(name=f"t{index}", num_partitions=count, replication_factor=1)
        for index, count in enumerate(counts)
    ]
    return CreateTopicsRequest(topics=topics, validate_only=validate_only)


def ask(cluster: ControlledCluster, message: Message, version: int) -> tuple[list[int], int]:
    """Send a request as a client; returns the codes and the time to wait."""
    name = type(message).NAME.removesuffix("Request")
    request = request_of(message, version, to="peer", client_id="c")
    answer = cluster.do(CHANGES[name].decide(cluster.view, request))
    results = next(
        value
        for name in ("topics", "responses", "results")
        if (value := getattr(answer, name, None)) is not None
    )
    for result in results:
        if result.error_code == EXCEEDED:
            assert result.error_message is None
    return [result.error_code for result in results], answer.throttle_time_ms


def test_partitions_that_are_created_added_and_deleted_count() -> None:
    """Also those that are only tried out; what is refused is not written."""
    cluster = limited(1.0, client_id="c")
    assert ask(cluster, _create(4, 5), 6) == ([0, 0], 0)
    more = [CreatePartitionsTopic(name="t0", count=6, assignments=None)]
    assert ask(cluster, CreatePartitionsRequest(topics=more), 3) == ([0], 0)
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in ("t0", "t1")])
    assert ask(cluster, deletion, 6) == ([0, EXCEEDED], 6000)
    assert [*cluster.image.topics.ids] == ["t1"]
    for message, version in ((_create(1, validate_only=True), 6), (_create(1), 7)):
        assert ask(cluster, message, version) == ([EXCEEDED], 6000)
    more = [CreatePartitionsTopic(name="t1", count=6, assignments=None)]
    assert ask(cluster, CreatePartitionsRequest(topics=more), 3) == ([EXCEEDED], 6000)
    assert ask(cluster, CreatePartitionsRequest(topics=more), 2) == ([0], 7000)
    assert ask(cluster, deletion, 4)[1] == 13_000
