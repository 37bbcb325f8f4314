"""Waiting Fetch requests: which are woken when, and in which order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.raft.effects import SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.parked import PARKED_FETCHES_MAX, PARKED_WOKEN_MAX, ParkedFetch, ParkedFetches
from tests.support.raft.lone import fetches, leading


def fetch(token: int, offset: int = 10, deadline_ms: int = 500) -> ParkedFetch:
    """A waiting request."""
    event = RequestReceived(token, 18, FetchRequest())
    return ParkedFetch(token, offset, deadline_ms, event)


def parked(*fetches: ParkedFetch) -> ParkedFetches:
    """These requests, waiting."""
    resting = ParkedFetches()
    for each in fetches:
        assert resting.park(each)
    return resting


def tokens(fetches: list[ParkedFetch]) -> list[int]:
    """Which requests they are."""
    return [each.token for each in fetches]


def test_nothing_at_rest_sets_no_timer() -> None:
    """An idle leader sleeps."""
    resting = ParkedFetches()
    assert resting.next_deadline_ms is None
    assert resting.wake_all() == resting.expired(10_000) == resting.wake_at_or_below(9) == []
    assert not resting


def test_growth_wakes_those_at_or_below_the_new_end_in_order_of_arrival() -> None:
    """R-FET-14 (a)."""
    resting = parked(fetch(3, 10), fetch(1, 12), fetch(2, 11))
    assert tokens(resting.wake_at_or_below(11)) == [3, 2]
    assert tokens(resting.wake_all()) == [1]


def test_time_wakes_those_whose_time_is_up() -> None:
    """R-FET-14 (d); the timer is then that of the next one."""
    late, soon, as_soon = (fetch(n, deadline_ms=at) for n, at in ((1, 300), (2, 200), (3, 200)))
    resting = parked(late, soon, as_soon)
    assert resting.next_deadline_ms == 200
    assert resting.expired(199) == []
    assert tokens(resting.expired(200)) == [2, 3]
    assert resting.next_deadline_ms == 300
    assert tokens(resting.expired(999)) == [1]
    assert resting.next_deadline_ms is None


def test_the_deadline_of_one_that_was_dropped_passes_once() -> None:
    """It stayed the next one: a leader did nothing but look until another request was answered."""
    resting = parked(fetch(1, deadline_ms=200), fetch(2, deadline_ms=900))
    resting.drop(1)
    assert resting.expired(200) == []
    assert resting.next_deadline_ms == 900


def test_what_is_deferred_is_due_and_nothing_else_wakes_it() -> None:
    """A crowd that was woken is answered a few at a time, in order, before others' time is up."""
    resting = parked(*(fetch(n) for n in range(PARKED_WOKEN_MAX + 3)), fetch(100, 20, 5))
    crowd = resting.wake_at_or_below(10)
    resting.defer(crowd)
    assert resting.wake_at_or_below(15) == []
    assert resting.next_deadline_ms == 0
    assert len(resting) == len(crowd) + 1
    resting.drop(1)
    first = [n for n in range(PARKED_WOKEN_MAX + 1) if n != 1]
    assert tokens(resting.expired(9)) == first
    assert tokens(resting.expired(9)) == [PARKED_WOKEN_MAX + 1, PARKED_WOKEN_MAX + 2]
    assert resting.next_deadline_ms == 5
    assert tokens(resting.expired(9)) == [100]
    assert resting.next_deadline_ms is None


def test_all_voters_are_told_when_a_leader_resigns() -> None:
    """This includes those that are due."""
    resting = parked(fetch(1), fetch(2), fetch(3, 20))
    resting.defer(resting.wake_at_or_below(10))
    assert tokens(resting.take_all()) == [1, 2, 3]
    assert not len(resting)
    assert resting.next_deadline_ms is None


def test_there_is_a_limit() -> None:
    """Beyond it a request is answered at once, and the memory stays bounded."""
    resting = parked(*map(fetch, range(PARKED_FETCHES_MAX)))
    assert not resting.park(fetch(-1))
    assert len(resting) == PARKED_FETCHES_MAX


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20), st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_all_are_woken_once_and_in_order(
    requests: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Compared with a plain list, whatever the order of growth and time."""
    resting = ParkedFetches()
    model: list[tuple[int, int, int]] = []
    for token, (offset, deadline) in enumerate(requests):
        resting.park(fetch(token, offset, deadline))
        model.append((token, offset, deadline))
        border = data.draw(st.integers(0, 9))
        if data.draw(st.booleans()):
            assert tokens(resting.expired(border)) == [t for t, _, d in model if d <= border]
            model = [each for each in model if each[2] > border]
        else:
            woken = resting.wake_at_or_below(border)
            assert tokens(woken) == [t for t, o, _ in model if o <= border]
            model = [each for each in model if each[1] > border]
        assert resting.next_deadline_ms == min((d for _, _, d in model), default=None)
        assert len(resting) == len(model)


def test_the_end_of_a_wait_is_not_a_sign_of_life() -> None:
    """R-CQ-2: the follower has sent nothing since its request, and may be gone."""
    lone = leading()
    lone.wait(100)
    mark = lone.core.high_watermark
    assert fetches(lone, 2, max_wait_ms=500, high_watermark=mark) is None
    answers = len(lone.all_of(SendReply))
    lone.wait(500)
    assert len(lone.all_of(SendReply)) == answers + 1
    lone.wait(lone.config.timers.fetch_timeout_ms * 3 // 2 - 501)
    assert lone.core.role == "leader"
    lone.wait(1)
    assert lone.core.role == "resigned"
