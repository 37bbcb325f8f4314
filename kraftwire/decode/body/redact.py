"""Secrets in messages and records: where they are, and what is shown in their place.

Owns the rules, by name of the message and path of the field, and applies them to the JSON form.
Which bytes of a frame these fields are is worked out by `ranges`.

What counts as a secret: SASL tokens in both directions, salts and keys of SCRAM credentials, HMACs
of delegation tokens, and values of configuration keys that hold passwords, private keys or tokens.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Any

from kraftwire.records.rows import RecordRows

__all__ = [
    "REDACTED",
    "holds_secrets",
    "is_secret_config",
    "may_carry_secrets",
    "redact",
    "redact_batch",
    "secret_paths",
]

# Neither valid base64 nor a legal value of any field that it can stand for.
REDACTED = "[redacted]"

Rule = tuple[str, Callable[[dict[str, Any]], bool] | None]

# Words that make a configuration key secret, wherever they stand in it.
_SECRET_WORD = re.compile(
    r"(?:^|[._-])(?:password|passwd|passphrase|pwd|secret|secrets|token|credential|credentials"
    r"|jaas)(?:$|[._-])",
    re.IGNORECASE,
)
# Keys that hold a private key or a certificate in clear.
_SECRET_END = re.compile(
    r"(?:^|[._-])(?:keystore\.key|certificate\.chain|truststore\.certificates"
    r"|(?:secret|master|private|api|access|account|encryption|signing|hmac)[._-]?key)$",
    re.IGNORECASE,
)
# Messages that carry other messages as bytes.
_CARRIERS = frozenset({"EnvelopeRequest", "EnvelopeResponse"})

# What is said about a secret rather than the secret itself.
_HARMLESS_END = re.compile(
    r"[._-](?:algorithm|class|class\.name|count|enable|enabled|file|iterations|length|location"
    r"|ms|path|provider|requests|seconds|size|type|uri|url|name)$",
    re.IGNORECASE,
)


def is_secret_config(name: object) -> bool:
    """Whether the value of a configuration key is to be hidden.

    Shape: broader than Kafka's own PASSWORD type, because plugins bring keys of their own.
    """
    text = str(name)
    if _SECRET_END.search(text):
        return True
    return bool(_SECRET_WORD.search(text)) and not _HARMLESS_END.search(text)


def _is_secret_entry(entry: dict[str, Any]) -> bool:
    return bool(entry.get("isSensitive")) or is_secret_config(entry.get("name", ""))


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

# Type ids of the metadata records above, as they stand behind the frame version of a record.
_SECRET_RECORD_TYPES = frozenset({4, 11})
_RECORD_HEAD_CHARACTERS = 4


def holds_secrets(name: str) -> bool:
    """Whether a message or record of this name can hold a secret."""
    return name in _RULES


def may_carry_secrets(name: str) -> bool:
    """Whether undecoded bytes of a message may be a secret: its own, or those of one inside it."""
    return holds_secrets(name) or name in _CARRIERS


def secret_paths(name: str, data: dict[str, Any]) -> list[str]:
    """Paths of the secrets in a message's JSON form, such as ``tokens[0].hmac``.

    Shape: a value that is null or empty is no secret.
    """
    return [path for path, _, _ in _secrets(name, data)]


def redact(name: str, data: dict[str, Any]) -> list[str]:
    """Replace the secrets in a message's JSON form; returns the paths of what was replaced."""
    found = list(_secrets(name, data))
    for _, holder, key in found:
        holder[key] = REDACTED
    return [path for path, _, _ in found]


def redact_batch(batch: dict[str, Any], *, is_metadata: bool) -> bool:
    """Replace the secrets in the records of a batch's JSON object; tells whether there were any.

    Shape: the value of such a record is replaced as a whole, because it is the same bytes again;
    so is, in the metadata log, one that looks like a secret record but could not be decoded.
    """
    records = batch.get("records") or ()
    if isinstance(records, RecordRows):
        if not records.is_decoded and not is_metadata:
            return False
        records.change(lambda record: _redact_record(record, is_metadata))
        return any(record["value"] == REDACTED for record in records if "value" in record)
    found = False
    for record in records:
        found |= _redact_record(record, is_metadata)
    return found


def _redact_record(record: dict[str, Any], is_metadata: bool) -> bool:
    is_secret = _has_secrets(record, is_metadata)
    if is_secret:
        record["value"] = REDACTED
    return is_secret


def _has_secrets(record: dict[str, Any], is_metadata: bool) -> bool:
    """Replaces the secrets in what a record means; tells whether its bytes hold any."""
    decoded = record.get("decoded")
    if decoded is None:
        return is_metadata and _looks_secret(record.get("value"))
    data = decoded.get("data")
    return isinstance(data, dict) and bool(redact(str(decoded.get("type")), data))


def _looks_secret(value: object) -> bool:
    """Whether a value that could not be decoded starts like a metadata record that is secret."""
    if not isinstance(value, str):
        return False
    try:
        head = base64.b64decode(value[:_RECORD_HEAD_CHARACTERS])
    except (binascii.Error, ValueError):
        return False
    return len(head) > 1 and head[0] <= 1 and head[1] in _SECRET_RECORD_TYPES


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
