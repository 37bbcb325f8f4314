"""The rules of a server, the newest first: which one meets a request, and what it decides."""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Self

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.faults.fault import NOTHING, Drop, Fault
from kraftwire.faults.refusing import (
    OF_ELEMENTS,
    Refused,
    list_partitions,
    refuse,
    without_session,
)
from kraftwire.faults.selectors import RequestHead, Selector
from kraftwire.protocol.entities import TopicName
from kraftwire.wire.message import Message

# So many of the requests that a rule has met are kept for whoever looks.
REQUESTS_MAX = 1_000

_WAIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Which of the requests that a rule is for it meets: by number, by chance, by time.

    The first `times`; every one of so many; each with a `probability`, drawn from a generator with
    `seed`; those that come `from_s` seconds after the rule was added, for `for_s` seconds.
    """

    times: int | None = None
    every: int = 1
    probability: float = 1.0
    seed: int = 0
    from_s: float = 0.0
    for_s: float | None = None


_NO_LIMITS = Limits()
_NO_ROW: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class MetRequest:
    """A request that a rule has met, and when, in seconds of the server's clock."""

    time_s: float
    head: RequestHead


class Need(Enum):
    """What a server has to read of a request before rules decide about it."""

    NOTHING = "no rule is for it"
    HEAD = "its head decides"
    BODY = "its body decides"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a server does with one request. Without a rule it passes the request on.

    Order: if `drop` is "before", end the connection. If `answer` is there, it is the response, and
    the request is not passed on. Otherwise, with `rule.fault.holds_request`, wait for the rule's
    end; pass on `request`, or as it came where that is None. Pass what comes back through
    `changed_response` if `changes_response`. Then `rule.fault` says what is left: wait for the
    rule's end, wait `delay_s` (drawn for this request), drop, throttle, hang up. A request that
    expects no response, such as Produce with acks=0, has no `answer`, and `drop` instead.
    """

    rule: FaultRule | None = None
    fault: Fault = NOTHING
    drop: Drop | None = None
    answer: Message | None = None
    request: Message | None = None
    delay_s: float = 0.0
    change: Callable[[Message], Message] | None = None

    @property
    def changes_response(self) -> bool:
        """Whether the response has to be decoded."""
        return self.change is not None

    def changed_response(self, response: Message) -> Message:
        """Return the response that is sent in place of another."""
        return response if self.change is None else self.change(response)


PASS: Final = Decision()


class FaultRule:
    """Faults for the requests that a selector selects: the same for each, or one after the other.

    A script of several faults ends with the last one. `count` is the number of requests that the
    rule has met, `requests` the last of them. `not_carried` counts those that could not be refused
    because their version has no field for the error, by API and version. It is a context that
    removes the rule. Methods may be called in any thread.
    """

    def __init__(
        self,
        selector: Selector,
        *faults: Fault,
        limits: Limits = _NO_LIMITS,
        row: Mapping[str, Any] = _NO_ROW,
    ) -> None:
        """`row` is what the rule was made of, for people."""
        self.row = row
        self.selector = selector
        self.faults = faults
        self.limits = limits
        self.id = 0
        self.count = 0
        self.requests: deque[MetRequest] = deque(maxlen=REQUESTS_MAX)
        self.not_carried: Counter[str] = Counter()
        self._selected = 0
        self._added_s = 0.0
        self._random = random.Random(limits.seed)
        self._owner: FaultRules | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """End the rule: what it holds goes on."""
        if self._owner is not None:
            self._owner.remove(self)

    def wait(self, count: int = 1, timeout_s: float = _WAIT_S) -> None:
        """Wait until the rule has met so many requests. Raises: TimeoutError."""
        owner = self._owner
        if owner is None or not owner.wait(lambda: self.count >= count, timeout_s):
            raise TimeoutError(f"{self.count} of {count} requests came in {timeout_s:g} s")

    @property
    def needs_body(self) -> bool:
        """Whether a request has to be decoded."""
        return self.selector.needs_body or any(each.needs_body for each in self.faults)

    def is_in_force(self, now_s: float) -> bool:
        """Return whether the rule can meet a request at a time."""
        limits = self.limits
        if limits.times is not None and self.count >= limits.times:
            return False
        if len(self.faults) > 1 and self.count >= len(self.faults):
            return False
        since = now_s - self._added_s - limits.from_s
        return since >= 0 and (limits.for_s is None or since < limits.for_s)

    def add_to(self, owner: FaultRules, id: int, now_s: float) -> None:
        """Note that the rule is in force from now on."""
        self._owner, self.id, self._added_s = owner, id, now_s

    def is_chosen(self) -> bool:
        """Return whether the limits choose the next request that the selector selects."""
        self._selected += 1
        if self._selected % self.limits.every:
            return False
        return self.limits.probability >= 1 or self._random.random() < self.limits.probability

    @property
    def is_about_parts(self) -> bool:
        """Whether the rule may be for parts of a request."""
        has_parts = any(each.error in OF_ELEMENTS and not each.is_whole for each in self.faults)
        return has_parts or bool(self.selector.names)

    def decide(
        self, head: RequestHead, now_s: float, request: Message | None, topic_name: TopicName
    ) -> Decision | None:
        """Return what happens to a request that the rule meets, and count it; None for no change.

        A request that cannot be refused is counted in `not_carried` alone.
        """
        fault = self.faults[min(self.count, len(self.faults) - 1)]
        refused = None
        if request is not None and fault.error is not None:
            refused = refuse(request, head.version, fault, self.selector, topic_name)
            if refused is None:
                self.not_carried[f"{messages.API_NAMES[head.api_key]} v{head.version}"] += 1
                return None
        self.count += 1
        self.requests.append(MetRequest(now_s, head))
        if fault.is_nothing:
            return PASS if len(self.faults) > 1 else None
        if request is not None and fault.change_request is not None:
            fault.change_request(request)
        low, high = fault.delay_s
        refused = refused or Refused()
        return Decision(
            rule=self,
            fault=fault,
            drop=fault.drop or refused.drop,
            answer=refused.answer,
            request=request if fault.change_request is not None else refused.passed,
            delay_s=self._random.uniform(low, high) if high else 0.0,
            change=_change(fault, refused, head.version),
        )


def _change(fault: Fault, refused: Refused, version: int) -> Callable[[Message], Message] | None:
    """Return what a response goes through, None for nothing."""
    part, change = refused.part, fault.change_response
    if part is not None:
        return part.join
    if change is None:
        return None

    def changed(response: Message) -> Message:
        found: Message | None = change(response, version)
        return found or response

    return changed


def no_topic_names(_: bytes) -> str | None:
    """Return no name: who has no table of topics knows none by id."""
    return None


class FaultRules:
    """All rules of one server, the newest first. They are added and removed in any thread.

    `on_remove` is called with each rule that ends, in the thread that ends it.
    """

    def __init__(self, on_remove: Callable[[FaultRule], object] = lambda _: None) -> None:
        self._rules: tuple[FaultRule, ...] = ()
        self._on_remove = on_remove
        self._changed = threading.Condition()
        self._added = 0

    def __iter__(self) -> Iterator[FaultRule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __contains__(self, rule: object) -> bool:
        return rule in self._rules

    def add(self, rule: FaultRule, now_s: float) -> FaultRule:
        """Add a rule, which goes before those that there are; `now_s` as for requests."""
        with self._changed:
            self._added += 1
            rule.add_to(self, self._added, now_s)
            self._rules = (rule, *self._rules)
        return rule

    def remove(self, rule: FaultRule) -> None:
        """Remove a rule; no effect if it was removed."""
        with self._changed:
            if rule not in self._rules:
                return
            self._rules = tuple(each for each in self._rules if each is not rule)
        self._on_remove(rule)

    def find(self, id: int) -> FaultRule:
        """Return the rule with an id. Raises: UsageError."""
        for rule in self._rules:
            if rule.id == id:
                return rule
        raise UsageError(f"there is no rule {id}")

    def clear(self) -> None:
        """Remove all rules."""
        for rule in self._rules:
            self.remove(rule)

    def wait(self, is_met: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition on the requests that came is met; return whether it is."""
        with self._changed:
            return self._changed.wait_for(is_met, timeout_s)

    def need(self, head: RequestHead, now_s: float) -> Need:
        """Return what has to be read of a request before `decide`: often nothing."""
        found = Need.NOTHING
        for rule in self._rules:
            if rule.selector.fits_head(head) and rule.is_in_force(now_s):
                if rule.needs_body:
                    return Need.BODY
                found = Need.HEAD
        return found

    def decide(
        self,
        head: RequestHead,
        now_s: float,
        request: Message | None = None,
        topic_name: TopicName = no_topic_names,
    ) -> Decision:
        """Return what the newest rule that meets a request decides, and count the request there.

        The `request` is its decoded body, wanted where `need` says so; it may be changed. Rules
        that only count do not keep others from deciding. `topic_name` gives the names of ids.
        """
        came = request
        with self._changed:
            for rule in self._rules:
                if not rule.is_in_force(now_s) or not rule.selector.fits_head(head):
                    continue
                if request is None and rule.needs_body:
                    continue
                if request is not None:
                    if rule.is_about_parts:
                        request = list_partitions(request)
                        if request is None:
                            return Decision(answer=without_session())
                    if not rule.selector.fits_body(request, head.version, topic_name):
                        continue
                decision = None
                if rule.is_chosen():
                    decision = rule.decide(head, now_s, request, topic_name)
                    self._changed.notify_all()
                if decision is not None:
                    return _passing(decision, request, came)
        return _passing(PASS, request, came)


def _passing(decision: Decision, request: Message | None, came: Message | None) -> Decision:
    """Return a decision that passes on a request in place of the one that came."""
    if request is came or decision.request is not None:
        return decision
    return replace(decision, request=request)
