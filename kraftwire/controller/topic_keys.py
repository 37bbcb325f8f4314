"""The configuration keys of topics: types, defaults, bounds, and the keys of brokers that stand for
them.

Rule: C-CFG-9. Source: Kafka's `LogConfig`, `TopicConfig` and `ServerTopicConfigSynonyms`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from kraftwire.errors import ApiError
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import TOPIC_NAME_RULE, is_topic_name

_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1
# Returns the problem of a value, an empty text if it is valid.
Validator = Callable[[str], str]

# The longest array that Java makes.
_ARRAY_MAX = _INT_MAX - 8

# Values are strings in records; a longer one does not fit Kafka's.
_VALUE_LENGTH_MAX = 32767


class Kind(IntEnum):
    """The type of a value, as DescribeConfigs numbers it. Source: Kafka's
    `DescribeConfigsResponse.ConfigType`."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A key of a topic's configuration. `validator` is that of its values."""

    name: str
    kind: Kind
    default: str
    validator: Validator
    synonyms: tuple[str, ...] = ()


def trimmed(value: str) -> str:
    """Return a value without the spaces around it, those that Java knows: brokers read it, too."""
    return value.strip(string.whitespace)


# No number of Java's has more digits; Python refuses to read one of thousands.
_WHOLE = re.compile(r"\s*([+-]?)0*(\d{1,19})\s*", re.ASCII)


def whole_number(value: str | None) -> int | None:
    """Return the whole number that Java reads in a value; None if there is none."""
    match = _WHOLE.fullmatch(value or "")
    return int(match[1] + match[2]) if match is not None else None


def whole_within(low: int, high: int) -> Validator:
    """Return a validator for whole numbers within bounds."""

    def problem(value: str) -> str:
        number = whole_number(value)
        if number is not None and low <= number <= high:
            return ""
        return f"{value!r:.300} is not a whole number from {low} to {high}"

    return problem


def _level(low: int, high: int) -> Validator:
    """Return a validator for a compression level, or -1 for the codec's own default."""
    within = whole_within(low, high)
    return lambda value: "" if trimmed(value) == "-1" else within(value)


def one_of(*allowed: str) -> Validator:
    """Return a validator for a fixed set of values."""
    what = " or ".join(allowed)
    return lambda value: "" if trimmed(value) in allowed else f"{value!r} is not {what}"


def boolean(value: str) -> str:
    """Validate true or false."""
    is_one = trimmed(value).lower() in ("true", "false")
    return "" if is_one else f"{value!r} is neither true nor false"


# As Java reads numbers; what else Python takes for one would stop a broker.
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?\s*", re.ASCII)


def _share(value: str) -> str:
    number = _NUMBER.fullmatch(value)
    if number is None:
        return f"{value!r} is not a number"
    return "" if 0 <= float(number[1]) <= 1 else f"{value} is not from 0 to 1"


def _cleanup(value: str) -> str:
    parts = list_parts(value)
    unknown = [part for part in parts if part not in ("compact", "delete")]
    return f"{unknown[0]!r} is neither compact nor delete" if unknown else ""


def _throttled(value: str) -> str:
    parts = elements(value)
    if parts == ["*"] or all(re.fullmatch(r"\d+:\d+", part) for part in parts):
        return ""
    return f"{value!r} is neither * nor pairs partition:broker"


def list_parts(value: str) -> list[str]:
    """Return the parts of a list value, also those that are empty."""
    return [trimmed(part) for part in value.split(",")] if trimmed(value) else []


def elements(value: str) -> list[str]:
    """Return the elements of a list value."""
    return [part for part in list_parts(value) if part]


def _of(kind: Kind) -> Callable[..., TopicKey]:
    def key(name: str, default: object, validator: Validator, *synonyms: str) -> TopicKey:
        return TopicKey(name, kind, str(default), validator, synonyms)

    return key


_boolean_key, _string, _int, _long = map(_of, (Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG))
_double, _list = _of(Kind.DOUBLE), _of(Kind.LIST)

_above_0, _from_0 = whole_within(1, _LONG_MAX), whole_within(0, _LONG_MAX)
_bytes = whole_within(0, _INT_MAX)
_codecs = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_clocks = one_of("CreateTime", "LogAppendTime")
_UNCLEAN = "unclean.leader.election.enable"

# Name, default, check, and the keys of brokers that stand for it, in their order.
_KEYS = (
    _list("cleanup.policy", "delete", _cleanup, "log.cleanup.policy"),
    _int("compression.gzip.level", -1, _level(1, 9), "compression.gzip.level"),
    _int("compression.lz4.level", 9, whole_within(1, 17), "compression.lz4.level"),
    _string("compression.type", "producer", _codecs, "compression.type"),
    _int("compression.zstd.level", 3, whole_within(-131072, 22), "compression.zstd.level"),
    _long("delete.retention.ms", 86_400_000, _from_0, "log.cleaner.delete.retention.ms"),
    _boolean_key("errors.deadletterqueue.group.enable", "false", boolean),
    _long("file.delete.delay.ms", 60_000, _from_0, "log.segment.delete.delay.ms"),
    _long("flush.messages", _LONG_MAX, _above_0, "log.flush.interval.messages"),
    _long(
        "flush.ms", _LONG_MAX, _from_0,
        "log.flush.interval.ms", "log.flush.scheduler.interval.ms",
    ),
    _list("follower.replication.throttled.replicas", "", _throttled),
    _int("index.interval.bytes", 4096, _bytes, "log.index.interval.bytes"),
    _list("leader.replication.throttled.replicas", "", _throttled),
    _long("local.retention.bytes", -2, whole_within(-2, _LONG_MAX), "log.local.retention.bytes"),
    _long("local.retention.ms", -2, whole_within(-2, _LONG_MAX), "log.local.retention.ms"),
    _long("max.compaction.lag.ms", _LONG_MAX, _above_0, "log.cleaner.max.compaction.lag.ms"),
    _int(
        "max.decompressed.message.bytes", _ARRAY_MAX, whole_within(1, _ARRAY_MAX),
        "max.decompressed.message.bytes",
    ),
    _int("max.message.bytes", 1_048_588, _bytes, "message.max.bytes"),
    _long(
        "message.timestamp.after.max.ms", 3_600_000, _from_0, "log.message.timestamp.after.max.ms"
    ),
    _long(
        "message.timestamp.before.max.ms", _LONG_MAX, _from_0, "log.message.timestamp.before.max.ms"
    ),
    _string("message.timestamp.type", "CreateTime", _clocks, "log.message.timestamp.type"),
    _double("min.cleanable.dirty.ratio", 0.5, _share, "log.cleaner.min.cleanable.ratio"),
    _long("min.compaction.lag.ms", 0, _from_0, "log.cleaner.min.compaction.lag.ms"),
    _int("min.insync.replicas", 1, whole_within(1, _INT_MAX), "min.insync.replicas"),
    _boolean_key("preallocate", "false", boolean, "log.preallocate"),
    _long("remote.copy.lag.bytes", -1, whole_within(-1, _LONG_MAX), "log.remote.copy.lag.bytes"),
    _long("remote.copy.lag.ms", 0, whole_within(-1, _LONG_MAX), "log.remote.copy.lag.ms"),
    _boolean_key("remote.log.copy.disable", "false", boolean),
    _boolean_key("remote.log.delete.on.disable", "false", boolean),
    _boolean_key("remote.storage.enable", "false", boolean),
    _long("retention.bytes", -1, whole_within(-(2**63), _LONG_MAX), "log.retention.bytes"),
    _long("retention.ms", 604_800_000, whole_within(-1, _LONG_MAX), "log.retention.ms"),
    _int("segment.bytes", 1 << 30, whole_within(1 << 20, _INT_MAX), "log.segment.bytes"),
    _int("segment.index.bytes", 10_485_760, whole_within(4, _INT_MAX), "log.index.size.max.bytes"),
    _long("segment.jitter.ms", 0, _from_0, "log.roll.jitter.ms"),
    _long("segment.ms", 604_800_000, _above_0, "log.roll.ms"),
    _boolean_key(_UNCLEAN, "false", boolean, _UNCLEAN),
)  # fmt: skip

TOPIC_KEYS: dict[str, TopicKey] = {key.name: key for key in _KEYS}
# Kafka's own tests set it; it is listed nowhere.
_SEGMENT = _int("internal.segment.bytes", "", whole_within(-(2**31), _INT_MAX))
HIDDEN_KEYS = {_SEGMENT.name: _SEGMENT}
TOPIC_KEY_NAMES = frozenset(TOPIC_KEYS | HIDDEN_KEYS)
# Settings of a properties file in other units: factor to milliseconds by suffix.
_UNITS = {".ms": 1, ".minutes": 60_000, ".hours": 3_600_000}


def setting_names(key: TopicKey) -> Iterator[tuple[str, int]]:
    """Yield the keys of brokers that stand for a topic's key, and the factors of their units."""
    for synonym in key.synonyms:
        if not synonym.endswith(".ms"):
            yield synonym, 1
            continue
        for suffix, factor in _UNITS.items():
            yield synonym.removesuffix(".ms") + suffix, factor


# Keys of a properties file that topics inherit from, and the defaults of new topics.
SETTINGS = frozenset(name for key in _KEYS for name, _ in setting_names(key)) | {
    "num.partitions",
    "default.replication.factor",
}


def setting_errors(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of a properties file whose values topics cannot have, and why."""
    errors = {}
    for key in _KEYS:
        for name, factor in setting_names(key):
            value = settings.get(name)
            if value is None:
                continue
            in_unit = whole_within(-1, _LONG_MAX // factor)
            problem = in_unit(value) if factor > 1 else key.validator(value)
            if problem:
                errors[name] = problem
    return errors


def check_name(name: str) -> None:
    """Check a topic's name. Raises: ApiError INVALID_TOPIC_EXCEPTION (C-TOP-3, C-CFG-7)."""
    if not is_topic_name(name):
        text = f"{name!r:.300} is not {TOPIC_NAME_RULE}"
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)


def check_length(name: str, value: str) -> None:
    """Check the length of a value. Raises: ApiError INVALID_CONFIG naming the key (C-CFG-6)."""
    if len(value.encode("utf-16-le")) // 2 > _VALUE_LENGTH_MAX:
        raise invalid_config(f"the value of {name} is longer than {_VALUE_LENGTH_MAX} characters")


def check_value(name: str, value: str, validator: Validator) -> None:
    """Check a value. Raises: ApiError INVALID_CONFIG naming the key."""
    problem = validator(value)
    if problem:
        raise invalid_config(f"{name}: {problem}")


def invalid_config(text: str) -> ApiError:
    """Return the refusal of a configuration."""
    return ApiError(ErrorCode.INVALID_CONFIG, text)
