"""Replicas that a controller has placed: at random, but by laws (C-PLA-3).

Two controllers place differently; what they write is the same otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_AT_RANDOM = ("Replicas", "Isr", "Leader", "Directories")


@dataclass(frozen=True)
class Candidate:
    """A broker on which replicas may be placed."""

    rack: str | None
    is_fenced: bool
    is_active: bool


def is_lawful(records: Sequence[list[Any]], brokers: Mapping[int, Candidate]) -> bool:
    """Return whether the partitions among some records are placed by the laws."""
    return _leads_in_turn(
        [one for one in map(_replicas, records) if one], brokers
    ) and all(_is_spread(record, brokers) for record in records if _replicas(record))


def without(records: Sequence[list[Any]]) -> list[list[Any]]:
    """Return records without what is placed at random, but for how much it is."""
    return [
        [name, version, {key: _shown(name, key, value) for key, value in fields.items()}]
        for name, version, fields in records
    ]


def _shown(name: str, key: str, value: Any) -> Any:
    if name != "PartitionRecord" or key not in _AT_RANDOM:
        return value
    return len(value) if key in ("Replicas", "Directories") else None


def _replicas(record: list[Any]) -> list[int]:
    return list(record[2]["Replicas"]) if record[0] == "PartitionRecord" else []


def _is_spread(record: list[Any], brokers: Mapping[int, Candidate]) -> bool:
    """Return whether a partition has distinct replicas on as many racks as there are, the first on
    a broker that is not fenced, and those of active brokers are in sync."""
    replicas, fields = _replicas(record), record[2]
    racks = {broker.rack for broker in brokers.values()}
    used = {brokers[each].rack for each in replicas if each in brokers}
    if not set(replicas) <= brokers.keys():
        return False
    in_sync = [each for each in replicas if brokers[each].is_active]
    return (
        not brokers[replicas[0]].is_fenced
        and len(set(replicas)) == len(replicas)
        and len(used) == min(len(replicas), len(racks))
        and (fields["Isr"], fields["Leader"]) == (in_sync, in_sync[0])
    )


def _leads_in_turn(placed: Sequence[Sequence[int]], brokers: Mapping[int, Candidate]) -> bool:
    """Return whether racks lead one after the other, and the brokers of a single rack too, as long
    as nothing is shuffled."""
    unfenced = {each: broker.rack for each, broker in brokers.items() if not broker.is_fenced}
    racks = {broker.rack for broker in brokers.values()}
    if set(unfenced.values()) != racks:
        return True  # then another rack leads more often
    leaders = [replicas[0] for replicas in placed][: len(unfenced)]
    if len(racks) == 1:
        return len(set(leaders)) == len(leaders)
    led = [unfenced.get(leader) for leader in leaders]
    rounds = (led[start : start + len(racks)] for start in range(0, len(led), len(racks)))
    return all(len(set(one)) == len(one) for one in rounds)
