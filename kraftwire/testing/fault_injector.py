"""Faults for the requests to nodes of this process: the middleware that waits, and its rules.

All requests of all listeners pass the middleware, those inside of an envelope too. Rules are added
and removed in any thread; the nodes' own thread applies them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import trio

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.faults.rows import new_rule
from kraftwire.faults.rules import FaultRule, FaultRules, no_topic_names
from kraftwire.faults.selectors import Offered, RequestHead
from kraftwire.node.context import Answer, Request
from kraftwire.protocol.entities import TopicName
from kraftwire.wire.message import Message


class FaultInjector:
    """Applies the rules for all nodes of one process, which have the `offered` versions.

    Order: `run_soon` gets a function that is called in the nodes' thread, before a rule is removed.
    """

    def __init__(self, offered: Offered = messages.API_VERSIONS) -> None:
        self.run_soon: Callable[[Callable[[], None]], object] = lambda function: function()
        self._offered = offered
        self._rules = FaultRules(self._end)
        self._removals: dict[FaultRule, trio.Event] = {}

    async def middleware(
        self,
        request: Request,
        answer: Answer,
        *,
        node: int | None = None,
        topic_name: TopicName = no_topic_names,
    ) -> Message | None:
        """Answer a request to a node as the newest rule for it says, or as the node does."""
        head = RequestHead(request.api_key, request.version, request.client_id, node)
        decision = self._rules.decide(head, time.monotonic(), request.message, topic_name)
        if decision.answer is not None:
            return decision.answer
        fault, rule = decision.fault, decision.rule
        if rule is None:
            return await answer(request)
        if decision.drop == "before":
            return None
        if fault.holds_request:
            await self._removal(rule)
        passed = decision.request or request.message
        response = await answer(replace(request, message=passed))
        if response is not None:
            response = decision.changed_response(response)
        if fault.holds_response:
            await self._removal(rule)
        if decision.delay_s:
            await trio.sleep(decision.delay_s)
        return None if decision.drop == "after" else response

    def add(self, rule: FaultRule) -> FaultRule:
        """Put a rule in force. Raises: UsageError for one that nodes cannot carry out."""
        for fault in rule.faults:
            if fault.black_hole or fault.bytes_per_s or fault.hang_up_at is not None:
                raise UsageError("nodes have no faults of connections but drop; a proxy has")
        self._removals[rule] = trio.Event()
        return self._rules.add(rule, time.monotonic())

    def add_row(self, row: Mapping[str, Any]) -> FaultRule:
        """Put the rule of a row in force. Raises: UsageError."""
        return self.add(new_rule(row, self._offered))

    def clear(self) -> None:
        """End all rules."""
        self._rules.clear()

    def _end(self, rule: FaultRule) -> None:
        removal = self._removals.pop(rule, None)
        if removal is not None:
            self.run_soon(removal.set)

    async def _removal(self, rule: FaultRule) -> None:
        """Return when a rule is ended."""
        removal = self._removals.get(rule)
        if removal is not None:
            await removal.wait()
