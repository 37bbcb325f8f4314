"""The configuration keys of client metrics: which clients push what, and how often.

Rules: C-CFG-7. Source: Kafka's `ClientMetricsConfigs`, KIP-714.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.controller.topic_keys import Kind, check_value, list_parts, whole_within
from kraftwire.errors import ApiError, UsageError
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.java_patterns import compiled

_INTERVAL, _MATCH, _METRICS = "interval.ms", "match", "metrics"
METRICS_KEYS = {
    _INTERVAL: (Kind.INT, "300000"),
    _MATCH: (Kind.LIST, ""),
    _METRICS: (Kind.LIST, ""),
}
_INT = whole_within(-(2**31), 2**31 - 1)
_INTERVAL_MS = range(100, 3_600_001)

# The properties by which a client is selected.
_NAMES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_subscription(name: str, values: Mapping[str, str]) -> None:
    """Check the whole configuration of a subscription.

    Raises: ApiError INVALID_REQUEST for an unknown key or an interval out of bounds, INVALID_CONFIG
    for a value of the wrong type.
    """
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the subscription is missing")
    for key in values:
        if key not in METRICS_KEYS:
            text = f"{key} is not a configuration key of client metrics"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
    for key, value in values.items():
        check_value(key, value, _INT if key == _INTERVAL else _elements)
    if _INTERVAL in values and int(values[_INTERVAL]) not in _INTERVAL_MS:
        allowed = f"expected {_INTERVAL_MS.start} to {_INTERVAL_MS.stop - 1}"
        text = f"{_INTERVAL} is {values[_INTERVAL]}: {allowed}"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    check_value(_MATCH, values.get(_MATCH, ""), _match)


def _elements(value: str) -> str:
    """Validate a list. Kafka drops elements that are there twice."""
    return f"{value!r:.300} has an empty element" if "" in list_parts(value) else ""


def _match(value: str) -> str:
    """Validate a list of names and patterns."""
    for part in list_parts(value):
        # As Java splits: nothing follows the last separator.
        name, *patterns = part.rstrip("=").split("=")
        if name.strip() not in _NAMES or len(patterns) != 1:
            return f"{part!r:.300} is not name=pattern with a name of {', '.join(_NAMES)}"
        try:
            compiled(patterns[0].strip())
        except UsageError as error:
            return str(error)
    return ""
