"""Logins of clients: they pass untouched, a capture gets none of them, Kerberos does not pass."""

from __future__ import annotations

import pytest

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.proxy.events import Say, Send
from kraftwire.wire.frame import frame
from tests.support.proxy.layers import layer, request, response
from tests.support.proxy.playbook import (
    Playbook,
    client,
    of_client,
    of_upstream,
    to_client,
    to_upstream,
    upstream,
)

SECRET = b"\0alice\0secret"


@pytest.mark.parametrize(("mechanism", "count"), [("PLAIN", 1), ("SCRAM-SHA-256", 2)])
def test_bare_tokens_pass_after_the_oldest_handshake(mechanism: str, count: int) -> None:
    """They have no header; what follows them has one again, and is read for addresses."""
    asked = request("SaslHandshake", 0, 1, mechanism=mechanism)
    answered = response("SaslHandshake", 0, 1, mechanisms=[mechanism])
    book = (
        Playbook(layer(records=True))
        >> client(asked) << of_client(asked) << to_upstream(asked)
        >> upstream(answered) << of_upstream(answered) << to_client(answered)
    )  # fmt: skip
    hidden = frame(bytes(len(SECRET)))
    for _ in range(count):
        book = (
            book
            >> client(frame(SECRET)) << of_client(hidden) << to_upstream(frame(SECRET), hidden)
            >> upstream(frame(b"")) << of_upstream(frame(b"")) << to_client(frame(b""), frame(b""))
        )  # fmt: skip
    asked = request("FindCoordinator", 0, 2, key="g")
    answered = response("FindCoordinator", 0, 2, node_id=5, host="b", port=9092)
    rewritten = response("FindCoordinator", 0, 2, node_id=5, host="proxy.test", port=20_005)
    assert (
        book
        >> client(asked) << of_client(asked) << to_upstream(asked)
        >> upstream(answered) << of_upstream(answered) << to_client(rewritten)
    )  # fmt: skip


@pytest.mark.parametrize("version", [0, 1, 2])
def test_credentials_stay_out_of_a_capture(version: int) -> None:
    """The frames are there, with zeros in place of what logs in, on both sides."""
    asked = request("SaslAuthenticate", version, 1, auth_bytes=SECRET)
    shown = request("SaslAuthenticate", version, 1, auth_bytes=bytes(len(SECRET)))
    answered = response("SaslAuthenticate", version, 1, auth_bytes=b"v=proof")
    hidden = response("SaslAuthenticate", version, 1, auth_bytes=bytes(7))
    assert (
        Playbook(layer(records=True))
        >> client(asked) << of_client(shown) << to_upstream(asked, shown)
        >> upstream(answered) << of_upstream(hidden) << to_client(answered, hidden)
    )  # fmt: skip


def test_a_login_passes_as_it_is_without_a_capture() -> None:
    """In the pieces in which it comes."""
    asked = request("SaslAuthenticate", 2, 1, auth_bytes=SECRET)
    assert (
        Playbook(layer())
        >> client(asked[:20]) << to_upstream(asked[:20])
        >> client(asked[20:]) << to_upstream(asked[20:])
    )  # fmt: skip


@pytest.mark.parametrize("version", [0, 1])
def test_kerberos_is_refused_with_the_reason(version: int) -> None:
    """The client learns which other mechanisms there are."""
    asked = request("SaslHandshake", version, 1, mechanism="GSSAPI")
    answered = response("SaslHandshake", version, 1, mechanisms=["GSSAPI", "PLAIN"])
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    refused = response("SaslHandshake", version, 1, error_code=code, mechanisms=["PLAIN"])
    tested = layer()
    assert Playbook(tested) >> client(asked) << to_upstream(asked)
    said, sent = tested.handle(upstream(answered), 0.0)
    assert isinstance(said, Say)
    assert "its ticket is for the host that it connects to" in said.text
    assert sent == to_client(refused)
    assert isinstance(sent, Send)
