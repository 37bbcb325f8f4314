"""Requests that wait for responses which never come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.capture.framing.frames import Request
from kraftwire.limits import PENDING_REQUESTS_MAX, RENDER_PENDING_BYTES_MAX
from kraftwire.spark.captures.exchange import Exchanges


def _request(number: int, size: int = 100) -> Any:
    request = Request(1, 17, number, "client")
    frame = SimpleNamespace(request=request, is_request=True, size=size)
    return cast(Any, SimpleNamespace(frame=frame))


def _response(asked: Any) -> Any:
    frame = SimpleNamespace(request=asked.frame.request, is_request=False, size=10)
    return cast(Any, SimpleNamespace(frame=frame))


def test_a_capture_of_requests_alone_is_not_held_in_memory() -> None:
    """Every request gives its row once, in order, and a limited number wait at a time."""
    exchanges = Exchanges()
    reads = [_request(number) for number in range(3 * PENDING_REQUESTS_MAX)]
    given = [each for read in reads for each in exchanges.add(read)]
    assert len(given) == 2 * PENDING_REQUESTS_MAX
    given += exchanges.rest()
    assert [each.request for each in given] == reads
    assert list(exchanges.rest()) == []


def test_large_requests_wait_in_smaller_numbers() -> None:
    """What counts is memory; the last request stays, however large it is."""
    exchanges, size = Exchanges(), RENDER_PENDING_BYTES_MAX // 2
    reads = [_request(number, size) for number in range(3)]
    given = [each for read in reads for each in exchanges.add(read)]
    assert [each.request for each in given] == reads[:1]
    huge = _request(9, 3 * size)
    assert [each.request for each in exchanges.add(huge)] == reads[1:]
    (both,) = exchanges.add(_response(huge))
    assert both.request is huge
    # Answered requests no longer count.
    again = [_request(number, size) for number in (10, 11)]
    assert [each for read in again for each in exchanges.add(read)] == []
