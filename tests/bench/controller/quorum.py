"""Controllers of one kind, and brokers that exist only as far as a controller can see.

A broker registers and is unfenced by its first heartbeat; there is no process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Self

import trio

from kraftwire.client.sync import BlockingConnection
from kraftwire.controller.versions import SUPPORTED_FEATURES
from kraftwire.errors import ApiError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.create_topics_response import CreateTopicsResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.transport.client_connection import ClientConnection
from tests.support.kafka.mixed_quorum import Member, MixedQuorum, wait_until

__all__ = ["BROKERS", "PARTITIONS_MAX", "Controllers"]

BROKERS = range(1000, 1200)

# The most that one request may create: with their topic they are 10,000 records.
PARTITIONS_MAX = 9_999

_FACTOR = 3
_REQUEST_SECONDS = 60.0
_FIRST_CHANGE_SECONDS_MAX = 120.0
_LOOK_SECONDS = 0.01
_BEAT_SECONDS = 2.0    # Kafka's default
_PAUSE_SECONDS = 0.2
_CAUGHT_UP = 1 << 40

# Kafka's defaults, except sessions: nobody keeps them alive between two measurements.
_PROPERTIES = {
    "num.network.threads": 3,
    "num.io.threads": 8,
    "broker.session.timeout.ms": 3_600_000,
}

# Source: kafka-server-start.sh and kafka-run-class.sh.
_JVM_OPTIONS = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)


class Controllers:
    """A quorum of one kind with 200 brokers; use it as a context manager.

    `times` are the seconds measured so far, by what they are about. `partitions` counts those
    that exist.
    """

    def __init__(self, folder: Path, kind: str, size: int) -> None:
        self.times: dict[str, list[float]] = {}
        self.partitions = 0
        self._quorum = MixedQuorum(folder, dict.fromkeys(range(1, size + 1), kind), _PROPERTIES)
        for member in self._quorum.controllers:
            member.java.jvm_options = _JVM_OPTIONS
        self._names = map("topic-{}".format, count())
        self._epochs: dict[int, int] = {}

    def __enter__(self) -> Self:
        self._quorum.__enter__()
        try:
            self._quorum.start()
            trio.run(self._register_all)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._quorum.__exit__()

    @property
    def leader(self) -> Member:
        """The active controller."""
        return self._quorum.members[self._quorum.leader()]

    def note(self, what: str, seconds: float) -> None:
        """Keep a measured time."""
        self.times.setdefault(what, []).append(seconds)

    # Brokers

    async def _connect(self) -> ClientConnection:
        address = "127.0.0.1", self.leader.port
        return await ClientConnection.connect(
            address, client_id="bench", timeout_s=_REQUEST_SECONDS
        )

    async def _register_all(self) -> None:
        connection = await self._connect()
        for broker_id in BROKERS:
            request = self._registration(broker_id)
            answer = await connection.request(request, timeout_s=_REQUEST_SECONDS)
            assert isinstance(answer, BrokerRegistrationResponse)
            assert answer.error_code == ErrorCode.NONE, answer
            self._epochs[broker_id] = answer.broker_epoch
            await self._beat(connection, broker_id)
        connection.close()

    def _registration(self, broker_id: int) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self._quorum.cluster_id,
            incarnation_id=broker_id.to_bytes(16, "big"),
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[(1_000_000 + broker_id).to_bytes(16, "big")],
        )

    async def _beat(self, connection: ClientConnection, broker_id: int) -> float:
        """Send a heartbeat; returns the seconds until its answer."""
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self._epochs[broker_id],
            current_metadata_offset=_CAUGHT_UP,
        )
        began = time.perf_counter()
        answer = await connection.request(request, timeout_s=_REQUEST_SECONDS)
        seconds = time.perf_counter() - began
        assert isinstance(answer, BrokerHeartbeatResponse)
        assert answer.error_code == ErrorCode.NONE, answer
        assert not answer.is_fenced
        return seconds

    def heartbeats(self, what: str, seconds: float) -> None:
        """Let every broker send its heartbeats on a connection of its own for a while."""

        async def live(connection: ClientConnection, broker_id: int, delay: float) -> None:
            await trio.sleep(delay)
            while True:
                began = trio.current_time()
                self.note(what, await self._beat(connection, broker_id))
                await trio.sleep_until(began + _BEAT_SECONDS)

        async def live_all() -> None:
            connections = [await self._connect() for _ in BROKERS]
            with trio.move_on_after(seconds):
                async with trio.open_nursery() as nursery:
                    for connection, broker_id in zip(connections, BROKERS, strict=True):
                        share = (broker_id - BROKERS.start) / len(BROKERS)
                        nursery.start_soon(live, connection, broker_id, share * _BEAT_SECONDS)
            for connection in connections:
                connection.close()

        # What others have written before must not hold up this one's flushes.
        os.sync()
        trio.run(live_all)

    # Topics

    def create(self, partitions: int) -> float:
        """Create a topic; returns the seconds until the answer."""
        with self._connection(self.leader) as connection:
            began = time.perf_counter()
            code = self._create(connection, partitions)
            seconds = time.perf_counter() - began
        assert code == ErrorCode.NONE, code
        return seconds

    def fill(self, partitions: int) -> None:
        """Create topics until there are so many partitions."""
        while self.partitions < partitions:
            self.create(min(PARTITIONS_MAX, partitions - self.partitions))

    @contextmanager
    def creating(self, partitions: int) -> Iterator[None]:
        """Let topics be created one after the other, with pauses, by another thread."""
        is_over = threading.Event()

        def create() -> None:
            while not is_over.wait(_PAUSE_SECONDS):
                self.create(partitions)

        thread = threading.Thread(target=create)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _connection(self, member: Member) -> BlockingConnection:
        address = "127.0.0.1", member.port
        return BlockingConnection(address, client_id="bench", timeout_s=_REQUEST_SECONDS)

    def _create(self, connection: BlockingConnection, partitions: int) -> int:
        topic = CreatableTopic(
            name=next(self._names), num_partitions=partitions, replication_factor=_FACTOR
        )
        answer = connection.request(CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
        assert isinstance(answer, CreateTopicsResponse)
        code = answer.topics[0].error_code
        self.partitions += partitions if code == ErrorCode.NONE else 0
        return code

    # Failures

    def restart(self) -> float:
        """Kill the only controller and start it; returns the seconds from there until it has
        accepted a change."""
        member = self.leader
        member.kill()
        began = time.monotonic()
        member.start()
        self._change_something()
        seconds = time.monotonic() - began
        member.wait_ready()
        return seconds

    def fail_over(self) -> float:
        """Kill the active controller; returns the seconds until another one has accepted a change.

        The killed one has come back and has everything before this returns.
        """
        self._quorum.wait_commit(0)
        member = self.leader
        member.kill()
        began = time.monotonic()
        self._change_something()
        seconds = time.monotonic() - began
        self._quorum.start(member.node_id)
        self._quorum.wait_commit(0)
        return seconds

    def _change_something(self) -> None:
        end = time.monotonic() + _FIRST_CHANGE_SECONDS_MAX
        while time.monotonic() < end:
            for member in self._quorum.running():
                with suppress(ApiError), self._connection(member) as connection:
                    if self._create(connection, 1) == ErrorCode.NONE:
                        return
            time.sleep(_LOOK_SECONDS)
        raise AssertionError(f"no change was accepted\n{self._quorum.last_lines()}")

    # Snapshots and memory

    def configure(self, properties: Mapping[str, object]) -> None:
        """Change the properties that count from the next start on."""
        for member in self._quorum.controllers:
            member.java.properties.update(properties)
            member.java.write_config()

    def wait_snapshot(self) -> None:
        """Return once the active controller has written a snapshot."""
        member = self.leader
        wait_until(partial(_has_snapshot, member), "a snapshot", member.last_lines)

    def resident_bytes(self) -> int:
        """The resident memory of the active controller."""
        status = Path(f"/proc/{self.leader.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split(maxsplit=1)[0]) * 1024


def _has_snapshot(member: Member) -> bool:
    found = member.java.log_dir.glob("__cluster_metadata-0/*-*.checkpoint")
    return any(int(path.name.partition("-")[0]) for path in found)
