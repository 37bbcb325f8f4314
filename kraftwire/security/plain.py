"""PLAIN: user and password in one token; both sides (SEC-S20).

Source: `PlainSaslServer`; RFC 4616.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from kraftwire.security.credentials import PasswordCredentials
from kraftwire.security.errors import PROTOCOL, Refused, SaslError

# Another NUL after the third part makes a fourth; Kafka counts no further.
_PARTS_MAX = 4
_PARTS = 3


class PlainClient:
    """The client's side: one token, which an empty one answers."""

    is_complete = False

    def __init__(self, credentials: PasswordCredentials) -> None:
        self._credentials = credentials

    def first(self) -> bytes:
        """Return the only token: no authorization id, user, password."""
        self.is_complete = True
        return f"\0{self._credentials.username}\0{self._credentials.password}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """Take the server's last token. Raises: SaslError: it has to be empty."""
        if challenge:
            raise SaslError(PROTOCOL, "the server continues a login by PLAIN, which has one step")
        return None


class PlainServer:
    """The server's side; `password_of` returns the password of a user, None for unknown ones."""

    lifetime_end_ms: int | None = None
    is_token = False

    def __init__(self, password_of: Callable[[str], str | None]) -> None:
        self._password_of = password_of
        self.name: str | None = None

    def answer(self, token: bytes) -> bytes:
        """Check the client's only token; afterwards `name` is the user.

        Raises: Refused with Kafka's text; an unknown user and a wrong password look the same, and
        take the same time.
        """
        parts = token.decode("utf-8", "replace").split("\0", _PARTS_MAX)[:_PARTS_MAX]
        if len(parts) != _PARTS:
            problem = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            raise Refused(problem, is_public=True)
        authorization_id, username, password = parts
        for what, value in (("username", username), ("password", password)):
            if not value:
                raise Refused(f"Authentication failed: {what} not specified", is_public=True)
        expected = self._password_of(username)
        is_same = hmac.compare_digest(
            password.encode("utf-8", "replace"), (expected or "").encode("utf-8", "replace")
        )
        if expected is None or not is_same:
            raise Refused("Authentication failed: Invalid username or password", is_public=True)
        if authorization_id not in ("", username):
            different = "Client requested an authorization id that is different from username"
            raise Refused(f"Authentication failed: {different}", is_public=True)
        self.name = username
        return b""
