"""The active controller of a quorum of kraftwire nodes: one queue of changes, written in order.

Once its node leads, it writes the bootstrap records if the log has none, then registrations,
fencing and a NoOpRecord per idle interval, each committed and replayed before the next is decided.
On every other node, and while voters of other implementations are in the quorum, it refuses with
NOT_CONTROLLER. The decisions are in `controller_steps`.

Source: Kafka's `QuorumController`; KAFKA-20839 for a bootstrap that was cut short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import trio

from kraftwire.errors import ApiError, WireError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.messages.update_features_request import FeatureUpdateKey
from kraftwire.messages.update_features_response import UpdateFeaturesResponse
from kraftwire.node import controller_steps as steps
from kraftwire.node.config import NodeConfig
from kraftwire.node.context import Quorum
from kraftwire.node.controller_steps import StepResult, VersionedRecord
from kraftwire.node.features import level_records
from kraftwire.node.image import MetadataImage
from kraftwire.node.logs import log
from kraftwire.node.waiting import Future
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import encode_metadata
from kraftwire.replica.state_machine import SnapshotReader
from kraftwire.wire.message import Message

# Registrations and heartbeats that wait for the active controller; each is a few hundred bytes,
# and a cluster with more brokers than this has never been seen.
CONTROLLER_QUEUE_MAX = 10_000

_RECHECK_MS = 500

# Receives the image at the time when the step runs, not when it was queued.
ControllerStep = Callable[[], StepResult]
QueuedStep = tuple[ControllerStep, Future[Message | ApiError]]


def _not_active() -> ApiError:
    return ApiError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")


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
        self._idle_ms = config.idle_interval_ms
        self._image = MetadataImage()
        self._bootstrap = bootstrap
        self._new_cluster_id = new_cluster_id
        self._sessions = steps.Sessions(config.session_timeout_ms)
        self._epoch: int | None = None
        self._queue: deque[QueuedStep] = deque()
        self._wake = trio.Event()

    @property
    def is_active(self) -> bool:
        """Whether this node leads the quorum and all voters are kraftwire nodes."""
        return self._epoch is not None and not self._quorum.raft.foreign_voters

    @property
    def image(self) -> MetadataImage:
        return self._image

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        image = self._image
        was_complete = not image.problem
        for batch in batches:
            image.replay(batch)
        if image.problem and was_complete:
            log("error", "image-incomplete", reason=image.problem)
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
        self._epoch = epoch if is_leader else None
        log("info", "leader-change", leader=leader_id, epoch=epoch, end_offset=end_offset)
        self._notify()

    async def register_controller(self, request: ControllerRegistrationRequest) -> Message:
        """Register a controller. Raises: ApiError NOT_CONTROLLER, like all methods below."""
        return await self._run_step(lambda: steps.register_controller(self._image, request))

    async def register_broker(self, request: BrokerRegistrationRequest) -> Message:
        quorum = self._quorum
        return await self._run_step(
            lambda: steps.register_broker(
                self._image,
                self._sessions,
                request,
                cluster_id=quorum.raft.cluster_id,
                next_offset=quorum.raft.end_offset,
                now_ms=quorum.now_ms(),
            )
        )

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> Message:
        now_ms = self._quorum.now_ms
        return await self._run_step(
            lambda: steps.heartbeat(self._image, self._sessions, request, now_ms())
        )

    async def unregister_broker(self, request: UnregisterBrokerRequest) -> Message:
        return await self._run_step(lambda: steps.unregister_broker(self._image, request))

    async def update_features(self, updates: Sequence[FeatureUpdateKey]) -> None:
        done = UpdateFeaturesResponse()
        await self._run_step(lambda: StepResult(done, level_records(self._image, updates)))

    async def run(self) -> None:
        """Write pending changes, one after the other, while the node runs."""
        while True:
            epoch = self._epoch
            if epoch is None or not self.is_active:
                self._refuse_all()
                # No event reports a change in the known software of the voters.
                until = None if epoch is None else self._quorum.now_ms() + _RECHECK_MS
                await self._wait(until)
                continue
            try:
                await self._lead(epoch)
            except ApiError as error:
                level = "info" if error.code == ErrorCode.NOT_CONTROLLER else "warning"
                log(level, "controller-stopped", epoch=epoch, reason=error.detail)
                self._refuse_all()
                if self._epoch == epoch:
                    # As in Kafka, a controller that cannot write resigns in favour of one that can.
                    self._quorum.resign(epoch)
                    self._epoch = None

    async def _run_step(self, step: ControllerStep) -> Message:
        """Queue a step and wait for its answer."""
        if not self.is_active:
            raise _not_active()
        if len(self._queue) >= CONTROLLER_QUEUE_MAX:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "too many requests for the controller")
        future = Future[Message | ApiError]()
        self._queue.append((step, future))
        self._notify()
        answer = await future.wait()
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def _lead(self, epoch: int) -> None:
        """Act as the active controller of an epoch until it ends."""
        quorum = self._quorum
        await self._activate(epoch)
        self._sessions.renew_all(self._image, quorum.now_ms())
        idle_ms = self._idle_ms
        idle_due_ms = quorum.now_ms() + idle_ms
        while self._epoch == epoch and self.is_active:
            now_ms = quorum.now_ms()
            if self._queue:
                await self._serve(epoch)
            elif expired := steps.expire(self._image, self._sessions, now_ms):
                ids = [record.broker_id for record, _ in expired]  # type: ignore[attr-defined]
                log("info", "brokers-fenced", brokers=ids)
                await self._write(epoch, expired)
            elif idle_ms and now_ms >= idle_due_ms:
                await self._write(epoch, [(NoOpRecord(), 0)])
                idle_due_ms = max(idle_due_ms + idle_ms, quorum.now_ms())
            else:
                expiry_ms = self._sessions.next_expiry_ms(self._image)
                due = [idle_due_ms] if idle_ms else []
                due += [] if expiry_ms is None else [expiry_ms]
                await self._wait(min(due, default=None))

    async def _activate(self, epoch: int) -> None:
        """Write the records that must come before anything else in this epoch."""
        quorum = self._quorum
        cluster_id = None
        if self._new_cluster_id is not None and self._image.cluster_id is None:
            cluster_id = quorum.raft.cluster_id or self._new_cluster_id()
        records = steps.activate(self._image, self._bootstrap, cluster_id)
        if records:
            log("info", "bootstrap", epoch=epoch, records=len(records))
            await self._write(epoch, records, base_offset=quorum.raft.end_offset)
        log("info", "controller-active", epoch=epoch)

    async def _serve(self, epoch: int) -> None:
        """Decide on the oldest request, write its records, answer it."""
        step, future = self._queue.popleft()
        try:
            result = step()
            if result.records:
                await self._write(epoch, result.records, base_offset=result.base_offset)
        except WireError as error:
            future.set(ApiError(ErrorCode.INVALID_REQUEST, str(error)))
            return
        except ApiError as error:
            future.set(error)
            # Any other failure, such as a registration too large for a batch, is the sender's.
            if error.code == ErrorCode.NOT_CONTROLLER:
                raise
            return
        if result.response is not None:
            future.set(result.response)

    async def _write(
        self, epoch: int, records: Sequence[VersionedRecord], base_offset: int | None = None
    ) -> None:
        """Append records as one batch and wait until they are committed and in the image.

        Raises: ApiError NOT_CONTROLLER if the leadership ends before.
        """
        values = [encode_metadata(record, version) for record, version in records]
        quorum = self._quorum
        last = await quorum.append(values, epoch=epoch, expected_end_offset=base_offset)
        await quorum.committed(last, epoch=epoch)
        while self._image.highest_offset < last:
            if self._epoch != epoch:
                raise _not_active()
            await self._wait(None)

    def _refuse_all(self) -> None:
        """Fail all pending requests: this node can no longer answer them."""
        while self._queue:
            self._queue.popleft()[1].set(_not_active())

    def _notify(self) -> None:
        self._wake.set()

    async def _wait(self, until_ms: int | None) -> None:
        """Wait for a notification, or until a time."""
        self._wake = trio.Event()
        if until_ms is None:
            await self._wake.wait()
            return
        with trio.move_on_after(max(0, until_ms - self._quorum.now_ms()) / 1000):
            await self._wake.wait()
