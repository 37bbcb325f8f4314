"""Changes of partitions: in-sync and eligible replicas, leaders, reassignments."""

from __future__ import annotations

import pytest

from kraftwire.controller.cluster import MIGRATING
from kraftwire.controller.image import METADATA_VERSION
from kraftwire.controller.image.topics import PartitionKey
from kraftwire.controller.partition_changes import (
    Election,
    Target,
    change_partition,
    changes_for_broker,
    hash_order,
)
from kraftwire.controller.versions import ELR_VERSION, WITH_DIRECTORIES
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from tests.support.nodes.controlled_cluster import ControlledCluster, changes


def decide(
    cluster: ControlledCluster, key: PartitionKey, **target: object
) -> list[dict[str, object]]:
    """Change a partition; returns what was written."""
    record = change_partition(cluster.view, key, Target(**target))  # type: ignore[arg-type]
    records = [] if record is None else [record]
    cluster.replay(records)
    return changes(records)


def test_replicas_that_leave_the_isr_below_its_least_size_stay_eligible() -> None:
    """They have every committed record (C-PCB-4): with one in sync, nothing more is committed."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    key = cluster.topic("t", [1, 2, 3], min_insync_replicas="2"), 0
    assert decide(cluster, key, isr=[1]) == [{"isr": [1], "eligible_leader_replicas": [2, 3]}]
    assert decide(cluster, key, isr=[1, 3]) == [
        {"isr": [1, 3], "eligible_leader_replicas": []}
    ]


def test_an_eligible_replica_leads_when_nobody_is_in_sync() -> None:
    """It becomes the only one in sync (C-PCB-6); after an unclean stop it is not eligible."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    key = cluster.topic("t", [1, 2, 3], min_insync_replicas="2"), 0
    decide(cluster, key, isr=[1])
    records = changes_for_broker(cluster.view, [key], removed=1)
    cluster.replay(records)
    assert changes(records) == [
        {"isr": [2], "leader": 2, "eligible_leader_replicas": [1, 3]}
    ]
    records = changes_for_broker(cluster.view, [key], unclean=1)
    assert changes(records) == [{"eligible_leader_replicas": [3]}]


def test_the_last_leader_is_remembered_and_leads_again() -> None:
    """Nobody else has the records (C-PCB-5)."""
    cluster = ControlledCluster(brokers=(1, 2))
    key = cluster.topic("t", [1, 2]), 0
    decide(cluster, key, isr=[1])
    lost = changes_for_broker(cluster.view, [key], removed=1)
    cluster.replay(lost)
    cluster.fence(1)
    assert changes(lost) == [
        {"isr": [], "leader": -1, "eligible_leader_replicas": [1], "last_known_elr": [1]}
    ]
    back = changes_for_broker(cluster.view, [key], added=1)
    assert changes(back) == [
        {"isr": [1], "leader": 1, "eligible_leader_replicas": [], "last_known_elr": []}
    ]
    # It came back without what it had not flushed: it leads all the same, and has to recover.
    cluster.replay(changes_for_broker(cluster.view, [key], unclean=1))
    assert changes(changes_for_broker(cluster.view, [key], added=1)) == [
        {"isr": [1], "leader": 1, "leader_recovery_state": 1, "last_known_elr": []}
    ]


def test_a_last_leader_that_is_no_replica_any_more_does_not_lead() -> None:
    """A reassignment may have removed it while there was no leader (C-PCB-5)."""
    cluster = ControlledCluster(brokers=(1, 2))
    key = cluster.topic("t", [1]), 0
    cluster.replay(changes_for_broker(cluster.view, [key], removed=1))
    cluster.replay(changes_for_broker(cluster.view, [key], unclean=1))
    cluster.fence(1)
    assert cluster.partition(key).last_known_elr == [1]
    decide(cluster, key, replicas=[2])
    assert changes(changes_for_broker(cluster.view, [key], added=1)) == []


def test_any_replica_leads_by_unclean_election_only() -> None:
    """Records may be lost, so somebody has to allow it (C-PCB-5)."""
    cluster = ControlledCluster(brokers=(1, 2))
    key = cluster.topic("t", [1, 2]), 0
    decide(cluster, key, isr=[1])
    cluster.replay(changes_for_broker(cluster.view, [key], removed=1))
    cluster.fence(1)
    assert decide(cluster, key, election=Election.ONLINE) == []
    assert decide(cluster, key, election=Election.UNCLEAN) == [
        {
            "isr": [2],
            "leader": 2,
            "leader_recovery_state": 1,
            "eligible_leader_replicas": [],
            "last_known_elr": [],
        }
    ]
    assert decide(cluster, key, recovery_state=0) == [{"leader_recovery_state": 0}]


def test_without_elr_the_last_in_sync_replica_stays() -> None:
    """Only it may lead again (C-PCB-4)."""
    cluster = ControlledCluster(has_elr=False, brokers=(1, 2))
    key = cluster.topic("t", [1, 2]), 0
    decide(cluster, key, isr=[1])
    records = changes_for_broker(cluster.view, [key], removed=1)
    assert changes(records) == [{"leader": -1}]


def test_an_eligible_replica_leads_once_more_when_elr_is_switched_off() -> None:
    """It has every committed record all the same (C-PCB-5); then there is no ELR any more."""
    cluster = ControlledCluster(brokers=(1, 2))
    key = cluster.topic("t", [1, 2], min_insync_replicas="2"), 0
    decide(cluster, key, isr=[1])
    assert cluster.partition(key).eligible_leader_replicas == [2]
    cluster.replay([(FeatureLevelRecord(name=ELR_VERSION, feature_level=0), 0)])
    assert changes(changes_for_broker(cluster.view, [key], removed=1)) == [
        {"isr": [2], "leader": 2, "eligible_leader_replicas": []}
    ]


def test_epochs_advance_with_every_change_and_every_leader() -> None:
    """A leader that sees another epoch knows that it has missed something (C-PCB-7)."""
    cluster = ControlledCluster(brokers=(1, 2))
    key = cluster.topic("t", [1, 2]), 0
    decide(cluster, key, isr=[1])
    one = cluster.partition(key)
    assert (one.leader_epoch, one.partition_epoch) == (0, 1)
    cluster.replay(changes_for_broker(cluster.view, [key], removed=1))
    one = cluster.partition(key)
    assert (one.leader_epoch, one.partition_epoch) == (1, 2)


def test_below_3_6_a_smaller_isr_advances_the_leader_epoch() -> None:
    """Followers of that time rely on it (C-PCB-4)."""
    for level, expected in ((11, [{"isr": [1], "leader": 1}]), (12, [{"isr": [1]}])):
        cluster = ControlledCluster(level, has_elr=False, brokers=(1, 2))
        key = cluster.topic("t", [1, 2]), 0
        assert decide(cluster, key, isr=[1]) == expected


def test_a_reassignment_ends_when_the_added_replicas_are_in_sync() -> None:
    """In the same record the leader that leaves is replaced (C-REA-5)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    key = cluster.topic("t", [1, 2]), 0
    begun = decide(cluster, key, replicas=[3, 2, 1], adding=[3], removing=[1])
    assert begun[0]["adding_replicas"] == [3]
    assert begun[0]["removing_replicas"] == [1]
    assert decide(cluster, key, isr=[1, 2]) == []
    (done,) = decide(cluster, key, isr=[1, 2, 3])
    directories = [(1000 + id).to_bytes(16, "big") for id in (3, 2)]
    assert done == {
        "isr": [2, 3],
        "leader": 3,
        "replicas": [3, 2],
        "removing_replicas": [],
        "adding_replicas": [],
        "directories": directories,
    }
    assert key not in cluster.image.topics.reassigning


def test_a_reassignment_ends_with_as_many_in_sync_as_it_leaves() -> None:
    """One that removes more than it adds waits for all that stay, not for the added alone
    (C-REA-5)."""
    cluster = ControlledCluster(brokers=(1, 2, 3, 4))
    key = cluster.topic("t", [1, 2, 3]), 0
    decide(cluster, key, replicas=[4, 1, 2, 3], adding=[4], removing=[2, 3])
    decide(cluster, key, isr=[2, 3, 4])
    assert cluster.partition(key).replicas == [4, 1, 2, 3]
    assert key in cluster.image.topics.reassigning
    decide(cluster, key, isr=[1, 2, 3, 4])
    one = cluster.partition(key)
    assert (one.replicas, one.isr) == ([4, 1], [1, 4])
    assert key not in cluster.image.topics.reassigning


def test_a_leader_that_stays_gets_a_new_epoch_when_a_replica_leaves() -> None:
    """So the replica that was removed cannot fetch on, nor be counted as in sync (C-PCB-7)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    key = cluster.topic("t", [1, 2]), 0
    decide(cluster, key, replicas=[1, 3, 2], adding=[3], removing=[2])
    before = cluster.partition(key)
    (done,) = decide(cluster, key, isr=[1, 2, 3])
    assert (done["leader"], done["replicas"]) == (1, [1, 3])
    one = cluster.partition(key)
    assert (one.leader, one.leader_epoch) == (1, before.leader_epoch + 1)


def test_a_partition_from_before_directories_is_where_its_brokers_find_it() -> None:
    """They report the directories once the level has them; no other change guesses (C-DIR-2)."""
    cluster = ControlledCluster(WITH_DIRECTORIES - 1, has_elr=False, brokers=(1, 2, 3))
    key = cluster.topic("t", [1, 2]), 0
    level = FeatureLevelRecord(name=METADATA_VERSION, feature_level=WITH_DIRECTORIES)
    cluster.replay([(level, 0)])
    assert decide(cluster, key, isr=[1]) == [{"isr": [1]}]
    (moved,) = decide(cluster, key, replicas=[1, 3], isr=[1])
    assert moved["directories"] == [MIGRATING, cluster.view.new_directory(3)]


def test_a_replica_that_was_removed_is_not_eligible_when_it_is_added_again() -> None:
    """Its broker has deleted the records in the meantime (C-REA-8)."""
    cluster = ControlledCluster(brokers=(1, 2))
    key = cluster.topic("t", [1, 2], min_insync_replicas="2"), 0
    decide(cluster, key, replicas=[2], isr=[2])
    assert cluster.partition(key).eligible_leader_replicas == [1]
    cluster.replay(changes_for_broker(cluster.view, [key], removed=2))
    cluster.fence(2)
    (change,) = decide(cluster, key, replicas=[2, 1], adding=[1])
    assert change["eligible_leader_replicas"] == [2]
    assert cluster.partition(key).leader == -1


def test_a_replica_in_an_offline_directory_cannot_lead() -> None:
    """It would fail at the first write (C-DIR-1)."""
    cluster = ControlledCluster(brokers=(1, 2))
    key = cluster.topic("t", [1, 2]), 0
    lost = (2).to_bytes(16, "big")
    decide(cluster, key, directories={2: lost})
    records = changes_for_broker(cluster.view, [key], removed=1)
    assert changes(records)[0]["leader"] == -1


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([33, 18, 2, 1, 3], [33, 1, 18, 2, 3]),
        ([3, 1, 2], [1, 2, 3]),
        ([1, 1, 17], [1, 17]),
        (list(range(20, 0, -1)), list(range(1, 21))),
    ],
)
def test_ids_from_a_hash_set_are_in_the_order_of_its_buckets(
    ids: list[int], expected: list[int]
) -> None:
    """The order of eligible replicas is that of Java's set (C-ORD-1)."""
    assert hash_order(ids) == expected
