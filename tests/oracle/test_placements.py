"""The laws of placement pass what Kafka's controller places, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.placements import Candidate, is_lawful, without

_BROKERS = {
    1: Candidate("a", is_fenced=False, is_active=True),
    2: Candidate("a", is_fenced=True, is_active=False),
    3: Candidate("b", is_fenced=False, is_active=True),
}


def _record(*replicas: int, isr: list[int]) -> list[Any]:
    fields = {"Replicas": list(replicas), "Isr": isr, "Leader": isr[0], "PartitionEpoch": 0}
    return ["PartitionRecord", 2, fields]


def test_leaders_come_from_one_rack_after_the_other() -> None:
    """And replicas from as many racks as there are (C-PLA-3)."""
    assert is_lawful([_record(1, 3, isr=[1, 3]), _record(3, 1, isr=[3, 1])], _BROKERS)
    assert not is_lawful([_record(1, 3, isr=[1, 3]), _record(1, 3, isr=[1, 3])], _BROKERS)


@pytest.mark.parametrize(
    "record",
    [
        _record(3, 3, isr=[3, 3]),
        _record(1, 2, isr=[1]),
        _record(2, 3, isr=[3]),
        _record(1, 3, isr=[1]),
        _record(3, 1, 2, isr=[3, 1, 2]),
        _record(1, 9, isr=[1]),
    ],
    ids=["twice", "one rack", "fenced", "not in sync", "fenced in sync", "unknown"],
)
def test_what_breaks_a_law_is_noticed(record: list[Any]) -> None:
    """Otherwise a controller could place as it likes (C-PLA-3)."""
    assert not is_lawful([record], _BROKERS)


def test_how_many_replicas_there_are_is_not_random() -> None:
    """Nor is anything else than which they are."""
    one, other = _record(1, 3, isr=[1, 3]), _record(3, 1, isr=[3, 1])
    assert without([one]) == without([other])
    assert without([one]) != without([_record(3, isr=[3])])
    assert without([["PartitionRecord", 2, one[2] | {"PartitionEpoch": 1}]]) != without([one])
