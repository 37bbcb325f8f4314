"""Mapping rules of certificates' names (SEC-T24); tests/interop compares them with Kafka's."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError
from kraftwire.security.mapping import NoRuleError, PrincipalMapper

NAME = "CN=Alice,OU=dev,O=Acme"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", NAME),
        ("RULE:^CN=(.*?),OU=(.*?),O=.*$/$1@$2/L", "alice@dev"),
        ("RULE:^CN=(.*?),.*$/$1/U,DEFAULT", "ALICE"),
        ("RULE:^OU=.*$/x/, RULE:CN=(?<who>\\w+).*/${who}/", "Alice"),
        ("RULE:CN=([^,]+),.*/$12/", "Alice2"),
        ("RULE:CN=([^,]+),.*/a\\$1\\/b/", "a$1/b"),
        ("RULE:(?i)cn=alice,.*/x/", "x"),
        ("RULE:.*/a/", "aa"),
        ("RULE:CN=/x/", None),
        ("", None),
    ],
)
def test_rules(rules: str, name: str | None) -> None:
    """The first rule whose pattern is the whole name."""
    mapper = PrincipalMapper(rules)
    if name is None:
        with pytest.raises(NoRuleError):
            mapper.name(NAME)
    else:
        assert mapper.name(NAME) == name


@pytest.mark.parametrize(
    "rules",
    [
        "DEFAULTS",
        "RULE:a",
        "RULE:a/b",
        "RULE:a/b/LU",
        "RULE:a/$1/",
        "RULE:(a)/$x/",
        "RULE:(a)/${b}/",
        "RULE:(a)/$99999999999/",
        "RULE:^CN=(.*?),.*$/$2/",
        "RULE:(a)/b\\\\\\/c",
        "RULE:[a-z&&[^x]]/b/",
        "RULE:\\p{L}/b/",
        "RULE:a{/b/",
        "RULE:(?s)a/b/",
        "RULE:(?P<x>a)/b/",
        "RULE:(a)\\1/b/",
        "RULE:(/b/",
        "RULE:[]a]/b/",
    ],
)
def test_what_is_refused(rules: str) -> None:
    """What is no rule, and what Python's patterns would read in another way than Java's."""
    with pytest.raises(UsageError):
        PrincipalMapper(rules)
