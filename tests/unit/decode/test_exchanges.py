"""Requests with their responses: pairs, requests without a response, latency, wait and errors."""

from __future__ import annotations

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.exchange import Exchange, exchanges
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from tests.support.captures.decoded import GOLDEN, golden
from tests.support.captures.frames import FrameMaker


@pytest.mark.parametrize("name", GOLDEN)
def test_exchanges_hold_every_frame_once(name: str) -> None:
    """A count of exchanges must not count a frame twice, or miss one."""
    frames = list(Capture(golden(name), frame_class=Frame))
    found = list(exchanges(frames))
    held = [side for each in found for side in (each.request, each.response) if side]
    assert sorted(map(id, held)) == sorted(map(id, frames))
    for each in found:
        if each.request is not None and each.response is not None:
            assert each.request.request is each.response.request
            assert each.latency_ms == each.response.latency_ms
            span = each.response.time_ns - each.request.time_ns
            assert each.latency_ms == span / 1e6


def test_a_request_before_an_answered_one_stays_alone() -> None:
    """Servers answer in order, so there is no need to wait for the end of the capture."""
    maker = FrameMaker()
    lost = maker.request(VoteRequest(), 2)
    asked = maker.request(VoteRequest(), 2)
    assert lost.request is not None
    assert asked.request is not None
    asked.request.skipped = (lost.request,)
    answered = maker.response(VoteResponse())
    late = maker.request(VoteRequest(), 2)
    found: list[Exchange] = list(exchanges([lost, asked, answered, late]))
    shown = [(each.request, each.response) for each in found]
    assert shown == [(lost, None), (asked, answered), (late, None)]
    assert all(each.is_awaited for each in found)
    assert found[0].latency_ms is None
    assert (found[0].wait_ms, found[0].service_ms) == (None, None)


def test_a_request_that_wants_no_response_is_complete_at_once() -> None:
    """A Produce with acks 0 is complete when it is sent."""
    maker = FrameMaker()
    frame = maker.request(VoteRequest(), 2)
    assert frame.request is not None
    frame.request.has_response = False
    (found,) = exchanges([frame])
    assert not found.is_awaited
    assert found.first is frame


def test_waiting_and_work_of_a_parked_fetch_are_separate() -> None:
    """The latency of a Fetch without records is waiting, not work."""
    maker = FrameMaker()
    asked = maker.request(FetchRequest(max_wait_ms=500), 12)
    answered = maker.response(FetchResponse(), latency_ns=500_000_000)
    (found,) = exchanges([asked, answered])
    assert (found.latency_ms, found.wait_ms, found.service_ms) == (500.0, 500.0, None)
    assert (found.api_name, found.api_version, found.client_id) == ("Fetch", 12, "tester")


def test_other_requests_do_not_wait() -> None:
    """All of a Vote's latency is the server's."""
    maker = FrameMaker()
    asked = maker.request(VoteRequest(), 2)
    answered = maker.response(VoteResponse(error_code=41), latency_ns=3_000_000)
    (found,) = exchanges([asked, answered])
    assert (found.wait_ms, found.service_ms) == (0.0, 3.0)
    assert found.error_names == ["NOT_CONTROLLER"]
