"""Access control by ACLs (SEC-A2, SEC-A3, SEC-A14); tests/interop compares it with Kafka's."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from kraftwire.errors import UsageError
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.security.acls import (
    ALLOW,
    CLUSTER_NAME,
    DENY,
    LITERAL,
    PREFIXED,
    Acl,
    AclIndex,
    Authorizer,
    Operation,
    ResourceType,
    parse_super_users,
)
from kraftwire.security.principal import ANONYMOUS, Principal

ALICE = Principal("User", "alice")
BOB = Principal("User", "bob")
TOPIC = ResourceType.TOPIC


def acl(name: str, operation: int, permission: int = ALLOW, **values: object) -> Acl:
    """An ACL for alice on a topic."""
    record = AccessControlEntryRecord(
        resource_type=TOPIC,
        resource_name=name,
        pattern_type=LITERAL,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=permission,
    )
    for key, value in values.items():
        setattr(record, key, value)
    return Acl.of(record)


def authorizer(*acls: Acl, **values: bool) -> Authorizer:
    """One that has loaded these ACLs."""
    index = index_of(*acls)
    return Authorizer(parse_super_users("User:root; Group:x"), lambda: index, **values)


def index_of(*acls: Acl) -> AclIndex:
    """These ACLs, with their numbers as ids."""
    index = AclIndex()
    for number, one in enumerate(acls):
        index.add(bytes([number]), one)
    return index


def may(one: Authorizer, who: Principal, operation: int, name: str, host: str = "1.2.3.4") -> bool:
    """Whether somebody may do something with a topic."""
    decision = one.authorize(who, host, operation, (TOPIC, name))
    assert decision is not None
    return decision.is_allowed


def test_super_users_and_loading() -> None:
    """Super users are allowed everything, at once; others wait for the ACLs (SEC-A4)."""
    fresh = Authorizer(parse_super_users(" User:root ;;Group:x"), lambda: None)
    root = fresh.authorize(Principal("User", "root"), "h", Operation.ALTER, (4, CLUSTER_NAME))
    assert root is not None
    assert (root.is_allowed, root.rule) == (True, "SuperUser")
    assert fresh.authorize(ALICE, "h", Operation.ALTER, (4, CLUSTER_NAME)) is None
    assert fresh.allowed_operations(ALICE, "h", (4, CLUSTER_NAME)) == 0
    with pytest.raises(UsageError, match="expected Type:name"):
        parse_super_users("root")


def test_defaults() -> None:
    """Without an ACL for the resource, the default; with one that does not apply, no."""
    assert not may(authorizer(), ALICE, Operation.READ, "a")
    assert may(authorizer(allow_if_no_acl=True), ANONYMOUS, Operation.READ, "a")
    other = authorizer(acl("a", Operation.READ), allow_if_no_acl=True)
    assert may(other, BOB, Operation.READ, "b")
    decision = other.authorize(BOB, "h", Operation.READ, (TOPIC, "a"))
    assert decision is not None
    assert (decision.is_allowed, decision.rule) == (False, "DefaultDeny")


def test_patterns() -> None:
    """A name, `*`, a prefix; in a prefix `*` is a character."""
    prefixed = acl("ab", Operation.READ, pattern_type=PREFIXED)
    starred = acl("x*", Operation.READ, pattern_type=PREFIXED)
    one = authorizer(acl("a", Operation.READ), prefixed, starred)
    found = {
        name: may(one, ALICE, Operation.READ, name)
        for name in ("a", "aa", "ab", "abc", "xy", "x*y")
    }
    assert found == {"a": True, "aa": False, "ab": True, "abc": True, "xy": False, "x*y": True}
    everything = authorizer(acl("*", Operation.READ))
    assert may(everything, ALICE, Operation.READ, "anything")
    # Kafka's search passes over `*` here, even one that denies.
    assert not may(everything, ALICE, Operation.READ, "*x")
    denied = authorizer(acl("*", Operation.READ, DENY), acl("*x", Operation.READ))
    assert not may(denied, ALICE, Operation.READ, "*x")


def test_deny_wins() -> None:
    """Over any ALLOW, wherever it is; and everybody is a principal, too."""
    one = authorizer(
        acl("a", Operation.ALL),
        acl("*", Operation.WRITE, DENY, principal="User:*"),
        acl("a", Operation.READ, DENY, host="6.6.6.6"),
    )
    assert may(one, ALICE, Operation.READ, "a")
    assert not may(one, ALICE, Operation.READ, "a", "6.6.6.6")
    decision = one.authorize(ALICE, "h", Operation.WRITE, (TOPIC, "a"))
    assert decision is not None
    assert (decision.is_allowed, decision.rule) == (False, "DENY User:* WRITE from * LITERAL:*")


def test_ranges_of_hosts() -> None:
    """A DENY of a range denies each address in it, however the range is written (SEC-A16)."""
    one = authorizer(
        acl("a", Operation.READ),
        acl("a", Operation.READ, DENY, host="10.1.2.3/8"),
        acl("a", Operation.READ, DENY, host="fe80::/10", principal="User:*"),
        acl("a", Operation.READ, DENY, host="1.2.3.0/33"),
        acl("a", Operation.WRITE, host="1.2.3.0/24"),
        acl("a", Operation.WRITE, DENY, host="1.2.3.4/31"),
    )
    hosts = ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", "fe80:0:0:0:0:0:0:1%eth0")
    assert [may(one, ALICE, Operation.READ, "a", host) for host in hosts] == [1, 0, 0, 1, 0]
    hosts = ("1.2.3.3", "1.2.3.4", "1.2.3.5", "1.2.3.6", "1.2.4.0")
    assert [may(one, ALICE, Operation.WRITE, "a", host) for host in hosts] == [1, 0, 0, 1, 0]
    decision = one.authorize(ALICE, "10.7.7.7", Operation.READ, (TOPIC, "a"))
    assert decision is not None
    assert decision.rule == "DENY User:alice READ from 10.0.0.0/8 LITERAL:a"


def test_two_texts_of_a_range_are_two_acls() -> None:
    """Each exists for itself, as in Kafka; the range counts until both are gone."""
    first, second = (acl("a", Operation.READ, host=host) for host in ("10.0.0.0/8", "10.9.9.9/8"))
    index = index_of(first)
    assert (index.has(first), index.has(second)) == (True, False)
    index.add(b"second", second)
    one = Authorizer(frozenset(), lambda: index)
    for left in (True, False):
        assert may(one, ALICE, Operation.READ, "a", "10.0.0.1")
        index.remove(bytes([0]) if left else b"second")
        assert (index.has(first), index.has(second)) == (False, left)
        assert may(one, ALICE, Operation.READ, "a", "10.0.0.1") is left


@pytest.mark.parametrize(
    "operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER]
)
def test_what_is_implied(operation: int) -> None:
    """DESCRIBE by four operations, but it is not denied by them (SEC-A3)."""
    assert may(authorizer(acl("a", operation)), ALICE, Operation.DESCRIBE, "a")
    denied = authorizer(acl("a", operation, DENY), acl("a", Operation.DESCRIBE))
    assert may(denied, ALICE, Operation.DESCRIBE, "a")
    assert not may(denied, ALICE, operation, "a")
    configs = authorizer(acl("a", Operation.ALTER_CONFIGS))
    assert may(configs, ALICE, Operation.DESCRIBE_CONFIGS, "a")
    assert not may(configs, ALICE, Operation.DESCRIBE, "a")


def test_authorized_operations() -> None:
    """A bit for each operation that makes sense for the resource (SEC-A14)."""
    one = authorizer(acl("a", Operation.READ), acl("a", Operation.ALTER_CONFIGS))
    assert one.allowed_operations(ALICE, "h", (TOPIC, "a")) == 1 << 3 | 1 << 8 | 1 << 10 | 1 << 11
    root = Principal("User", "root")
    assert one.allowed_operations(root, "h", (4, CLUSTER_NAME)) == 0b1111110100000


def test_removal_undoes_addition() -> None:
    """Also of ACLs that stand twice, and in any order."""
    source = random.Random(5)
    rows = [
        acl(source.choice("ab*"), source.choice((3, 4)), source.choice((DENY, ALLOW)))
        for _ in range(60)
    ]
    order = list(range(len(rows)))
    source.shuffle(order)
    index = index_of(*rows)
    one = Authorizer(frozenset(), lambda: index)
    for done, number in enumerate(order, 1):
        assert index.remove(bytes([number]))
        assert not index.remove(bytes([number]))
        left = authorizer(*(rows[n] for n in order[done:]))
        assert len(index) == len(order) - done
        assert dict(index.items()).keys() == {bytes([n]) for n in order[done:]}
        for name in "abc":
            for operation in (3, 8):
                assert may(one, ALICE, operation, name) is may(left, ALICE, operation, name)


def test_a_decision_looks_at_few_of_many_acls() -> None:
    """With 20,000 ACLs it takes about what it takes with 1,000."""
    source = random.Random(7)

    def made(count: int) -> AclIndex:
        index = AclIndex()
        for number in range(count):
            name = f"topic-{source.randrange(count)}-{source.choice('abcdefgh') * (number % 9)}"
            pattern = source.choice((LITERAL, PREFIXED))
            user = f"User:u{number % 500}"
            host = source.choice(("*", f"1.{number % 256}.3.4/{number % 33}", f"::{number:x}/100"))
            row = acl(name, Operation.READ, pattern_type=pattern, principal=user, host=host)
            index.add(number.to_bytes(16), row)
        return index

    def cost(index: AclIndex) -> int:
        """Calls of all functions, those in C too."""
        index.find_decision(ALICE, "1.2.3.4", Operation.READ, (TOPIC, "topic-1-abc"))
        calls: list[str] = []
        sys.setprofile(lambda _, event, __: calls.append(event))
        try:
            for number in range(200):
                topic = TOPIC, f"topic-{number}-abc"
                index.find_decision(ALICE, "1.2.3.4", Operation.READ, topic)
        finally:
            sys.setprofile(None)
        return len(calls)

    few, many = made(1_000), made(20_000)
    assert len(many) == 20_000
    assert cost(many) < 2 * cost(few)
    for length in range(1, 250):
        row = acl("topic-7-abc"[:length].ljust(length, "x"), Operation.READ, pattern_type=PREFIXED)
        many.add(b"nested" + bytes([length]), row)
    assert cost(many) < 3 * cost(few)


def test_a_change_looks_at_no_other_prefix() -> None:
    """After a removal all prefixes were sorted again: 451 ms with 100,000 of them."""

    def cost(count: int) -> int:
        """Lines that removals, additions and the decisions after each of them run through."""
        rows = [
            acl(f"t{number:06}", Operation.READ, pattern_type=PREFIXED) for number in range(count)
        ]
        index = AclIndex()
        for number, row in enumerate(rows):
            index.add(number.to_bytes(16), row)
        covering = acl("t", Operation.READ, pattern_type=PREFIXED)
        lines = 0

        def trace(_: FrameType, event: str, __: object) -> Callable[..., object]:
            nonlocal lines
            lines += event == "line"
            return trace

        sys.settrace(trace)
        try:
            for number in range(10):
                index.add(b"covering", covering)
                index.find_decision(ALICE, "1.2.3.4", Operation.READ, (TOPIC, "u"))
                index.remove(b"covering")
                index.find_decision(ALICE, "1.2.3.4", Operation.READ, (TOPIC, "u"))
                index.remove(number.to_bytes(16))
                index.find_decision(ALICE, "1.2.3.4", Operation.READ, (TOPIC, "u"))
        finally:
            sys.settrace(None)
        return lines

    assert cost(2_000) == cost(20)


def test_prefixes_that_cover_each_other() -> None:
    """However they come and go, between questions too: what is left decides."""
    source = random.Random(9)
    names = ["a", "aa", "aab", "ab", "b", "ba", "", "aaba", "c"]
    index = AclIndex()
    kept: dict[bytes, str] = {}
    for number in range(2000):
        if kept and source.random() < 0.5:
            gone = source.choice(sorted(kept))
            index.remove(gone)
            del kept[gone]
        else:
            key = number.to_bytes(2)
            kept[key] = source.choice(names[: source.choice((6, 9))])
            index.add(key, acl(kept[key], Operation.READ, pattern_type=PREFIXED))
        asked = source.choice(names) + source.choice(("", "a", "zz"))
        decision = index.find_decision(ALICE, "h", Operation.READ, (TOPIC, asked))
        expected = any(asked.startswith(name) for name in kept.values())
        assert (decision is not None and decision.is_allowed) == expected, (number, asked)
