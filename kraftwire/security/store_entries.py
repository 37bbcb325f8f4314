"""What every kind of key store has: entries, and errors that say whether the password is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

WRONG_PASSWORD = "the password is wrong, or the file is damaged"


class StoreError(Exception):
    """A store or key is damaged, or the password is wrong; `is_password` tells which."""

    def __init__(self, problem: str, *, is_password: bool = False) -> None:
        self.is_password = is_password
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One entry, as Java counts them: a key with its chain, or one trusted certificate.

    `hidden_key` is an EncryptedPrivateKeyInfo, None for a trusted certificate. Units: all are DER.
    The key's own certificate comes first in `chain`, which is empty for a key without one.
    """

    alias: str
    chain: tuple[bytes, ...]
    hidden_key: bytes | None = field(default=None, repr=False)
