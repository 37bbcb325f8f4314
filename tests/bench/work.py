"""What the largest legal requests cost a node whose cluster has grown: the longest piece of work in
which nobody else has the thread, and all of it. One row for each API, the worst of its requests.

The records are in memory and committed at once; appending and replaying them is part of a piece.
"""

from __future__ import annotations

import gc
import time
from typing import NamedTuple

import trio

from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import encode_response
from kraftwire.security.principal import Principal
from tests.bench.report import Bar, console, print_bars
from tests.hostile.grown import GrownNode, Size, grown
from tests.hostile.largest import LargestRequest, largest_requests
from tests.support.nodes.stub import request_of

__all__ = ["run"]

# CPU time of the thread.
PIECE_SECONDS_MAX = 0.1

_USERS = ("admin", "u1")


class _Row(NamedTuple):
    """The cost of a request. Units: seconds of CPU time, bytes."""

    longest: float
    total: float
    encoding: float
    answer: int
    made: LargestRequest
    user: str


class _Steps(trio.abc.Instrument):
    """Measures the steps of all tasks. Units: seconds of CPU time."""

    def __init__(self) -> None:
        self.longest = self.total = 0.0
        self._began = time.thread_time()

    def before_task_step(self, task: object) -> None:
        del task
        self._began = time.thread_time()

    def after_task_step(self, task: object) -> None:
        del task
        took = time.thread_time() - self._began
        self.total += took
        self.longest = max(self.longest, took)


def run() -> list[Bar]:
    """Measure, print the table as the README has it, and return the bars that were missed."""
    worst = trio.run(_worst)
    console.print("| API | longest piece, ms | all, ms | encoding, ms | answer, KiB | filled |")
    console.print("|---|--:|--:|--:|--:|---|")
    for api, row in sorted(worst.items(), key=lambda one: -one[1].longest):
        times = " | ".join(
            f"{each * 1000:.0f}" for each in (row.longest, row.total, row.encoding)
        )
        who = "" if row.user == "admin" else ", refused"
        filled = f"{row.made.array or 'nothing'}: {row.made.names}{who}"
        console.print(f"| {api} | {times} | {row.answer // 1024} | {filled} |")
    return print_bars(
        "The largest requests",
        [
            Bar(api, row.longest * 1000, PIECE_SECONDS_MAX * 1000, "ms", True)
            for api, row in worst.items()
        ],
    )


async def _worst() -> dict[str, _Row]:
    worst: dict[str, _Row] = {}
    async with grown(Size()) as node:
        gc.collect()
        gc.disable()    # a node has its own times for that
        for made in largest_requests():
            for user in _USERS:
                row = await _measured(node, made, user)
                if made.api not in worst or row > worst[made.api]:
                    worst[made.api] = row
        gc.enable()
    return worst


async def _measured(node: GrownNode, made: LargestRequest, user: str) -> _Row:
    who = Principal("User", user)
    request = request_of(made.message, made.version, to=made.to, principal=who, host="1.2.3.4")
    steps = _Steps()
    trio.lowlevel.add_instrument(steps)
    await trio.lowlevel.checkpoint()
    answer = await node.answer(request)
    await trio.lowlevel.checkpoint()
    trio.lowlevel.remove_instrument(steps)
    began = time.thread_time()
    header = ResponseHeader()
    size = len(encode_response(header, answer, made.version)) if answer is not None else 0
    return _Row(steps.longest, steps.total, time.thread_time() - began, size, made, user)
