"""Carries requests and answers between nodes: late, duplicated, out of order, or not at all.

Owns what is in flight. A sender learns of a lost message only by its own time-out, of a broken
connection at once; the request may have been handled in either case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol

from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.raft.effects import SendRequest
from kraftwire.raft.events import Event, RequestFailed, ResponseReceived
from kraftwire.sim.checks.elections import is_pre_vote
from kraftwire.sim.clock import MS, EventQueue
from kraftwire.sim.coverage import Coverage
from kraftwire.sim.plan import Plan, Weather
from kraftwire.wire.message import Message

BROKER_NOT_AVAILABLE = 8
UNSUPPORTED_VERSION = 35

_PRE_VOTE_VERSION = 2


class Call:
    """A request in flight, and its answer."""

    __slots__ = (
        "deadline", "is_done", "message", "request_id", "run", "sender", "target", "version",
    )

    def __init__(self, sender: Peer, target: int, effect: SendRequest, version: int) -> None:
        self.sender = sender
        self.run = sender.run
        self.target = target
        self.request_id = effect.request_id
        self.message = effect.message
        self.version = version
        self.deadline = 0
        self.is_done = False


class Peer(Protocol):
    """A node, as the network sees it."""

    id: int
    run: int

    @property
    def is_foreign(self) -> bool:
        """Whether it belongs to another cluster."""

    @property
    def is_up(self) -> bool:
        """Whether a process runs."""

    def receive(self, call: Call, message: Message) -> None:
        """Handle a request."""

    def take(self, event: Event) -> None:
        """Handle any other event."""

    def timeout_at(self, timeout_ms: int) -> int:
        """When the node's clock will have counted this many milliseconds."""


class Network:
    """The links of a cluster."""

    def __init__(self, plan: Plan, queue: EventQueue, coverage: Coverage) -> None:
        self.weather = plan.weather
        self.peers: dict[int, Peer] = {}
        self.addresses: dict[tuple[str, int], int] = {}
        self.cut: dict[tuple[int, int], int] = {}
        self._random = Random(f"network {plan.seed}")
        self._draw = self._random.random
        self._queue = queue
        self._coverage = coverage
        self._with_bytes = plan.with_bytes
        self._with_late_answers = plan.with_late_answers
        self._old = dict(plan.old_peers)
        if plan.stranger and plan.seed % 2:
            # A stranger without pre-votes begins epoch after epoch.
            self._old[plan.nodes + 1] = {VoteRequest.API_KEY: 1}

    def send(self, sender: Peer, effect: SendRequest) -> Call:
        """Send a request; its sender gets at most one result: an answer or a failure."""
        destination = effect.destination
        target = self.addresses[destination.host, destination.port]
        message = effect.message
        version = self._version(message, sender.id, target) if self._old else message.VERSIONS.high
        call = Call(sender, target, effect, version)
        call.deadline = sender.timeout_at(effect.timeout_ms)
        if self._old and version < _PRE_VOTE_VERSION and is_pre_vote(message):
            self._coverage.hit("pre-vote unknown to a peer")
            self._queue.after(MS, self._fail, call, UNSUPPORTED_VERSION)
            return call
        if self._with_bytes:
            message = _recoded(message, version)
        self._carry((sender.id, target), self._arrive, call, message)
        return call

    def reply(self, node: int, call: Call, message: Message) -> None:
        """Send an answer back."""
        if self._with_bytes:
            message = _recoded(message, call.version)
        self._carry((node, call.sender.id), self._answer, call, message)

    def drop_connections(self, call: Call) -> None:
        """Tell a request's sender that its connection broke."""
        if not call.is_done:
            self._queue.after(self._latency(), self._fail, call, BROKER_NOT_AVAILABLE)

    def block(self, pairs: list[tuple[int, int]], amount: int) -> None:
        """Block links, each in one direction (1), or remove one of their blocks (-1)."""
        for pair in pairs:
            count = self.cut.get(pair, 0) + amount
            if count > 0:
                self.cut[pair] = count
            else:
                self.cut.pop(pair, None)

    def heal(self, weather: Weather) -> None:
        """Restore all links, and set the weather from now on."""
        self.cut.clear()
        self.weather = weather

    def forget(self, calls: Iterable[Call]) -> None:
        """Forget a node's requests; in some clusters their answers still reach it."""
        if not self._with_late_answers:
            for call in calls:
                call.is_done = True

    def expire(self, call: Call) -> None:
        """Time a request out."""
        if not call.is_done:
            self._coverage.hit("request timed out")
            self._fail(call, BROKER_NOT_AVAILABLE)

    def _carry(
        self,
        link: tuple[int, int],
        arrive: Callable[[Call, Message], None],
        call: Call,
        body: Message,
    ) -> None:
        weather, random = self.weather, self._draw
        if self.cut and link in self.cut:
            self._coverage.hit("cut off")
            return
        if weather.drop and random() < weather.drop:
            self._coverage.hit("dropped")
            return
        if weather.reset and random() < weather.reset:
            self._coverage.hit("connection reset")
            self.drop_connections(call)
            if random() < 0.5:
                return
        delay = int((0.3 + random()) * weather.latency_ms * MS)
        if weather.tail and random() < weather.tail:
            self._coverage.hit("delayed")
            delay += int(random() * weather.tail_ms * MS)
        self._queue.after(delay, arrive, call, body)
        if weather.duplicate and random() < weather.duplicate:
            self._coverage.hit("duplicated")
            again = self._latency() + int(random() * random() * weather.tail_ms * MS)
            self._queue.after(again, arrive, call, body)

    def _latency(self) -> int:
        return int((0.3 + self._draw()) * self.weather.latency_ms * MS)

    def _arrive(self, call: Call, message: Message) -> None:
        peer = self.peers[call.target]
        if not peer.is_up:
            self._coverage.hit("came to a dead node")
            # A running machine refuses at once; one that is down stays silent.
            if self._draw() < 0.5:
                self.drop_connections(call)
            return
        if type(message) is ApiVersionsRequest:
            # A node's shell, not its core, answers this one.
            self.reply(call.target, call, _features())
            return
        peer.receive(call, message)

    def _answer(self, call: Call, message: Message) -> None:
        if call.is_done or call.sender.run != call.run:
            self._coverage.hit("answer came too late")
            return
        call.is_done = True
        call.sender.take(ResponseReceived(call.request_id, message))

    def _fail(self, call: Call, error: int) -> None:
        if call.is_done or call.sender.run != call.run:
            return
        call.is_done = True
        call.sender.take(RequestFailed(call.request_id, error))

    def _version(self, message: Message, sender: int, target: int) -> int:
        version, old = message.VERSIONS.high, self._old
        for node in (sender, target):
            if node in old:
                version = min(version, old[node].get(message.API_KEY, version))
        return version


def _features() -> ApiVersionsResponse:
    """Return the features of a node like the shipped one."""
    return ApiVersionsResponse(
        supported_features=[
            SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1),
            SupportedFeatureKey(name="kraftwire.version", min_version=1, max_version=1),
        ]
    )


def _recoded(message: Message, version: int) -> Message:
    """Encode and decode a message, so that it is as the other side will see it."""
    again, _ = message.decode(message.encode(version), version)
    return again
