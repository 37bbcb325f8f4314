"""Quorums in which real Kafka controllers and kraftwire nodes vote together; see README.md."""

from __future__ import annotations

from tests.support.kafka.mixed_quorum.kinds import (
    JAVA,
    JAVA_3_9,
    JAVA_4_1,
    JAVA_4_3,
    OURS,
    kind_under_test,
)
from tests.support.kafka.mixed_quorum.member import Member
from tests.support.kafka.mixed_quorum.quorum import SNAPSHOT_KNOBS, MixedQuorum
from tests.support.kafka.mixed_quorum.waiting import wait_until

__all__ = [
    "JAVA",
    "JAVA_3_9",
    "JAVA_4_1",
    "JAVA_4_3",
    "OURS",
    "SNAPSHOT_KNOBS",
    "Member",
    "MixedQuorum",
    "kind_under_test",
    "wait_until",
]
