"""Principals, their form in an Envelope, and addresses as Java writes them (SEC-A13)."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError, WireError
from kraftwire.security.principal import (
    Principal,
    decode_principal,
    encode_principal,
    host_text,
    parse_principal,
)


def test_text() -> None:
    """A type, a colon, and a name that may have more of them."""
    assert parse_principal("User:a:b") == Principal("User", "a:b")
    assert str(Principal("User", "CN=a")) == "User:CN=a"
    for text in ("alice", ":alice", "User:", ""):
        with pytest.raises(UsageError):
            parse_principal(text)
    assert Principal("User", "a", is_token=True) == Principal("User", "a")


def test_bytes() -> None:
    """Version 0, then a flexible struct; anything else is no principal."""
    principal = Principal("User", "ä", is_token=True)
    data = encode_principal(principal)
    assert data == b"\0\0\x05User\x03\xc3\xa4\x01\0"
    found = decode_principal(data)
    assert (found, found.is_token) == (principal, True)
    for bad in (b"", b"\0", b"\0\1" + data[2:], data[:-1], data + b"\0"):
        with pytest.raises(WireError):
            decode_principal(bad)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("127.0.0.1", "127.0.0.1"),
        (b"\x7f\0\0\1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        (bytes(15) + b"\1", "0:0:0:0:0:0:0:1"),
        (b"\1\2\3", None),
        ("localhost", None),
    ],
)
def test_hosts(address: bytes | str, text: str | None) -> None:
    """IPv6 in full, without leading zeros."""
    if text is None:
        with pytest.raises(UsageError):
            host_text(address)
    else:
        assert host_text(address) == text
