"""AlterClientQuotas (C-CQ)."""

from __future__ import annotations

from math import inf, nan

import pytest

from kraftwire.controller.quotas import alter_quotas
from kraftwire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kraftwire.messages.client_quota_record import ClientQuotaRecord
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.metadata import decode_metadata
from tests.support.nodes.controlled_cluster import ControlledCluster

RATE, CONNECTIONS = "producer_byte_rate", "connection_creation_rate"
INVALID = ErrorCode.INVALID_REQUEST


def entry(
    *parts: tuple[str, str | None], ops: tuple[tuple[str, float | None], ...] = ((RATE, 5.0),)
) -> EntryData:
    """A change of an entity; None removes a quota."""
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def alter(cluster: ControlledCluster, *entries: EntryData, **more: bool) -> list[int]:
    """Change quotas; returns the codes."""
    request = AlterClientQuotasRequest(entries=list(entries), **more)
    answer = cluster.do(alter_quotas(cluster.view, request))
    return [one.error_code for one in answer.entries]


def stored(cluster: ControlledCluster) -> list[tuple[list[tuple[str, str | None]], str, float]]:
    """The quotas of a snapshot."""
    records = [decode_metadata(value).message for value in cluster.image.freeze()]
    return [
        ([(part.entity_type, part.entity_name) for part in one.entity], one.key, one.value)
        for one in records
        if isinstance(one, ClientQuotaRecord)
    ]


def test_quotas_are_set_changed_and_removed() -> None:
    """A snapshot has what is left, client ids before users (C-CQ-2, C-CQ-3)."""
    cluster = ControlledCluster()
    both = ("user", "u"), ("client-id", None)
    alone = entry(("user", None)), entry(("ip", "::1"), ops=())
    assert alter(cluster, entry(*both), *alone) == [0, 0, 0]
    assert alter(cluster, entry(*both, ops=((RATE, 7.0), ("request_percentage", 0.5)))) == [0]
    assert alter(cluster, entry(("user", None), ops=((RATE, None), ("nope", None)))) == [0]
    entity = [("client-id", None), ("user", "u")]
    assert stored(cluster) == [(entity, RATE, 7.0), (entity, "request_percentage", 0.5)]


def test_nothing_is_written_for_what_stays() -> None:
    """Nor for a request that only validates (C-CQ-2)."""
    cluster = ControlledCluster()
    alter(cluster, entry(("user", "u")))
    end = cluster.image.next_offset
    assert alter(cluster, entry(("user", "u"))) == [0]
    assert alter(cluster, entry(("user", "v")), validate_only=True) == [0]
    assert alter(cluster, entry(("user", "u"), ops=((CONNECTIONS, None),))) == [0]
    assert cluster.image.next_offset == end


@pytest.mark.parametrize(
    "wrong",
    [
        entry(),
        entry(("group", "g")),
        entry(("user", "")),
        entry(("ip", "1.2.3.4"), ("user", "u"), ops=((CONNECTIONS, 1.0),)),
        entry(("ip", "a.host"), ops=((CONNECTIONS, 1.0),)),
        entry(("ip", None)),
        entry(("user", "u"), ops=((CONNECTIONS, 1.0),)),
        entry(("user", "u"), ops=((RATE, 1.0), (RATE, 2.0))),
    ],
)
def test_entities_and_keys_that_do_not_fit(wrong: EntryData) -> None:
    """The others of the request are changed (C-CQ-1, C-CQ-2)."""
    cluster = ControlledCluster()
    assert alter(cluster, wrong, entry(("user", "v"))) == [INVALID, 0]
    assert stored(cluster) == [([("user", "v")], RATE, 5.0)]


@pytest.mark.parametrize(
    ("kind", "key", "value", "code"),
    [
        ("user", RATE, -1.0, INVALID),
        ("user", RATE, nan, INVALID),
        ("user", RATE, 1.5, INVALID),
        ("user", RATE, 1.0000001, 0),
        ("user", RATE, 2.0**63, 0),
        ("user", RATE, 2.0**64, INVALID),
        ("user", "controller_mutation_rate", 0.25, 0),
        ("user", "request_percentage", inf, INVALID),
        ("user", "request_percentage", 1e300, 0),
        ("ip", CONNECTIONS, 2.0**31 - 1, 0),
        ("ip", CONNECTIONS, 2.0**31, INVALID),
    ],
)
def test_values_have_bounds(kind: str, key: str, value: float, code: int) -> None:
    """Whole numbers and fractions, by key; nothing of the entity is written (C-CQ-2)."""
    cluster = ControlledCluster()
    ops = ("consumer_byte_rate" if kind == "user" else CONNECTIONS, None), (key, value)
    changed = entry((kind, None), ops=ops if kind == "user" else ops[1:])
    assert alter(cluster, changed) == [code]
    assert len(stored(cluster)) == (code == 0)


def test_an_entity_that_is_named_twice_is_not_changed() -> None:
    """It has one result (C-CQ-1)."""
    cluster = ControlledCluster()
    named = ("user", "u"), ("client-id", "c")
    assert alter(cluster, entry(*named), entry(*named[::-1]), entry(("user", "u"))) == [INVALID, 0]
    assert [entity for entity, _, _ in stored(cluster)] == [[("user", "u")]]
