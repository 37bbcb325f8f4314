"""A controller of ours for scripts: in this process, over a log in memory.

Owns how a script asks it: requests and answers go through Kafka's schemas, not through the codec
of this project alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import trio
import trio.testing

from kraftwire import messages
from kraftwire.controller.image import METADATA_VERSION, BrokerImage, MetadataImage
from kraftwire.controller.sessions import Sessions
from kraftwire.controller.versions import SUPPORTED_FEATURES, WITH_CONTROLLERS
from kraftwire.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
)
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.node import handlers
from kraftwire.node.authorization import Authorization
from kraftwire.node.context import Request
from kraftwire.node.controller import Controller
from kraftwire.node.logs import RateLimit
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.voters import ReplicaKey, Voter
from kraftwire.records.batch import RecordBatch
from kraftwire.wire.message import Message
from tests.oracle.clusters import NEWEST_LEVEL, features_of
from tests.oracle.comparison import Comparison
from tests.oracle.passing_time import MOVES_MS
from tests.oracle.shared_scripts import Tools
from tests.support.nodes.stub import StubNode, control_batch, request_of

STALE_SESSION = 101  # DUPLICATE_BROKER_REGISTRATION


class Silence(RateLimit):
    """No log of refusals."""

    def log(self, kind: str, event: str, level: str = "warning", **fields: object) -> None:
        """Log nothing."""


class OurNode(StubNode):
    """A node whose process has an id, which is another one when it starts again."""

    process = bytes(range(16))

    def __init__(self, node_id: int = 1, voter_count: int = 1, **more: object) -> None:
        super().__init__(node_id, voter_count, **more)
        settings = self.config.security.authorizer
        self._authorization = Authorization(settings, {}, Silence(lambda: 0.0))

    async def answer(self, request: Request) -> Message | None:
        """What a handler answers to who may ask."""
        handler = handlers.route(request)
        assert handler is not None, request.api_key
        return await self._authorization.answer(request, cast("Any", self), handler)

    @property
    def sessions(self) -> HashedSessions:
        """What the controller knows of brokers."""
        found = self.controller._sessions
        assert isinstance(found, HashedSessions)
        return found


class HashedSessions(Sessions):
    """Sessions that end in a given order of brokers where several end at once.

    That of Kafka's is the order of a hash table (C-HB-11).
    """

    order: Sequence[int] = ()

    def expired(self, image: MetadataImage, now_ms: int) -> list[BrokerImage]:
        """The brokers whose sessions have ended."""
        places = {broker: place for place, broker in enumerate(self.order)}
        found = super().expired(image, now_ms)
        return sorted(found, key=lambda broker: places.get(broker.id, len(places)))


@asynccontextmanager
async def our_controller(
    tools: Tools, level: int = NEWEST_LEVEL, **config: object
) -> AsyncIterator[tuple[OurNode, Comparison]]:
    """A fresh controller of ours at work, at a level of metadata.version, which has registered
    itself, and an empty comparison."""
    voter = Voter(ReplicaKey(1), (Endpoint("CONTROLLER", "127.0.0.1", 9191),))
    node = OurNode(1, voter_count=1, voters=(voter,), **config)
    levels = [(METADATA_VERSION, level), *features_of(level).levels]
    bootstrap = [(FeatureLevelRecord(name=name, feature_level=one), 0) for name, one in levels]
    node.controller = Controller(node.config, cast("Any", node), bootstrap=bootstrap)
    node.controller._sessions = HashedSessions(node.config.session_timeout_ms)
    node.raft.cluster_id = tools.oracle.CID
    begin_epoch(node)
    comparison = Comparison()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        await trio.testing.wait_all_tasks_blocked()
        await register(node)
        yield node, comparison
        nursery.cancel_scope.cancel()
    comparison.log = b"".join(bytes(batch.raw) for batch in node.batches)


async def register(node: OurNode) -> None:
    """Let the controller register itself as Kafka's does, once in a process, where its level has
    that."""
    (found, *_) = (*node.image.controllers.values(), None)
    is_early = (node.image.metadata_version or 0) < WITH_CONTROLLERS
    if is_early or (found and found.incarnation_id == node.process):
        return
    await node.controller.register_controller(
        ControllerRegistrationRequest(
            controller_id=1,
            incarnation_id=node.process,
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
        )
    )


def begin_epoch(node: OurNode) -> None:
    """Let this node lead a new epoch, whose first record is a control record."""
    node.raft.epoch += 1
    node.commit(control_batch(node.raft.end_offset, epoch=node.raft.epoch))
    node.controller.leadership(1, node.raft.epoch, node.raft.end_offset)


def rewind(node: OurNode, count: int) -> None:
    """Shorten the log to so many batches. The image is made again from them."""
    del node.batches[count:]
    node.raft.end_offset = node.raft.high_watermark = node.batches[-1].last_offset + 1
    node.controller._image = MetadataImage()
    node.controller.apply(node.batches)


class Connection:
    """The script's connection: requests and answers go through Kafka's schemas."""

    def __init__(self, tools: Tools, node: OurNode, comparison: Comparison) -> None:
        self.cid = tools.oracle.CID
        self.base_ms = node.clock_ms
        self.is_refused_by_java = False
        self._keys = tools.oracle.KEY
        self._proto = tools.proto
        self._node = node
        self._comparison = comparison

    def call(self, name: str, version: int, body: dict[str, Any]) -> Any:
        """Return the answer of our controller."""
        if name == "BrokerRegistration" and self._is_only_refused_by_java(body["BrokerId"]):
            self._comparison.known["a fenced broker restarts within its session (C-REG-8)"] += 1
            return {"ErrorCode": STALE_SESSION, "BrokerEpoch": -1}
        data = self._proto.encode(f"{name}Request", body, version)
        message, _ = messages.request_class(self._keys[name]).decode(data, version)
        request = request_of(message, version, to="peer")
        first = self._node.raft.end_offset
        answer = trio.from_thread.run(self._node.answer, request)
        assert answer is not None, name
        self._forget_offsets(first)
        self._comparison.requests += 1
        return self._proto.decode(f"{name}Response", answer.encode(version), version)

    def _forget_offsets(self, first: int) -> None:
        """Forget the offset that a broker has reported where Kafka does (C-HB-10)."""
        for _, _, name, _, fields in self.dump(first):
            if name == "BrokerRegistrationChangeRecord":
                self._node.controller._sessions.offsets.pop(fields["BrokerId"], None)

    def _is_only_refused_by_java(self, broker_id: int) -> bool:
        broker = self._node.image.brokers.get(broker_id)
        may_go = broker is not None and (broker.is_fenced or broker.in_controlled_shutdown)
        return self.is_refused_by_java and may_go

    def pass_time(self, steps: int) -> None:
        """Let so much time pass, and what is due be done."""
        first = self._node.raft.end_offset
        for move_ms in MOVES_MS * steps:
            trio.from_thread.run(self._move, move_ms)
        self._forget_offsets(first)

    def move(self, move_ms: int) -> None:
        """Let time pass at once, and then what is due be done."""
        trio.from_thread.run(self._move, move_ms)

    def published(self, end: int) -> None:
        """Everything that is committed is known."""

    async def _move(self, move_ms: int) -> None:
        self._node.clock_ms += move_ms
        self._node.controller._notify()
        await trio.testing.wait_all_tasks_blocked()

    def restart(self) -> None:
        """Let the controller end and start again."""
        trio.from_thread.run(self._restart)

    async def _restart(self) -> None:
        node = self._node
        node.process = node.process[1:] + node.process[:1]
        rewind(node, len(node.batches))
        begin_epoch(node)
        await trio.testing.wait_all_tasks_blocked()
        if node.image.controllers:
            await register(node)

    def dump(self, first: int = 0, raw: bool = False) -> list[tuple[Any, ...]]:
        """Return the records of the log from an offset on."""
        del raw
        found: list[tuple[Any, ...]] = []
        # A script asks for the end of the log again and again.
        for batch in reversed(self._node.batches):
            if batch.last_offset < first:
                break
            found[:0] = self._records(batch)
        return found

    def _records(self, batch: RecordBatch) -> list[tuple[Any, ...]]:
        if batch.is_control:
            return [(batch.base_offset, batch.base_offset, "control", 0, {})]
        proto = self._proto
        found: list[tuple[Any, ...]] = []
        for one in proto.batches(bytes(batch.raw)):
            for offset, _, value in proto.records(one):
                reader = proto.R(value)
                _, number, version = reader.uvar(), reader.uvar(), reader.uvar()
                name = proto.META[number]["name"]
                fields = proto.decode(name, value[reader.p :], version)
                found.append((offset, one["base"], name, version, fields))
        return found
