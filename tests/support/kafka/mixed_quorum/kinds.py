"""The kinds of a member: a kraftwire node, or Kafka's node of some release."""

from __future__ import annotations

import os

from tests.support.kafka.maven import KAFKA, KAFKA_3_9, KAFKA_4_1, KAFKA_4_3, Release

OURS = "kraftwire"
JAVA = "java"
JAVA_4_3 = f"java {KAFKA_4_3.version}"
JAVA_4_1 = f"java {KAFKA_4_1.version}"
JAVA_3_9 = f"java {KAFKA_3_9.version}"

_RELEASES = {JAVA: KAFKA, JAVA_4_3: KAFKA_4_3, JAVA_4_1: KAFKA_4_1, JAVA_3_9: KAFKA_3_9}


def is_java(kind: str) -> bool:
    """Whether it is Kafka's node. Raises: AssertionError for an unknown kind."""
    assert kind in _RELEASES or kind == OURS, f"{kind!r} is not a kind of member"
    return kind != OURS


def release_of(kind: str) -> Release:
    """The release of Kafka of a kind; our nodes are formatted with the newest."""
    return _RELEASES.get(kind, KAFKA)


def kind_under_test() -> str:
    """The kind that a test is about: ours, unless KRAFTWIRE_TESTED_KIND names another one.

    With ``java`` the same script shows what Kafka's own controllers do.
    """
    kind = os.environ.get("KRAFTWIRE_TESTED_KIND", OURS)
    is_java(kind)
    return kind
