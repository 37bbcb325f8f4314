"""Answers that a test holds back, replaces or changes: the rules by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire import messages
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.fetch_request import FetchRequest, ReplicaState
from kraftwire.node.context import Request
from kraftwire.node.handlers.versions import CONTROLLER_VERSIONS
from kraftwire.node.interference import Interference, answer_changed, held, refused, request_changed
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message

HEARTBEAT = BrokerHeartbeatRequest.API_KEY
FETCH = FetchRequest.API_KEY


def request_of(message: Message) -> Request:
    """A request in its newest version."""
    return Request(message.API_KEY, message.VERSIONS.high, message)


async def answered(request: Request) -> Message | None:
    """What the node answers: whether the broker wants to be fenced."""
    message: Any = request.message
    return BrokerHeartbeatResponse(is_fenced=message.want_fence)


def heartbeat(broker_id: int) -> Request:
    """A heartbeat of a broker."""
    return request_of(BrokerHeartbeatRequest(broker_id=broker_id))


@pytest.mark.trio
@pytest.mark.parametrize("key", sorted(CONTROLLER_VERSIONS), ids=messages.API_NAMES.get)
async def test_every_answer_can_be_refused(key: int) -> None:
    """In every version: the answer can be written, with the error where it has a place for one."""
    name = messages.API_NAMES[key]
    low, high = CONTROLLER_VERSIONS[key]
    rules = Interference()
    rules.add(key, refused(ErrorCode.REQUEST_TIMED_OUT))
    for version in range(low, high + 1):
        message = messages.find(f"{name}Request")()
        answer: Any = await rules.answer(Request(key, version, message), answered)
        assert answer is not None
        assert answer.encode(version)
        at_top = [one.versions for one in answer.facts().root.fields if one.name == "ErrorCode"]
        if at_top and version in at_top[0]:
            assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.trio
async def test_a_rule_is_about_one_sender_and_so_many_requests() -> None:
    """Brokers and replicas that fetch name themselves; clients do not."""
    rules = Interference()
    fetching = rules.add(FETCH, refused(ErrorCode.REQUEST_TIMED_OUT), broker=1)
    change = answer_changed(lambda _: BrokerHeartbeatResponse())
    beating = rules.add(HEARTBEAT, change, broker=1, times=2)
    for broker_id in (1, 2, 1, 1):
        answer: Any = await rules.answer(heartbeat(broker_id), answered)
        assert isinstance(answer, BrokerHeartbeatResponse)
    assert beating.count == 2

    async def fetched(_: Request) -> None:
        return None

    for replica_id in (1, 2):
        message = FetchRequest(replica_state=ReplicaState(replica_id=replica_id))
        await rules.answer(request_of(message), fetched)
    assert fetching.count == 1
    rules.clear()
    assert await rules.answer(heartbeat(1), answered) is not None
    assert beating.count == 2


@pytest.mark.trio
async def test_requests_and_answers_are_changed_in_place_or_replaced() -> None:
    """The newest rule about a request counts."""
    rules = Interference()

    def fence(message: Any) -> None:
        message.want_fence = True

    def shut_down(answer: Any) -> None:
        answer.should_shut_down = True

    rules.add(HEARTBEAT, answer_changed(shut_down))
    answer: Any = await rules.answer(heartbeat(1), answered)
    assert (answer.is_fenced, answer.should_shut_down) == (False, True)
    with rules.add(HEARTBEAT, request_changed(fence)):
        answer = await rules.answer(heartbeat(1), answered)
        assert (answer.is_fenced, answer.should_shut_down) == (True, False)
    answer = await rules.answer(heartbeat(1), answered)
    assert answer.should_shut_down


@pytest.mark.trio
async def test_what_is_held_is_let_go_with_its_rule() -> None:
    """Also if the rule ends before the request comes to it."""
    rules = Interference()
    rule = rules.add(HEARTBEAT, held(undecided=True))
    rule.remove()
    assert await rule.apply(heartbeat(1), answered) is not None
    with pytest.raises(TimeoutError, match="0 of 1 requests came in 0 s"):
        rule.wait(timeout_s=0)
