"""What an authorization costs with 100,000 ACLs, beside Kafka's StandardAuthorizer.

The ACLs are those of 500 users. In the second row 249 of them are prefixes that begin with each
other, all of which match the topic that is asked for; in the third, they are of another user; in
the fourth, the name goes on where each of them has another letter; in the fifth, each is for a
range of addresses, of 33 lengths. In the last row a prefix is removed before each decision.
"""

from __future__ import annotations

import time
from typing import Any

from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.security.acls import (
    ALLOW,
    DENY,
    LITERAL,
    PREFIXED,
    Acl,
    AclIndex,
    Authorizer,
    Operation,
)
from kraftwire.security.acls import ResourceType as Kind
from kraftwire.security.principal import Principal
from tests.bench.java_reader import has_java
from tests.bench.report import Bar, microseconds, print_bars, print_table
from tests.support.kafka.java import JavaPeer

__all__ = ["run"]

ACLS = 100_000
NESTED = 249
USER = Principal("User", "alice")
HOST = "1.2.3.4"
ROUNDS = 20_000
SECONDS_MAX = 50e-6
NEARLY_SECONDS_MAX = 200e-6

Row = tuple[int, str, int, str, str, int, int]


def run() -> list[Bar]:
    """Measure, print, and return the bars that were missed."""
    name = "x" * NESTED
    worlds = {
        "distinct names": (_distinct(ACLS), "topic-7-ccccccc"),
        "249 nested prefixes": (_distinct(ACLS - NESTED) + _nested("User:alice"), name),
        "249 of another user": (_distinct(ACLS - NESTED) + _nested("User:bob"), name),
        "249 that nearly match": (_distinct(ACLS - NESTED) + _nested("User:alice", "a"), name),
        "ranges of addresses": (_ranged(ACLS), "topic-7-ccccccc"),
    }
    rows, bars = [], []
    for title, (acls, topic) in worlds.items():
        # An ACL for the operation itself, one that allows it too, and one that does not.
        for operation in (Operation.READ, Operation.DESCRIBE, Operation.ALTER):
            ours, java = _ours(acls, topic, operation), _java(acls, topic, operation)
            verb = Operation.NAMES[operation]
            rows.append((f"{title}, {verb}", microseconds(ours), microseconds(java)))
            most = NEARLY_SECONDS_MAX if "nearly" in title else SECONDS_MAX
            bars.append(Bar(f"{title}, {verb}", ours * 1e6, most * 1e6, "us", True))
    changed = _after_removals(_distinct(ACLS))
    rows.append(("a removal and a decision", microseconds(changed), ""))
    bars.append(Bar("a removal and a decision", changed * 1e6, SECONDS_MAX * 1e6, "us", True))
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


def _nested(user: str, end: str = "x") -> list[Row]:
    names = ["x" * length + end for length in range(NESTED)]
    return [(Kind.TOPIC, each, PREFIXED, user, "*", Operation.READ, ALLOW) for each in names]


def _ranged(count: int) -> list[Row]:
    """The same for ranges, and those that the caller's address is in denied of another topic."""
    rows = [
        (*row[:4], f"{number >> 8 & 255}.{number & 255}.0.0/{number % 33}", *row[5:])
        for number, row in enumerate(_distinct(count - 33))
    ]
    own = [(Kind.TOPIC, "x", LITERAL, "User:alice", f"{HOST}/{n}", 2, DENY) for n in range(33)]
    return rows + own


def _ours(acls: list[Row], topic: str, operation: int) -> float:
    """CPU seconds of one decision."""
    index = _index(acls)
    authorizer = Authorizer(frozenset(), lambda: index)
    authorizer.authorize(USER, HOST, operation, (Kind.TOPIC, topic))
    begin = time.process_time()
    for _ in range(ROUNDS):
        authorizer.authorize(USER, HOST, operation, (Kind.TOPIC, topic))
    return (time.process_time() - begin) / ROUNDS


def _after_removals(acls: list[Row]) -> float:
    """CPU seconds of one removal and the decision after it."""
    index = _index(acls)
    authorizer = Authorizer(frozenset(), lambda: index)
    begin = time.process_time()
    for number in range(ROUNDS):
        index.remove(number.to_bytes(16))
        authorizer.authorize(USER, HOST, Operation.READ, (Kind.TOPIC, "topic-7-ccccccc"))
    return (time.process_time() - begin) / ROUNDS


def _index(acls: list[Row]) -> AclIndex:
    index = AclIndex()
    for number, row in enumerate(acls):
        index.add(number.to_bytes(16), Acl.of(_record(row)))
    return index


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
