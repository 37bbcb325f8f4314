"""Users on the command line of `storage format` (SEC-S36)."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError
from kraftwire.security.scram_argument import parse_scram_argument

SALT = b"random"


def test_a_password_gives_keys() -> None:
    """The same as the salted password does."""
    plain = parse_scram_argument(
        "SCRAM-SHA-256=[name=alice,password=secret,salt=c2FsdA==,iterations=8192]", SALT
    )
    assert (plain.name, plain.mechanism, plain.salt, plain.iterations) == (
        "alice",
        1,
        b"salt",
        8192,
    )
    quoted = parse_scram_argument(
        ' SCRAM-SHA-256=[iterations="8192",salt=c2FsdA==,name="alice",password="secret",] ', SALT
    )
    assert quoted == plain
    random = parse_scram_argument("SCRAM-SHA-512=[name=bob,password=a=b]", SALT)
    assert (random.mechanism, random.salt, random.iterations) == (2, SALT, 4096)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SCRAM-SHA-256",
        "SCRAM-SHA-1=[name=a,password=hunter2]",
        "SCRAM-SHA-256=name=a,password=hunter2",
        "SCRAM-SHA-256=[name=a,password=hunter2",
        "SCRAM-SHA-256=[password=hunter2]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,hunter2]",
        "SCRAM-SHA-256=[name=a,hunter2=x]",
        "SCRAM-SHA-256=[name=a,,password=hunter2]",
        "SCRAM-SHA-256=[name=a,password=]",
        'SCRAM-SHA-256=[name=a,password=""]',
        "SCRAM-SHA-256=[name=a,saltedpassword=,salt=c2FsdA==]",
        "SCRAM-SHA-256=[name=a,password=hunter2,salt=?]",
        "SCRAM-SHA-256=[name=a,saltedpassword=aHVudGVyMg==]",
        "SCRAM-SHA-256=[name=a,saltedpassword=hunter2!,salt=c2FsdA==]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=4095]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=16385]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=x]",
    ],
)
def test_what_is_refused(text: str) -> None:
    """Without quoting what may be a password."""
    with pytest.raises(UsageError) as caught:
        parse_scram_argument(text, SALT)
    assert "hunter2" not in str(caught.value)
