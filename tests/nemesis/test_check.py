"""The checker of histories: what it has to find, and what it has to accept."""

from __future__ import annotations

import pytest

from tests.nemesis.check import Committed, check
from tests.nemesis.history import Append, History, Look

A, B, VOTERS = b"a", b"b", b"voters"


def committed(*keys: bytes, epochs: dict[int, int] | None = None) -> Committed:
    """A log with one key at each offset, all of epoch 1 unless told otherwise.

    `VOTERS` in place of a key is a control record.
    """
    places: dict[bytes, list[int]] = {}
    for offset, key in enumerate(keys):
        places.setdefault(key, []).append(offset)
    all_epochs = dict.fromkeys(range(len(keys)), 1) | (epochs or {})
    return Committed(places, all_epochs, {}, len(keys), frozenset(places.pop(VOTERS, ())))


def appended(key: bytes, called: float, returned: float | None, offset: int | None) -> History:
    return History(appends=[Append(key, called, returned, offset)])


def both(first: Append, second: Append) -> History:
    return History(appends=[first, second])


def looked(*looks: Look) -> History:
    return History(looks=list(looks))


GOOD = {
    "acknowledged and there": (appended(A, 0, 1, 0), committed(A)),
    "unknown and there": (appended(A, 0, None, None), committed(A)),
    "unknown and not there": (appended(A, 0, None, None), committed(B)),
    "acknowledged without an offset": (appended(A, 0, 1, None), committed(B, A)),
    "after a change of the voters": (appended(A, 0, 1, 0), committed(VOTERS, A)),
    "overlapping calls in either order": (
        both(Append(A, 0, 3, 1), Append(B, 1, 2, 0)),
        committed(B, A),
    ),
    "one after the other": (both(Append(A, 0, 1, 0), Append(B, 1, 2, 1)), committed(A, B)),
    "unknown before what was called earlier": (
        both(Append(A, 0, 1, 1), Append(B, 0.5, None, None)),
        committed(B, A),
    ),
    "a high watermark that rises": (
        looked(Look(1, 1, 0, 0, 1), Look(1, 1, 2, 2, 3)),
        committed(A, B),
    ),
    "high watermarks of overlapping looks": (
        looked(Look(1, 1, 2, 0, 2), Look(1, 1, 1, 1, 3)),
        committed(A, B),
    ),
    "a deposed leader that shows its old high watermark": (
        History(appends=[Append(A, 1, 2, 1)], looks=[Look(1, 1, 1, 3, 4)]),
        committed(B, A, epochs={1: 2}),
    ),
    "a new leader that knows no high watermark yet": (
        History(appends=[Append(A, 0, 1, 0)], looks=[Look(2, 2, -1, 2, 3)]),
        committed(A),
    ),
    "another leader in another epoch": (
        looked(Look(1, 1, 1, 0, 1), Look(2, 2, 1, 2, 3)),
        committed(A),
    ),
}

BAD = {
    "lost": (appended(A, 0, 1, 0), committed(B)),
    "doubled": (appended(A, 0, 1, 0), committed(A, A)),
    "doubled: 61": (appended(A, 0, None, None), committed(A, A)),
    "moved": (appended(A, 0, 1, 0), committed(B, A)),
    "moved: 61 was told offset 1": (appended(A, 0, 1, 1), committed(A, VOTERS)),
    "moved: 61 was told offset 0": (appended(A, 0, 1, 0), committed(VOTERS, B, A)),
    "order": (both(Append(A, 0, 1, 1), Append(B, 1.5, 2, 0)), committed(B, A)),
    "order: offset 0": (both(Append(A, 0, 1, 1), Append(B, 2, None, None)), committed(B, A)),
    "taken back": (looked(Look(1, 1, 2, 0, 1)), committed(A)),
    "stale": (
        History(appends=[Append(A, 0, 1, 0)], looks=[Look(1, 1, 0, 2, 3)]),
        committed(A),
    ),
    "stale: leader 2": (
        History(appends=[Append(A, 0, 1, 0)], looks=[Look(2, 2, 0, 2, 3)]),
        committed(A),
    ),
    "backwards": (looked(Look(1, 1, 2, 0, 1), Look(1, 1, 1, 2, 3)), committed(A, B)),
    "two leaders": (looked(Look(1, 1, 1, 0, 1), Look(2, 1, 1, 0, 1)), committed(A)),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_history_that_only_looks_wrong_is_accepted(name: str) -> None:
    """People switch off a checker that raises false alarms."""
    history, log = GOOD[name]
    assert check(history, log) == []


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_history_is_found(name: str) -> None:
    """It is reported once, under its name."""
    history, log = BAD[name]
    (found,) = check(history, log)
    assert found.startswith(name)


def test_the_log_itself_says_who_led() -> None:
    """A node that leads an epoch in which the log names another leader is detected."""
    log = Committed(places={}, epochs={}, leaders={1: 2}, end_offset=1)
    (found,) = check(looked(Look(1, 1, 1, 0, 1)), log)
    assert found == "two leaders: 2 and 1 in epoch 1"
