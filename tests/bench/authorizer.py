"""What an authorization costs with 100,000 ACLs, beside Kafka's StandardAuthorizer.

The ACLs are those of 500 users. In the second row 249 of them are prefixes that begin with each
other, all of which match the topic that is asked for; in the third, they are of another user.
"""

from __future__ import annotations

import time
from typing import Any

from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.security.acls import ALLOW, LITERAL, PREFIXED, Acl, AclIndex, Authorizer, Operation
from kraftwire.security.acls import ResourceType as Kind
from kraftwire.security.principal import Principal
from tests.bench.java_reader import has_java
from tests.bench.report import Bar, microseconds, print_bars, print_table
from tests.support.java import JavaPeer

__all__ = ["run"]

ACLS = 100_000
NESTED = 249
USER = Principal("User", "alice")
HOST = "1.2.3.4"
ROUNDS = 20_000
SECONDS_MAX = 50e-6

Row = tuple[int, str, int, str, str, int, int]


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    name = "x" * NESTED
    worlds = {
        "distinct names": (_distinct(ACLS), "topic-7-ccccccc"),
        "249 nested prefixes": (_distinct(ACLS - NESTED) + _nested("User:alice"), name),
        "249 of another user": (_distinct(ACLS - NESTED) + _nested("User:bob"), name),
    }
    rows, bars = [], []
    for title, (acls, topic) in worlds.items():
        # An ACL for the operation itself, one that allows it too, and one that does not.
        for operation in (Operation.READ, Operation.DESCRIBE, Operation.ALTER):
            ours, java = _ours(acls, topic, operation), _java(acls, topic, operation)
            verb = Operation.NAMES[operation]
            rows.append((f"{title}, {verb}", microseconds(ours), microseconds(java)))
            bars.append(Bar(f"{title}, {verb}", ours * 1e6, SECONDS_MAX * 1e6, "us", True))
    print_table("Authorization with 100,000 ACLs (us)", ("", "kraftwire", "Java"), rows)
    return print_bars("Authorization: summary", bars)


def _distinct(count: int) -> list[Row]:
    return [
        (
            Kind.TOPIC,
            f"topic-{number}-{'abcdefgh'[number % 8] * (number % 9)}",
            LITERAL if number % 2 else PREFIXED,
            f"User:u{number % 500}",
            "*",
            Operation.READ,
            ALLOW,
        )
        for number in range(count)
    ]


def _nested(user: str) -> list[Row]:
    lengths = range(1, NESTED + 1)
    return [(Kind.TOPIC, "x" * n, PREFIXED, user, "*", Operation.READ, ALLOW) for n in lengths]


def _ours(acls: list[Row], topic: str, operation: int) -> float:
    """CPU seconds of one decision."""
    index = AclIndex()
    for number, row in enumerate(acls):
        index.add(number.to_bytes(16), Acl.of(_record(row)))
    authorizer = Authorizer(frozenset(), lambda: index)
    authorizer.decide(USER, HOST, operation, (Kind.TOPIC, topic))
    begin = time.process_time()
    for _ in range(ROUNDS):
        authorizer.decide(USER, HOST, operation, (Kind.TOPIC, topic))
    return (time.process_time() - begin) / ROUNDS


def _java(acls: list[Row], topic: str, operation: int) -> float | None:
    """Seconds of the same in a JVM that is warm; None where there is no Java."""
    if not has_java("Java's authorizer"):
        return None
    question: dict[str, Any] = {"op": "acls", "superUsers": "", "allowEveryone": "false"}
    request = [USER.type, USER.name, HOST, operation, Kind.TOPIC, topic]
    question |= {"acls": acls, "requests": [request], "rounds": ROUNDS}
    with JavaPeer(folder="security", program="Security") as peer:
        (answer,) = peer.ask([question])
    return float(answer["nanos"]) / 1e9


def _record(row: Row) -> AccessControlEntryRecord:
    kind, name, pattern, principal, host, operation, permission = row
    return AccessControlEntryRecord(
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )
