"""What must hold of the image after every batch, and of every new controller's image.

Nothing here uses the indexes of the image, except to compare them with its partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy

from kraftwire.controller.cluster import MIGRATING, Cluster
from kraftwire.controller.image import MetadataImage
from kraftwire.controller.image.topics import NO_LEADER, PartitionKey
from kraftwire.controller.partition_changes import RECOVERING
from kraftwire.controller.step import VersionedRecord
from kraftwire.controller.versions import WITH_DIRECTORIES
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.sim.invariants import Violation

# Partitions and broker epochs before a batch.
Before = tuple[dict[PartitionKey, PartitionRecord], dict[int, int], int]


class Checks:
    """The checks of one cluster.

    `seen_ms` is when a broker's process was last heard, `joining` are the in-sync replicas that a
    leader reports just now.
    """

    def __init__(self, session_ms: int) -> None:
        self._session_ms = session_ms
        self.joining: frozenset[int] = frozenset()
        self.seen_ms: dict[int, int] = {}
        self._relocated: set[PartitionKey] = set()

    def before(self, image: MetadataImage, records: Sequence[VersionedRecord]) -> Before:
        """Return what `after` needs of the image before a batch."""
        partitions = {}
        for record, _ in records:
            if isinstance(record, PartitionChangeRecord):
                key = record.topic_id, record.partition_id
                found = image.topics.partition(key)
                if found is not None:
                    partitions[key] = copy(found)
        epochs = {id: broker.epoch for id, broker in image.brokers.items()}
        return partitions, epochs, image.next_offset

    def after(
        self, cluster: Cluster, records: Sequence[VersionedRecord], before: Before
    ) -> None:
        """Check the image after a batch. Raises: Violation."""
        image = cluster.image
        _check_replay(image)
        old, epochs, base_offset = before
        counts = Counter(
            (record.topic_id, record.partition_id)
            for record, _ in records
            if isinstance(record, PartitionChangeRecord)
        )
        for key, count in counts.items():
            self._check_change(cluster, key, old.get(key), count)
        for record, _ in records:
            if isinstance(record, RegisterBrokerRecord):
                known = epochs.get(record.broker_id, -1)
                if record.broker_epoch not in (known, base_offset) or record.broker_epoch < known:
                    text = f"broker {record.broker_id} has epoch {record.broker_epoch}"
                    raise Violation("M6", f"{text} at offset {base_offset}, {known} before")
        for key, partition in image.topics.all():
            _check_partition(cluster, key, partition)
            self._check_leaderless(cluster, key, partition, old.get(key))

    def activated(self, image: MetadataImage, now_ms: int) -> None:
        """A new controller gives every unfenced broker a session."""
        self.seen_ms = {broker.id: now_ms for broker in image.alive_brokers}

    def expiring(self, records: Sequence[VersionedRecord], now_ms: int) -> None:
        """No broker is fenced within its session. Raises: Violation."""
        for record, _ in records:
            if isinstance(record, BrokerRegistrationChangeRecord):
                silent = now_ms - self.seen_ms.get(record.broker_id, -self._session_ms)
                if silent < self._session_ms:
                    text = f"broker {record.broker_id} is fenced after {silent} ms of silence"
                    raise Violation("M7", text)

    def expired(self, image: MetadataImage, now_ms: int) -> None:
        """No broker stays unfenced after its session. Raises: Violation."""
        for broker in image.brokers.values():
            silent = now_ms - self.seen_ms.get(broker.id, 0)
            if not broker.is_fenced and silent >= self._session_ms:
                text = f"broker {broker.id} is not fenced after {silent} ms of silence"
                raise Violation("M7", text)

    def same(self, old: MetadataImage, new: MetadataImage) -> None:
        """Compare the images of the same log. Raises: Violation."""
        _check_replay(new)
        _check_indexes(old)
        _check_indexes(new)
        if old.next_offset != new.next_offset or old.epoch != new.epoch:
            ends = f"{old.next_offset}@{old.epoch} and {new.next_offset}@{new.epoch}"
            raise Violation("M9", f"images of the same log end at {ends}")
        if sorted(old.freeze()) != sorted(new.freeze()):
            raise Violation("M9", f"images of the same log to {old.next_offset} differ")
        for name in ("features", "configs", "directories", "next_producer_id"):
            if getattr(old, name) != getattr(new, name):
                raise Violation("M9", f"{name} of images of the same log differ")

    def _check_change(
        self, cluster: Cluster, key: PartitionKey, old: PartitionRecord | None, count: int
    ) -> None:
        """Check a partition against its state before a batch that changes it."""
        new = cluster.image.topics.partition(key)
        if old is None or new is None:
            raise Violation("M10", f"a change of {_name(cluster, key)}, which does not exist")
        facts = f"before: {old!r}", f"after: {new!r}"
        if new.partition_epoch != old.partition_epoch + count:
            text = f"{count} changes of {_name(cluster, key)}, from {old.partition_epoch}"
            raise Violation("M4", f"{text} to {new.partition_epoch}", *facts)
        rises = new.leader_epoch - old.leader_epoch
        if not int(new.leader != old.leader) <= rises <= count:
            text = f"the leader epoch of {_name(cluster, key)} rises by {rises}"
            raise Violation("M4", text, *facts)
        if new.leader not in (NO_LEADER, old.leader):
            self._check_leader(cluster, key, old, new)

    def _check_leaderless(
        self,
        cluster: Cluster,
        key: PartitionKey,
        new: PartitionRecord,
        old: PartitionRecord | None,
    ) -> None:
        """Check that no complete replica could lead a partition without a leader.

        As in Kafka, one whose directory has changed is elected only by the next change.
        """
        if new.leader != NO_LEADER:
            self._relocated.discard(key)
            return
        if old is not None and old.directories != new.directories:
            self._relocated.add(key)
        where = dict(zip(new.replicas, new.directories, strict=False))
        for each in {*(new.isr or new.eligible_leader_replicas or ())} & {*new.replicas}:
            could = cluster.is_active(each) and cluster.is_online(where.get(each, MIGRATING), each)
            if could and key not in self._relocated:
                text = f"{_name(cluster, key)} has no leader, and {each} could lead it"
                raise Violation("M13", text, f"partition: {new!r}")

    def _check_leader(
        self, cluster: Cluster, key: PartitionKey, old: PartitionRecord, new: PartitionRecord
    ) -> None:
        """Check a new leader: it was complete, or is known to lack records."""
        facts = f"before: {old!r}", f"after: {new!r}"
        where = dict(zip(new.replicas, new.directories, strict=False))
        if new.leader in where and not cluster.is_online(where[new.leader], new.leader):
            text = f"{new.leader} leads {_name(cluster, key)} from a directory that is offline"
            raise Violation("M5", text, *facts)
        was_complete = {*old.isr, *(old.eligible_leader_replicas or ()), *self.joining}
        if old.leader_recovery_state == new.leader_recovery_state == RECOVERING:
            was_complete |= {new.leader}
        if new.leader not in was_complete:
            # Eligible ones may just have come back without what they had not flushed.
            is_nobody_left = not old.isr and not new.eligible_leader_replicas
            is_last_known = old.last_known_elr == [new.leader] and is_nobody_left
            if new.leader_recovery_state != RECOVERING:
                text = f"{_name(cluster, key)} is led by {new.leader} without a recovery"
                raise Violation("M2", text, *facts)
            if not is_last_known and not cluster.allows_unclean(key[0]):
                text = f"{_name(cluster, key)} is led by {new.leader}, which may lack records"
                raise Violation("M2", text, *facts)


def _check_replay(image: MetadataImage) -> None:
    if image.contradiction is not None:
        raise Violation("M10", str(image.contradiction))
    if image.problem:
        raise Violation("M10", image.problem)


def _name(cluster: Cluster, key: PartitionKey) -> str:
    return f"{cluster.image.topics.names.get(key[0], key[0].hex())}-{key[1]}"


def _check_partition(cluster: Cluster, key: PartitionKey, partition: PartitionRecord) -> None:
    leader, isr, replicas = partition.leader, partition.isr, partition.replicas
    facts = (f"partition: {partition!r}",)
    if leader != NO_LEADER:
        if leader not in isr:
            text = f"{leader} leads {_name(cluster, key)} and is not in sync"
            raise Violation("M1", text, *facts)
        if not cluster.is_active(leader):
            broker = cluster.image.brokers.get(leader)
            text = f"{leader} leads {_name(cluster, key)}"
            raise Violation("M5", text, *facts, f"broker: {broker!r}")
    moving = {*partition.adding_replicas, *partition.removing_replicas}
    is_whole = (
        0 < len(set(replicas)) == len(replicas)
        and len(set(isr)) == len(isr)
        and {*isr, *moving} <= set(replicas)
        and not set(isr) & set(partition.eligible_leader_replicas or ())
        and (isr or cluster.has_elr)
        and (cluster.level < WITH_DIRECTORIES or len(partition.directories) == len(replicas))
    )
    if not is_whole:
        raise Violation("M3", f"the lists of {_name(cluster, key)} do not fit", *facts)


def _check_indexes(image: MetadataImage) -> None:
    """Compare the indexes of an image with its partitions and brokers."""
    topics = image.topics
    found = dict(topics.all())
    brokers = {*image.brokers, *(one for p in found.values() for one in p.replicas)}
    wrong = [
        f"partitions of {broker}"
        for broker in brokers
        if set(topics.in_isr(broker)) != {key for key, p in found.items() if broker in p.isr}
        or set(topics.in_elr(broker))
        != {key for key, p in found.items() if broker in (p.eligible_leader_replicas or ())}
        or topics.leads_any(broker) != any(p.leader == broker for p in found.values())
    ]
    states: dict[str, tuple[set[PartitionKey], Callable[[PartitionRecord], object]]] = {
        "without a leader": (topics.without_leader, lambda p: p.leader == NO_LEADER),
        "reassigning": (topics.reassigning, lambda p: p.adding_replicas or p.removing_replicas),
        "away": (topics.away, lambda p: p.leader != p.replicas[0]),
    }
    for name, (listed, holds) in states.items():
        wrong += [name] if listed != {key for key, p in found.items() if holds(p)} else []
    alive = [broker for _, broker in sorted(image.brokers.items()) if not broker.is_fenced]
    wrong += ["alive"] if image.alive_brokers != alive else []
    owners = {each: broker.id for broker in image.brokers.values() for each in broker.log_dirs}
    wrong += ["directories"] if image.directories != owners else []
    names = {topic_id: name for name, topic_id in topics.ids.items()}
    wrong += ["names"] if topics.names != names else []
    if wrong:
        raise Violation("M11", f"the image lists something else than it has: {', '.join(wrong)}")
