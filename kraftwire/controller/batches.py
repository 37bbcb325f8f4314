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
from kraftwire.errors import ApiError, WireError
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.pieces import Divided, Pieces, whole
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.message import Message

# Receives the cluster at the time when the step runs, not when it was queued, and the next offset.
ControllerStep = Callable[[Cluster, int], StepResult | Pieces[StepResult]]

K = TypeVar("K", bound=Hashable)

# Records that change which brokers are active.
_OF_BROKERS = (BrokerRegistrationChangeRecord, RegisterBrokerRecord, UnregisterBrokerRecord)


class QueuedStep(NamedTuple):
    """A step that waits to be decided.

    Steps with a common element of `touches` are decided in separate batches; a step without any
    has a batch of its own. It has waited since `queued_ms`, and is refused after `deadline_ms`.
    """

    decide: ControllerStep
    touches: frozenset[Hashable]
    deadline_ms: int | None
    answer: Callable[[Message | ApiError], None]
    queued_ms: int = 0


def take(queue: dict[K, QueuedStep], order: Iterable[K]) -> dict[K, QueuedStep]:
    """Remove the steps of the next batch from the queue: the first ones, none of which touch what
    another one does.
    """
    chosen: dict[K, QueuedStep] = {}
    touched: set[Hashable] = set()
    for key in order:
        touches = queue[key].touches
        if not chosen or (touches and touched.isdisjoint(touches)):
            chosen[key] = queue.pop(key)
            touched |= touches
        if not touched:
            break
    return chosen


@dataclass(slots=True)
class Batch(Generic[K]):
    """Steps that were decided together. Order: write `values` at `base_offset`, and once they are
    committed, `answer`.

    `again` are steps that have to be decided once more, after this batch.
    """

    base_offset: int
    values: list[bytes] = field(default_factory=list)
    decided: dict[K, tuple[QueuedStep, StepResult]] = field(default_factory=dict)
    again: dict[K, QueuedStep] = field(default_factory=dict)
    _moves: bool = False
    _changes: bool = False

    def decide(
        self, key: K, step: QueuedStep, cluster: Cluster, now_ms: int
    ) -> Pieces[None]:
        """Decide on a step; answer it at once if it is refused."""
        if step.deadline_ms is not None and now_ms >= step.deadline_ms:
            text = "the controller did not come to this request in time"
            step.answer(ApiError(ErrorCode.REQUEST_TIMED_OUT, text))
            return
        try:
            made = step.decide(cluster, self.base_offset + len(self.values))
            result = yield from finished(made)
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

    def _conflicts(self, records: Sequence[VersionedRecord]) -> bool:
        """Return whether records were decided on a state that others of the batch change.

        A leader is chosen among the brokers that are active, and a broker that becomes active is
        given what lacks a leader. So a step that changes partitions shares its batch with none
        that changes brokers or partitions.
        """
        moves = any(isinstance(record, PartitionChangeRecord) for record, _ in records)
        changes = moves or any(isinstance(record, _OF_BROKERS) for record, _ in records)
        if (changes and self._moves) or (moves and self._changes):
            return True
        self._moves |= moves
        self._changes |= changes
        return False

    def refuse(self, error: ApiError) -> None:
        """Answer all steps with an error: nothing was written, or it is not known."""
        for step, _ in self.decided.values():
            step.answer(error)

    def answer(self) -> None:
        """Answer all steps. Order: their records are committed and in the image."""
        for step, result in self.decided.values():
            if result.applied is not None:
                result.applied()
            if result.response is not None:
                step.answer(result.response)


@Divided
def decide(
    chosen: Mapping[K, QueuedStep], cluster: Cluster, base_offset: int, now_ms: int
) -> Pieces[Batch[K]]:
    """Decide on steps together; their records begin at `base_offset`."""
    batch: Batch[K] = Batch(base_offset)
    for key, step in chosen.items():
        yield from batch.decide(key, step, cluster, now_ms)
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
