"""Delegation tokens as nodes see them that know the secret: their HMACs, and logins by them.

A token's HMAC is its password for SCRAM, in base64. It is in no record: whoever knows the secret
works it out from the token's id.

Source: Kafka's `DelegationTokenManager`, `DelegationTokenCache`.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from kraftwire.messages.delegation_token_record import DelegationTokenRecord
from kraftwire.security.scram import ITERATIONS_MIN, ScramCredential, salted_password

# Ids of removed tokens are kept until they are so many more than the others.
_REMOVED_MAX = 1000


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """The secret, the same on all nodes, and how long tokens live. The repr has no secret."""

    secret: bytes = field(repr=False)
    max_lifetime_ms: int
    expiry_ms: int
    check_interval_ms: int


class DelegationTokens:
    """Finds tokens by their HMAC, of which each is worked out once."""

    def __init__(self, settings: TokenSettings) -> None:
        self.settings = settings
        self._records: Mapping[str, DelegationTokenRecord] = {}
        self._ids: dict[bytes, str] = {}
        self._known: set[str] = set()

    def hmac(self, token_id: str) -> bytes:
        """Return the HMAC of a token."""
        return hmac.digest(self.settings.secret, token_id.encode(), "sha512")

    def find(
        self, records: dict[str, DelegationTokenRecord], wanted: bytes
    ) -> DelegationTokenRecord | None:
        """Return the token with an HMAC, None if there is none.

        `records` are all tokens by id; new ones are the last.
        """
        if records is not self._records or len(self._known) > len(records) + _REMOVED_MAX:
            self._records, self._ids, self._known = records, {}, set()
        for token_id in reversed(records):
            if token_id in self._known:
                break
            self._known.add(token_id)
            self._ids[self.hmac(token_id)] = token_id
        return records.get(self._ids.get(wanted, ""))

    def credential(self, mechanism: str, token_id: str, salt: bytes) -> ScramCredential:
        """Return a credential of a token with any salt. This costs PBKDF2."""
        password = base64.b64encode(self.hmac(token_id)).decode()
        salted = salted_password(mechanism, password, salt, ITERATIONS_MIN)
        return ScramCredential.of(mechanism, salted, salt, ITERATIONS_MIN)


def has_expired(token: DelegationTokenRecord, epoch_ms: int) -> bool:
    """Return whether a token's life is over, at a time in milliseconds since the epoch."""
    return min(token.max_timestamp, token.expiration_timestamp) < epoch_ms
