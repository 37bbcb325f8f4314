"""One connection with the traffic that captures have on many."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from kraftwire.capture.capture import Capture
from tests.support.captures.builder import Session, frame

_IN_FLIGHT_MAX = 5
_MSS = (60, 536, 1448, 9000, 65_000)

# A request and its response, which may be missing.
_Pair = tuple[bytes, bytes | None]


@cache
def _pairs(path: Path) -> list[_Pair]:
    """The exchanges of a capture, in order of their requests."""
    requests: dict[int, bytes] = {}
    answers: dict[int, bytes] = {}
    # Kept alive, so that an identity belongs to one request alone.
    frames = list(Capture(str(path)))
    for each in frames:
        if each.is_request:
            requests[id(each.request)] = frame(each.data)
        else:
            answers[id(each.request)] = frame(each.data)
    return [(data, answers.get(key)) for key, data in requests.items()]


def busy_connection(
    paths: Iterable[Path], source: random.Random, *, count: int | None = None
) -> Session:
    """A connection with the exchanges of captures, or `count` of them from anywhere in the middle.

    A few requests at a time are in flight; packets have any size, and may hold
    the end of one frame and the start of another.
    """
    pairs = [pair for path in paths for pair in _pairs(path)]
    if count is not None:
        first = source.randrange(max(1, len(pairs) - count))
        pairs = pairs[first : first + count]
    session = Session().open()
    waiting: list[_Pair] = []
    while pairs or waiting:
        most = min(len(pairs), source.randint(0, _IN_FLIGHT_MAX - len(waiting)))
        taken, pairs = pairs[:most], pairs[most:]
        session.client(b"".join(ask for ask, _ in taken), mss=source.choice(_MSS))
        waiting += taken
        done = source.randint(0, len(waiting))
        answers = [answer for _, answer in waiting[:done] if answer is not None]
        session.server(b"".join(answers), mss=source.choice(_MSS))
        del waiting[:done]
    return session.close()
