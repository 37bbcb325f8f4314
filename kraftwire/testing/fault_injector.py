"""Faults for the requests to nodes of this process: the middleware that waits, and its rules.

All requests of all listeners pass the middleware, those inside of an envelope too. Rules are added
and removed in any thread; the nodes' own thread applies them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import trio

from kraftwire.faults.rules import FaultRule, FaultRules
from kraftwire.node.context import Answer, Request
from kraftwire.wire.message import Message


class InjectedRule(AbstractContextManager["InjectedRule"]):
    """A rule that is in force until it is removed; a context that removes it."""

    def __init__(self, owner: FaultInjector, rule: FaultRule) -> None:
        self._owner = owner
        self._rule = rule

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def count(self) -> int:
        """How many requests it has met."""
        return self._rule.count

    def remove(self) -> None:
        """End the rule; requests and responses that it holds go on."""
        self._owner.remove(self._rule)

    def wait(self, count: int = 1, timeout_s: float = 60.0) -> None:
        """Wait until the rule has met so many requests. Raises: TimeoutError."""
        if not self._owner.wait(lambda: self.count >= count, timeout_s):
            raise TimeoutError(f"{self.count} of {count} requests came in {timeout_s:g} s")


class FaultInjector:
    """Applies the rules for all nodes of one process.

    Order: `run_soon` gets a function that is called in the nodes' thread, before a rule is removed.
    """

    def __init__(self) -> None:
        self.run_soon: Callable[[Callable[[], None]], object] = lambda function: function()
        self._rules = FaultRules()
        self._removals: dict[FaultRule, trio.Event] = {}
        self._met = threading.Condition()

    async def middleware(self, request: Request, answer: Answer) -> Message | None:
        """Answer a request as the newest rule for it says, or as the node does."""
        with self._met:
            rule = self._rules.meet(request.message)
            self._met.notify_all()
        if rule is None:
            return await answer(request)
        fault = rule.fault
        refused = fault.before(request.message, request.version)
        if refused is not None:
            return refused
        if fault.holds_request:
            await self._removal(rule)
        response = fault.after(await answer(request))
        if fault.holds_response:
            await self._removal(rule)
        if fault.delay_s:
            await trio.sleep(fault.delay_s)
        return response

    def add(self, rule: FaultRule) -> InjectedRule:
        """Put a rule in force."""
        self._removals[rule] = trio.Event()
        self._rules.add(rule)
        return InjectedRule(self, rule)

    def remove(self, rule: FaultRule) -> None:
        """End a rule; no effect if it was ended."""
        self._rules.remove(rule)
        removal = self._removals.pop(rule, None)
        if removal is not None:
            self.run_soon(removal.set)

    def clear(self) -> None:
        """End all rules."""
        for rule in self._rules:
            self.remove(rule)

    def wait(self, is_met: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition on the requests that came is met; return whether it is."""
        with self._met:
            return self._met.wait_for(is_met, timeout_s)

    async def _removal(self, rule: FaultRule) -> None:
        """Return when a rule is ended."""
        removal = self._removals.get(rule)
        if removal is not None:
            await removal.wait()
