"""Names of Kafka's errors, with advice."""

from __future__ import annotations

import re

from kraftwire.errors import ApiError
from kraftwire.protocol.error_codes import ErrorCode, error_name

# Error code and words of its text, ours or Kafka's -> advice. The first that applies counts.
_HINTS = (
    (ErrorCode.UNSUPPORTED_VERSION, "does not support METADATA", "try --bootstrap-controller"),
    (ErrorCode.MISMATCHED_ENDPOINT_TYPE, "not controllers", "try --bootstrap-server"),
    (ErrorCode.MISMATCHED_ENDPOINT_TYPE, "not of brokers", "try --bootstrap-controller"),
    (ErrorCode.MISMATCHED_ENDPOINT_TYPE, "endpoint of type BROKER, but", "try --bootstrap-server"),
    (
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        "endpoint of type CONTROLLER, but",
        "try --bootstrap-controller",
    ),
    (ErrorCode.REQUEST_TIMED_OUT, "Connection refused", "does a node listen at this address?"),
    (
        ErrorCode.REQUEST_TIMED_OUT,
        "instead of answering SaslAuthenticate",
        "a node knows the users of SCRAM once there is a leader; look at its log",
    ),
    (
        ErrorCode.REQUEST_TIMED_OUT,
        "the node closed the connection",
        "is it a listener for TLS or SASL? then --command-config needs security.protocol",
    ),
)

# The words in front of the list of nodes that do not.
_ANSWERS = re.compile(r" answers?\b")


def api_error_text(error: ApiError) -> str:
    """Return an error's number, name and text, with advice if there is any."""
    name, detail = error_name(error.code), error.detail
    text = detail if detail.startswith(name) else f"{name}: {detail}"
    hints = [
        hint
        for code, words, hint in _HINTS
        if code == error.code and words in _ANSWERS.split(detail, maxsplit=1)[0]
    ]
    return "; ".join([f"error {error.code}: {text}", *hints[:1]])
