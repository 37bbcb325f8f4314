"""Names of users for Kerberos principals (SEC-S52); tests/interop compares them with Kafka's."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError
from kraftwire.security.errors import Refused
from kraftwire.security.local_names import LocalNames


def name(principal: str, *rules: str) -> str:
    """The user of a principal, where R is the default realm."""
    return LocalNames(rules, lambda: "R").name(principal)


@pytest.mark.parametrize(
    ("principal", "rules", "user"),
    [
        ("alice@R", (), "alice"),
        ("kafka/host@R", (), "kafka"),
        ("alice", ("RULE:[1:$1]",), "alice"),
        ("kafka/host@Q", ("DEFAULT", "RULE:[2:$2-$1]/U"), "HOST-KAFKA"),
        ("alice@Q", ("RULE:[1:$1@$0](a.*@Q)s/@.*//L",), "alice"),
        ("banana@R", ("RULE:[1:$1]s/a/o/",), "bonana"),
        ("banana@R", ("RULE:[1:$1]s/(a)n/$1m/g",), "bamama"),
    ],
)
def test_names(principal: str, rules: tuple[str, ...], user: str) -> None:
    """The first rule that applies decides."""
    assert name(principal, *rules) == user


@pytest.mark.parametrize(
    ("principal", "rules"),
    [
        ("alice@Q", ()),
        ("alice@R", ("RULE:[2:$1]",)),
        ("alice@R", ("RULE:[1:$1@$0]",)),
        ("a/b/c@R", ("DEFAULT",)),
        ("a\\@b@R", ("DEFAULT",)),
    ],
)
def test_principals_without_a_user(principal: str, rules: tuple[str, ...]) -> None:
    """Nobody logs in under a name that no rule made, or that is still one of Kerberos."""
    with pytest.raises(Refused):
        name(principal, *rules)


@pytest.mark.parametrize(
    "rule",
    ["default", "RULE:[3:$1]", "RULE:[1:$2]", "RULE:[1:$]", "RULE:[1:$1](", "RULE:[1:$1]s/a/$1/",
     "RULE:[1:$1](\\p{L})", "RULE:[:$1]", "RULE:[1:$1]LL"],
)  # fmt: skip
def test_what_is_no_rule(rule: str) -> None:
    """A node does not start with it."""
    with pytest.raises(UsageError):
        name("alice@R", rule)
