"""A quorum of members of both kinds, static or with voters in the log, and its brokers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from kraftwire.messages.describe_quorum_response import PartitionData, ReplicaState
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.testing.ports import free_ports
from kraftwire.wire.fast import ZERO_UUID
from tests.support.kafka.mixed_quorum.agreement import check_logs
from tests.support.kafka.mixed_quorum.elections import leaders_of_epochs
from tests.support.kafka.mixed_quorum.member import Member
from tests.support.kafka.mixed_quorum.waiting import SECONDS_MAX, wait_until
from tests.support.kafka.process import KafkaNode, kafka_uuid

# Snapshots every few seconds, and a log no longer than a few of them, as far as Kafka allows.
SNAPSHOT_KNOBS: Mapping[str, object] = {
    "metadata.log.max.record.bytes.between.snapshots": 3000,
    "metadata.log.max.snapshot.interval.ms": 15000,
    "metadata.max.retention.bytes": 20000,
    "metadata.log.segment.ms": 10000,
    "metadata.log.segment.bytes": 8388608,
    "controller.quorum.fetch.snapshot.max.bytes": 1000,
}


# A paused node never answers, and there must be time to ask the others.
_ANSWER_SECONDS_MAX = 5.0


class MixedQuorum:
    """Controllers of both kinds by node id, and brokers; leaving ends all of them.

    Entering formats the directories; nothing is started. A static quorum has its voters in the
    property controller.quorum.voters; in a dynamic one the log has those that are not `observers`.
    """

    def __init__(
        self,
        folder: Path,
        kinds: Mapping[int, str],
        properties: Mapping[str, object] | None = None,
        special: Mapping[int, Mapping[str, object]] | None = None,
        *,
        is_dynamic: bool = False,
        observers: Collection[int] = (),
        brokers: Mapping[int, str] | None = None,
        relays: Mapping[int, int] | None = None,
        format_options: tuple[str, ...] = (),
        client: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        """Make members.

        `client` are the properties with which tests connect to controllers. `host` is the name by
        which members and tests reach controllers, where logins depend on it. `special` are
        properties of single members, `relays` ports that controllers advertise in place of their
        own. `format_options` are for every member's formatting.
        """
        self.cluster_id = kafka_uuid()
        self.is_dynamic = is_dynamic
        self.observers = frozenset(observers)
        self._folder = folder
        self._common = dict(properties or {})
        self._client = client
        self._host = host
        self._special = {key: dict(value) for key, value in (special or {}).items()}
        self._format_options = format_options
        everyone = {**kinds, **(brokers or {})}
        ports = dict(zip(everyone, free_ports(len(everyone)), strict=True))
        self._advertised = {i: (relays or {}).get(i, ports[i]) for i in kinds}
        self._last_leader = 0
        self.members: dict[int, Member] = {}
        for node_id, kind in everyone.items():
            name = "CONTROLLER" if node_id in kinds else "PLAINTEXT"
            self._make(node_id, kind, {name: ports[node_id]})

    def _make(self, node_id: int, kind: str, listeners: Mapping[str, int]) -> Member:
        place = self._folder / f"node-{node_id}"
        settings = self._quorum_property() | self._common | self._special.get(node_id, {})
        if "CONTROLLER" in listeners:
            address = f"CONTROLLER://{self._host}:{self._advertised[node_id]}"
            settings.setdefault("advertised.listeners", address)
        member = Member(kind, KafkaNode(node_id, place, listeners, settings))
        member.client, member.host = self._client, self._host
        self.members[node_id] = member
        return member

    def _quorum_property(self) -> dict[str, object]:
        addresses = {i: f"{self._host}:{port}" for i, port in self._advertised.items()}
        if self.is_dynamic:
            return {"controller.quorum.bootstrap.servers": ",".join(addresses.values())}
        voters = ",".join(f"{i}@{address}" for i, address in addresses.items())
        return {"controller.quorum.voters": voters}

    # Life cycle

    def __enter__(self) -> Self:
        self.format(*self.members)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.ExitStack() as stack:
            for member in self.members.values():
                stack.callback(member.kill)

    def format(self, *node_ids: int) -> None:
        """Format directories as they were formatted at first."""
        chosen = [self.members[node_id] for node_id in node_ids]
        with ThreadPoolExecutor(2) as pool:
            jobs = [
                pool.submit(one.format, self.cluster_id, *self.format_options(one.node_id))
                for one in chosen
                if one.is_java
            ]
            # Our tool runs in this process, and prints.
            for one in chosen:
                if not one.is_java:
                    one.format(self.cluster_id, *self.format_options(one.node_id))
            for job in jobs:
                job.result()

    def format_options(self, node_id: int) -> tuple[str, ...]:
        """The options of kafka-storage format about the voters."""
        options = self._format_options
        if not self.is_dynamic or not self.members[node_id].is_controller:
            return options
        voters = [one for one in self.controllers if one.node_id not in self.observers]
        if node_id in self.observers:
            return (*options, "--no-initial-controllers")
        if len(voters) == 1:
            return (*options, "--standalone")
        listed = ",".join(
            f"{one.node_id}@{self._host}:{one.advertised_port}:{one.java.directory_id}"
            for one in voters
        )
        return (*options, "--initial-controllers", listed)

    def reformat(self, node_id: int) -> None:
        """Give a stopped member an empty disk with a new directory id, not among the voters."""
        member = self.members[node_id]
        member.wipe()
        options = ("--no-initial-controllers",) if self.is_dynamic else ()
        member.format(self.cluster_id, *self._format_options, *options)

    def start(self, *node_ids: int) -> None:
        """Start members, all of them by default, and wait until they accept connections."""
        chosen = [self.members[node_id] for node_id in node_ids or self.members]
        for member in chosen:
            member.start()
        for member in chosen:
            member.wait_ready()

    # Members

    @property
    def controllers(self) -> list[Member]:
        """The members with a controller listener."""
        return [member for member in self.members.values() if member.is_controller]

    @property
    def bootstrap_controllers(self) -> str:
        """The value of ``--bootstrap-controller``."""
        return ",".join(self.address(member.node_id) for member in self.controllers)

    @property
    def bootstrap_servers(self) -> str:
        """The value of ``--bootstrap-server``: the brokers."""
        brokers = [member for member in self.members.values() if not member.is_controller]
        return ",".join(self.address(member.node_id) for member in brokers)

    def address(self, node_id: int) -> str:
        """A member's listener: a controller's for controllers, a broker's for clients."""
        member = self.members[node_id]
        return f"{self._host if member.is_controller else '127.0.0.1'}:{member.port}"

    def running(self) -> list[Member]:
        """The running members."""
        return [member for member in self.members.values() if member.is_running]

    def leader(self, *, among: Iterable[int] = (), seconds: float = SECONDS_MAX) -> int:
        """The id of the leader with a committed record of its epoch, as soon as there is one.

        `among` are the accepted ids, all by default.
        """
        return self._leading(set(among or self.members), seconds).leader_id

    def status(self) -> PartitionData:
        """What the leader reports about the quorum."""
        return self._leading(set(self.members), SECONDS_MAX)

    def _leading(self, wanted: Collection[int], seconds: float) -> PartitionData:
        def look() -> PartitionData | None:
            asked = [one for one in self.running() if one.is_controller and one.node_id in wanted]
            # The last leader first: each answer takes a connection, and most of them a login.
            for member in sorted(asked, key=lambda one: one.node_id != self._last_leader):
                told = member.describe(_ANSWER_SECONDS_MAX)
                if told is None or told.error_code != ErrorCode.NONE:
                    continue
                if told.leader_id == member.node_id and told.high_watermark > 0:
                    self._last_leader = member.node_id
                    return told
            return None

        return wait_until(look, f"a leader among {sorted(wanted)}", self.last_lines, seconds)

    def voters(self) -> list[int]:
        """The ids of the voters according to the leader."""
        return sorted(one.replica_id for one in self.status().current_voters)

    def replica(self, node_id: int) -> ReplicaState | None:
        """What the leader reports about a member with its present directory."""
        described = self.status()
        known = (ZERO_UUID, self.members[node_id].directory_uuid)
        for one in described.current_voters + described.observers:
            if one.replica_id == node_id and one.replica_directory_id in known:
                return one
        return None

    def depose(self, node_id: int) -> int:
        """Kill the leader, wait until this member is elected; returns the old leader's id.

        The only other voter left is paused until it lacks committed records, so it cannot win.
        The old leader stays down meanwhile: it has them, and could win as well. If this member
        already leads, as happens on a slow machine, another voter is killed.
        """
        former = self.leader()
        if former == node_id:
            former = min(set(self.voters()) - {node_id})
            self.members[former].kill()
            return former
        (other,) = set(self.voters()) - {former, node_id}
        late, early = self.members[other], self.members[node_id]
        epoch = self.status().leader_epoch
        late.pause()
        # One answer may wait in its socket; a paused node gets no others.
        start = late.end_offset
        wait_until(lambda: early.end_offset > start + 10, f"records that node {other} lacks")
        self.members[former].kill()
        late.resume()

        def is_elected() -> bool:
            found = leaders_of_epochs(early).items()
            return any(one > epoch and leader == node_id for one, leader in found)

        wait_until(is_elected, f"node {node_id} as leader", self.last_lines)
        return former

    def wait_commit(self, past: int, *node_ids: int) -> int:
        """Wait until something is committed above `past` and these members have it.

        Returns the high watermark then. Without ids, all running members have to have it.
        """
        chosen = [self.members[i] for i in node_ids] or self.running()

        def look() -> int:
            mark = self.status().high_watermark
            if mark <= past:
                return 0
            ends = [member.end_offset for member in chosen]
            return mark if min(ends) >= mark else 0

        return wait_until(look, f"a high watermark above {past}", self.last_lines)

    def wait_registered(self, *node_ids: int) -> None:
        """Wait until these controllers are in the leader's log with the features they support.

        Java's register only with an active Java controller.
        """

        def look() -> bool:
            image = self.members[self.leader()].image()
            return image.controllers.keys() >= set(node_ids)

        wait_until(look, f"registrations of controllers {node_ids}", self.last_lines)

    def last_lines(self) -> str:
        """The last lines of all members."""
        return "\n".join(f"--- {one.node_id}\n{one.last_lines()}" for one in self.members.values())

    # Health

    def check_logs_agree(self) -> int:
        """Compare all logs byte for byte below the high watermark; returns how many batches.

        A running member has to have all of it from the start of its log.
        """
        mark = self.wait_commit(0)
        return check_logs(self.members.values(), mark)

    def check_health(self) -> None:
        """No process has ended by itself, and none has logged an error."""
        for member in self.members.values():
            assert not member.ended(), f"node {member.node_id} has ended"
            errors = "\n".join(member.complaints())
            assert not errors, f"node {member.node_id} has logged errors:\n{errors}"
