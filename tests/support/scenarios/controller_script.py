"""Runs the scenarios of the controller: requests to an active controller in virtual time.

`controller_notation` has how requests, records and answers are written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import trio
import trio.testing
from trio.testing import MockClock

from kraftwire import messages
from kraftwire.controller.image import METADATA_VERSION
from kraftwire.controller.versions import ELR_VERSION, SUPPORTED_FEATURES
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.node import handlers
from kraftwire.node.authorization import Authorization
from kraftwire.node.config_security import AuthorizerSettings, NodeSecurity
from kraftwire.node.controller import Controller
from kraftwire.node.handlers.versions import CONTROLLER_VERSIONS
from kraftwire.node.logs import RateLimit
from kraftwire.records.metadata import decode_metadata
from kraftwire.security.principal import ANONYMOUS, Principal
from kraftwire.security.tokens import TokenSettings
from kraftwire.wire.message import Message
from tests.support.nodes.stub import StubNode, control_batch, request_of
from tests.support.scenarios.controller_notation import Notation

_DAY_MS = 24 * 3600 * 1000
_HEARTBEAT_MS = 2000
_KEYS = {name: key for key, name in messages.API_NAMES.items()}


class _Silence(RateLimit):
    def log(self, kind: str, event: str, level: str = "warning", **fields: object) -> None:
        """Log nothing."""


class _Node(StubNode):
    """A node whose clocks are trio's, and who may ask what is decided by the authorizer."""

    def __init__(self, security: NodeSecurity) -> None:
        more = {"security": security, "idle_interval_ms": 0}
        super().__init__(1, voter_count=1, **more)
        self._authorization = Authorization(security.authorizer, {}, _Silence(lambda: 0.0))

    def now_ms(self) -> int:
        return round(trio.current_time() * 1000)

    def wall_ms(self) -> int:
        return self.now_ms()

    async def answer(self, request: Any) -> Message | None:
        handler = handlers.route(request)
        assert handler is not None, request.api_key
        return await self._authorization.answer(request, cast("Any", self), handler)


def run_scenario(blocks: Sequence[Sequence[str]]) -> list[list[str]]:
    """Carry out the commands of each block; returns its output."""
    return trio.run(_run, blocks, clock=MockClock(autojump_threshold=0))


async def _run(blocks: Sequence[Sequence[str]]) -> list[list[str]]:
    async with trio.open_nursery() as nursery:
        script = _Script(nursery)
        outputs = [await script.run(commands) for commands in blocks]
        nursery.cancel_scope.cancel()
    return outputs


class _Script:
    """Runs commands; one controller for a whole scenario."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._node = _Node(NodeSecurity())
        self._principal = ANONYMOUS
        self._shown = 0
        self._notation = Notation(self._node.image)

    async def run(self, commands: Sequence[str]) -> list[str]:
        """Carry out commands; returns the records and answers. A line with an indent continues the
        one before it."""
        output: list[str] = []
        for command in re.sub(r"\n +", " ", "\n".join(commands)).splitlines():
            name, _, rest = command.partition(" ")
            handler = getattr(self, f"do_{name}", None)
            if handler is None:
                answers = [f"-> {await self._request(name, rest)}"]
            else:
                answers = await handler(*rest.split()) or []
            output += self._news() + answers
        return output

    def _news(self) -> list[str]:
        first, self._shown = self._shown, self._node.raft.end_offset
        return self._records(first)

    def _records(self, first: int) -> list[str]:
        """Return the records from an offset on, each with its own."""
        lines = []
        for batch in self._node.batches:
            if batch.last_offset < first:
                continue
            if batch.is_control:
                epoch = batch.partition_leader_epoch
                lines.append(f"{batch.base_offset:>4} (node 1 leads epoch {epoch})")
                continue
            for record in batch.records():
                message = decode_metadata(record.value).message
                assert message is not None
                shown = self._notation.text(message)
                lines.append(f"{record.offset:>4} {message.NAME} {shown}".rstrip())
        return lines

    # ---- requests

    async def _request(self, name: str, text: str) -> str:
        cls = messages.find(f"{name}Request")
        _, version = CONTROLLER_VERSIONS[_KEYS[name]]
        message = self._notation.message(cls, text, self._usual(name))
        is_known = self._principal is not ANONYMOUS
        request = request_of(
            message, version, to="peer", principal=self._principal, is_forwarded=is_known
        )
        answer = await self._node.answer(request)
        assert answer is not None
        return self._notation.text(answer) or "ok"

    def _usual(self, name: str) -> dict[str, Any]:
        """Return fields of a request that a scenario need not write."""
        offset = self._node.raft.end_offset - 1
        if name == "BrokerRegistration":
            levels = [
                {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ]
            return {"clusterId": self._node.raft.cluster_id, "features": levels}
        if name == "BrokerHeartbeat":
            return {"currentMetadataOffset": offset}
        return {}

    # ---- commands

    async def do_controller(self, *words: str) -> None:
        """`controller [level N] [brokers 1 2] [authorizer] [tokens]`: a new cluster whose only
        controller leads; its brokers are registered and unfenced."""
        groups: dict[str, list[int]] = {}
        current: list[int] = []
        for word in words:
            if word.isdigit():
                current.append(int(word))
            else:
                current = groups.setdefault(word, [])
        authorizer = AuthorizerSettings(frozenset((str(ANONYMOUS),)), False)
        node = self._node = _Node(
            NodeSecurity(
                authorizer=authorizer if "authorizer" in groups else None,
                tokens=TokenSettings(b"secret", 7 * _DAY_MS, _DAY_MS, 3600_000)
                if "tokens" in groups
                else None,
            )
        )
        (level,) = groups.get("level", [SUPPORTED_FEATURES[METADATA_VERSION][1]])
        levels = {METADATA_VERSION: level} | ({ELR_VERSION: 1} if level >= 23 else {})
        bootstrap = [
            (FeatureLevelRecord(name=name, feature_level=level), 0)
            for name, level in levels.items()
        ]
        node.controller = Controller(node.config, cast("Any", node), bootstrap=bootstrap)
        self._notation.image = node.image
        node.commit(control_batch(0))
        node.controller.leadership(1, 1, 0)
        self._nursery.start_soon(node.controller.run)
        await trio.testing.wait_all_tasks_blocked()
        for broker in groups.get("brokers", ()):
            directory = f"dir{broker}"
            registration = f"brokerId: {broker}, incarnationId: b{broker}, logDirs: [{directory}]"
            await self._request("BrokerRegistration", registration)
            await self._request("BrokerHeartbeat", f"brokerId: {broker}")
        self._shown = node.raft.end_offset

    async def do_as(self, name: str) -> None:
        """`as alice`: who sends the requests that follow; `as brokers` is the cluster itself."""
        self._principal = ANONYMOUS if name == "brokers" else Principal("User", name)

    async def do_wait(self, seconds: str, *brokers: str) -> None:
        """`wait 10 [2 3]`: let seconds pass; these brokers send heartbeats meanwhile."""
        end_ms = self._node.now_ms() + int(seconds) * 1000
        while (left_ms := end_ms - self._node.now_ms()) > 0:
            for broker in brokers:
                await self._request("BrokerHeartbeat", f"brokerId: {broker}")
            await trio.sleep((min(left_ms, _HEARTBEAT_MS) if brokers else left_ms) / 1000)
        await trio.testing.wait_all_tasks_blocked()

    async def do_lose(self, *_: str) -> None:
        """`lose leadership`: another node leads the next epoch."""
        raft = self._node.raft
        raft.epoch += 1
        raft.role, raft.leader_id = "follower", 2
        self._node.controller.leadership(2, raft.epoch, raft.end_offset)
        await trio.testing.wait_all_tasks_blocked()

    async def do_hold(self, *_: str) -> None:
        """`hold commits`: the leadership ends with the next records, before they are committed."""
        self._node.is_stuck = True

    async def do_lead(self) -> None:
        """`lead`: this controller leads the next epoch, with all that is in its log."""
        node, raft = self._node, self._node.raft
        node.is_stuck = False
        raft.epoch += 1
        raft.role, raft.leader_id = "leader", 1
        node.commit(control_batch(raft.end_offset, epoch=raft.epoch))
        node.controller.leadership(1, raft.epoch, raft.end_offset)
        await trio.testing.wait_all_tasks_blocked()

    async def do_written(self, name: str, *words: str) -> None:
        """`written NoOpRecord ...`: a record that another controller has written meanwhile."""
        cls = messages.find(name)
        record = self._notation.message(cls, " ".join(words), {})
        self._node.commit_records((record, cls.VERSIONS.low))

    async def do_log(self, first: str) -> list[str]:
        """`log 0`: the records from an offset on."""
        return self._records(int(first))

    async def do_show(self, *names: str) -> list[str]:
        """`show brokers orders`: the brokers, or the partitions of a topic, as they are now."""
        lines = []
        image = self._node.image
        for name in names:
            if name == "brokers":
                for _, broker in sorted(image.brokers.items()):
                    state = "fenced" if broker.is_fenced else "unfenced"
                    leaving = ", shuts down" if broker.in_controlled_shutdown else ""
                    lines.append(f"broker {broker.id}: epoch {broker.epoch}, {state}{leaving}")
                continue
            for index, one in image.topics.partitions(image.topics.ids[name]).items():
                eligible = one.eligible_leader_replicas
                lines.append(
                    f"{name}-{index}: leader {one.leader} in epoch {one.leader_epoch}, partition "
                    f"epoch {one.partition_epoch}, replicas {one.replicas}, in sync {one.isr}"
                    + (f", eligible {eligible}" if eligible else "")
                )
        return lines
