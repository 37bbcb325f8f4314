"""Addresses whose hosts nobody knows."""

from __future__ import annotations

import socket

import pytest
import trio

from kraftwire.client import Admin
from kraftwire.errors import ApiError, UsageError

_ADDRESSES = "one.invalid:9093,two.invalid:9094"


def _fail(monkeypatch: pytest.MonkeyPatch, number: int, *first: OSError) -> list[str]:
    """Let looking up any name fail, after other failures; returns the names that were asked for."""
    asked, failures = list[str](), [*first]

    async def open_tcp_stream(host: str, _: int) -> trio.SocketStream:
        asked.append(host)
        raise failures.pop(0) if failures else socket.gaierror(number, "Name or service not known")

    monkeypatch.setattr(trio, "open_tcp_stream", open_tcp_stream)
    return asked


def test_hosts_that_do_not_exist_are_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped name was looked up for a minute; Kafka's client ends at once."""
    asked = _fail(monkeypatch, socket.EAI_NONAME)
    with pytest.raises(UsageError) as caught:
        Admin(bootstrap_controllers=_ADDRESSES).describe_quorum()
    assert asked == ["one.invalid", "two.invalid"]
    assert str(caught.value) == (
        "no host of the given addresses is known: one.invalid:9093: Name or service not known, "
        "two.invalid:9094: Name or service not known"
    )


def test_names_that_no_host_can_have_are_not_asked_for_again() -> None:
    """They were tried for a minute, though no name server was asked."""
    with pytest.raises(UsageError, match=r"a\.\.b:9093: not a valid host name"):
        Admin(bootstrap_controllers="a..b:9093").describe_quorum()


def test_names_that_were_known_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch of hours, and a stream, ended when their name server lost the names for a moment."""
    refused = ConnectionRefusedError()
    asked = _fail(monkeypatch, socket.EAI_NONAME, refused)
    for _ in range(2):
        admin = Admin(bootstrap_controllers="once:9093", timeout_s=0.1, retry_backoff_s=0.001)
        with pytest.raises(ApiError):
            admin.describe_quorum()
    assert len(asked) > 2


@pytest.mark.parametrize("number", [socket.EAI_AGAIN, socket.EAI_SYSTEM])
def test_a_name_server_that_does_not_answer_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """It may be back in a moment."""
    asked = _fail(monkeypatch, number)
    admin = Admin(bootstrap_controllers=_ADDRESSES, timeout_s=0.1, retry_backoff_s=0.001)
    with pytest.raises(ApiError):
        admin.describe_quorum()
    assert len(asked) > 2
