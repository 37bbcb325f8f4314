"""Which requests a fault is for, and what it does to them and to their responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import Error, refusal
from kraftwire.protocol.versions import fetching_replica
from kraftwire.security.operations import elements_of
from kraftwire.wire.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to a request, in the order of the fields.

    With an `error` that is the response, and the request is not carried out. A change is made in
    place; that of a response may also return another message. What is held waits until the rule is
    removed. Units: `delay_s` is in seconds, after the response is made.
    """

    error: ErrorCode | None = None
    change_request: Callable[[Any], object] | None = None
    holds_request: bool = False
    change_response: Callable[[Any], Any] | None = None
    holds_response: bool = False
    delay_s: float = 0.0

    def before(self, request: Message, version: int) -> Message | None:
        """Return the response that refuses a request; else change the request, and return None."""
        if self.error is not None:
            error = Error(self.error, "refused by a test")
            return refusal(request, version, lambda _: error, elements_of(request), error)
        if self.change_request is not None:
            self.change_request(request)
        return None

    def after(self, response: Message | None) -> Message | None:
        """Return the response that is sent in place of another; None if a request has none."""
        if self.change_response is None or response is None:
            return response
        changed: Message | None = self.change_response(response)
        return changed or response


@dataclass(slots=True, eq=False)
class FaultRule:
    """A fault for the requests of an API, with `sender` for those of one broker or controller.

    With `times` it is for so many requests. `count` is how many requests it has met.
    """

    api_key: int
    fault: Fault
    sender: int | None = None
    times: int | None = None
    count: int = 0

    def matches(self, request: Message) -> bool:
        """Return whether the rule is for a request."""
        is_over = self.times is not None and self.count >= self.times
        if is_over or self.api_key != request.API_KEY:
            return False
        return self.sender is None or _sender(request) == self.sender


class FaultRules:
    """All rules of one server, the newest first. They may be added and removed in any thread."""

    def __init__(self) -> None:
        self._rules: tuple[FaultRule, ...] = ()

    def __iter__(self) -> Iterator[FaultRule]:
        return iter(self._rules)

    def add(self, rule: FaultRule) -> None:
        """Add a rule, which goes before those that there are."""
        self._rules = (rule, *self._rules)

    def remove(self, rule: FaultRule) -> None:
        """Remove a rule; no effect if it was removed."""
        self._rules = tuple(each for each in self._rules if each is not rule)

    def meet(self, request: Message) -> FaultRule | None:
        """Return the first rule that is for a request, and count the request there."""
        rule = next((each for each in self._rules if each.matches(request)), None)
        if rule is not None:
            rule.count += 1
        return rule


def _sender(message: Any) -> int | None:
    """Return the id of the broker or controller that sends a request, None if it does not say."""
    if isinstance(message, FetchRequest):
        return fetching_replica(message)
    if isinstance(message, UnregisterBrokerRequest):
        return None  # an administrator sends it: its broker is the one to remove
    found = getattr(message, "broker_id", None)
    return found if isinstance(found, int) else None
