"""Metadata logs of records that follow their schemas and nothing else: any values in any order.

Owns what makes them meet: few ids and names, so that records contradict and change each other.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

from kraftwire.controller.record_effects import RECORD_EFFECTS
from kraftwire.messages import find
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.message import Message
from tests.support.messages.random_messages import random_message

_IDS = (-1, 0, 1, 2, 3, 2**31 - 1, -(2**31))
_TOPIC_IDS = (bytes(16), b"\x01" * 16, b"\xff" * 16, (100).to_bytes(16, "big"))
_NAMES = ("", "t", "a.b", "a_b", "\0", "\n\x1b[2J", "漢😀", "x" * 300, "metadata.version", "..")
_FLOATS = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 1e7, 1e21)
_TIMES = (0, -1, 1_760_000_000_000, 2**63 - 1, -(2**63))
_OTHER_VALUE, _TRANSACTION = 0.2, 0.02

# What is in an open transaction is not shown.
_TRANSACTIONS = ("AbortTransactionRecord", "BeginTransactionRecord", "EndTransactionRecord")
_TYPES = sorted(RECORD_EFFECTS.keys() - {*_TRANSACTIONS})
_TYPES += 3 * ["PartitionRecord", "PartitionChangeRecord", "TopicRecord"]
# What later records can refer to.
_BEGINNING: tuple[Message, ...] = (
    FeatureLevelRecord(name="metadata.version", feature_level=30),
    *(TopicRecord(name=f"topic-{id[-1]}", topic_id=id) for id in _TOPIC_IDS[1:]),
)

# By the attribute's name: what a value of it is drawn from, mostly.
_POOLS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("broker_id", "controller_id", "id", "leader", "leader_epoch"), _IDS),
    **dict.fromkeys(("broker_epoch", "epoch", "next_producer_id"), (*range(4), -1, 2**63 - 1)),
    **dict.fromkeys(("topic_id",), _TOPIC_IDS),
    **dict.fromkeys(("name", "topic_name", "resource_name", "entity_name", "token_id"), _NAMES),
    "key": ("producer_byte_rate", *_NAMES),
    "value": (*_FLOATS,),
    "partition_id": (0, 1, -1, 2**31 - 1),
    "feature_level": (0, 1, 7, 27, 30, -1, 32767),
    "resource_type": (2, 4, 8, 16, 32, 0, -1, 127),
    "mechanism": (0, 1, 2, -128),
    "principal": ("User:a", "User", "", ":", *_NAMES),
}


def odd_record(random: Random) -> bytes:
    """Return a record of the metadata log, with its frame."""
    names = _TRANSACTIONS if random.random() < _TRANSACTION else _TYPES
    cls = find(random.choice(names))
    version = random.randint(cls.VERSIONS.low, cls.VERSIONS.high)
    message = random_message(cls, version, random, unknown_tags=random.random() < 0.1)
    _meet(message, random)
    if isinstance(message, PartitionRecord) and version and random.random() > _OTHER_VALUE:
        message.directories = [random.choice(_TOPIC_IDS) for _ in message.replicas]
    return encode_metadata(message, version)


def _meet(made: Any, random: Random) -> None:
    """Draw values from those that other records have, too, in structs inside as well."""
    for attribute in made.__slots__:
        value = getattr(made, attribute)
        if isinstance(value, list):
            for index, each in enumerate(value):
                if hasattr(each, "__slots__"):
                    _meet(each, random)
                elif isinstance(each, int):
                    value[index] = random.choice(_IDS[:6]) if random.random() > 0.1 else each
        elif random.random() > _OTHER_VALUE:
            pool = [each for each in _POOLS.get(attribute, ()) if type(each) is type(value)]
            if pool:
                setattr(made, attribute, random.choice(pool))


def odd_log(seed: int, count: int) -> bytes:
    """Return a segment of records in batches of one to three, some with odd times and epochs."""
    random, out, offset = Random(seed), b"", 0
    values = [encode_metadata(each, 0) for each in _BEGINNING[: random.choice((1, 4, 4))]]
    while offset < count:
        header = BatchHeader(base_offset=offset, partition_leader_epoch=random.choice((1, 1, 2, 0)))
        times = [random.choice(_TIMES)] * len(values)
        out += build_columns(times, [None] * len(values), values, header=header)
        offset += len(values)
        values = [odd_record(random) for _ in range(random.randint(1, 3))]
    return out
