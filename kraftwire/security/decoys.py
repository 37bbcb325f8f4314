"""Credentials of SCRAM for names that nobody has, so that a login does not say who exists.

A decoy follows from a secret that all nodes of a cluster share, so that a name gets the same one
everywhere and for ever. Its salt and iterations have a form that users have: each form is drawn as
often as it is among them. Rule: SEC-S33.

Source: Kafka's `ScramFormatter.secureRandomString` for the salts of Kafka's tools.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.security.scram import ITERATIONS_DEFAULT, ScramCredential

# The bits of a salt of Kafka's tools, and the bytes of which they are taken.
_TEXT_BITS = 130
SALT_RANDOM_BYTES = 17
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
# Nearly all have 25 or 26 digits; one in 60 million has fewer than 20.
_TEXT = re.compile(rb"[1-9a-z][0-9a-z]{19,25}")


class CredentialForm(NamedTuple):
    """What a first answer shows of a credential; `salt_length` is 0 for a salt of Kafka's tools."""

    iterations: int
    salt_length: int


# The form that Kafka's tools make unless other iterations are given.
_USUAL = CredentialForm(ITERATIONS_DEFAULT, 0)


def salt_of(random: bytes) -> bytes:
    """Return the salt that Kafka's tools would make of 17 random bytes: 130 bits in base 36."""
    number = int.from_bytes(random) & ((1 << _TEXT_BITS) - 1)
    digits = bytearray()
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits)) or b"0"


def credential_of(record: UserScramCredentialRecord) -> ScramCredential:
    """Return the credential that a record holds."""
    return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)


class ScramIndex:
    """The committed credentials by user and mechanism, and how many have each form."""

    def __init__(self) -> None:
        self._credentials: dict[tuple[str, int], ScramCredential] = {}
        self._forms: dict[int, Counter[CredentialForm]] = {}

    def __len__(self) -> int:
        return len(self._credentials)

    def find(self, name: str, mechanism: int) -> ScramCredential | None:
        """Return the credential of a user; `mechanism` is its number in records."""
        return self._credentials.get((name, mechanism))

    def put(self, name: str, mechanism: int, credential: ScramCredential) -> None:
        """Add or replace a credential."""
        self.remove(name, mechanism)
        self._credentials[name, mechanism] = credential
        self._forms.setdefault(mechanism, Counter())[_form_of(credential)] += 1

    def remove(self, name: str, mechanism: int) -> None:
        """Remove a credential, if there is one."""
        credential = self._credentials.pop((name, mechanism), None)
        if credential is not None:
            forms, form = self._forms[mechanism], _form_of(credential)
            forms[form] -= 1
            if not forms[form]:
                del forms[form]

    def forms(self, mechanism: int) -> Mapping[CredentialForm, int]:
        """Return the number of credentials of a mechanism by their form."""
        return self._forms.get(mechanism, {})


def _form_of(credential: ScramCredential) -> CredentialForm:
    salt = credential.salt
    is_text = _TEXT.fullmatch(salt) is not None and int(salt, 36) < 1 << _TEXT_BITS
    return CredentialForm(credential.iterations, 0 if is_text else len(salt))


@dataclass(frozen=True, slots=True)
class Decoys:
    """Makes credentials that nobody has. The repr has no secret.

    `forms` are the numbers of users by the form of their credentials.
    """

    secret: bytes = field(repr=False)
    forms: Mapping[CredentialForm, int] = field(default_factory=dict)

    def user(self, mechanism: str, name: str) -> ScramCredential:
        """Return the decoy for the name of a user.

        It changes only with the shares of the forms, and then as with a new password, salt
        included.
        """
        return self._credential(mechanism, f"user/{mechanism}/{name}", self.forms)

    def token(self, mechanism: str, token_id: str) -> ScramCredential:
        """Return the decoy for the id of a delegation token; all tokens have one form."""
        return self._credential(mechanism, f"token/{mechanism}/{token_id}", {})

    def _credential(
        self, mechanism: str, name: str, forms: Mapping[CredentialForm, int]
    ) -> ScramCredential:
        iterations, salt_length = _drawn(self._digest(name), forms)
        seed = self._digest(f"{iterations}/{salt_length}/{name}")
        salt = hashlib.shake_256(seed).digest(salt_length or SALT_RANDOM_BYTES)
        if not salt_length:
            salt = salt_of(salt)
        return ScramCredential.of(mechanism, seed, salt, iterations)

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self.secret, text.encode("utf-8", "replace"), "sha512")


def _drawn(digest: bytes, forms: Mapping[CredentialForm, int]) -> CredentialForm:
    """Return a form, each for as large a part of all digests as it has of the users.

    Few digests get another form when a number changes: those beside the borders between the forms.
    """
    position = int.from_bytes(digest[:8]) * sum(forms.values()) >> 64
    for form, count in sorted(forms.items()):
        if position < count:
            return form
        position -= count
    return _USUAL
