"""The configuration keys of groups: types, defaults, and bounds of the controller's file.

Rules: C-CFG-10. Source: Kafka's `GroupConfig`, `GroupCoordinatorConfig` and `ShareGroupConfig`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.topic_keys import (
    Kind,
    Validator,
    boolean,
    check_value,
    list_parts,
    one_of,
    trimmed,
    whole_within,
)
from kraftwire.errors import ApiError
from kraftwire.protocol.error_codes import ErrorCode

_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Number:
    """A key with a whole number. `least` and `most` are those of its type, `low` and `high` the
    defaults of the bounds in the file; None if the file has none."""

    name: str
    default: int
    least: int
    low: int | None
    high: int | None
    most: int = _INT_MAX

    def setting(self, what: str) -> str:
        """The key of the file for the default (empty), the least (min) or the largest (max)."""
        kind, _, rest = self.name.partition(".")
        if what:
            rest = rest.removeprefix("num.")
        return ".".join(part for part in ("group", kind, what, rest) if part)

    @property
    def bounds(self) -> dict[str, int]:
        """The bounds that a file may change, by `min` and `max`, with their defaults."""
        found = {"min": self.low, "max": self.high}
        return {what: bound for what, bound in found.items() if bound is not None}

    @property
    def kind(self) -> Kind:
        """The type of the value."""
        return Kind.INT if self.most == _INT_MAX else Kind.LONG


def _of_every_kind() -> Iterator[_Number]:
    for kind in ("consumer", "share", "streams"):
        yield _Number(f"{kind}.session.timeout.ms", 45_000, 1, 45_000, 60_000)
        yield _Number(f"{kind}.heartbeat.interval.ms", 5000, 1, 5000, 15_000)
        yield _Number(f"{kind}.assignment.interval.ms", 1000, 0, 0, 15_000)


_NUMBERS = (
    *_of_every_kind(),
    _Number("share.record.lock.duration.ms", 30_000, 1000, 15_000, 60_000),
    _Number("share.delivery.count.limit", 5, 2, 2, 10),
    _Number("share.partition.max.record.locks", 2000, 100, 100, 4000),
    _Number("streams.num.standby.replicas", 0, 0, None, 2),
    _Number("streams.initial.rebalance.delay.ms", 3000, 0, None, None),
    _Number("streams.task.offset.interval.ms", 60_000, 1, 15_000, None),
    _Number("streams.num.warmup.replicas", 2, 0, None, 20),
    _Number("streams.acceptable.recovery.lag", 10_000, 0, None, None, _LONG_MAX),
)
INTERNAL_GROUP_KEYS = frozenset(
    {
        "consumer.assignor.offload.enable",
        "share.assignor.offload.enable",
        "streams.acceptable.recovery.lag",
        "streams.assignor.offload.enable",
        "streams.num.warmup.replicas",
        "streams.task.offset.interval.ms",
    }
)
"""Keys that are described only where a group or the file sets them."""

# Java's form of ISO 8601; each number may have a sign.
_DURATION = re.compile(
    r"(?P<all>[-+]?)P(?=.)(?:(?P<D>[-+]?\d+)D)?"
    r"(?:T(?=.)(?:(?P<H>[-+]?\d+)H)?(?:(?P<M>[-+]?\d+)M)?(?:(?P<S>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)
_SECONDS = {"D": 86_400, "H": 3600, "M": 60, "S": 1}
_BY_DURATION = "by_duration:"
_TAGS = "streams.rack.aware.assignment.tags"
# The assignor of streams groups that Kafka has, by its name and by its class.
ASSIGNOR_KEY, _ASSIGNORS = "streams.assignor.name", "group.streams.assignors"
_STICKY = "sticky"
_STICKY_CLASS = "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"


def _reset(value: str) -> str:
    """Validate the offset at which a share group begins."""
    if value in ("earliest", "latest"):
        return ""
    match = _DURATION.fullmatch(value.removeprefix(_BY_DURATION))
    if match is not None and value.startswith(_BY_DURATION):
        parts = ((match[unit] or "0").replace(",", ".") for unit in _SECONDS)
        seconds = sum(float(part) * by for part, by in zip(parts, _SECONDS.values(), strict=True))
        if (seconds if match["all"] != "-" else -seconds) >= 0:
            return ""
    return f"{value!r:.300} is not earliest, latest or by_duration:PnDTnHnMn.nS"


def _different_names(value: str) -> str:
    """Validate a list of different names."""
    parts = list_parts(value)
    is_list = all(parts) and len(set(parts)) == len(parts)
    return "" if is_list else f"{value!r:.300} is not a list of different names"


def _assignors(value: str) -> str:
    """Validate the names of assignors."""
    return _different_names(value) if trimmed(value) else "expected the names of assignors"


def _dead_letter_topic(value: str) -> str:
    is_internal = value.startswith("__")
    return f"{value!r:.300} begins with __, as topics of Kafka's own do" if is_internal else ""


_OTHERS: Mapping[str, Validator] = {
    "consumer.assignor.offload.enable": boolean,
    "errors.deadletterqueue.copy.record.enable": boolean,
    "errors.deadletterqueue.topic.name": _dead_letter_topic,
    "share.assignor.offload.enable": boolean,
    "share.auto.offset.reset": _reset,
    "share.isolation.level": one_of("read_committed", "read_uncommitted"),
    "share.renew.acknowledge.enable": boolean,
    ASSIGNOR_KEY: lambda _: "",
    "streams.assignor.offload.enable": boolean,
    _TAGS: _different_names,
}
_TYPES: Mapping[str, Validator] = {
    **_OTHERS,
    **{key.name: whole_within(key.least, key.most) for key in _NUMBERS},
}
_DEFAULTS = {
    "consumer.assignor.offload.enable": (Kind.BOOLEAN, "true"),
    "errors.deadletterqueue.copy.record.enable": (Kind.BOOLEAN, "false"),
    "errors.deadletterqueue.topic.name": (Kind.STRING, ""),
    "share.assignor.offload.enable": (Kind.BOOLEAN, "true"),
    "share.auto.offset.reset": (Kind.STRING, "latest"),
    "share.isolation.level": (Kind.STRING, "read_uncommitted"),
    "share.renew.acknowledge.enable": (Kind.BOOLEAN, "true"),
    ASSIGNOR_KEY: (Kind.STRING, _STICKY),
    "streams.assignor.offload.enable": (Kind.BOOLEAN, "true"),
    _TAGS: (Kind.LIST, ""),
}
# The keys of the file that stand for these keys, and the checks of their values.
_INHERITED: Mapping[str, tuple[str, Validator]] = {
    ASSIGNOR_KEY: (_ASSIGNORS, _assignors),
    _TAGS: (f"group.{_TAGS}", _different_names),
    **{
        f"{kind}.assignor.offload.enable": (f"group.{kind}.assignor.offload.enable", boolean)
        for kind in ("consumer", "share", "streams")
    },
}
_SETTINGS: Mapping[str, Validator] = {
    **{
        key.setting(what): whole_within(0, key.most)
        for key in _NUMBERS
        for what in ("", *key.bounds)
    },
    **dict(_INHERITED.values()),
}
GROUP_SETTINGS = frozenset(_SETTINGS)
"""Keys of a properties file that groups inherit from, and that bound what they may have."""
GROUP_KEY_NAMES = frozenset(_TYPES)


def group_keys() -> Iterator[tuple[str, Kind, str, str]]:
    """Yield the keys with their kinds, defaults, and the keys of the file for the defaults."""
    for key in _NUMBERS:
        yield key.name, key.kind, str(key.default), key.setting("")
    for name, (kind, default) in _DEFAULTS.items():
        yield name, kind, default, _INHERITED[name][0] if name in _INHERITED else name


def group_setting_errors(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of a properties file for groups whose values cannot be, and why."""
    given = {key: _SETTINGS[key](value) for key, value in settings.items() if key in _SETTINGS}
    return {key: wrong for key, wrong in given.items() if wrong}


def assignor_names(cluster: Cluster) -> list[str]:
    """Return the assignors of streams groups in the file; a class of others stands for its name."""
    given = list_parts(cluster.settings.get(_ASSIGNORS, _STICKY))
    return [_STICKY if each == _STICKY_CLASS else each for each in given]


def check_group(cluster: Cluster, name: str, values: Mapping[str, str]) -> None:
    """Check the whole_within configuration of a group.

    Raises: ApiError INVALID_REQUEST without a name, else INVALID_CONFIG.
    """
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the group is missing")
    for key in values:
        if key not in _TYPES:
            raise _error(f"{key} is not a configuration key of groups")
    for key, value in values.items():
        check_value(key, value, _TYPES[key])
    effective: dict[str, int] = {}
    for number in _NUMBERS:
        own = values.get(number.name)
        default = cluster.number(number.setting(""), number.default)
        effective[number.name] = int(own) if own is not None else default
        if own is not None:
            _check_bounds(cluster, number, effective[number.name])
    if (assignor := values.get(ASSIGNOR_KEY)) is not None:
        _check_assignor(cluster, trimmed(assignor))
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        is_given = session in values or heartbeat in values
        if is_given and effective[session] <= effective[heartbeat]:
            text = f"{session} is {effective[session]}"
            raise _error(f"{text}: expected more than {heartbeat}, {effective[heartbeat]}")


def _check_assignor(cluster: Cluster, name: str) -> None:
    """Check that the file has an assignor of this name; what classes are called is not known."""
    known = assignor_names(cluster)
    if name not in known and all(each == _STICKY for each in known):
        raise _error(f"{ASSIGNOR_KEY} is {name!r:.300}: {_ASSIGNORS} names {_STICKY} alone")


def _check_bounds(cluster: Cluster, number: _Number, value: int) -> None:
    for what, default in number.bounds.items():
        bound = cluster.number(number.setting(what), default)
        if value < bound if what == "min" else value > bound:
            text = f"{number.name} is {value}: {number.setting(what)} of this controller is {bound}"
            raise _error(text)


def _error(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, text)
