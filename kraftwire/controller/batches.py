"""Changes that wait for the active controller, and which of them are decided as one batch.

Every step of a batch is decided on the state before the batch. So a step that could depend on the
change of another one is left for a later batch, and the result is that of one step after the other.

Source: Kafka's `QuorumController`, which applies each change before it decides on the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.errors import FAULTS, ApiError, WireError
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.pieces import Divided, Pieces, whole
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.message import Message

# Receives the cluster at the time when the step runs, not when it was queued, and the next offset.
DecideStep = Callable[[Cluster, int], StepResult | Pieces[StepResult]]

K = TypeVar("K", bound=Hashable)

# Records that change which brokers are active.
_OF_BROKERS = (BrokerRegistrationChangeRecord, RegisterBrokerRecord, UnregisterBrokerRecord)


class QueuedStep(NamedTuple):
    """A step that waits to be decided.

    Steps with a common element of `conflict_keys` are decided in separate batches; a step without
    any has a batch of its own. It has waited since `queued_ms`, is refused after `deadline_ms`, and
    if it would write more than `records_max` records.
    """

    decide: DecideStep
    conflict_keys: frozenset[Hashable]
    deadline_ms: int | None
    answer: Callable[[Message | ApiError], None]
    queued_ms: int = 0
    records_max: int | None = None


def next_steps(queue: dict[K, QueuedStep], order: Iterable[K]) -> dict[K, QueuedStep]:
    """Remove the steps of the next batch from the queue: the first ones without a conflict."""
    chosen: dict[K, QueuedStep] = {}
    taken: set[Hashable] = set()
    for key in order:
        conflict_keys = queue[key].conflict_keys
        if not chosen or (conflict_keys and taken.isdisjoint(conflict_keys)):
            chosen[key] = queue.pop(key)
            taken |= conflict_keys
        if not taken:
            break
    return chosen


@dataclass(slots=True)
class Batch(Generic[K]):
    """Steps that were decided together. Order: write `values` at `base_offset`, and once they are
    committed, `answer`.

    `again` are steps that have to be decided once more, after this batch. A bug in a decision,
    which has changed nothing, ends its request alone if there is an `on_fault` (C-ERR-2).
    """

    base_offset: int
    values: list[bytes] = field(default_factory=list)
    decided: dict[K, tuple[QueuedStep, StepResult]] = field(default_factory=dict)
    again: dict[K, QueuedStep] = field(default_factory=dict)
    on_fault: Callable[[Exception], None] | None = None
    _changes_partitions: bool = False
    _changes_brokers: bool = False

    def add(self, key: K, step: QueuedStep, cluster: Cluster, now_ms: int) -> Pieces[None]:
        """Decide on a step; answer it at once if it is refused."""
        if step.deadline_ms is not None and now_ms >= step.deadline_ms:
            text = "the controller did not come to this request in time"
            step.answer(ApiError(ErrorCode.REQUEST_TIMED_OUT, text))
            return
        try:
            result = yield from self._decided(step, cluster)
            values = yield from _encoded(result.records)
        except WireError as error:
            step.answer(ApiError(ErrorCode.INVALID_REQUEST, str(error)))
            return
        except ApiError as error:
            step.answer(error)
            return
        if self._conflicts(result.records):
            self.again[key] = step
            return
        self.values += values
        self.decided[key] = step, result

    def _decided(self, step: QueuedStep, cluster: Cluster) -> Pieces[StepResult]:
        """Return the result of a step. Raises: ApiError, WireError."""
        try:
            made = step.decide(cluster, self.base_offset + len(self.values))
            result = yield from finished(made)
        except FAULTS as fault:
            if self.on_fault is None:
                raise
            self.on_fault(fault)
            text = "the controller failed to decide on this"
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from fault
        if step.records_max is not None and len(result.records) > step.records_max:
            text = f"{len(result.records)} records in one request, more than {step.records_max}"
            raise ApiError(ErrorCode.POLICY_VIOLATION, text)
        return result

    def _conflicts(self, records: Sequence[VersionedRecord]) -> bool:
        """Return whether records were decided on a state that others of the batch change.

        A leader is chosen among the brokers that are active, and a broker that becomes active is
        given what lacks a leader. So a step that changes partitions shares its batch with none
        that changes brokers or partitions.
        """
        partitions = any(isinstance(record, PartitionChangeRecord) for record, _ in records)
        brokers = any(isinstance(record, _OF_BROKERS) for record, _ in records)
        after_partitions = self._changes_partitions and (partitions or brokers)
        if after_partitions or (self._changes_brokers and partitions):
            return True
        self._changes_partitions |= partitions
        self._changes_brokers |= brokers
        return False

    def refuse(self, error: ApiError) -> None:
        """Answer all steps with an error: nothing was written, or it is not known."""
        for step, _ in self.decided.values():
            step.answer(error)

    def answer(self) -> None:
        """Answer all steps. Order: their records are committed and in the image."""
        for step, result in self.decided.values():
            if result.on_committed is not None:
                result.on_committed()
            if result.response is not None:
                step.answer(result.response)


@Divided
def decide_batch(
    chosen: Mapping[K, QueuedStep],
    cluster: Cluster,
    base_offset: int,
    now_ms: int,
    on_fault: Callable[[Exception], None] | None = None,
) -> Pieces[Batch[K]]:
    """Decide on steps together; their records begin at `base_offset`."""
    batch: Batch[K] = Batch(base_offset, on_fault=on_fault)
    for key, step in chosen.items():
        yield from batch.add(key, step, cluster, now_ms)
    return batch


def finished(made: StepResult | Pieces[StepResult]) -> Pieces[StepResult]:
    """Return what a step has made, after the pieces of its work if it is divided."""
    return made if isinstance(made, StepResult) else (yield from made)


def encoded(records: Iterable[VersionedRecord]) -> list[bytes]:
    """Return records as they are written."""
    return whole(_encoded(records))


def _encoded(records: Iterable[VersionedRecord]) -> Pieces[list[bytes]]:
    values: list[bytes] = []
    for record, version in records:
        yield
        values.append(encode_metadata(record, version))
    return values
