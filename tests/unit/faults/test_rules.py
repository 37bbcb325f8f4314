"""Rules for requests: which ones they are for, and what they do, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire import messages
from kraftwire.faults.rules import Fault, FaultRule, FaultRules
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.fetch_request import FetchRequest, ReplicaState
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import ErrorCode

REFUSED = Fault(error=ErrorCode.REQUEST_TIMED_OUT)


@pytest.mark.parametrize("key", sorted(messages.API_NAMES), ids=messages.API_NAMES.get)
def test_every_request_can_be_refused(key: int) -> None:
    """In every version, with the error where the response has a place for one."""
    name = messages.API_NAMES[key]
    low, high = messages.API_VERSIONS[key]
    for version in range(low, high + 1):
        response: Any = REFUSED.before(messages.find(f"{name}Request")(), version)
        assert response is not None
        assert response.encode(version) is not None
        at_top = [one.versions for one in response.facts().root.fields if one.name == "ErrorCode"]
        if at_top and version in at_top[0]:
            assert response.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_rule_is_for_one_sender_and_so_many_requests() -> None:
    """Brokers and replicas that fetch name themselves; clients do not."""
    rules = FaultRules()
    fetching = FaultRule(ApiKey.FETCH, Fault(), sender=1)
    beating = FaultRule(ApiKey.BROKER_HEARTBEAT, Fault(), sender=1, times=2)
    rules.add(fetching)
    rules.add(beating)
    met = [rules.meet(BrokerHeartbeatRequest(broker_id=broker)) for broker in (1, 2, 1, 1)]
    assert met == [beating, None, beating, None]
    for replica in (1, 2):
        rules.meet(FetchRequest(replica_state=ReplicaState(replica_id=replica)))
        rules.meet(FetchRequest(replica_id=replica, replica_state=None))
    assert (fetching.count, beating.count) == (2, 2)


def test_the_broker_that_a_request_removes_is_not_its_sender() -> None:
    """An administrator sends it; of all requests with a broker's id only this one is of another."""
    rules = FaultRules()
    rules.add(FaultRule(UnregisterBrokerRequest.API_KEY, REFUSED, sender=1))
    assert rules.meet(UnregisterBrokerRequest(broker_id=1)) is None


def test_the_newest_rule_counts() -> None:
    """Until it is removed, and then the one before."""
    rules = FaultRules()
    old, new = (FaultRule(ApiKey.BROKER_HEARTBEAT, Fault()) for _ in range(2))
    rules.add(old)
    rules.add(new)
    assert rules.meet(BrokerHeartbeatRequest()) is new
    rules.remove(new)
    rules.remove(new)
    assert rules.meet(BrokerHeartbeatRequest()) is old
    assert list(rules) == [old]


def test_a_request_is_changed_in_place_and_a_response_may_be_replaced() -> None:
    """A change that returns nothing has changed what it got; a missing response stays missing."""

    def fence(message: Any) -> None:
        message.want_fence = True

    def shut_down(response: Any) -> None:
        response.should_shut_down = True

    request = BrokerHeartbeatRequest()
    assert Fault(change_request=fence).before(request, 1) is None
    assert request.want_fence
    response: Any = Fault(change_response=shut_down).after(BrokerHeartbeatResponse())
    assert response.should_shut_down
    other = BrokerHeartbeatResponse(is_fenced=False)
    assert Fault(change_response=lambda _: other).after(BrokerHeartbeatResponse()) is other
    assert Fault(change_response=shut_down).after(None) is None
    assert Fault().after(other) is other
