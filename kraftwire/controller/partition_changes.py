"""The change of one partition: in-sync replicas, leader, reassignment and directories at once.

Every change of a partition goes through `change_partition`, so that a reassignment that is complete
ends and a leader is elected whenever it can be. Rules: C-PCB, C-UPD, C-REA-5.

Source: Kafka's `PartitionChangeBuilder`, `PartitionReassignmentReplicas` and
`ReplicationControlManager.generateLeaderAndIsrUpdates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from typing import Any

from kraftwire.controller.cluster import MIGRATING, Cluster
from kraftwire.controller.image.topics import NO_LEADER, PartitionKey
from kraftwire.controller.step import VersionedRecord
from kraftwire.controller.versions import WITH_DIRECTORIES, record_version
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.pieces import Divided, Pieces

RECOVERED, RECOVERING = 0, 1

# Below this level of metadata.version (3.2-IV0 to 3.3-IV2), a smaller set of in-sync replicas also
# advances the leader epoch.
_WITHOUT_EPOCH_BUMP = 12

_UNCHANGED_LEADER = -2


class Election(Enum):
    """The kind of leader that an election may choose."""

    ONLINE = auto()  # the leader stays if it can
    PREFERRED = auto()  # the first replica, if it can
    UNCLEAN = auto()  # any replica, if there is no other way


@dataclass(slots=True)
class Target:
    """The partition as it should become; None leaves a list as it is.

    `directories` are new ones by broker id. `unclean` are brokers that have lost what they had not
    flushed: they are not eligible any more. `can_lead` decides on a broker id.
    """

    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    removing: Sequence[int] | None = None
    adding: Sequence[int] | None = None
    election: Election = Election.ONLINE
    recovery_state: int | None = None
    directories: Mapping[int, bytes] = field(default_factory=dict)
    unclean: frozenset[int] = frozenset()
    can_lead: Callable[[int], bool] | None = None


def change_partition(
    cluster: Cluster, key: PartitionKey, target: Target
) -> VersionedRecord | None:
    """Return the record that changes a partition, None if nothing changes. Order: the partition
    exists."""
    partition = cluster.image.topics.partition(key)
    assert partition is not None
    return _PartitionChange(cluster, key, partition, target).record()


@Divided
def changes_for_broker(
    cluster: Cluster,
    keys: Iterable[PartitionKey],
    *,
    removed: int | None = None,
    added: int | None = None,
    unclean: int | None = None,
) -> Pieces[list[VersionedRecord]]:
    """Return the changes of partitions when a broker goes, comes, or came back without its newest
    records (C-UPD-1)."""
    without = {removed, unclean}
    lost = frozenset(() if unclean is None else (unclean,))

    @cache
    def can_lead(replica: int) -> bool:
        return replica not in without and (replica == added or cluster.is_active(replica))

    records: list[VersionedRecord] = []
    for key in keys:
        yield
        partition = cluster.image.topics.partition(key)
        assert partition is not None
        target = Target(
            isr=[replica for replica in partition.isr if replica not in without],
            election=Election.UNCLEAN if cluster.allows_unclean(key[0]) else Election.ONLINE,
            unclean=lost,
            can_lead=can_lead,
        )
        record = change_partition(cluster, key, target)
        if record is not None:
            records.append(record)
    return records


class _PartitionChange:
    """One run of the rules over a partition."""

    def __init__(
        self, cluster: Cluster, key: PartitionKey, partition: PartitionRecord, target: Target
    ) -> None:
        self._cluster = cluster
        self._old = partition
        self._target = target
        # None of these lists is changed in place: they may be those of the image.
        self._isr = _chosen(target.isr, partition.isr)
        self._replicas = _chosen(target.replicas, partition.replicas)
        self._removing = _chosen(target.removing, partition.removing_replicas)
        self._adding = _chosen(target.adding, partition.adding_replicas)
        self._elr: list[int] = []
        self._record = PartitionChangeRecord(topic_id=key[0], partition_id=key[1])
        self._topic_id = key[0]
        self._is_changed = False

    def _set(self, name: str, value: Any) -> None:
        """Set a field of the record."""
        setattr(self._record, name, value)
        self._is_changed = True

    def record(self) -> VersionedRecord | None:
        """Return the change in the version of the finalized metadata.version (C-PCB-4)."""
        record, old = self._record, self._old
        self._complete_reassignment()
        self._elr = self._eligible()
        self._elect()
        has_leader = record.leader != _UNCHANGED_LEADER
        if not has_leader and not _has_all(self._replicas, old.replicas):
            self._set("leader", old.leader)
        self._set_in_sync()
        self._set_last_known()
        self._set_replicas()
        state = self._target.recovery_state
        if state not in (None, old.leader_recovery_state):
            self._set("leader_recovery_state", state)
        if not self._is_changed:
            return None
        return record, record_version(PartitionRecord.NAME, self._cluster.level)

    def _complete_reassignment(self) -> None:
        """End a reassignment whose added replicas are in sync (C-REA-5)."""
        if not self._adding and not self._removing:
            return
        isr = [replica for replica in self._isr if replica not in self._removing]
        replicas = [replica for replica in self._replicas if replica not in self._removing]
        if not isr or not replicas or not set(self._adding) <= set(isr):
            return
        if len(self._adding) < len(self._removing) and not set(replicas) <= set(isr):
            return
        self._isr, self._replicas, self._removing, self._adding = isr, replicas, [], []

    def _eligible(self) -> list[int]:
        """Return the replicas that have all committed records although they are not in sync.

        Once a cluster has no ELR any more, those that were eligible may still lead, until the first
        change of the partition clears them.
        """
        cluster, old = self._cluster, self._old
        if not cluster.has_elr:
            return list(old.eligible_leader_replicas or ())
        if len(self._isr) >= cluster.min_isr(self._topic_id):
            return []
        # A replica that was removed has deleted its records, even if it comes back (C-REA-8).
        added = set(self._replicas) - set(old.replicas)
        left_out = {*self._isr, *self._target.unclean, *added}
        known = [*(old.eligible_leader_replicas or ()), *old.isr]
        return [replica for replica in hash_order(known) if replica not in left_out]

    def _can_lead(self, replica: int) -> bool:
        decide = self._target.can_lead or self._cluster.is_active
        if not decide(replica):
            return False
        if replica not in self._old.replicas or not self._old.directories:
            return True
        directory = self._old.directories[self._old.replicas.index(replica)]
        return self._cluster.is_online(directory, replica)

    def _is_valid(self, replica: int) -> bool:
        is_complete = replica in self._isr or (not self._isr and replica in self._elr)
        return is_complete and self._can_lead(replica)

    def _elected(self) -> tuple[int, bool]:
        """Return the new leader, and whether it may lack committed records (C-PCB-5)."""
        candidates = [self._old.leader, *self._replicas]
        if self._target.election is Election.PREFERRED:
            candidates = [*self._replicas[:1], *candidates]
        for replica in candidates:
            if self._is_valid(replica):
                return replica, False
        last_known = self._old.last_known_elr or []
        is_last_resort = self._cluster.has_elr and not self._elr and not self._isr
        # A reassignment may have removed it since.
        known = [replica for replica in last_known if replica in self._replicas]
        if is_last_resort and len(last_known) == 1 and known and self._can_lead(known[0]):
            return known[0], True
        if self._target.election is Election.UNCLEAN:
            for replica in self._replicas:
                if self._can_lead(replica):
                    return replica, True
        return NO_LEADER, False

    def _elect(self) -> None:
        """Set another leader (C-PCB-6)."""
        leader, is_unclean = self._elected()
        if leader == self._old.leader:
            return
        if leader in self._elr:
            self._isr = [leader]
            self._elr = [replica for replica in self._elr if replica != leader]
        self._set("leader", leader)
        if is_unclean:
            self._set("isr", [leader])
            if self._old.leader_recovery_state != RECOVERING:
                self._set("leader_recovery_state", RECOVERING)

    def _set_in_sync(self) -> None:
        """Set the in-sync and the eligible replicas that differ."""
        record, old, has_elr = self._record, self._old, self._cluster.has_elr
        elr = self._elr if record.isr is None and has_elr else []
        if elr != (old.eligible_leader_replicas or []):
            self._set("eligible_leader_replicas", elr)
        if record.isr is None and (self._isr or has_elr) and self._isr != old.isr:
            self._set("isr", self._isr)
        is_early = self._cluster.level < _WITHOUT_EPOCH_BUMP
        is_smaller = record.isr is not None and not _has_all(record.isr, old.isr)
        if is_early and is_smaller and record.leader == _UNCHANGED_LEADER:
            self._set("leader", old.leader)

    def _set_last_known(self) -> None:
        """Remember the last leader while there is none."""
        record, old = self._record, self._old
        if not self._cluster.has_elr:
            return
        if record.leader == NO_LEADER and not old.last_known_elr and old.leader != NO_LEADER:
            self._set("last_known_elr", [old.leader])
        elif record.leader >= 0 and old.last_known_elr:
            self._set("last_known_elr", [])

    def _set_replicas(self) -> None:
        old = self._old
        if self._target.directories or self._replicas != old.replicas:
            self._set_directories()
        for name, now, then in (
            ("replicas", self._replicas, old.replicas),
            ("removing_replicas", self._removing, old.removing_replicas),
            ("adding_replicas", self._adding, old.adding_replicas),
        ):
            if now != then:
                self._set(name, now)

    def _set_directories(self) -> None:
        cluster, old = self._cluster, self._old
        if cluster.level < WITH_DIRECTORIES:
            return
        before = old.directories or [MIGRATING] * len(old.replicas)
        known = dict(zip(old.replicas, before, strict=False))
        known |= self._target.directories
        directories = [
            known.get(replica) or cluster.new_directory(replica) for replica in self._replicas
        ]
        if directories != before:
            self._set("directories", directories)


def _chosen(wanted: Sequence[int] | None, present: list[int]) -> list[int]:
    return present if wanted is None else list(wanted)


def _has_all(replicas: Iterable[int], wanted: Iterable[int]) -> bool:
    return replicas is wanted or set(wanted) <= set(replicas)


def hash_order(ids: Iterable[int]) -> list[int]:
    """Return numbers once each, in the order in which Java's HashSet iterates over them (C-ORD-1).
    """
    unique = list(dict.fromkeys(ids))
    capacity = 16
    while len(unique) > capacity * 3 // 4:
        capacity *= 2
    return sorted(unique, key=lambda id: (id ^ id >> 16) & (capacity - 1))

