"""Filters of outputs that show exchanges: the request or the response may match."""

from __future__ import annotations

import io

import pytest

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.context import Memory
from kraftwire.decode.options import FilterOptions, Options
from kraftwire.inspect.lines.line import LineWriter
from kraftwire.inspect.run.run import Run
from kraftwire.messages.heartbeat_request import HeartbeatRequest
from kraftwire.messages.heartbeat_response import HeartbeatResponse
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.captures.frames import FrameMaker


def _heartbeats() -> list[RawFrame]:
    """Two groups, an error each, and a request without response."""
    maker = FrameMaker()
    frames = []
    for group, error in (
        ("red", ErrorCode.NONE),
        ("red", ErrorCode.REBALANCE_IN_PROGRESS),
        ("blue", ErrorCode.REBALANCE_IN_PROGRESS),
    ):
        frames.append(maker.request(HeartbeatRequest(group_id=group, member_id="m"), 3))
        frames.append(maker.response(HeartbeatResponse(error_code=error)))
    frames.append(maker.request(HeartbeatRequest(group_id="lost", member_id="m"), 3))
    return frames


def _shown(**options: tuple[str, ...]) -> list[str]:
    stream, memory = io.StringIO(), Memory()
    writer = LineWriter(stream, topics=memory.topics)
    filters = FilterOptions(**options)  # type: ignore[arg-type]
    run = Run(Options(filters=filters), writer, memory)
    run.frames(_heartbeats())
    run.finish()
    lines = [line for line in stream.getvalue().splitlines() if not line.startswith("#")]
    return [f"{line.split(' group ')[1].split()[0]} {line.split()[7]}" for line in lines]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        pytest.param(
            {},
            ["red -", "red REBALANCE_IN_PROGRESS", "blue REBALANCE_IN_PROGRESS", "lost -"],
            id="no filter",
        ),
        pytest.param(
            {"group": ("red",)}, ["red -", "red REBALANCE_IN_PROGRESS"], id="in the request"
        ),
        pytest.param(
            {"error": ("any",)},
            ["red REBALANCE_IN_PROGRESS", "blue REBALANCE_IN_PROGRESS"],
            id="in the response",
        ),
        pytest.param(
            {"error": ("any",), "group": ("blue",)}, ["blue REBALANCE_IN_PROGRESS"], id="in both"
        ),
        pytest.param(
            {"group": ("!red",)}, ["blue REBALANCE_IN_PROGRESS", "lost -"], id="excluded"
        ),
        pytest.param(
            {"error": ("!REBALANCE_IN_PROGRESS",)}, ["red -"], id="excluded by the response"
        ),
        pytest.param({"group": ("lost",)}, ["lost -"], id="without response"),
        pytest.param({"api": ("Fetch",)}, [], id="another API"),
    ],
)
def test_an_exchange_is_shown_if_either_side_has_what_is_wanted(
    options: dict[str, tuple[str, ...]], shown: list[str]
) -> None:
    """The group is in the request and the error in the response; a line has both or none."""
    assert _shown(**options) == shown
