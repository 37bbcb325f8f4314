"""Simulated brokers: processes that register, send heartbeats, lead partitions and end.

A broker's number stays; every start is another process, with an incarnation of its own. Processes
that were replaced may still speak, with their old epochs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from kraftwire.controller import brokers
from kraftwire.controller.batches import DecideStep, QueuedStep
from kraftwire.controller.cluster import UNASSIGNED
from kraftwire.controller.directories import assign_replicas
from kraftwire.controller.image.topics import PartitionKey
from kraftwire.controller.isr import alter_partition
from kraftwire.controller.producer_ids import allocate_producer_ids
from kraftwire.controller.versions import SUPPORTED_FEATURES
from kraftwire.errors import ApiError
from kraftwire.messages import assign_replicas_to_dirs_request as assignments
from kraftwire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftwire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.sim.controlled.active_controller import SESSION_MS, ActiveController
from kraftwire.sim.invariants import Violation

_WITH_EPOCHS = 3


@dataclass(slots=True)
class Broker:
    """One broker: the process that runs now, if any, and the epochs of those before it.

    `epoch` is -1 until the process is registered; `clean_epoch` is that of a process that shut
    down cleanly, else -1.
    """

    id: int
    directories: list[bytes]
    rack: str | None
    is_running: bool = False
    stops: bool = False
    incarnation: bytes = bytes(16)
    epoch: int = -1
    clean_epoch: int = -1
    offline: list[bytes] = field(default_factory=list)
    old_epochs: list[int] = field(default_factory=list)


class Brokers:
    """All brokers of a cluster, and what they ask of the controller."""

    def __init__(self, controller: ActiveController, random: Random, count: int) -> None:
        self._controller = controller
        self._random = random
        self._block_end = 0
        self.all = [
            Broker(
                id,
                [(1000 * n + id).to_bytes(16, "big") for n in range(1, random.randint(2, 3))],
                random.choice((None, "a", "b")),
            )
            for id in range(count)
        ]

    def start(self, broker: Broker) -> None:
        """Start a process of a broker that is down."""
        broker.is_running, broker.stops, broker.epoch = True, False, -1
        broker.incarnation = self._random.randbytes(16)
        broker.offline = []
        self.register(broker)

    def crash(self, broker: Broker) -> None:
        """End a process without a controlled shutdown."""
        broker.is_running, broker.clean_epoch = False, -1
        self._ended(broker)

    def _ended(self, broker: Broker) -> None:
        if broker.epoch >= 0:
            broker.old_epochs.append(broker.epoch)
        broker.is_running, broker.epoch = False, -1

    def register(self, broker: Broker) -> None:
        """Register a process, as often as it takes. Raises: Violation."""
        controller, image = self._controller, self._controller.image
        known = image.brokers.get(broker.id)
        seen = controller.checks.seen_ms.get(broker.id, -SESSION_MS)
        is_held = (
            known is not None
            and known.incarnation_id != broker.incarnation
            and controller.now_ms - seen < SESSION_MS
        )
        request = BrokerRegistrationRequest(
            broker_id=broker.id,
            incarnation_id=broker.incarnation,
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            rack=broker.rack,
            log_dirs=broker.directories,
            previous_broker_epoch=broker.clean_epoch,
        )
        answer: Any = controller.submit(
            lambda cluster, next_offset: brokers.register_broker(
                cluster, controller.sessions, request, 4,
                cluster_id=None, next_offset=next_offset, now_ms=controller.now_ms,
            )
        )  # fmt: skip
        if answer is None:
            return
        expected = ErrorCode.DUPLICATE_BROKER_REGISTRATION if is_held else ErrorCode.NONE
        if answer.error_code != expected:
            text = f"broker {broker.id} registers, error {answer.error_code}, not {expected}"
            raise Violation("M6", text)
        if not answer.error_code:
            self._registered(broker, answer.broker_epoch)

    def _registered(self, broker: Broker, epoch: int) -> None:
        if any(epoch <= old for old in broker.old_epochs):
            raise Violation("M6", f"broker {broker.id} gets epoch {epoch} again")
        is_unclean = broker.clean_epoch < 0
        self._controller.checks.seen_ms.pop(broker.id, None)
        broker.epoch, broker.clean_epoch = epoch, -1
        cluster = self._controller.cluster
        for _, partition in cluster.image.topics.all():
            kept = {*partition.isr} if cluster.has_elr else set()
            kept |= {*(partition.eligible_leader_replicas or ())} if is_unclean else set()
            if broker.id in kept:
                text = f"broker {broker.id} is new, and taken for complete"
                raise Violation("M2", text, f"partition: {partition!r}")

    def heartbeat(self, broker: Broker) -> None:
        """Send a heartbeat, and do what the answer says. Raises: Violation."""
        if broker.epoch < 0:
            self.register(broker)
        else:
            was_fenced = self._is_fenced(broker)
            answer = self._heartbeat(broker, broker.epoch)
            if answer is not None:
                self._hear(broker, answer, was_fenced=was_fenced)

    def heartbeat_together(self) -> None:
        """Let all registered processes send heartbeats at once. Raises: Violation."""
        running = [broker for broker in self.all if broker.is_running and broker.epoch >= 0]
        self._random.shuffle(running)
        self._controller.submit_together(
            [
                QueuedStep(
                    self._heartbeat_step(broker, broker.epoch),
                    frozenset({("broker", broker.id)}),
                    None,
                    partial(self._hear, broker, was_fenced=self._is_fenced(broker)),
                )
                for broker in running
            ]
        )

    def _is_fenced(self, broker: Broker) -> bool:
        known = self._controller.image.brokers.get(broker.id)
        return known is not None and known.is_fenced

    def _hear(self, broker: Broker, answer: Any, *, was_fenced: bool) -> None:
        if answer.error_code:
            self._check_stale(broker)
            return
        self._controller.checks.seen_ms[broker.id] = self._controller.now_ms
        image = self._controller.image
        if answer.should_shut_down:
            if any(partition.leader == broker.id for _, partition in image.topics.all()):
                raise Violation("M5", f"broker {broker.id} may stop, and leads a partition")
            broker.clean_epoch = broker.epoch
            del self._controller.checks.seen_ms[broker.id]
            self._ended(broker)
        elif was_fenced and not answer.is_fenced and not answer.is_caught_up:
            raise Violation("M7", f"broker {broker.id} is unfenced before it knows that it is")
        elif answer.is_fenced != image.brokers[broker.id].is_fenced:
            raise Violation("M12", f"broker {broker.id} is told fenced: {answer.is_fenced}")

    def _heartbeat(self, broker: Broker, epoch: int) -> Any:
        return self._controller.submit(self._heartbeat_step(broker, epoch))

    def _heartbeat_step(self, broker: Broker, epoch: int) -> DecideStep:
        controller, random = self._controller, self._random
        lag = random.choice((0, 0, 0, random.randint(1, 20)))
        request = BrokerHeartbeatRequest(
            broker_id=broker.id,
            broker_epoch=epoch,
            current_metadata_offset=max(0, controller.image.highest_offset - lag),
            want_shut_down=broker.stops,
            want_fence=random.random() < 0.01,
            offline_log_dirs=broker.offline,
        )
        return lambda cluster, next_offset: brokers.heartbeat(
            cluster, controller.sessions, request,
            next_offset=next_offset, now_ms=controller.now_ms,
        )  # fmt: skip

    def _check_stale(self, broker: Broker) -> None:
        """A process that is refused has to have been removed; it starts again."""
        known = self._controller.image.brokers.get(broker.id)
        if known is not None and known.epoch == broker.epoch:
            raise Violation("M6", f"broker {broker.id} is refused with its epoch {broker.epoch}")
        self.crash(broker)

    def send_old_epoch(self, broker: Broker) -> None:
        """Send requests of a process that was replaced: they must be refused. Raises: Violation."""
        if not broker.old_epochs:
            return
        epoch = self._random.choice(broker.old_epochs)
        known = self._controller.image.brokers.get(broker.id)
        if known is not None and known.epoch == epoch:
            return
        answers = (self._heartbeat(broker, epoch), self._allocated(broker.id, epoch))
        for answer in answers:
            if answer is not None and answer.error_code != ErrorCode.STALE_BROKER_EPOCH:
                text = f"epoch {epoch} of broker {broker.id} is over, and not refused"
                raise Violation("M6", text)

    def allocate(self, broker: Broker) -> None:
        """Ask for a block of producer ids. Raises: Violation."""
        answer = self._allocated(broker.id, broker.epoch)
        if answer is None or answer.error_code:
            return
        if answer.producer_id_start < self._block_end:
            text = f"the block at {answer.producer_id_start} begins before {self._block_end}"
            raise Violation("M8", text)
        self._block_end = answer.producer_id_start + answer.producer_id_len

    def _allocated(self, broker_id: int, epoch: int) -> Any:
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
        return self._controller.submit(lambda cluster, _: allocate_producer_ids(cluster, request))

    def lose_directory(self, broker: Broker) -> None:
        """Lose a log directory, which the next heartbeats report."""
        if len(broker.directories) > 1 and not broker.offline:
            broker.offline = [self._random.choice(broker.directories)]

    def assign(self, broker: Broker) -> None:
        """Report the directory of a replica that has none yet."""
        topics = self._controller.image.topics
        waiting = [
            key
            for key, partition in topics.all()
            if (broker.id, UNASSIGNED)
            in zip(partition.replicas, partition.directories, strict=False)
        ]
        if not waiting:
            return
        topic_id, index = self._random.choice(waiting)
        partitions = [assignments.PartitionData(partition_index=index)]
        topic = assignments.TopicData(topic_id=topic_id, partitions=partitions)
        directory = self._random.choice(broker.directories)
        request = assignments.AssignReplicasToDirsRequest(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            directories=[assignments.DirectoryData(id=directory, topics=[topic])],
        )
        self._controller.submit(lambda cluster, _: assign_replicas(cluster, request))

    def change_isr(self, broker: Broker) -> None:
        """As a leader, add or remove an in-sync replica, or end a recovery. Raises: Violation."""
        image = self._controller.image
        led = [one for one in image.topics.all() if one[1].leader == broker.id]
        if not led:
            return
        key, partition = self._random.choice(led)
        wanted, is_current = self._wanted(broker, partition)
        wanted.partition_index = key[1]
        topic = TopicData(topic_id=key[0], partitions=[wanted])
        request = AlterPartitionRequest(
            broker_id=broker.id, broker_epoch=broker.epoch, topics=[topic]
        )
        checks = self._controller.checks
        checks.joining = frozenset(one.broker_id for one in wanted.new_isr_with_epochs)
        answer: Any = self._controller.submit(
            lambda cluster, _: alter_partition(cluster, request, _WITH_EPOCHS)
        )
        checks.joining = frozenset()
        if answer is None or isinstance(answer, ApiError) or answer.error_code:
            return
        self._check_answer(key, answer.topics[0].partitions[0], is_current=is_current)

    def _wanted(self, broker: Broker, partition: PartitionRecord) -> tuple[PartitionData, bool]:
        """Return the change that a leader wants, and whether all that it knows is current."""
        random, image = self._random, self._controller.image
        others = [one for one in partition.replicas if one != broker.id]
        isr = list(partition.isr)
        if others:
            member = random.choice(others)
            isr = [one for one in isr if one != member] if member in isr else [*isr, member]
        late = random.choice((0, 0, 0, 0, 1))
        behind = random.choice((0, 0, 0, 0, 1))
        epochs = {
            one: image.brokers[one].epoch if one in image.brokers else -1 for one in isr
        }
        is_current = not late and not behind
        if random.random() < 0.05:
            epochs[isr[-1]] -= 1
            is_current = is_current and epochs[isr[-1]] == -1
        data = PartitionData(
            leader_epoch=partition.leader_epoch - late,
            partition_epoch=partition.partition_epoch - behind,
            new_isr_with_epochs=[
                BrokerState(broker_id=one, broker_epoch=epoch) for one, epoch in epochs.items()
            ],
        )
        return data, is_current

    def _check_answer(self, key: PartitionKey, answered: Any, *, is_current: bool) -> None:
        """Compare the partition in an answer to its leader with that of the image."""
        if answered.error_code:
            return
        if not is_current:
            raise Violation("M6", f"a leader's stale change is not refused: {answered!r}")
        partition = self._controller.image.topics.partition(key)
        assert partition is not None
        for name in ("leader_epoch", "isr", "leader_recovery_state", "partition_epoch"):
            if getattr(answered, name) != getattr(partition, name):
                text = f"a leader is told of another {name}"
                raise Violation("M12", text, f"answered: {answered!r}", f"partition: {partition!r}")
