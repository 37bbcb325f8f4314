"""The requests and answers of an untimed cluster: in flight, with their addressee, or lost. They
arrive when the scheduler decides."""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.sim.checks.liveness import Link
from kraftwire.wire.message import Message

# Sender, addressee, the message's name, and a count of such calls.
Name = tuple[int, int, str, int]


_PENDING_MAX = 60


@dataclass(slots=True, eq=False)
class UntimedCall:
    """A request and its answer.

    `answer` is None while the request is in flight. The sender waits for the answer if
    `is_awaited`, and, where time counts, until `deadline_ms`. `run` is the run of the sender.
    """

    name: Name
    run: int
    request_id: int
    message: Message
    version: int
    deadline_ms: int
    answer: Message | None = None
    is_awaited: bool = True

    @property
    def link(self) -> Link:
        """Sender and addressee of the message in flight."""
        sender, target = self.name[:2]
        return (sender, target) if self.answer is None else (target, sender)


class Calls:
    """All calls. `pending` are in flight; `lost` are those whose addressee crashed."""

    def __init__(self) -> None:
        self.pending: list[UntimedCall] = []
        self.lost: list[UntimedCall] = []
        self._received: dict[int, UntimedCall | None] = {}
        self._counts: dict[tuple[int, int, str], int] = {}
        self._token = 0

    def everywhere(self) -> list[UntimedCall]:
        """All calls."""
        calls = (*self.pending, *self._received.values(), *self.lost)
        return [one for one in calls if one is not None]

    def awaited(self) -> list[UntimedCall]:
        """The calls whose senders wait for an answer."""
        return [one for one in self.everywhere() if one.is_awaited]

    def on_its_way(self, name: Name) -> UntimedCall | None:
        """Return the call of this name if it is in flight; else the newest of the same kind.

        So a path still works after the events that caused other calls were removed from it.
        """
        kin = None
        for call in self.pending:
            if call.name == name:
                return call
            if call.name[:3] == name[:3]:
                kin = call
        return kin

    def waited_for(self, name: Name) -> UntimedCall | None:
        """Return the call of this name if its sender waits; else the newest of the same kind."""
        kin = None
        for call in self.awaited():
            if call.name == name:
                return call
            if call.name[:3] == name[:3]:
                kin = call
        return kin

    def number(self, sender: int, target: int, message: Message) -> Name:
        """Return a name for a new call."""
        kind = (sender, target, message.NAME)
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        return (*kind, count)

    def post(self, call: UntimedCall) -> None:
        """Send a call; if there are too many, drop one whose sender does not wait."""
        self.pending.append(call)
        if len(self.pending) > _PENDING_MAX:
            stale = next((one for one in self.pending if not one.is_awaited), None)
            if stale is not None:
                self.pending.remove(stale)

    def arrives(self, call: UntimedCall | None) -> int:
        """Record that a request has arrived, None for one whose answer nobody receives.

        Returns the token of the answer.
        """
        self._token += 1
        self._received[self._token] = call
        return self._token

    def answered(self, token: int, message: Message) -> None:
        """Send an answer."""
        call = self._received.pop(token)
        if call is not None:
            call.answer = message
            self.post(call)

    def disown(self, sender: int) -> None:
        """Stop all waiting of a node."""
        for call in self.awaited():
            if call.name[0] == sender:
                call.is_awaited = False
        self.lost = [one for one in self.lost if one.is_awaited]

    def dies(self, node: int, tokens: list[int]) -> None:
        """Handle a crash: the node's own requests may still arrive; those sent to it are lost."""
        for token in tokens:
            # The connection is gone with the process: the sender learns of it in time.
            parked = self._received.pop(token, None)
            if parked is not None and parked.is_awaited:
                self.lost.append(parked)
        self.disown(node)
        self.pending = [
            one for one in self.pending if one.name[0] != node or one.answer is None
        ]
