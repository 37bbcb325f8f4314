"""Rules for requests: which ones they meet, and what they decide, without a server."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.faults.fault import Fault
from kraftwire.faults.rows import new_rule
from kraftwire.faults.rules import PASS, Decision, FaultRule, FaultRules, Need
from kraftwire.faults.selectors import RequestHead
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.fetch_request import FetchRequest, ReplicaState
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message
from tests.unit.protocol.test_refusals import WITHOUT_PLACE, errors, request_of

HEARTBEAT = {"api": "BrokerHeartbeat"}


class Server:
    """Rules, and requests to them."""

    def __init__(self) -> None:
        self.rules = FaultRules()
        self.now_s = 100.0

    def add(self, **row: Any) -> FaultRule:
        """Put the rule of a row in force."""
        return self.rules.add(new_rule(row), self.now_s)

    def decide(self, request: Message, version: int | None = None, **head: Any) -> Decision:
        """Return what is decided about a request, in its newest version without one."""
        version = request.VERSIONS.high if version is None else version
        return self.rules.decide(RequestHead(request.API_KEY, version, **head), self.now_s, request)

    def met(self, rule: FaultRule, requests: Collection[Message]) -> list[bool]:
        """Return which requests a rule meets."""
        return [self.decide(each).rule is rule for each in requests]


def beats(count: int) -> list[Message]:
    """Return heartbeats of one broker."""
    return [BrokerHeartbeatRequest(broker_id=1) for _ in range(count)]


@pytest.mark.parametrize("key", sorted(messages.API_NAMES), ids=messages.API_NAMES.get)
def test_every_request_can_be_refused(key: int) -> None:
    """In every version, with the error in what is sent; or it is counted that there is no place."""
    name = messages.API_NAMES[key]
    low, high = messages.API_VERSIONS[key]
    server = Server()
    rule = server.add(api=name, refuse="REQUEST_TIMED_OUT")
    for version in range(low, high + 1):
        decision = server.decide(request_of(key, version), version)
        if (name, version) in WITHOUT_PLACE:
            assert decision is PASS
            assert rule.not_carried[f"{name} v{version}"] == 1
        elif decision.drop:
            assert name == "Produce"
        else:
            answer: Any = decision.answer
            answer.encode(version)
            found = errors(answer.facts().root, answer, version)
            assert ErrorCode.REQUEST_TIMED_OUT in found
    assert rule.count == high + 1 - low - sum(rule.not_carried.values())


def test_a_rule_is_for_one_sender_and_so_many_requests() -> None:
    """Brokers and replicas that fetch name themselves; clients do not."""
    server = Server()
    fetching = server.add(api="Fetch", drop="before", broker=1)
    beating = server.add(**HEARTBEAT, drop="before", broker=1, times=2)
    beats = [BrokerHeartbeatRequest(broker_id=broker) for broker in (1, 2, 1, 1)]
    assert server.met(beating, beats) == [True, False, True, False]
    for replica in (1, 2):
        server.decide(FetchRequest(replica_state=ReplicaState(replica_id=replica)))
        server.decide(FetchRequest(replica_id=replica, replica_state=None))
    assert (fetching.count, beating.count) == (2, 2)


def test_the_broker_that_a_request_removes_is_not_its_sender() -> None:
    """An administrator sends it; a rule for its sender would never meet one."""
    server = Server()
    with pytest.raises(UsageError, match="names the broker that sends it"):
        server.add(api="UnregisterBroker", observe=True, broker=1)
    rule = server.add(api="*", drop="before", broker=1)
    assert server.decide(UnregisterBrokerRequest(broker_id=1)) is PASS
    assert rule.count == 0


def test_the_newest_rule_counts() -> None:
    """Until it is removed, and then the one before; one that observes leaves it to others."""
    server = Server()
    old, new = (server.add(**HEARTBEAT, drop="before") for _ in range(2))
    seen = server.add(**HEARTBEAT, observe=True)
    assert server.met(new, beats(1)) == [True]
    new.remove()
    new.remove()
    assert server.met(old, beats(1)) == [True]
    assert (seen.count, list(server.rules)) == (2, [seen, old])


def test_a_head_is_enough_where_no_rule_looks_inside() -> None:
    """A server decodes no body for nothing."""
    server = Server()
    head = RequestHead(BrokerHeartbeatRequest.API_KEY, 1, "worker-7")
    assert server.rules.need(head, 100) is Need.NOTHING
    server.add(**HEARTBEAT, drop="after", client_id="worker-*", versions="1+")
    assert server.rules.need(head, 100) is Need.HEAD
    assert server.rules.decide(head, 100).drop == "after"
    for other in (RequestHead(63, 0, "worker-7"), RequestHead(63, 1, "master"), RequestHead(64, 1)):
        assert server.rules.need(other, 100) is Need.NOTHING
    server.add(**HEARTBEAT, refuse="NOT_CONTROLLER")
    assert server.rules.need(head, 100) is Need.BODY


def test_what_is_asked_of_one_node() -> None:
    """As a proxy knows it, which has a listener for each."""
    server = Server()
    server.add(api="*", black_hole="to_client", node=2)
    decided = [server.decide(one, node=node).fault for one in beats(1) for node in (1, 2)]
    assert [each.black_hole for each in decided] == [None, "to_client"]


def test_limits() -> None:
    """Every Nth, by chance with a seed, and for a time."""
    server = Server()
    third = server.add(**HEARTBEAT, drop="before", every=3, times=2)
    assert server.met(third, beats(10)) == [False, False, True] * 2 + [False] * 4
    drawn = []
    for _ in range(2):
        server = Server()
        rule = server.add(**HEARTBEAT, drop="before", probability=0.5, seed=7)
        drawn.append(server.met(rule, beats(40)))
    assert drawn[0] == drawn[1]
    assert 10 < sum(drawn[0]) < 30


def test_a_rule_is_in_force_for_a_time() -> None:
    """From some seconds after it was added, for some seconds."""
    server = Server()
    rule = server.add(**HEARTBEAT, drop="before", from_s=10, for_s=5)
    found = []
    for server.now_s in (100, 109.9, 110, 114.9, 115):
        found += server.met(rule, beats(1))
    assert found == [False, False, True, True, False]
    assert [each.time_s for each in rule.requests] == [110, 114.9]


def test_a_script_ends_with_its_last_answer() -> None:
    """The next requests, one after the other."""
    server = Server()
    server.add(**HEARTBEAT, drop="before")
    server.add(**HEARTBEAT, script=["NOT_CONTROLLER", "NONE", {"delay": 2}])
    decided = [server.decide(each) for each in beats(4)]
    first: Any = decided[0].answer
    assert first.error_code == ErrorCode.NOT_CONTROLLER
    assert (decided[1].fault, decided[2].delay_s) == (Fault(), 2)
    assert decided[3].drop == "before"


def test_a_delay_is_drawn_from_a_range_with_a_seed() -> None:
    """The same ones again."""
    drawn = []
    for _ in range(2):
        server = Server()
        server.add(**HEARTBEAT, delay=[1, 2], seed=5)
        drawn.append([server.decide(each).delay_s for each in beats(5)])
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 5
    assert all(1 <= each <= 2 for each in drawn[0])


def test_a_response_may_be_replaced() -> None:
    """A change that returns nothing has changed what it got."""

    def shut_down(response: Any) -> None:
        response.should_shut_down = True

    server = Server()
    other = BrokerHeartbeatResponse(is_fenced=False)
    for change, changed in ((shut_down, None), (lambda _: other, other)):
        server.add(**HEARTBEAT, falsify=change)
        decision = server.decide(beats(1)[0])
        assert decision.changes_response
        response: Any = decision.changed_response(BrokerHeartbeatResponse())
        assert response is other if changed else response.should_shut_down
    assert PASS.changed_response(other) is other


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"api": "Produc", "observe": True}, "there is no API 'Produc' here; did you mean Produce"),
        ({"observe": True}, "names an api"),
        ({"api": "Produce"}, "one of refuse, hold, .*, script, found none"),
        ({"api": "Produce", "observe": True, "drop": "after"}, "found observe and drop"),
        ({"api": "Produce", "drop": "later"}, "drop: expected before or after, found 'later'"),
        ({"api": "Produce", "drop": "after", "topik": "t"}, "did you mean topic"),
        ({"api": "Produce", "drop": "after", "versions": 14}, "Produce has 0-13, not 14"),
        (
            {"api": "Produce", "drop": "after", "versions": "5-3"},
            "5-3 ends before it begins",
        ),
        (
            {"api": "Heartbeat", "drop": "after", "topic": "t"},
            "topic: no request of .* names a",
        ),
        ({"api": "Produce", "refuse": "NOT_ENOUGH"}, "there is no error 'NOT_ENOUGH', only such"),
        ({"api": "Produce", "delay": [2, 1]}, "from the shorter to the longer"),
        ({"api": "Produce", "delay": -1}, "delay: expected a number of at least 0, found -1"),
        ({"api": "Produce", "observe": True, "times": 0}, "times: .* at least 1, found 0"),
        ({"api": "Produce", "observe": True, "whole": True}, "whole: is for refuse only"),
        ({"api": "Produce", "observe": True, "probability": 2}, "above 0 and at most 1, found 2"),
        ({"api": "Produce", "observe": True, "probability": 0}, "above 0 and at most 1, found 0"),
        ({"api": "Produce", "observe": True, "for_s": 0}, "for_s: no request comes within 0 s"),
        ({"api": "Produce", "observe": True, "node": "1"}, "node: expected a whole number"),
        ({"api": "Produce", "observe": True, "topic": []}, "topic: expected a text or a list"),
        ({"api": "Produce", "refuse": "NONE"}, "NONE is no error, except in a script"),
        ({"api": "Produce", "observe": False}, "observe: expected true, found False"),
        ({"api": "Produce", "script": ["NONE", 3]}, "expected an error or a fault, found 3"),
        ({"api": "Produce", "script": ["NONE"], "drop": "after"}, "has its faults in its list"),
        ({"api": "Produce", "hang_up_at": -1}, "at least 0, found -1"),
        ({"api": "Produce", "throttle": 0}, "more than 0 bytes a second"),
        ({"api": "Describe*", "drop": "after", "versions": "9+"}, "no API Describe. has 9+"),
        ({"api": "DescribeLogDirs", "refuse": "UNKNOWN_SERVER_ERROR", "versions": "1-3"}, "v1, "),
        ({"api": "Produce", "script": []}, "expected a list of errors and faults"),
    ],
)
def test_a_rule_about_nothing_is_refused(row: dict[str, Any], problem: str) -> None:
    """It would make a test pass; what was found and expected is named."""
    with pytest.raises(UsageError, match=problem):
        new_rule(row)
