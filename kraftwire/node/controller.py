"""The active controller of a quorum of kraftwire nodes: one queue of changes, written in order.

Once its node leads, it writes the bootstrap records if the log has none, then registrations,
fencing and a NoOpRecord per idle interval, each batch committed and replayed before the next is
decided; a batch has the changes of a few connections. So every decision sees the whole log, and
nothing has to be undone when a leadership ends.
On every other node it refuses with NOT_CONTROLLER; so does a leader that is to hand over to a voter
of another implementation. The decisions are in `kraftwire/controller`. A log whose records
contradict each other is followed, but this node does not lead on it.

Source: Kafka's `QuorumController`; KAFKA-20839 for a bootstrap that was cut short.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial

import trio

from kraftwire.controller import batches, brokers, controllers
from kraftwire.controller.activation import activate
from kraftwire.controller.batches import DecideStep, QueuedStep, encoded
from kraftwire.controller.cluster import MIN_INSYNC_REPLICAS, Cluster
from kraftwire.controller.features import feature_records
from kraftwire.controller.image import CLUSTER_ID_CONFIG, DECOY_SECRET_CONFIG, MetadataImage
from kraftwire.controller.mutation_quotas import MutationQuotas
from kraftwire.controller.sessions import Sessions
from kraftwire.controller.step import RECORDS_MAX, StepResult, VersionedRecord
from kraftwire.errors import FAULTS, ApiError, StorageError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.update_features_request import FeatureUpdateKey
from kraftwire.messages.update_features_response import UpdateFeaturesResponse
from kraftwire.node.admission import CONNECTION
from kraftwire.node.config import NodeConfig
from kraftwire.node.context import Quorum, not_active
from kraftwire.node.controller_metrics import (
    QueueMetrics,
    ignored_voters_sample,
    image_samples,
    leader_samples,
)
from kraftwire.node.logs import log, log_fault
from kraftwire.node.metrics import Sample
from kraftwire.node.tasks import Task, tasks_of
from kraftwire.node.turns import in_turns
from kraftwire.node.waiting import Future
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.batch import RecordBatch
from kraftwire.replica.state_machine import SnapshotReader
from kraftwire.security.tokens import DelegationTokens
from kraftwire.transport.rate_gate import next_in_turn
from kraftwire.wire.message import Message

# Registrations and heartbeats that wait for the active controller; each is a few hundred bytes,
# and a cluster with more brokers than this has never been seen.
CONTROLLER_QUEUE_MAX = 10_000

# So many are decided together and written as one batch: a flood of changes costs others a batch or
# two, and a crowd of honest brokers is served in a few.
CHANGES_AT_ONCE = 8

_RECHECK_MS = 500

# Records of one append: more, as when a broker goes that many partitions are on, are written as
# several. What a request asks for is never more (C-MOD-7, C-MOD-9).
APPENDED_MAX = RECORDS_MAX


class Controller:
    """A state machine that follows the log on every node and writes on the leader.

    Order: add it to the driver, and start `run` as a separate task.
    """

    def __init__(
        self,
        config: NodeConfig,
        quorum: Quorum,
        *,
        bootstrap: Sequence[VersionedRecord],
        new_cluster_id: Callable[[], str] | None = None,
    ) -> None:
        """Start with an empty image.

        `bootstrap` are the first records of a new cluster's log. `new_cluster_id` generates a
        cluster id if the log is to hold it and does not yet.
        """
        self._quorum = quorum
        self._image = MetadataImage()
        self._bootstrap = bootstrap
        self._new_cluster_id = new_cluster_id
        self._config = config
        settings = config.security.tokens
        self._tokens = None if settings is None else DelegationTokens(settings)
        self._sessions = Sessions(config.session_timeout_ms)
        self._metrics = QueueMetrics()
        self._mutations = MutationQuotas(config.mutation_burst_seconds)
        self._epoch: int | None = None
        self._is_forbidden = False
        # By connection and order of arrival; see `rate_gate.next_in_turn`.
        self._queue: dict[tuple[int, int], QueuedStep] = {}
        self._arrivals = 0
        # Heartbeats that wait to be decided, by identity.
        self._heartbeats: dict[int, BrokerHeartbeatRequest] = {}
        self._wake = trio.Event()

    @property
    def is_active(self) -> bool:
        """Whether this node leads the quorum, and is not about to hand over to a voter of another
        implementation."""
        is_leader = self._epoch is not None and not self._is_forbidden
        stays = self._config.handover == "never" or not self._quorum.raft.foreign_voters
        return is_leader and stays

    @property
    def image(self) -> MetadataImage:
        return self._image

    def samples(self) -> Iterator[Sample]:
        """Return the metrics of Kafka's controller (C-MET-1)."""
        now_ms = self._quorum.now_ms()
        yield from self._metrics.samples(now_ms)
        yield from image_samples(self._image, self._quorum.wall_ms(), self._metrics.faults)
        sessions = self._sessions if self.is_active else None
        yield from leader_samples(self._image, sessions, now_ms)
        has_other_voters = self._config.voters and self._quorum.raft.kraft_version > 0
        yield ignored_voters_sample(bool(has_other_voters))

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        image = self._image
        was_complete = not image.problem
        for batch in batches:
            image.replay(batch)
        if image.problem and was_complete:
            log("error", "image-incomplete", reason=image.problem)
        self._check_image()
        self._notify()

    def load(self, snapshot: SnapshotReader) -> None:
        """Load the image of a snapshot in a thread; it replaces the old one when it is complete."""
        self._image = MetadataImage.load(snapshot.id, snapshot)

    def freeze(self) -> Iterable[bytes]:
        """Return the image for a snapshot. Raises: IncompleteImageError if it would lose
        records."""
        return self._image.freeze()

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        is_leader = leader_id == self._quorum.key.id
        self._check_image()
        self._epoch = epoch if is_leader else None
        self._metrics.leader_changes += leader_id >= 0
        log("info", "leader-change", leader=leader_id, epoch=epoch, end_offset=end_offset)
        self._notify()

    def _check_image(self) -> None:
        """Resign and never lead again where records contradict each other.

        Differs from Kafka, whose controllers end on such a log: this node reports it once, and goes
        on replicating, voting and answering. A level of a feature that this software does not
        support ends it, as it ends Kafka's: another release can go on. Raises: StorageError.
        """
        found = self._image.contradiction
        if found is None or self._is_forbidden:
            return
        if found.is_unsupported and self._config.is_controller:
            raise StorageError(
                f"the metadata record at offset {found.offset} is not supported by this software: "
                f"{found.record}, but {found.state}",
                file=self._config.metadata_log_dir,
            )
        self._is_forbidden = True
        fields = {"offset": found.offset, "record": found.record, "state": found.state}
        log("error", "metadata-contradiction", **fields, consequence="this node does not lead")
        where = f"the metadata record at offset {found.offset} contradicts those before it"
        self._quorum.forbid_leadership(f"{where}: {found.record}, but {found.state}")

    @property
    def _cluster(self) -> Cluster:
        config = self._config
        node_id = self._quorum.key.id
        return Cluster(
            self._image,
            node_id,
            config.resource_settings,
            self._tokens,
            self._quorum.wall_ms(),
            self._mutations,
            frozenset(voter.key.id for voter in config.voters),
            self._sessions.shutdown_offsets,
        )

    async def register_controller(self, request: ControllerRegistrationRequest) -> Message:
        """Register a controller. Raises: ApiError NOT_CONTROLLER, like all methods below."""
        return await self.submit(
            lambda cluster, _: controllers.register_controller(cluster.image, request),
            ("controller", request.controller_id),
        )

    async def register_broker(self, request: BrokerRegistrationRequest, version: int) -> Message:
        quorum = self._quorum
        return await self.submit(
            lambda cluster, next_offset: brokers.register_broker.in_pieces(
                cluster,
                self._sessions,
                request,
                version,
                cluster_id=quorum.raft.cluster_id,
                next_offset=next_offset,
                now_ms=quorum.now_ms(),
            ),
            ("broker", request.broker_id),
            *request.log_dirs,
        )

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> Message:
        now_ms = self._quorum.now_ms
        self._heartbeats[id(request)] = request
        try:
            return await self.submit(
                lambda cluster, next_offset: brokers.heartbeat.in_pieces(
                    cluster, self._sessions, request, next_offset=next_offset, now_ms=now_ms()
                ),
                ("broker", request.broker_id),
                timeout_ms=self._config.heartbeat_interval_ms // 2,
            )
        except ApiError as error:
            if error.code == ErrorCode.REQUEST_TIMED_OUT:
                self._metrics.heartbeats_timed_out += 1
                brokers.renew_session(self._image, self._sessions, request, now_ms())
            raise
        finally:
            del self._heartbeats[id(request)]

    async def update_features(
        self, updates: Sequence[FeatureUpdateKey], check: Callable[[MetadataImage], None]
    ) -> None:
        def decide(cluster: Cluster, _: int) -> StepResult:
            check(cluster.image)
            return StepResult(UpdateFeaturesResponse(), feature_records(cluster, updates))

        await self.submit(decide)

    async def run(self) -> None:
        """Write pending changes, one after the other, while the node runs."""
        while True:
            epoch = self._epoch
            if epoch is None or not self.is_active:
                self._refuse_all()
                # No event reports a change in the known software of the voters.
                until = None if epoch is None else self._quorum.now_ms() + _RECHECK_MS
                await self._wait_idle(until)
                continue
            try:
                await self._lead(epoch)
            except ApiError as error:
                if error.code == ErrorCode.OPERATION_NOT_ATTEMPTED:
                    continue
                is_expected = error.code == ErrorCode.NOT_CONTROLLER
                self._metrics.faults += not is_expected
                level = "info" if is_expected else "warning"
                log(level, "controller-stopped", epoch=epoch, reason=error.detail)
                self._refuse_all()
                if self._epoch == epoch:
                    # As in Kafka, a controller that cannot write resigns in favour of one that can.
                    self._quorum.resign(epoch)
                    self._epoch = None

    async def submit(
        self,
        decide: DecideStep,
        *conflict_keys: Hashable,
        timeout_ms: int | None = None,
        records_max: int | None = None,
    ) -> Message:
        """Queue a step and wait for its answer; see `QueuedStep`.

        Raises: ApiError, also those that `decide` raises; REQUEST_TIMED_OUT if the step's turn
        does not come in time.
        """
        if not self.is_active:
            raise not_active()
        if len(self._queue) >= CONTROLLER_QUEUE_MAX:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "too many requests for the controller")
        future = Future[Message | ApiError]()
        self._arrivals += 1
        key = CONNECTION.get(), self._arrivals
        now_ms = self._quorum.now_ms()
        deadline = None if timeout_ms is None else now_ms + timeout_ms
        self._queue[key] = QueuedStep(
            decide, frozenset(conflict_keys), deadline, future.set, now_ms, records_max
        )
        self._notify()
        answer = await future.wait()
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def _count_fault(self, event: str, fault: BaseException) -> None:
        self._metrics.faults += 1
        log_fault(event, fault)

    async def _lead(self, epoch: int) -> None:
        """Act as the active controller of an epoch until it ends."""
        quorum = self._quorum
        await self._activate(epoch)
        self._sessions.renew_all(self._image, quorum.now_ms())
        tasks = tasks_of(self._config, self._tokens, quorum.now_ms())
        while self._epoch == epoch and self.is_active:
            # No flood of requests keeps waiting what is due, nor the other way round (C-MOD-2).
            was_due = await self._run_due(epoch, tasks)
            if self._queue:
                await self._decide_batch(epoch)
            elif not was_due:
                times = [task.due_ms for task in tasks]
                expiry_ms = self._sessions.next_expiry_ms()
                times += [] if expiry_ms is None else [expiry_ms]
                await self._wait_idle(min(times, default=None))

    async def _run_due(self, epoch: int, tasks: Sequence[Task]) -> bool:
        """End a session or run a task that is due; returns whether one was."""
        quorum = self._quorum
        now_ms = quorum.now_ms()
        due = next((task for task in tasks if task.due_ms <= now_ms), None)
        if self._has_expired(now_ms):
            await self._fence(epoch)
        elif due is not None:
            self._metrics.started += 1
            try:
                records = due.records(self._cluster)
            except FAULTS as fault:
                self._count_fault("task-failed", fault)
                due.schedule_after_fault(now_ms)
                return True
            if records:
                await self._write(epoch, encoded(records))
            self._metrics.count_done(1, quorum.now_ms() - now_ms)
            due.schedule_next(quorum.now_ms(), len(records))
        else:
            return False
        return True

    def _check_epoch(self, epoch: int) -> None:
        """End work of an epoch that is over: the image may have changed. Raises: ApiError."""
        if self._epoch != epoch:
            raise not_active()

    def _has_expired(self, now_ms: int) -> bool:
        """Return whether a session has expired. A broker whose heartbeat waits is not silent,
        however slow this controller is."""
        sessions = self._sessions
        if sessions.have_expired(now_ms):
            for request in self._heartbeats.values():
                brokers.renew_session(self._image, sessions, request, now_ms)
        return sessions.have_expired(now_ms)

    async def _fence(self, epoch: int) -> None:
        """Fence a broker whose session has expired."""
        expiring = brokers.fence_expired.in_pieces(
            self._cluster, self._sessions, self._quorum.now_ms()
        )
        result = await in_turns(expiring, partial(self._check_epoch, epoch))
        if result.records:
            fenced = [
                record.broker_id
                for record, _ in result.records
                if isinstance(record, BrokerRegistrationChangeRecord)
            ]
            log("info", "brokers-fenced", brokers=fenced)
            await self._write(epoch, encoded(result.records))
        if result.on_committed is not None:
            result.on_committed()

    async def _activate(self, epoch: int) -> None:
        """Write the records that must come before anything else in this epoch."""
        quorum = self._quorum
        configs = {}
        if self._new_cluster_id is not None and self._image.cluster_id is None:
            configs[CLUSTER_ID_CONFIG] = quorum.raft.cluster_id or self._new_cluster_id()
        if self._config.security.has_scram and self._image.decoy_secret is None:
            configs[DECOY_SECRET_CONFIG] = secrets.token_hex(32)
        min_isr = self._config.resource_settings.get(MIN_INSYNC_REPLICAS, "1")
        records = activate(self._image, self._bootstrap, configs, min_isr)
        if records:
            log("info", "bootstrap", epoch=epoch, records=len(records))
            await self._write(epoch, encoded(records), quorum.raft.end_offset)
        log("info", "controller-active", epoch=epoch)

    async def _decide_batch(self, epoch: int) -> None:
        """Decide on the steps that are next, write their records as one batch, answer them."""
        quorum = self._quorum
        chosen = batches.next_steps(self._queue, next_in_turn(self._queue, CHANGES_AT_ONCE))
        now_ms = quorum.now_ms()
        self._metrics.count_started(chosen.values(), now_ms)
        base_offset = quorum.raft.end_offset
        on_fault = partial(self._count_fault, "decision-failed")
        deciding = batches.decide_batch.in_pieces(
            chosen, self._cluster, base_offset, now_ms, on_fault
        )
        try:
            batch: batches.Batch[tuple[int, int]] = await in_turns(
                deciding, partial(self._check_epoch, epoch)
            )
        except ApiError:
            self._queue = chosen | self._queue
            raise
        self._queue |= batch.again
        try:
            if batch.values:
                await self._write(epoch, batch.values, batch.base_offset)
        except ApiError as error:
            if error.code == ErrorCode.OPERATION_NOT_ATTEMPTED:
                # A change of voters has come between: the offsets differ, decide again.
                again = {key: step for key, (step, _) in batch.decided.items()}
                self._queue = again | self._queue
                return
            batch.refuse(error)
            if error.code == ErrorCode.NOT_CONTROLLER:
                raise
            return
        self._metrics.count_done(len(batch.decided), quorum.now_ms() - now_ms)
        batch.answer()

    async def _write(
        self, epoch: int, values: Sequence[bytes], base_offset: int | None = None
    ) -> None:
        """Append records, and wait until they are committed and in the image.

        Raises: ApiError NOT_CONTROLLER if the leadership ends before, OPERATION_NOT_ATTEMPTED if
        the next offset is not `base_offset`.
        """
        quorum = self._quorum
        for first in range(0, len(values), APPENDED_MAX):
            part = values[first : first + APPENDED_MAX]
            expected = None if base_offset is None else base_offset + first
            try:
                last = await quorum.append(part, epoch=epoch, expected_end_offset=expected)
            except ApiError as error:
                if not first:
                    raise
                # The answer depends on offsets that the rest cannot have: as after a failover.
                raise not_active() from error
            await quorum.committed(last, epoch=epoch)
            while self._image.highest_offset < last:
                if self._epoch != epoch:
                    raise not_active()
                await self._wait(None)

    def _refuse_all(self) -> None:
        """Fail all pending requests: this node can no longer answer them."""
        queue, self._queue = self._queue, {}
        for step in queue.values():
            step.answer(not_active())

    def _notify(self) -> None:
        self._wake.set()

    async def _wait_idle(self, until_ms: int | None) -> None:
        """Wait while there is nothing to do."""
        self._metrics.begin_idle(self._quorum.now_ms())
        await self._wait(until_ms)
        self._metrics.end_idle(self._quorum.now_ms())

    async def _wait(self, until_ms: int | None) -> None:
        """Wait for a notification, or until a time."""
        self._wake = trio.Event()
        if until_ms is None:
            await self._wake.wait()
            return
        with trio.move_on_after(max(0, until_ms - self._quorum.now_ms()) / 1000):
            await self._wake.wait()
