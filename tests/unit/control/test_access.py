"""Who may use a control interface (SEC-CONTROL): no page in a browser, nobody without the token."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.control.access import Access, RefusedError, read_token
from kraftwire.errors import UsageError
from kraftwire.transport.http_server import HttpRequest

_TOKEN = "abcdefghijklmnop"


def check(access: Access, method: str = "GET", **headers: str) -> int:
    """The status with which a request is refused; 0 for none."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        access.check(HttpRequest(method=method, path="/rules", headers=named))
    except RefusedError as error:
        return error.status
    return 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 0),
        ("LOCALHOST:19080", 0),
        ("127.0.0.1:19080", 0),
        ("127.1.2.3", 0),
        ("[::1]:19080", 0),
        ("evil.example:19080", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("127.0.0.1@evil.example", 403),
        ("localhost:19080:1", 403),
        ("192.0.2.1", 403),
        ("[::]:19080", 403),
        ("", 403),
    ],
)
def test_a_name_of_others_is_not_this_machine(host: str, status: int) -> None:
    """A page whose name was pointed at this machine sends that name."""
    assert check(Access(), host=host) == status


def test_a_request_without_a_host_is_refused() -> None:
    """HTTP/1.0 needs none."""
    assert check(Access()) == 403


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {_TOKEN}", 0),
        (f"bearer {_TOKEN}", 0),
        ("", 401),
        ("Bearer", 401),
        (f"Bearer {_TOKEN}x", 401),
        (f"Bearer {_TOKEN[:-1]}", 401),
        (f"Basic {_TOKEN}", 401),
        (_TOKEN, 401),
        ("Bearer \xe9", 401),
    ],
)
def test_a_token_is_needed_where_there_is_one(authorization: str, status: int) -> None:
    """Also from this machine; and then the name by which it was reached does not matter."""
    access = Access(_TOKEN)
    assert check(access, host="localhost", authorization=authorization) == status
    assert check(access, host="test.example", authorization=authorization) == status


def test_the_token_is_asked_for() -> None:
    """With the header that HTTP has for it, and without the token."""
    with pytest.raises(RefusedError, match="expected Bearer and the token") as caught:
        Access(_TOKEN).check(HttpRequest(method="GET", path="/", headers={}))
    assert caught.value.headers == (("WWW-Authenticate", "Bearer"),)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 0),
        ("Application/JSON; charset=utf-8", 0),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
def test_what_a_form_of_a_page_can_send_is_refused(kind: str, status: int) -> None:
    """A browser asks before it sends JSON to another site, and gets no answer to that."""
    assert check(Access(), "POST", host="localhost", content_type=kind) == status


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    """Its line end is none of it; what is wrong is said without the contents."""
    path = tmp_path / "token"
    path.write_text(f"{_TOKEN}\n")
    assert read_token(str(path)) == _TOKEN
    for text in ("", "short", f"{_TOKEN} {_TOKEN}", "\xe9" * 20, "x" * 5000):
        path.write_text(text)
        with pytest.raises(UsageError, match="expected a token: 16 characters") as caught:
            read_token(str(path))
        assert not text or text not in str(caught.value)
