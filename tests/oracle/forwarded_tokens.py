"""Requests for delegation tokens as a broker forwards them, at any controller.

Controllers give tokens to who has logged in; on a plaintext listener only an Envelope says that
somebody has. Requests name tokens by number: HMACs and ids are random, and so are times.
"""

from __future__ import annotations

from typing import Any

from kraftwire.security.principal import Principal
from tests.oracle.forwarding import Sender

_NOT_FOUND, _NOT_ALLOWED = 62, 64
_ASKED_MAX = 20_000
_TIMES = ("IssueTimestampMs", "ExpiryTimestampMs", "MaxTimestampMs", "ThrottleTimeMs")


class TokenSender:
    """Forwards requests for tokens, and knows those it was given."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._hmacs: list[bytes] = []
        self._ids: list[str] = []
        self._removed: set[Any] = set()

    def ask(self, name: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """Forward a request of the principal that it names; returns the answer without times."""
        asked = {key: value for key, value in body.items() if key not in ("principal", "by_token")}
        if "Hmac" in asked:
            number = asked["Hmac"]
            asked["Hmac"] = self._hmacs[number] if number < len(self._hmacs) else b"nothing"
        principal = Principal("User", body["principal"], body["by_token"])
        told = self._sender.forward(name, version, asked, principal)
        hmac = asked.get("Hmac")
        for _ in range(_ASKED_MAX):
            if told["ErrorCode"] != _NOT_FOUND or hmac not in self._hmacs or hmac in self._removed:
                break
            # Kafka finds a token once it has published the image with it, a moment later.
            told = self._sender.forward(name, version, asked, principal)
        if told["ErrorCode"] == 0 and asked.get("ExpiryTimePeriodMs", 0) < 0:
            self._removed.add(hmac)
        return self._told(told)

    def number(self, token_id: str) -> int:
        """The number of a token."""
        return self._ids.index(token_id)

    def _told(self, answer: dict[str, Any]) -> dict[str, Any]:
        if answer["ErrorCode"] == _NOT_ALLOWED:
            # Ours names nobody then.
            return {"ErrorCode": _NOT_ALLOWED}
        if answer.get("TokenId"):
            assert answer["IssueTimestampMs"] < answer["ExpiryTimestampMs"]
            self._ids.append(answer.pop("TokenId"))
            self._hmacs.append(answer.pop("Hmac"))
        is_set = answer["ExpiryTimestampMs"] > 0
        is_last = answer["ExpiryTimestampMs"] == answer.get("MaxTimestampMs")
        return {key: value for key, value in answer.items() if key not in _TIMES} | {
            "has a time": is_set,
            "is never renewed": is_last,
        }
