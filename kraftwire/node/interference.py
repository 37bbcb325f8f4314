"""Answers of a node that a test holds back, delays, replaces or changes.

All requests of all listeners pass `Interference.answer`, those inside of an envelope too. Rules are
made and removed in any thread; the node's own thread applies them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import trio

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.node.context import Answer, Interpose, Request
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import Error, refusal
from kraftwire.protocol.versions import fetching_replica
from kraftwire.security.operations import elements_of
from kraftwire.wire.message import Message

_Matches = Callable[[Request, int], bool]


class Rule:
    """What happens to the requests of an API, until it is removed; a context that removes it.

    `count` is how many requests it has met.
    """

    def __init__(self, owner: Interference, matches: _Matches, apply: Interpose) -> None:
        self.count = 0
        self._owner = owner
        self._matches = matches
        self._apply = apply
        self._met = threading.Condition()
        self._release = trio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Let requests pass again, those too that are held."""
        self._owner.remove(self)

    def wait(self, count: int = 1, timeout_s: float = 60.0) -> None:
        """Wait until the rule has met so many requests. Raises: TimeoutError."""
        with self._met:
            if not self._met.wait_for(lambda: self.count >= count, timeout_s):
                raise TimeoutError(f"{self.count} of {count} requests came in {timeout_s:g} s")

    def takes(self, request: Request) -> bool:
        """Return whether the rule is about a request, and count it if so."""
        if not self._matches(request, self.count):
            return False
        with self._met:
            self.count += 1
            self._met.notify_all()
        return True

    async def apply(self, request: Request, answer: Answer) -> Message | None:
        """Do to a request what the rule says."""
        return await self._apply(request, answer)

    async def released(self) -> None:
        """Return when the rule is removed."""
        await self._release.wait()

    def release(self) -> None:
        """Let held requests and answers go on. Order: in the node's thread."""
        self._release.set()


class Interference:
    """The rules of the nodes of one process, the newest first.

    Order: `run_soon` gets a function that is called in the nodes' thread, before a rule is removed.
    """

    def __init__(self) -> None:
        self.run_soon: Callable[[Callable[[], None]], object] = lambda function: function()
        self._rules: tuple[Rule, ...] = ()

    async def answer(self, request: Request, answer: Answer) -> Message | None:
        """Answer a request as the first rule about it says, or as the node does."""
        for rule in self._rules:
            if rule.takes(request):
                return await rule.apply(request, answer)
        return await answer(request)

    def add(
        self,
        api_key: int,
        apply: Callable[[Rule], Interpose],
        *,
        broker: int | None = None,
        times: int | None = None,
    ) -> Rule:
        """Add a rule about an API, of one sender or all, for so many requests or until removed."""

        def matches(request: Request, count: int) -> bool:
            is_wanted = request.api_key == api_key and (times is None or count < times)
            return is_wanted and (broker is None or _sender(request.message) == broker)

        async def applied(request: Request, answer: Answer) -> Message | None:
            return await apply(rule)(request, answer)

        rule = Rule(self, matches, applied)
        self._rules = (rule, *self._rules)
        return rule

    def remove(self, rule: Rule) -> None:
        """Remove a rule; no effect if it was removed."""
        self._rules = tuple(each for each in self._rules if each is not rule)
        self.run_soon(rule.release)

    def clear(self) -> None:
        """Remove all rules."""
        for rule in self._rules:
            self.remove(rule)


def refused(code: ErrorCode) -> Callable[[Rule], Interpose]:
    """Return what answers with an error, without a decision."""

    async def apply(request: Request, _: Answer) -> Message | None:
        message, error = request.message, Error(code, "refused by a test")
        return refusal(message, request.version, lambda _: error, elements_of(message), error)

    return lambda _: apply


def held(*, undecided: bool) -> Callable[[Rule], Interpose]:
    """Return what holds answers, or with `undecided` requests, until the rule is removed."""

    def of(rule: Rule) -> Interpose:
        async def apply(request: Request, answer: Answer) -> Message | None:
            if undecided:
                await rule.released()
                return await answer(request)
            found = await answer(request)
            await rule.released()
            return found

        return apply

    return of


def delayed(seconds: float) -> Callable[[Rule], Interpose]:
    """Return what sends each answer so much later."""

    async def apply(request: Request, answer: Answer) -> Message | None:
        found = await answer(request)
        await trio.sleep(seconds)
        return found

    return lambda _: apply


def answer_changed(change: Callable[[Any], Any]) -> Callable[[Rule], Interpose]:
    """Return what passes each answer through a function, which may change it in place."""

    async def apply(request: Request, answer: Answer) -> Message | None:
        found = await answer(request)
        return found if found is None else change(found) or found

    return lambda _: apply


def request_changed(change: Callable[[Any], object]) -> Callable[[Rule], Interpose]:
    """Return what changes each request in place before it is answered."""

    async def apply(request: Request, answer: Answer) -> Message | None:
        change(request.message)
        return await answer(request)

    return lambda _: apply


def _sender(message: Any) -> int | None:
    """Return the id of the broker or controller that sends a request, None if it does not say."""
    if isinstance(message, FetchRequest):
        return fetching_replica(message)
    found = getattr(message, "broker_id", None)
    return found if isinstance(found, int) else None
