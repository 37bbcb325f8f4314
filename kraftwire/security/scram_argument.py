"""Users for `storage format --add-scram`: ``SCRAM-SHA-256=[name=alice,password=secret]``.

Rule SEC-S36. Source: `ScramParser`. An error never quotes a value: it may be a password.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence

from kraftwire.errors import UsageError
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.security.credentials import SCRAM_SHA_256, SCRAM_SHA_512
from kraftwire.security.decoys import SALT_RANDOM_BYTES, salt_of
from kraftwire.security.scram import (
    ITERATIONS_DEFAULT,
    ITERATIONS_MIN,
    STORED_ITERATIONS_MAX,
    ScramCredential,
    mechanism_number,
    salted_password,
)

_DIGITS_MAX = 10
_KEYS = ("iterations", "name", "password", "salt", "saltedpassword")


def parse_scram_arguments(
    texts: Sequence[str], random: Callable[[int], bytes]
) -> tuple[UserScramCredentialRecord, ...]:
    """Read arguments; salts are made as Kafka's tools make them. Raises: UsageError.

    `random` returns so many random bytes.
    """
    return tuple(parse_scram_argument(text, salt_of(random(SALT_RANDOM_BYTES))) for text in texts)


def parse_scram_argument(text: str, salt: bytes) -> UserScramCredentialRecord:
    """Read an argument; `salt` is random, for a user without one. Raises: UsageError."""
    mechanism, equals, listed = text.strip().partition("=")
    if not equals:
        raise UsageError("--add-scram: expected MECHANISM=[name=...,password=...]")
    if mechanism not in (SCRAM_SHA_256, SCRAM_SHA_512):
        problem = f"expected {SCRAM_SHA_256} or {SCRAM_SHA_512}"
        raise UsageError(f"--add-scram: mechanism {mechanism!r} is not supported: {problem}")
    if not (listed.startswith("[") and listed.endswith("]") and len(listed) > 1):
        raise UsageError(f"--add-scram: expected {mechanism}=[...]")
    values = _values(listed[1:-1])
    if "name" not in values:
        raise UsageError("--add-scram: name is missing")
    if "salt" in values:
        salt = _decoded("salt", values["salt"])
    iterations = _iterations(values.get("iterations", str(ITERATIONS_DEFAULT)))
    if "password" in values:
        if not values["password"]:
            raise UsageError("--add-scram: password is empty: anybody could log in")
        salted = salted_password(mechanism, values["password"], salt, iterations)
    elif "saltedpassword" in values and "salt" in values:
        salted = _decoded("saltedpassword", values["saltedpassword"])
        if not salted:
            raise UsageError("--add-scram: saltedpassword is empty")
    else:
        raise UsageError("--add-scram: expected password, or saltedpassword and salt")
    credential = ScramCredential.of(mechanism, salted, salt, iterations)
    return UserScramCredentialRecord(
        name=values["name"],
        mechanism=mechanism_number(mechanism),
        salt=salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=iterations,
    )


def _values(text: str) -> dict[str, str]:
    found = {}
    for part in text.rstrip(",").split(","):
        key, equals, value = part.partition("=")
        if not equals or key not in _KEYS:
            raise UsageError(f"--add-scram: expected key=value,... with {', '.join(_KEYS)}")
        is_quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        found[key] = value[1:-1] if is_quoted else value
    return found


def _iterations(text: str) -> int:
    allowed = f"a number from {ITERATIONS_MIN} to {STORED_ITERATIONS_MAX}"
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise UsageError(f"--add-scram: iterations: expected {allowed}")
    if not ITERATIONS_MIN <= int(text) <= STORED_ITERATIONS_MAX:
        raise UsageError(f"--add-scram: iterations={text}: expected {allowed}")
    return int(text)


def _decoded(key: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise UsageError(f"--add-scram: {key}: expected base64") from None
