"""One rate for some seconds: what was committed of it, and how late.

Nothing here is reported by the programs themselves. An observer polls the leader's high watermark;
when a record was due is known from the rate, since record k is due k intervals after the rate was
set. A record that is appended late counts as late, too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

from tests.support.kafka.perf_quorum import PerfQuorum

__all__ = ["IDLE_RATE", "Step", "measure", "rest"]

# Between steps: enough that a program soon reads its rate again, too little to be a load.
IDLE_RATE = 20

SHARE_MIN = 0.99
P99_SECONDS_MAX = 1.0

_LOOK_SECONDS = 0.02
_REST_LOOK_SECONDS = 0.5
_REST_SECONDS_MAX = 120.0

# With such a backlog the rate can no longer be held, so there is no use in adding to it.
_LAG_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Step:
    """What a quorum did at a rate. `share` is committed records divided by offered ones.

    Units: records per second, seconds.
    """

    rate: int
    share: float
    p99: float

    @property
    def is_held(self) -> bool:
        """Whether the high watermark kept up, without much delay."""
        return self.share >= SHARE_MIN and self.p99 < P99_SECONDS_MAX


@dataclass(frozen=True, slots=True)
class _Look:
    """A high watermark that the observer read, and when."""

    at: float
    offset: int


def measure(quorum: PerfQuorum, rate: int, settle: float, window: float) -> Step:
    """Offer records at a rate, and measure what is committed in a time window after a while.

    Units: seconds. Order: the quorum is nearly idle before, and again after a `rest`.
    Raises: AssertionError if a process ended; OSError, LookupError if nobody answers as the leader.
    """
    base, start = quorum.high_watermark(), time.monotonic()
    quorum.set_throughput(rate)
    looks: list[_Look] = []
    offset = base
    while True:
        time.sleep(_LOOK_SECONDS)
        # A new leader does not know the high watermark at first, and reports -1.
        offset = max(offset, quorum.high_watermark())
        look = _Look(time.monotonic(), offset)
        if look.at - start >= settle:
            looks.append(look)
        if look.at - start >= settle + window and len(looks) > 1:
            break
        if look.at - start - (look.offset - base) / rate > _LAG_SECONDS_MAX:
            return Step(rate, (look.offset - base) / rate / (look.at - start), _LAG_SECONDS_MAX)
    quorum.ensure_running()
    first, last = looks[0], looks[-1]
    share = (last.offset - first.offset) / rate / (last.at - first.at)
    return Step(rate, share, _p99(looks, base, start, rate))


def _p99(looks: list[_Look], base: int, start: float, rate: int) -> float:
    """The 99th percentile over records; all of one look count as its oldest."""
    waits = sorted(
        (look.at - (start + (before.offset - base) / rate), look.offset - before.offset)
        for before, look in pairwise(looks)
    )
    left = 0.99 * (looks[-1].offset - looks[0].offset)
    for wait, count in waits:
        left -= count
        if left <= 0:
            return wait
    return _LAG_SECONDS_MAX


def rest(quorum: PerfQuorum) -> None:
    """Offer almost nothing until everything offered before is committed.

    Raises: AssertionError if that takes too long or a process ended; OSError, LookupError if nobody
    answers as the leader.
    """
    quorum.set_throughput(IDLE_RATE)
    deadline = time.monotonic() + _REST_SECONDS_MAX
    before = quorum.high_watermark()
    while time.monotonic() < deadline:
        time.sleep(_REST_LOOK_SECONDS)
        quorum.ensure_running()
        now = quorum.high_watermark()
        if 0 < now - before <= 2 * IDLE_RATE * _REST_LOOK_SECONDS:
            return
        before = now
    raise AssertionError("what was offered is not committed after two minutes")
