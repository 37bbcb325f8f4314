"""The largest legal requests of every API are worked on in turns (SEC-WORK).

What counts is work, not time: the lines of code that run before others get their turn. `python -m
tests.bench work` measures the same requests in full size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
import trio

from kraftwire.node import turns
from kraftwire.security.principal import Principal
from tests.hostile.grown import Size, grown
from tests.hostile.largest import LargestRequest, largest_requests
from tests.support.nodes.stub import StubNode, in_virtual_time, request_of

_FEW, _MANY = 20, 60
# Lines that run in one piece for each further element: what thousands of lines do at once, such as
# a refusal. 10,000 elements of so many take less than a tenth of a second.
_LINES_MAX = 100

_SMALL = Size(topics=70, partitions=70, long_lists=2, acls=100, others=70)


class _Lines(trio.abc.Instrument):
    """Counts the lines that run in each step of a task. `most` is the longest step."""

    def __init__(self) -> None:
        self.most = 0
        self._lines = 0

    def before_task_step(self, task: object) -> None:
        del task
        self._lines = 0
        sys.settrace(self._trace)

    def after_task_step(self, task: object) -> None:
        del task
        sys.settrace(None)
        self.most = max(self.most, self._lines)

    def _trace(self, _: FrameType, event: str, __: object) -> Callable[..., object]:
        self._lines += event == "line"
        return self._trace


@contextmanager
def _counting() -> Iterator[_Lines]:
    lines = _Lines()
    trio.lowlevel.add_instrument(lines)
    try:
        yield lines
    finally:
        sys.settrace(None)
        trio.lowlevel.remove_instrument(lines)


async def _longest_piece(node: StubNode, made: LargestRequest, user: str) -> int:
    who = Principal("User", user)
    request = request_of(made.message, made.version, to=made.to, principal=who, host="1.2.3.4")
    with _counting() as lines:
        await trio.lowlevel.checkpoint()
        await node.answer(request)
        await trio.lowlevel.checkpoint()
    return lines.most


@pytest.mark.parametrize("user", ["admin", "u1"])
def test_no_piece_grows_with_the_request(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    """Elements are decided one after the other, refused or not, and others go on in between."""
    monkeypatch.setattr(turns, "PIECE_SECONDS", 0.0)

    async def run() -> None:
        found = {}
        async with grown(_SMALL) as node:
            for few, many in zip(largest_requests(_FEW), largest_requests(_MANY), strict=True):
                before = await _longest_piece(node, few, user)
                after = await _longest_piece(node, many, user)
                found[few.api, few.array, few.names] = (after - before) / (_MANY - _FEW)
        assert {each: lines for each, lines in found.items() if lines > _LINES_MAX} == {}

    in_virtual_time(run)()
