"""Finds and hides the secrets in messages, configurations and records.

Owns three rules: which fields of a message are secret, by its name and the field's path; which
entries of a configuration are, by the shape of their names and values; and which records are
metadata with keys and passwords, by their shape. Which bytes of a frame these fields are is worked
out by `hidden_ranges`.

What counts as a secret: SASL tokens in both directions, salts and keys of SCRAM credentials, HMACs
of delegation tokens, and values of configuration keys that hold passwords, private keys or tokens.
The rule for configurations is broader than Kafka's own type PASSWORD: plugins, connectors and
clients bring keys of their own, and each spells them as it likes. What is only about a secret, such
as the type of a keystore, is shown. A segment that was copied elsewhere, or a frame with the id of
a topic without a known name, may hold records of the metadata log without saying so.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from kraftwire import messages
from kraftwire.decode.limits import JSON_ROWS_FREE
from kraftwire.errors import WireError
from kraftwire.records.json_form import RecordRows, batch_to_json, decode_record
from kraftwire.records.reader import Batch
from kraftwire.records.record import Record

_KNOWN_MAX = 4096
_NAME_MAX = 1024

# Words of a name: between dots, dashes and underscores, and as camel case divides it.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")

# Secret wherever they stand, also at the end of a word, as in ``dbpassword``.
_SECRET = (
    "password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials",
    "jaas",
)  # fmt: skip
_SECRET_WORDS = frozenset({"secrets", "tokens", "passwords"})
# Secret as the last word, or the last ones.
_SECRET_LAST = frozenset(
    {"assertion", "authorization", "bearer", "cookie", "creds", "hmac", "jwt", "license"}
    | {"mnemonic", "otp", "pass", "passcode", "pw", "sas", "userinfo", "userpass", "webhook"}
)
_SECRET_ENDS = frozenset(
    {
        ("access", "signature"),
        ("account", "json"),
        ("basic", "auth"),
        ("certificate", "chain"),
        ("connection", "string"),
        ("key", "pem"),
        ("keyfile", "json"),
        ("keystore", "key"),
        ("pass", "phrase"),
        ("pass", "word"),
        ("private", "pem"),
        ("truststore", "certificates"),
        ("user", "info"),
        ("webhook", "url"),
    }
)
# A key is secret after these; a key of a map, a partition or a converter is not.
_KEY_KINDS = frozenset(
    {"access", "account", "aes", "api", "auth", "cipher", "decryption", "encryption", "hmac"}
    | {"license", "master", "private", "root", "rsa", "sas", "secret", "server", "session"}
    | {"shared", "signing", "ssh", "ssl", "stored", "symmetric", "tls", "unseal", "wrapping"}
)
_KEY_WORDS = tuple(f"{kind}key" for kind in _KEY_KINDS)

# Words of facts about a secret, rather than of the secret itself.
_HARMLESS_LAST = frozenset(
    {"algorithm", "class", "count", "enable", "enabled", "file", "iterations", "length"}
    | {"location", "ms", "name", "path", "provider", "requests", "seconds", "size", "type"}
    | {"uri", "url"}
)
_HARMLESS_ENDS = frozenset({("client", "id"), ("credentials", "source")})

# Values that are secret whatever their name is: private keys, tokens, addresses, option lists and
# JSON with a password in them. Services mark their tokens by how these begin.
_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\."
    r"|://[^/\s:@]{0,256}:[^/\s@]{1,256}@"
    r"|:thin:[^/\s@]{1,256}/[^/\s@]{1,256}@"
    r"|(?:password|passwd|pwd|secret|accountkey|accesskey|accesssignature"
    r"|(?:access|auth|refresh|id)_?token|(?:api|secret|private)[_-]?key)[\"']?\s*[=:]\s*[^\s,;]"
    r"|(?:[?&;,\s]|^)(?:pass|sig|token)=[^\s,;&]"
    r"|(?:^|authorization[\"']?\s*[=:]\s*[\"']?)(?:basic|bearer)\s+[\w+/=.~-]{8}"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|sk_live_|AIza)[\w-]{16}",
    re.IGNORECASE,
)


@lru_cache(maxsize=_KNOWN_MAX)
def is_secret_config(name: str) -> bool:
    """Whether the value of a configuration key is to be hidden."""
    words = [word.lower() for word in _WORD.findall(name[-_NAME_MAX:])]
    if not words:
        return False
    last, ending = words[-1], tuple(words[-2:])
    if last in _SECRET_LAST or ending in _SECRET_ENDS or last.endswith(_KEY_WORDS):
        return True
    if last == "key" and ending[0] in _KEY_KINDS:
        return True
    if last in _HARMLESS_LAST or ending in _HARMLESS_ENDS:
        return False
    return any(word in _SECRET_WORDS or word.endswith(_SECRET) for word in words)


def is_secret_value(value: object) -> bool:
    """Whether a value is to be hidden whatever its key is."""
    return isinstance(value, str) and _SECRET_VALUE.search(value) is not None


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


_METADATA = "metadata"
_FRAME_VERSIONS = (0, 1)
# The version that Kafka writes. Values of a schema registry may begin with the other one.
_FRAME_VERSION = 1
_SECRET_TYPES = [
    number for number, name in messages.METADATA_RECORDS.items() if holds_secrets(name)
]

# How the values of metadata records begin that may be secret: frame version and type.
SECRET_HEADS = tuple(
    bytes([frame_version, number]) for frame_version in _FRAME_VERSIONS for number in _SECRET_TYPES
)
# The same in base64, whose third character has two bits of the next byte.
_SECRET_TEXTS = tuple(
    base64.b64encode(head + bytes([bits << 6])).decode()[:3]
    for head in SECRET_HEADS
    for bits in range(4)
)
# Versions that a schema may have some day.
_VERSION_MAX = 3


def is_secret_record(value: bytes | memoryview | None, *, is_metadata: bool) -> bool:
    """Whether the value of a record is a metadata record with secrets in it.

    A value that cannot be decoded counts as such a record if it begins like one; outside the
    metadata log only if Kafka may write its frame version and its version.
    """
    if value is None or not bytes(value[:2]).startswith(SECRET_HEADS):
        return False
    try:
        decoded = decode_record(Record(0, 0, None, bytes(value)), _METADATA, is_control=False)
    except WireError:
        is_likely = value[0] == _FRAME_VERSION and len(value) > 2 and value[2] <= _VERSION_MAX
        return is_metadata or is_likely
    if decoded is None:
        return False
    data = decoded.to_json()["data"]
    return isinstance(data, dict) and bool(redact(decoded.type, data))


def has_secret_records(batch: Batch, family: str | None, *, is_metadata: bool) -> bool:
    """Whether a batch holds secrets, or may, as not all of it can be read.

    `family` as of `family_of_topic`. With `is_metadata` what cannot be read may be a secret.
    """
    if family == _METADATA:
        json, problems = batch_to_json(batch, family=family, rows_max=JSON_ROWS_FREE)
        return redact_batch(json, is_metadata=True) or bool(problems)
    rows = batch.iter_salvage()
    if any(is_secret_record(row.value, is_metadata=is_metadata) for row in rows):
        return True
    return rows.damage is not None and is_metadata


def redact_batch(batch: dict[str, Any], *, is_metadata: bool) -> bool:
    """Replace the secrets in the records of a batch's JSON object; returns whether there were any.

    The value of such a record is replaced as a whole, because it is the same bytes again.
    """
    records = batch.get("records") or ()
    if isinstance(records, RecordRows):
        records.change(lambda record: _hide(record, is_metadata))
        return any(record.get("value") == REDACTED for record in records)
    found = False
    for record in records:
        found |= _hide(record, is_metadata)
    return found


def _hide(record: dict[str, Any], is_metadata: bool) -> bool:
    is_found = _redact_record(record, is_metadata)
    if is_found:
        record["value"] = REDACTED
    return is_found


def _redact_record(record: dict[str, Any], is_metadata: bool) -> bool:
    value, decoded = record.get("value"), record.get("decoded")
    is_found = False
    if decoded is not None:
        data = decoded.get("data")
        is_found = isinstance(data, dict) and bool(redact(str(decoded.get("type")), data))
        if is_metadata:
            return is_found
    if not isinstance(value, str) or not value.startswith(_SECRET_TEXTS):
        return is_found
    if not is_secret_record(_bytes(value), is_metadata=is_metadata):
        return is_found
    # Read as another family's, it may have the same bytes in other fields.
    record["decoded"] = None
    return True


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None
