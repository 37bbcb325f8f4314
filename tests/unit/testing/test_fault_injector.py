"""The middleware that waits as rules say: what is held, delayed and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kraftwire.errors import UsageError
from kraftwire.faults.rules import FaultRule
from kraftwire.messages.alter_partition_request import AlterPartitionRequest, TopicData
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.node.context import Request
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.testing.fault_injector import FaultInjector
from kraftwire.wire.message import Message
from tests.support.suite.autojump import autojump


class Served:
    """A node that is asked for one heartbeat, and the rule for it."""

    def __init__(self, **fault: Any) -> None:
        self.injector = FaultInjector()
        self.rule: FaultRule = self.injector.add_row({"api": "BrokerHeartbeat", **fault})
        self.decisions = 0
        self.response: Any = None
        self.before_answer: Callable[[], object] = lambda: None

    async def _answer(self, _: Request) -> Message | None:
        self.decisions += 1
        self.before_answer()
        return BrokerHeartbeatResponse()

    async def serve(self, message: Message | None = None) -> None:
        """Answer a request, the heartbeat without one."""
        message = message or BrokerHeartbeatRequest(broker_id=1)
        request = Request(message.API_KEY, message.VERSIONS.high, message)
        self.response = await self.injector.middleware(
            request, self._answer, node=3, topic_name={bytes(16): None, b"t" * 16: "t"}.get
        )


@pytest.mark.trio
@pytest.mark.parametrize("of_request", [True, False])
async def test_what_is_held_goes_on_when_its_rule_ends(of_request: bool) -> None:
    """A held request is not decided until then."""
    served = Served(hold=True, undecided=of_request)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(served.serve)
        await wait_all_tasks_blocked()
        assert (served.response, served.decisions) == (None, 0 if of_request else 1)
        assert served.rule.count == 1
        served.rule.wait(timeout_s=0)
        served.rule.remove()
    assert served.response is not None
    await served.serve()
    assert served.rule.count == 1


@pytest.mark.trio
async def test_a_rule_may_end_before_the_request_comes_to_it() -> None:
    """Between the decision and the response."""
    served = Served(hold=True)
    served.before_answer = served.rule.remove
    await served.serve()
    assert served.response is not None


@autojump
async def test_a_response_is_sent_later() -> None:
    """The decision is not."""
    served = Served(delay=30)
    began = trio.current_time()
    await served.serve()
    assert trio.current_time() - began == 30


@pytest.mark.trio
async def test_a_refused_request_is_not_decided() -> None:
    """The node never sees it; a rule ends with its context."""
    served = Served(refuse="NOT_CONTROLLER")
    with served.rule:
        await served.serve()
    assert (served.response.error_code, served.decisions) == (ErrorCode.NOT_CONTROLLER, 0)
    await served.serve()
    assert served.decisions == 1


@pytest.mark.trio
async def test_all_rules_end_at_once() -> None:
    """A wait for requests that do not come ends in time."""
    served = Served(refuse="NOT_CONTROLLER")
    served.injector.clear()
    await served.serve()
    assert served.response.error_code == 0
    with pytest.raises(TimeoutError, match="0 of 1 requests came in 0 s"):
        served.rule.wait(timeout_s=0)


@pytest.mark.trio
@pytest.mark.parametrize(("when", "decisions"), [("before", 0), ("after", 1)])
async def test_a_connection_ends(when: str, decisions: int) -> None:
    """Without a response, before the node decides or after it."""
    served = Served(drop=when)
    await served.serve()
    assert (served.response, served.decisions) == (None, decisions)


@pytest.mark.trio
async def test_a_rule_may_name_the_node_and_a_topic() -> None:
    """By the name of its id, as the node knows it."""
    served = Served(drop="before", node=3)
    served.injector.add_row({"api": "BrokerHeartbeat", "drop": "before", "node": 4})
    await served.serve()
    rule = served.injector.add_row({"api": "AlterPartition", "drop": "before", "topic": "t"})
    for topic_id in (b"t" * 16, b"u" * 16):
        await served.serve(AlterPartitionRequest(topics=[TopicData(topic_id=topic_id)]))
    assert (served.rule.count, rule.count, served.decisions) == (1, 1, 1)


def test_nodes_have_no_faults_of_bytes() -> None:
    """Their middleware sees messages: a rule that could do nothing would make a test pass."""
    for fault in ({"throttle": 10}, {"black_hole": "both"}, {"hang_up_at": 4}):
        with pytest.raises(UsageError, match="a proxy has"):
            Served(**fault)
