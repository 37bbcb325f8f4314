"""Secrets in messages and records: where they are, and what is shown in their place.

Owns the rules, by name of the message and path of the field, and applies them to the JSON form.
Which bytes of a frame these fields are is worked out by `ranges`, which configuration is secret by
`secret_names`, and which records are by `secret_records`.

What counts as a secret: SASL tokens in both directions, salts and keys of SCRAM credentials, HMACs
of delegation tokens, and values of configuration keys that hold passwords, private keys or tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kraftwire.decode.body.secret_names import is_secret_config, is_secret_value

__all__ = [
    "REDACTED",
    "holds_secrets",
    "may_carry_secrets",
    "redact",
    "secret_paths",
]

# Neither valid base64 nor a legal value of any field that it can stand for.
REDACTED = "[redacted]"

Rule = tuple[str, Callable[[dict[str, Any]], bool] | None]

# Messages that carry other messages as bytes.
_CARRIERS = frozenset({"EnvelopeRequest", "EnvelopeResponse"})


def _is_secret_entry(entry: dict[str, Any]) -> bool:
    if entry.get("isSensitive") or is_secret_config(str(entry.get("name", ""))):
        return True
    return is_secret_value(entry.get("value"))


_RULES: dict[str, tuple[Rule, ...]] = {
    "AlterConfigsRequest": (("resources[].configs[].value", _is_secret_entry),),
    "AlterUserScramCredentialsRequest": (
        ("upsertions[].salt", None),
        ("upsertions[].saltedPassword", None),
    ),
    "ConfigRecord": (("value", _is_secret_entry),),
    "CreateDelegationTokenResponse": (("hmac", None),),
    "CreateTopicsRequest": (("topics[].configs[].value", _is_secret_entry),),
    "CreateTopicsResponse": (("topics[].configs[].value", _is_secret_entry),),
    "DescribeConfigsResponse": (
        ("results[].configs[].value", _is_secret_entry),
        ("results[].configs[].synonyms[].value", _is_secret_entry),
    ),
    "DescribeDelegationTokenResponse": (("tokens[].hmac", None),),
    "ExpireDelegationTokenRequest": (("hmac", None),),
    "IncrementalAlterConfigsRequest": (("resources[].configs[].value", _is_secret_entry),),
    "RenewDelegationTokenRequest": (("hmac", None),),
    "SaslAuthenticateRequest": (("authBytes", None),),
    "SaslAuthenticateResponse": (("authBytes", None),),
    "UserScramCredentialRecord": (
        ("salt", None),
        ("storedKey", None),
        ("serverKey", None),
    ),
}


def holds_secrets(name: str) -> bool:
    """Whether a message or record of this name can hold a secret."""
    return name in _RULES


def may_carry_secrets(name: str) -> bool:
    """Whether undecoded bytes of a message may be a secret: its own, or those of one inside it."""
    return holds_secrets(name) or name in _CARRIERS


def secret_paths(name: str, data: dict[str, Any]) -> list[str]:
    """Paths of the secrets in a message's JSON form, such as ``tokens[0].hmac``.

    A value that is null or empty is no secret.
    """
    return [path for path, _, _ in _secrets(name, data)]


def redact(name: str, data: dict[str, Any]) -> list[str]:
    """Replace the secrets in a message's JSON form; returns the paths of what was replaced."""
    found = list(_secrets(name, data))
    for _, holder, key in found:
        holder[key] = REDACTED
    return [path for path, _, _ in found]


def _secrets(name: str, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every secret: its path, and the object and the key that hold it."""
    for path, condition in _RULES.get(name, ()):
        *outer, key = path.split(".")
        for where, holder in _holders(data, outer, ""):
            if holder.get(key) and (condition is None or condition(holder)):
                yield f"{where}{key}", holder, key


def _holders(
    data: dict[str, Any], outer: list[str], path: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects at the end of a path of arrays, each with its own path and a dot."""
    if not outer:
        yield path, data
        return
    key = outer[0].removesuffix("[]")
    for index, each in enumerate(data.get(key) or ()):
        yield from _holders(each, outer[1:], f"{path}{key}[{index}].")
