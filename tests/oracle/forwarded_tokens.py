"""Requests for delegation tokens as a broker forwards them, at any controller.

Controllers give tokens to who has logged in; on a plaintext listener only an Envelope says that
somebody has. Requests name tokens by number: HMACs and ids are random.
"""

from __future__ import annotations

from typing import Any

from kraftwire.security.principal import Principal
from tests.oracle.forwarding import Sender

# DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and _AUTHORIZATION_FAILED.
_NO_RIGHT = (64, 65)
_TIMES = (
    *("IssueTimestampMs", "ExpiryTimestampMs", "MaxTimestampMs"),
    *("IssueTimestamp", "ExpirationTimestamp", "MaxTimestamp"),
)


class TokenSender:
    """Forwards requests for tokens, and knows those it was given."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._hmacs: list[bytes] = []
        self._ids: list[str] = []

    def ask(self, name: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """Forward a request of the principal that it names; returns the answer."""
        asked = {key: value for key, value in body.items() if key not in ("principal", "by_token")}
        if "Hmac" in asked:
            number = asked["Hmac"]
            asked["Hmac"] = self._hmacs[number] if number < len(self._hmacs) else b"nothing"
        principal = Principal("User", body["principal"], body["by_token"])
        told = self._sender.forward(name, version, asked, principal)
        if told["ErrorCode"]:
            # Ours names nobody to who has no right, nor a time; it looks at rights first.
            if told["ErrorCode"] in _NO_RIGHT:
                return {"ErrorCode": _NO_RIGHT[0] if body["by_token"] else told["ErrorCode"]}
            return {key: value for key, value in told.items() if key not in _TIMES}
        if told.get("TokenId"):
            self._ids.append(told.pop("TokenId"))
            self._hmacs.append(told.pop("Hmac"))
        return self.timed(told)

    def number(self, token_id: str) -> int:
        """The number of a token."""
        return self._ids.index(token_id)

    def timed(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return an answer or a record with times since the script began."""
        base_ms = self._sender.base_ms
        return {
            key: value - base_ms if key in _TIMES and value > 0 else value
            for key, value in fields.items()
        }
