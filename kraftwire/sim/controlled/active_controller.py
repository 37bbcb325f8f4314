"""A model of the active controller, over the shipped decisions and the shipped image.

One batch of records is committed and replayed before the next changes are decided. Leadership may
be lost at any batch: the one in flight is kept or lost, its senders hear nothing, and a new
controller builds the image from the log, or from a snapshot and what follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kraftwire.controller import brokers
from kraftwire.controller.activation import activate
from kraftwire.controller.batches import (
    DecideStep,
    QueuedStep,
    decide_batch,
    encoded,
    finished,
    next_steps,
)
from kraftwire.controller.cluster import Cluster
from kraftwire.controller.image import METADATA_VERSION, MetadataImage
from kraftwire.controller.sessions import Sessions
from kraftwire.controller.step import VersionedRecord
from kraftwire.controller.versions import ELR_VERSION
from kraftwire.errors import ApiError
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.pieces import whole
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.control import ControlType, control_key
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.controlled.checks import Checks
from kraftwire.sim.invariants import Violation
from kraftwire.wire.message import Message

SESSION_MS = 9000

# As many as in a batch of a node.
CHANGES_AT_ONCE = 8

# How often the leadership ends with a batch in flight, and how often that batch survives.
_LOSES, _KEPT = 0.02, 0.5

def _batch(values: Sequence[bytes], base_offset: int, epoch: int) -> RecordBatch:
    header = BatchHeader(base_offset=base_offset, partition_leader_epoch=epoch)
    count = len(values)
    return RecordBatch(build_columns([0] * count, [None] * count, values, header=header))


def _leader_change(base_offset: int, epoch: int) -> RecordBatch:
    header = BatchHeader(base_offset=base_offset, partition_leader_epoch=epoch, is_control=True)
    return RecordBatch(
        build_columns([0], [control_key(ControlType.LEADER_CHANGE)], [b"\0\0"], header=header)
    )


class ActiveController:
    """The log, and the controller that is active now.

    `failovers` and `commits` are counted. `checks` sees every batch before and after its replay.
    """

    def __init__(self, random: Random, level: int, *, has_elr: bool) -> None:
        self.now_ms = 0
        self.failovers = 0
        self.commits = 0
        self.image = MetadataImage()
        self.checks = Checks(SESSION_MS)
        self.sessions = Sessions(SESSION_MS)
        self._random = random
        self._epoch = 0
        self._log: list[RecordBatch] = []
        self._snapshot: tuple[OffsetAndEpoch, list[RecordBatch], int] | None = None
        levels = {METADATA_VERSION: level} | ({ELR_VERSION: 1} if has_elr else {})
        self._bootstrap = [
            (FeatureLevelRecord(name=name, feature_level=one), 0) for name, one in levels.items()
        ]
        self._activate()

    @property
    def cluster(self) -> Cluster:
        """What the next decision depends on."""
        return Cluster(self.image, 1)

    def submit(self, decide: DecideStep) -> Message | ApiError | None:
        """Decide and commit a change; returns its answer, None if the leadership ended before."""
        try:
            result = whole(finished(decide(self.cluster, self.image.next_offset)))
        except ApiError as error:
            return error
        if not self._write(result.records):
            return None
        if result.on_committed is not None:
            result.on_committed()
        return result.response

    def submit_together(self, steps: Sequence[QueuedStep]) -> None:
        """Decide and commit changes, those in one batch that a node decides in one. Steps are not
        answered once the leadership has ended."""
        queue = dict(enumerate(steps))
        while queue:
            chosen = next_steps(queue, list(queue)[:CHANGES_AT_ONCE])
            batch = decide_batch(chosen, self.cluster, self.image.next_offset, self.now_ms)
            queue = batch.again | queue
            decided = [result for _, result in batch.decided.values()]
            if not self._write([record for result in decided for record in result.records]):
                return
            batch.answer()

    def pass_time(self, until_ms: int) -> None:
        """Let time pass: brokers are fenced one after the other, when their sessions expire."""
        while (expiry := self.sessions.next_expiry_ms()) is not None and expiry <= until_ms:
            self.now_ms = max(self.now_ms, expiry)
            found = brokers.fence_expired(self.cluster, self.sessions, self.now_ms)
            self.checks.expiring(found.records, self.now_ms)
            if not self._write(found.records):
                continue
            if found.on_committed is not None:
                found.on_committed()
            if expiry == self.sessions.next_expiry_ms() and not found.records:
                raise Violation("M7", f"the session that ends at {expiry} ms is never looked at")
        self.now_ms = until_ms
        self.checks.expired(self.image, self.now_ms)

    def take_snapshot(self) -> None:
        """Write a snapshot of the image, which later controllers may begin with."""
        where = OffsetAndEpoch(self.image.next_offset, self.image.epoch)
        values = list(self.image.freeze())
        self._snapshot = where, [_batch(values, 0, where.epoch)], len(self._log)

    def fail_over(self) -> None:
        """Make another controller active, which knows what is in the log."""
        self.failovers += 1
        image = self._replayed()
        self.checks.same(self.image, image)
        self.image = image
        self._activate()

    def check_replays(self) -> None:
        """Compare the image with those that the whole log and the snapshot give."""
        self.checks.same(self.image, self._from_log())
        self.checks.same(self.image, self._replayed())

    def _from_log(self) -> MetadataImage:
        image = MetadataImage()
        for batch in self._log:
            image.replay(batch)
        return image

    def _replayed(self) -> MetadataImage:
        if self._snapshot is None or self._random.random() < 0.3:
            return self._from_log()
        where, batches, start = self._snapshot
        image = MetadataImage.load(where, batches)
        for batch in self._log[start:]:
            image.replay(batch)
        return image

    def _activate(self) -> None:
        self._epoch += 1
        self._log.append(_leader_change(self.image.next_offset, self._epoch))
        self.image.replay(self._log[-1])
        records = activate(self.image, self._bootstrap, {})
        if records:
            self._append(records)
        self.sessions = Sessions(SESSION_MS)
        self.sessions.renew_all(self.image, self.now_ms)
        self.checks.activated(self.image, self.now_ms)

    def _write(self, records: Sequence[VersionedRecord]) -> bool:
        """Commit a batch; returns whether the leadership has not ended meanwhile."""
        if not records:
            return True
        if self._random.random() < _LOSES:
            if self._random.random() < _KEPT:
                self._append(records)
            self.fail_over()
            return False
        self._append(records)
        return True

    def _append(self, records: Sequence[VersionedRecord]) -> None:
        batch = _batch(encoded(records), self.image.next_offset, self._epoch)
        before = self.checks.before(self.image, records)
        self._log.append(batch)
        self.image.replay(batch)
        self.commits += 1
        self.checks.after(self.cluster, records, before)
