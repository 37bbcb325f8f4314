"""Refusals on the command line: their names, and what to do about them."""

from __future__ import annotations

import time

import pytest

from kraftwire.cli.api_errors import api_error_text
from kraftwire.cli.quorum.options import QuorumConnection
from kraftwire.errors import ApiError
from kraftwire.protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("code", "detail", "text"),
    [
        (
            ErrorCode.UNSUPPORTED_VERSION,
            "The node does not support METADATA",
            "error 35: UNSUPPORTED_VERSION: The node does not support METADATA; "
            "try --bootstrap-controller",
        ),
        (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "MISMATCHED_ENDPOINT_TYPE: this listener describes brokers only, not controllers",
            "error 114: MISMATCHED_ENDPOINT_TYPE: this listener describes brokers only, "
            "not controllers; try --bootstrap-server",
        ),
        (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER",
            "error 114: MISMATCHED_ENDPOINT_TYPE: The request was sent to an endpoint of type "
            "BROKER, but we wanted an endpoint of type CONTROLLER; try --bootstrap-server",
        ),
        (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of "
            "type BROKER",
            "error 114: MISMATCHED_ENDPOINT_TYPE: The request was sent to an endpoint of type "
            "CONTROLLER, but we wanted an endpoint of type BROKER; try --bootstrap-controller",
        ),
        (
            ErrorCode.REQUEST_TIMED_OUT,
            "h:1: the node closed the connection instead of answering SaslAuthenticate",
            "error 7: REQUEST_TIMED_OUT: h:1: the node closed the connection instead of answering "
            "SaslAuthenticate; a node knows the users of SCRAM once there is a leader; look at "
            "its log",
        ),
        (ErrorCode.DUPLICATE_VOTER, "DUPLICATE_VOTER: x", "error 126: DUPLICATE_VOTER: x"),
        (12345, "strange", "error 12345: UNKNOWN(12345): strange"),
    ],
)
def test_an_error_has_its_name_and_what_may_help(code: int, detail: str, text: str) -> None:
    """With only a number or a name, the reader would have to look it up."""
    assert api_error_text(ApiError(code, detail)) == text


def test_a_retry_is_reported_to_a_program_after_a_while(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A silent minute looks like a hang; an immediate message would be noise in a log."""
    soon = QuorumConnection(bootstrap_server="a:1")
    soon._say_retry()("a:1: Connection refused")
    assert capsys.readouterr().err == ""
    late = QuorumConnection(bootstrap_server="a:1", _started=time.monotonic() - 6)
    tell = late._say_retry()
    for _ in range(3):
        tell("a:1: Connection refused")
    assert capsys.readouterr().err == (
        "kraftwire quorum: a:1: Connection refused; retrying for at most 60 s\n"
    )
