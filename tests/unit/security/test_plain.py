"""PLAIN, both sides (SEC-S20)."""

from __future__ import annotations

import pytest

from kraftwire.security.credentials import PasswordCredentials
from kraftwire.security.errors import Refused, SaslError
from kraftwire.security.plain import PlainClient, PlainServer

USERS = {"alice": "secret", "ä": "ö", "empty": ""}


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0secret", ""),
        (b"alice\0alice\0secret", ""),
        ("\0ä\0ö".encode(), ""),
        (b"bob\0alice\0secret", "Client requested an authorization id that is different"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0bob\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0\xff\xfe", "Authentication failed: Invalid username or password"),
    ],
)
def test_the_server(token: bytes, text: str) -> None:
    """Three parts; an unknown user and a wrong password look the same."""
    server = PlainServer(USERS.get)
    if not text:
        assert server.answer(token) == b""
        assert server.name in USERS
        return
    with pytest.raises(Refused, match=text) as caught:
        server.answer(token)
    assert caught.value.is_public
    assert server.name is None


def test_the_client() -> None:
    """One token; a server that goes on is none of PLAIN."""
    client = PlainClient(PasswordCredentials("alice", "secret"))
    assert client.first() == b"\0alice\0secret"
    assert client.answer(b"") is None
    with pytest.raises(SaslError):
        client.answer(b"more")
