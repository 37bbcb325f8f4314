"""Damaged bytes: what Kafka reads, what we read, and every difference between the two.

Most differences between decoders hide in bytes that no honest peer writes. A difference is either
in the table `DELIBERATE`, which says why, or it fails this test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kraftwire.errors import WireError
from kraftwire.messages import find
from tests.support.kafka.java import JavaPeer
from tests.support.kafka.java_cases import Case, Judge, check_each
from tests.support.messages.mutations import mutated
from tests.support.messages.random_messages import random_message
from tests.support.messages.vectors import canonical


@dataclass(frozen=True, slots=True)
class Difference:
    """Bytes that Kafka and we do not read alike.

    `kafka` and `ours` are parts of the error texts, or empty for the side that reads them.
    """

    reason: str
    name: str
    version: int
    data: str
    kafka: str = ""
    ours: str = ""


# Every class of differences with one example, which a test shows to both sides.
DELIBERATE = (
    Difference(
        "Kafka replaces what is not UTF-8, so what it writes differs; we never change bytes",
        *("SaslHandshakeRequest", 1, "000322e720"),
        ours="the string is not UTF-8",
    ),
    Difference(
        "Kafka ignores the size of a tag that it knows; a wrong size shows damage",
        *("AbortTransactionRecord", 0, "01000001"),
        ours="a tagged field is not as long as it says",
    ),
    Difference(
        "the same where the size points beyond the end",
        *("AbortTransactionRecord", 0, "01000d032222"),
        ours="for a tagged field",
    ),
    Difference(
        "Kafka reads any number of tags; we bound them by the size of the message",
        *("ListGroupsRequest", 3, "c801" + "".join(f"{tag:02x}00" for tag in range(100)) * 2),
        ours="too many tagged fields",
    ),
    Difference(
        "Kafka reads any number of the smallest elements; we bound them likewise",
        *("DescribeTopicPartitionsRequest", 0, "a19c01" + "0100" * 20_000 + "00000000ff00"),
        ours="too many small elements",
    ),
    Difference(
        "Kafka takes a compact length above 2^31 for a negative one, which means null",
        *("DescribeLogDirsRequest", 3, "808080807f00"),
        ours="an array of",
    ),
    Difference(
        "the same for a string",
        *("BeginTransactionRecord", 0, "010005ffffffff0f"),
        ours="string too long",
    ),
    Difference(
        "Kafka refuses a tag that it knows from other versions only; we keep its bytes",
        *("BrokerHeartbeatRequest", 0, "00000002ffffffffffffffff1db77f24ddf271bc8000010000"),
        kafka="is not valid for version",
    ),
)

# Bytes that were once read differently, by mistake and not on purpose.
ONCE_DIFFERENT = (
    ("FeatureLevelRecord", 0, "80000000"),  # null in a longer form where null is not allowed
    ("SaslAuthenticateRequest", 2, "80808000"),
    ("DescribeQuorumRequest", 2, "800000000100"),
    ("ListOffsetsRequest", 9, "b3ecd9917f800001000100"),
    ("LeaderAndIsrResponse", 5, "018180000100"),
    ("ConsumerGroupDescribeRequest", 0, "0280800000"),
    ("DescribeLogDirsRequest", 3, "80808000"),  # the same where it is
    ("ConsumerGroupMemberMetadataValue", 0, "0000010101000000000000" + "01000100"),  # null in a tag
    ("ConsumerGroupMemberMetadataValue", 0, "0000010101000000000000" + "01000701ffffffff0100"),
    ("EnvelopeResponse", 0, "800001ffff00"),  # a long form followed by a one
    ("SyncGroupResponse", 4, "80ff0100000081000100"),
    ("SaslAuthenticateRequest", 2, "82000200" + "00" * 20_000),  # or by a two
    ("ListGroupsRequest", 3, "808000"),  # no tags in a longer form
)

_OURS_ONLY = tuple(each.ours for each in DELIBERATE if each.ours)
_KAFKAS_ONLY = tuple(each.kafka for each in DELIBERATE if each.kafka)


@pytest.mark.parametrize("difference", DELIBERATE, ids=lambda each: each.reason[:60])
def test_each_deliberate_difference_still_is_one(kafka: JavaPeer, difference: Difference) -> None:
    """A difference that is gone must leave the table, or it could hide new ones."""
    question = {"op": "read", "name": difference.name, "version": difference.version}
    (answer,) = kafka.ask([{**question, "hex": difference.data}])
    _, refusal = _our_reading(difference.name, difference.version, bytes.fromhex(difference.data))
    assert difference.kafka in answer.get("error", "")
    assert difference.ours in refusal
    assert bool(answer.get("error")) == bool(difference.kafka)
    assert bool(refusal) == bool(difference.ours)


@pytest.mark.parametrize(
    ("name", "version", "data"), ONCE_DIFFERENT, ids=[f"{n}-{d[:20]}" for n, _, d in ONCE_DIFFERENT]
)
def test_what_once_differed_now_agrees(kafka: JavaPeer, name: str, version: int, data: str) -> None:
    """Random damage finds such bytes only occasionally."""
    (answer,) = kafka.ask([{"op": "read", "name": name, "version": version, "hex": data}])
    ours, refusal = _our_reading(name, version, bytes.fromhex(data))
    assert bool(refusal) == ("error" in answer), f"{refusal} {answer}"
    assert refusal or canonical(ours) == canonical(answer)


def test_damaged_messages_are_read_or_refused_as_by_kafka(judge: Judge) -> None:
    """Where both read, JSON, bytes left and what they write again agree; otherwise both refuse."""
    peer, all_cases = judge
    damaged = [(case, data) for case in all_cases for data in _damaged(case)]
    answers = peer.ask(case.ask("read", hex=data.hex()) for case, data in damaged)
    check_each(
        _check_damaged,
        ((case, data, answer) for (case, data), answer in zip(damaged, answers, strict=True)),
    )


def _damaged(case: Case) -> Iterator[bytes]:
    source = case.source
    message = random_message(
        case.message_class, case.version, source, unknown_tags=case.unknown_tags
    )
    data = message.encode(case.version)
    for _ in range(3):
        yield mutated(data, source)


def _check_damaged(case: Case, data: bytes, answer: dict[str, Any]) -> None:
    ours, refusal = _our_reading(case.name, case.version, data)
    if "error" in answer:
        excused = any(text in answer["error"] for text in _KAFKAS_ONLY)
        assert refusal or excused, f"we read {data.hex()}, Kafka says {answer['error']}"
        return
    if refusal:
        excused = any(text in refusal for text in _OURS_ONLY)
        assert excused, f"Kafka reads {data.hex()} as {answer}, we say {refusal}"
        return
    if answer["hex"] is None:
        # Kafka reads tagged fields in any order, but writes them in ascending order or not at all.
        answer["hex"] = ours["hex"]
    assert canonical(ours) == canonical(answer), data.hex()


def _our_reading(name: str, version: int, data: bytes) -> tuple[dict[str, Any], str]:
    """Our answer to the same question, or the text of our refusal."""
    try:
        message, end = find(name).decode(data, version)
    except WireError as refusal:
        return {}, str(refusal)
    encoded = message.encode(version).hex()
    return {"json": message.to_json(version), "rest": len(data) - end, "hex": encoded}, ""


@pytest.mark.parametrize("bits", ["7ff8000000000000", "fff0000000000000", "7ff0dead00000001"])
def test_floats_that_json_cannot_carry_keep_their_bits(kafka: JavaPeer, bits: str) -> None:
    """Not-a-number has many forms, and JSON none: bytes go through, the text is Jackson's."""
    quota = f"010576616c7565{bits}0000"
    question = {"op": "read", "name": "ClientQuotaRecord", "version": 0, "hex": quota}
    (answer,) = kafka.ask([question])
    ours, refusal = _our_reading("ClientQuotaRecord", 0, bytes.fromhex(quota))
    assert not refusal
    assert answer == ours
