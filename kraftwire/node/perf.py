"""The raft test server: a node whose state machine appends at a given rate, and measures.

Log, election and replication are those of every node; only the topic differs, and nothing but the
load is written to it. It can be in one quorum with Kafka's own test server.

Source: Kafka's `TestRaftServer`; R-TRS-1 to R-TRS-6.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import trio

from kraftwire.errors import UsageError, check
from kraftwire.log.files import LocalFiles
from kraftwire.log.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraftwire.log.names import META_PROPERTIES_FILE, join
from kraftwire.log.uuids import random_uuid
from kraftwire.node.app import Node, run_node
from kraftwire.node.config import NodeConfig, load
from kraftwire.node.config_listeners import CONTROLLER
from kraftwire.raft import effects as fx
from kraftwire.raft.config import TopicPartition
from kraftwire.records.batch import RecordBatch
from kraftwire.replica import SnapshotReader
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.json_form import uuid_to_text

# The test server's load: the largest append, so that other events of the core get their turn, and
# the largest amount that waits to be committed, so that memory is bounded where the load is not.
PERF_APPEND_BYTES = 256 * 1024
PERF_IN_FLIGHT_BYTES = 64 * 1024 * 1024

TOPIC = TopicPartition("__raft_performance_test", bytes(15) + b"\x02")
CLUSTER_ID = uuid_to_text(ZERO_UUID)

REPORT_SECONDS = 5.0

# Records due within this time share an append: waking up for each would cost more than writing it.
# It is a fourteenth of append.linger.ms, for which batches wait anyway.
_TICK_SECONDS = 0.002

_REFUSED_SECONDS = 0.01

# A throughput has fewer digits.
_NUMBER_SIZE_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load: size and rate of the records, and for how long.

    With `follows_input` the node also stops when its standard input ends, and a line of it that is
    a number is the throughput from then on. Units: records per second; bytes; seconds, None for no
    limit.
    """

    throughput: int = 5000
    record_size: int = 256
    duration: float | None = None
    follows_input: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The commits of an interval. `latencies` counts records by milliseconds."""

    epoch: int
    seconds: float
    record_size: int
    latencies: Counter[int]

    @property
    def records(self) -> int:
        """How many records were committed."""
        return self.latencies.total()

    @property
    def records_per_second(self) -> float:
        """Committed records per second."""
        return self.records / self.seconds

    @property
    def megabytes_per_second(self) -> float:
        """Committed values per second, without batch overhead. Units: 10^6 bytes."""
        return self.records_per_second * self.record_size / 1e6

    def latency_ms(self, share: float) -> int:
        """Return the time from append to commit within which this share of the records was
        committed."""
        left = share * self.records
        for latency, count in sorted(self.latencies.items()):
            left -= count
            if left <= 0:
                return latency
        return 0


class _Append(NamedTuple):
    """Records that were appended together and are not yet known to be committed."""

    base_offset: int
    last_offset: int
    at: float


def run(
    config_path: str,
    load_: Load,
    report: Callable[[Figures], None],
    directory_id: bytes | None = None,
) -> int:
    """Run a test server until SIGTERM or SIGINT, or for the load's duration; returns the exit code.

    `report` gets the figures of every five seconds in which this node leads; without a directory id
    the node keeps its current one, or takes a random one. Raises: UsageError and StorageError, if
    the node cannot start or has to stop.
    """
    config = _perf_config(load(config_path))
    _adopt_directory(config, directory_id)
    workload = Workload(config, load_, report)
    node = Node(config, state_machine=workload, writes_snapshots=False)
    workload.node = node
    return run_node(node, workload.run)


def _perf_config(config: NodeConfig) -> NodeConfig:
    """A node's configuration, changed to what the test server serves."""
    listeners = [
        replace(listener, is_controller=True, is_client=False) for listener in config.listeners
    ]
    return replace(
        config,
        roles=frozenset((CONTROLLER,)),
        listeners=tuple(listeners),
        is_raft_readme=True,
        topic=TOPIC,
        # The leader does not hand over: there is no controller for a Java voter to run.
        handover="never",
    )


def _adopt_directory(config: NodeConfig, directory_id: bytes | None) -> None:
    """Make the log directory one of the test cluster, unless it is already.

    Raises: UsageError if it belongs to another cluster.
    """
    files, directory = LocalFiles(), config.metadata_log_dir
    path = join(directory, META_PROPERTIES_FILE)
    files.mkdir(directory)
    meta = read_meta_properties(files, path)
    if meta is None:
        made = directory_id or random_uuid()
        write_meta_properties(files, path, MetaProperties(CLUSTER_ID, config.node_id, made))
        return
    if meta.cluster_id != CLUSTER_ID:
        raise UsageError(
            f"{directory} is that of cluster {meta.cluster_id}, and perf writes only to "
            "its own directories: set log.dirs to an empty one"
        )
    if directory_id not in (None, meta.directory_id):
        found = uuid_to_text(meta.directory_id)
        raise UsageError(f"{directory} already has the directory id {found}: omit the option")


class Workload:
    """The state machine of the test server.

    A new `throughput` takes effect with the next append, and its schedule begins there.
    Order: `node` is set before `run`, a task that ends with the node. Raises: UsageError for
    records that are too long.
    """

    node: Node

    def __init__(
        self, config: NodeConfig, load_: Load, report: Callable[[Figures], None]
    ) -> None:
        size, batch_max = load_.record_size, config.batch_max_bytes
        if size > batch_max // 2:
            limit = f"{batch_max // 2}, half a batch of the quorum"
            raise UsageError(f"a record of {size} bytes is too long: at most {limit}")
        self._node_id = config.node_id
        self._load = load_
        self.throughput = load_.throughput
        self._report = report
        self._value = bytes(size)
        self._append_max = max(1, min(PERF_APPEND_BYTES, batch_max // 2) // size)
        self._in_flight_max = max(1, min(PERF_IN_FLIGHT_BYTES, 8 * batch_max) // size)
        self._epoch: int | None = None
        self._is_refused = False
        self._pending: deque[_Append] = deque()
        self._in_flight = 0
        self._changed = trio.Event()
        self._latencies: Counter[int] = Counter()

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        """Match committed batches with appended ones (R-TRS-5)."""
        now = trio.current_time()
        for batch in batches:
            if batch.partition_leader_epoch != self._epoch or batch.is_control:
                continue
            self._commit(batch, now)
        self._notify()

    def load(self, snapshot: SnapshotReader) -> None:
        """Ignore a snapshot: the load has no state, so it is empty."""

    def freeze(self) -> Iterable[bytes]:
        """Return nothing: the load has no state."""
        return ()

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        """Start or stop appending."""
        del end_offset
        self._epoch = epoch if leader_id == self._node_id else None
        self._pending.clear()
        self._in_flight = 0
        self._notify()

    async def run(self, stop: trio.Event) -> None:
        """Append while this node leads, until `stop`; sets it when the load's time is over."""
        await self.node.ready.wait()
        duration = self._load.duration
        with trio.move_on_after(math.inf if duration is None else duration):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._work)
                if self._load.follows_input:
                    nursery.start_soon(self._follow_input, stop)
                await stop.wait()
                nursery.cancel_scope.cancel()
        stop.set()

    async def _work(self) -> None:
        while True:
            epoch = self._epoch
            if epoch is None:
                await self._changed.wait()
                continue
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._report_regularly, epoch)
                await self._lead(epoch)
                nursery.cancel_scope.cancel()

    async def _lead(self, epoch: int) -> None:
        """Append at the requested rate: record k no earlier than k intervals after the start
        (R-TRS-4).
        """
        rate = 0
        while self._epoch == epoch:
            if rate != self.throughput:
                rate, began, sent = self.throughput, trio.current_time(), 0
            elapsed = trio.current_time() - began
            count = min(int(elapsed * rate) + 1 - sent, self._append_max)
            if count <= 0:
                await trio.sleep(max(_TICK_SECONDS, sent / rate - elapsed))
            elif self._is_refused:
                # Leadership has ended; a state machine learns of it only with the next leader.
                self._is_refused = False
                await trio.sleep(_REFUSED_SECONDS)
            elif self._in_flight + count > self._in_flight_max and self._in_flight:
                await self._changed.wait()
            else:
                self._append(epoch, count)
                sent += count
                await trio.lowlevel.checkpoint()

    def _append(self, epoch: int, count: int) -> None:
        at = trio.current_time()
        self._in_flight += count

        def done(decision: fx.AppendAccepted | fx.AppendRefused) -> None:
            if self._epoch != epoch:
                return
            if isinstance(decision, fx.AppendAccepted):
                self._pending.append(_Append(decision.base_offset, decision.last_offset, at))
            else:
                self._in_flight -= count
                self._is_refused = True

        self.node.driver.append_nowait([self._value] * count, epoch, done)

    def _commit(self, batch: RecordBatch, now: float) -> None:
        pending, offset = self._pending, batch.base_offset
        while pending and pending[0].last_offset <= batch.last_offset:
            append = pending.popleft()
            check(append.base_offset == offset, f"{append} was committed at offset {offset}")
            offset = append.last_offset + 1
            count = offset - append.base_offset
            self._latencies[int((now - append.at) * 1000)] += count
            self._in_flight -= count
        check(offset == batch.last_offset + 1, f"nobody appended what is at offset {offset}")

    async def _report_regularly(self, epoch: int) -> None:
        """Report every five seconds, and the remainder at the end."""
        self._latencies.clear()
        since = trio.current_time()
        try:
            while True:
                await trio.sleep_until(since + REPORT_SECONDS)
                self._report_since(since, epoch)
                since = trio.current_time()
        finally:
            if self._latencies:
                self._report_since(since, epoch)

    def _report_since(self, since: float, epoch: int) -> None:
        latencies, self._latencies = self._latencies, Counter()
        self._report(
            Figures(
                epoch=epoch,
                seconds=trio.current_time() - since,
                record_size=self._load.record_size,
                latencies=latencies,
            )
        )

    def _notify(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def _follow_input(self, stop: trio.Event) -> None:
        """Stop when the other end of standard input is closed, as it is when its process ends."""
        line = b""
        async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
            while data := await stream.receive_some():
                *lines, line = (line + data).split(b"\n")
                self._set_throughput(lines)
                # A line that is not a number is dropped, however long it is.
                line = line[:_NUMBER_SIZE_MAX]
        stop.set()

    def _set_throughput(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            text = line.strip()
            if text.isdigit() and len(text) < _NUMBER_SIZE_MAX and int(text):
                self.throughput = int(text)
