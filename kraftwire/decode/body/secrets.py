"""Finds and hides the secrets in messages, configurations and records.

Owns two rules: which fields of a message are secret, by its name and the field's path; and which
records are metadata with keys and passwords, by their shape. `secret_names` says which entries of a
configuration are, `hidden_ranges` which bytes of a frame these fields are.

What counts as a secret: SASL tokens in both directions, salts and keys of SCRAM credentials, HMACs
of delegation tokens, and values of configuration keys that hold passwords, private keys or tokens,
also where an error text quotes them.
A segment that was copied elsewhere, or a frame with the id of a topic without a known name, may
hold records of the metadata log without saying so.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kraftwire import messages
from kraftwire.controller.topic_keys import TOPIC_KEYS
from kraftwire.decode.limits import JSON_ROWS_FREE
from kraftwire.errors import WireError
from kraftwire.protocol.config_resources import BROKER_RESOURCE
from kraftwire.protocol.kafka_keys import is_kafka_key
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.header import HEADER_SIZE
from kraftwire.records.json_form import RecordRows, batch_to_json, decode_record
from kraftwire.records.messages import family_of_topic
from kraftwire.records.reader import Batch, BatchReader
from kraftwire.records.record import Record
from kraftwire.security.secret_names import is_secret_config, is_secret_value

# Neither valid base64 nor a legal value of any field that it can stand for.
REDACTED = "[redacted]"

# The path of a field, and when it is secret, by the object that has it and the one around that.
# None is always.
Rule = tuple[str, Callable[[dict[str, Any], dict[str, Any]], bool] | None]

# Messages that carry other messages as bytes, and the fields with these in the JSON form.
_CARRIERS = {"EnvelopeRequest": "requestData", "EnvelopeResponse": "responseData"}




def is_secret_setting(name: str, value: object, *, resource_type: int = 0) -> bool:
    """Whether the value of a configuration key is to be hidden.

    As in Kafka, a key of brokers that it does not know may be a password: plugins have their own.
    Source: `KafkaConfigSchema.isSensitive`.
    """
    if is_secret_config(name) or is_secret_value(value):
        return True
    return resource_type == BROKER_RESOURCE and not (is_kafka_key(name) or name in TOPIC_KEYS)


def _is_secret_entry(entry: dict[str, Any], outer: dict[str, Any]) -> bool:
    if entry.get("isSensitive") or outer.get("isSensitive"):
        return True
    # A server that says what is sensitive knows the keys of its plugins.
    is_said = "isSensitive" in entry or "isSensitive" in outer
    resource_type = 0 if is_said else outer.get("resourceType", 0)
    return is_secret_setting(
        str(entry.get("name", "")), entry.get("value"), resource_type=resource_type
    )


# How Kafka quotes a value that it refuses, and the key after it.
_REFUSED_KEY = re.compile(r"\bfor configuration ([\w.-]+)")


def _quotes_secret(holder: dict[str, Any], _: dict[str, Any]) -> bool:
    """Whether an error text has a value in it that would be hidden in its own place."""
    text = holder["errorMessage"]
    return is_secret_value(text) or any(map(is_secret_config, _REFUSED_KEY.findall(text)))


_RULES: dict[str, tuple[Rule, ...]] = {
    "AlterConfigsRequest": (("resources[].configs[].value", _is_secret_entry),),
    "AlterConfigsResponse": (("responses[].errorMessage", _quotes_secret),),
    "AlterUserScramCredentialsRequest": (
        ("upsertions[].salt", None),
        ("upsertions[].saltedPassword", None),
    ),
    "ConfigRecord": (("value", _is_secret_entry),),
    "CreateDelegationTokenResponse": (("hmac", None),),
    "CreateTopicsRequest": (("topics[].configs[].value", _is_secret_entry),),
    "CreateTopicsResponse": (
        ("topics[].errorMessage", _quotes_secret),
        ("topics[].configs[].value", _is_secret_entry),
    ),
    "DescribeConfigsResponse": (
        ("results[].errorMessage", _quotes_secret),
        ("results[].configs[].value", _is_secret_entry),
        ("results[].configs[].synonyms[].value", _is_secret_entry),
    ),
    "DescribeDelegationTokenResponse": (("tokens[].hmac", None),),
    "ExpireDelegationTokenRequest": (("hmac", None),),
    "IncrementalAlterConfigsRequest": (("resources[].configs[].value", _is_secret_entry),),
    "IncrementalAlterConfigsResponse": (("responses[].errorMessage", _quotes_secret),),
    "RenewDelegationTokenRequest": (("hmac", None),),
    "SaslAuthenticateRequest": (("authBytes", None),),
    "SaslAuthenticateResponse": (("authBytes", None),),
    "UserScramCredentialRecord": (
        ("salt", None),
        ("storedKey", None),
        ("serverKey", None),
    ),
}


_NAME = re.compile(r"[\w.-]+")
_NEAR_BYTES = 1024 * 1024


def may_be_secret(content: bytes, at: int = 0) -> bool:
    """Whether bytes that were not decoded name something secret, or hold it.

    Of many what lies near the position of which something is shown.
    """
    near = content[max(0, at - _NEAR_BYTES) : at + _NEAR_BYTES]
    text = near.decode("latin-1")
    names = (match[0] for match in _NAME.finditer(text))
    return is_secret_value(text) or any(map(is_secret_config, names))


def holds_secrets(name: str) -> bool:
    """Whether a message or record of this name can hold a secret."""
    return name in _RULES


def may_carry_secrets(name: str) -> bool:
    """Whether undecoded bytes of a message may be a secret: its own, or those of one inside it."""
    return holds_secrets(name) or name in _CARRIERS


def redact_carried(name: str, data: dict[str, Any]) -> list[str]:
    """Replace the bytes of a carried message that was not decoded; returns the paths of what was
    replaced."""
    field = _CARRIERS.get(name)
    if field is None or not data.get(field):
        return []
    data[field] = REDACTED
    return [field]


# Responses that hold the secret of a token. No other message looks like one.
_TOKEN_RESPONSES = ("CreateDelegationTokenResponse", "DescribeDelegationTokenResponse")
_RESPONSE_HEADER_SIZE = 4
# A response with more tokens than this is not recognised once it is damaged; an HMAC of Kafka's has
# 64 bytes, and after it there are at most a few fields of one token.
_TOKEN_RESPONSE_SIZE_MAX = 64 * 1024
_HMAC_SIZE_MAX = 512
_DAMAGED_TAIL = 16


def is_damaged_token_response(payload: bytes) -> bool:
    """Return whether a payload may be a delegation token response whose end is missing or wrong."""
    if len(payload) > _TOKEN_RESPONSE_SIZE_MAX:
        return False
    padded = payload + bytes(_HMAC_SIZE_MAX)
    return bool(_token_response(padded, len(payload) - _DAMAGED_TAIL, len(padded)))


def token_response_in(payload: bytes) -> str:
    """Return the name of the response with a token, of delegation or of a login, that a payload is
    as a whole, or "".

    For responses that do not fit the request they are paired with: damage, or a wrong correlation
    id, must not show the token.
    """
    names = (*_TOKEN_RESPONSES, "SaslAuthenticateResponse")
    return _token_response(payload, len(payload), len(payload), names)


def _token_response(
    payload: bytes, first_end: int, last_end: int, names: Iterable[str] = _TOKEN_RESPONSES
) -> str:
    """Return the name of the response that a payload begins with and that ends in a range of
    positions, or ""."""
    for name in names:
        cls = messages.find(name)
        for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
            start = _RESPONSE_HEADER_SIZE
            if version >= messages.API_FLEXIBLE[cls.API_KEY]:
                start += 1  # no tagged fields in the header
            found = cls.try_decode(payload, version, start) if len(payload) >= start else None
            if found is None:
                continue
            message, end = found
            if first_end <= end <= last_end and secret_paths(name, message.to_json(version)):
                return name
    return ""


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
        for where, holder, around in _holders(data, outer, data, ""):
            if holder.get(key) and (condition is None or condition(holder, around)):
                yield f"{where}{key}", holder, key


def _holders(
    data: dict[str, Any], outer: list[str], around: dict[str, Any], path: str
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The objects at the end of a path of arrays: own path and a dot, object, the one around it."""
    if not outer:
        yield path, data, around
        return
    key = outer[0].removesuffix("[]")
    for index, each in enumerate(data.get(key) or ()):
        yield from _holders(each, outer[1:], data, f"{path}{key}[{index}].")


_METADATA = "metadata"
_FRAME_VERSIONS = (0, 1, 2)
# Values of a schema registry begin with 0; Kafka writes 1, and a later one may write 2.
_KAFKA_FRAME_VERSIONS = (1, 2)
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
# How secret records of the metadata log begin, of whatever topic they are said to be.
_SECRET_RECORD = re.compile(
    b"|".join(re.escape(head) + b"[\\x00-\\x03]" for head in SECRET_HEADS if head[0])
)
# Versions that a schema may have some day.
_VERSION_MAX = 3


def is_secret_record(value: bytes | memoryview | None, *, is_metadata: bool) -> bool:
    """Whether the value of a record is a metadata record with secrets in it.

    A value that cannot be decoded counts as such a record if it begins like one; in the metadata
    log also in a frame version of the future, elsewhere only with a frame version and a version
    that Kafka may write.
    """
    if not value:
        return False
    is_new = is_metadata and value[0] not in _FRAME_VERSIONS
    if not (is_new or bytes(value[:2]).startswith(SECRET_HEADS)):
        return False
    try:
        decoded = decode_record(Record(0, 0, None, bytes(value)), _METADATA, is_control=False)
    except WireError:
        is_likely = (
            value[0] in _KAFKA_FRAME_VERSIONS and len(value) > 2 and value[2] <= _VERSION_MAX
        )
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
    if not isinstance(value, str) or not (is_metadata or value.startswith(_SECRET_TEXTS)):
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


def may_be_metadata(data: bytes) -> bool:
    """Whether records of the metadata log may be in a payload that was not decoded."""
    if METADATA_TOPIC_ID in data or METADATA_TOPIC.encode() in data:
        return True
    return _SECRET_RECORD.search(data) is not None


def secret_ranges(data: memoryview | bytes, topic: str | None) -> Iterator[tuple[int, int]]:
    """The ranges to hide in the records of a topic, None if its name is unknown."""
    family = None if topic is None else family_of_topic(topic)
    # Records of a topic without a known name may be those of the metadata log.
    is_metadata = topic is None or family == _METADATA
    reader = BatchReader(data)
    while True:
        try:
            for batch in reader:
                if has_secret_records(batch, family, is_metadata=is_metadata):
                    yield batch.position + HEADER_SIZE, batch.position + batch.size
            break
        except WireError:
            # Half a batch at the start of a slice may hold anything.
            start = reader.position
            end = start + reader.resume()
            if is_metadata:
                yield start, end
    if reader.remaining and is_metadata:
        yield reader.position, len(data)
