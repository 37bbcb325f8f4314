"""What becomes of partitions when brokers come and go, and when leaders report or are elected."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.controller import brokers
from kraftwire.controller.elections import elect_leaders, elect_preferred, elect_unclean
from kraftwire.controller.isr import alter_partition
from kraftwire.controller.sessions import Sessions
from kraftwire.errors import ApiError
from kraftwire.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from kraftwire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.controlled_cluster import ControlledCluster, changes

PREFERRED, UNCLEAN = 0, 1


def beat(cluster: ControlledCluster, sessions: Sessions, broker_id: int, **more: object) -> Any:
    """A heartbeat that has read everything; returns its answer."""
    values: dict[str, object] = {
        "broker_id": broker_id,
        "broker_epoch": cluster.image.brokers[broker_id].epoch,
        "current_metadata_offset": cluster.image.highest_offset,
    }
    request = BrokerHeartbeatRequest(**(values | more))  # type: ignore[arg-type]
    return cluster.do(
        brokers.heartbeat(
            cluster.view, sessions, request, next_offset=cluster.image.next_offset, now_ms=0
        )
    )


def start_again(cluster: ControlledCluster, broker_id: int, previous_epoch: int = -1) -> None:
    """Register a new process of a fenced broker."""
    cluster.fence(broker_id)
    levels = {"metadata.version": 30, "eligible.leader.replicas.version": 1}
    request = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="id",
        incarnation_id=bytes(15) + b"\x63",
        features=[
            Feature(name=name, min_supported_version=0, max_supported_version=level)
            for name, level in levels.items()
        ],
        log_dirs=list(cluster.image.brokers[broker_id].log_dirs),
        previous_broker_epoch=previous_epoch,
    )
    result = brokers.register_broker(
        cluster.view, Sessions(9000), request, 4,
        cluster_id="id", next_offset=cluster.image.next_offset, now_ms=0,
    )  # fmt: skip
    assert cluster.do(result).error_code == 0


def alter(cluster: ControlledCluster, topic_id: bytes, *isr: int, **more: Any) -> Any:
    """A leader's report about partition 0; returns the partition of the answer."""
    partition = cluster.partition((topic_id, 0))
    sender = more.pop("sender", partition.leader)
    epochs = more.pop("epochs", {})
    data = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "new_isr_with_epochs": [
            BrokerState(broker_id=each, broker_epoch=epochs.get(each, -1)) for each in isr
        ],
    }
    request = AlterPartitionRequest(
        broker_id=sender,
        broker_epoch=cluster.image.brokers[sender].epoch,
        topics=[TopicData(topic_id=topic_id, partitions=[PartitionData(**(data | more))])],
    )
    answer = cluster.do(alter_partition(cluster.view, request, 3))
    return answer.topics[0].partitions[0]


def test_a_silent_brokers_partitions_move_before_it_is_fenced() -> None:
    """In one batch, in this order (C-FEN-1)."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", [1, 2])
    sessions = Sessions(9000)
    sessions.renew_all(cluster.image, 0)
    sessions.touch(cluster.image.brokers[2], 5000)
    result = brokers.fence_expired(cluster.view, sessions, 9000)
    assert [record.NAME for record, _ in result.records] == [
        "PartitionChangeRecord",
        "BrokerRegistrationChangeRecord",
    ]
    cluster.do(result)
    assert cluster.partition((topic_id, 0)).leader == 2
    assert cluster.image.brokers[1].is_fenced
    assert sessions.next_expiry_ms() == 14_000


def test_an_unfenced_broker_leads_what_nobody_leads() -> None:
    """The change of the registration comes first (C-FEN-2)."""
    cluster = ControlledCluster(brokers=(1,))
    topic_id = cluster.topic("t", [1], [1])
    sessions = Sessions(9000)
    sessions.renew_all(cluster.image, 0)
    cluster.do(brokers.fence_expired(cluster.view, sessions, 9000))
    assert len(cluster.image.topics.without_leader) == 2
    answer = beat(cluster, sessions, 1)
    assert not answer.is_fenced
    assert cluster.partition((topic_id, 1)).leader == 1
    assert not cluster.image.topics.without_leader


def test_a_controlled_shutdown_waits_until_every_broker_has_read_it() -> None:
    """A broker that has not would still send clients to the one that stops (C-HB-6)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    topic_id = cluster.topic("t", [1, 2])
    sessions = Sessions(9000)
    read = cluster.image.highest_offset
    for broker_id in (1, 2, 3):
        beat(cluster, sessions, broker_id)
    answer = beat(cluster, sessions, 1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (False, False)
    assert cluster.partition((topic_id, 0)).leader == 2
    assert cluster.image.brokers[1].in_controlled_shutdown
    beat(cluster, sessions, 2)
    beat(cluster, sessions, 3, current_metadata_offset=read)
    assert not beat(cluster, sessions, 1, want_shut_down=True).should_shut_down
    beat(cluster, sessions, 3)
    answer = beat(cluster, sessions, 1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert cluster.image.brokers[1].is_fenced


def test_a_broker_that_leads_nothing_may_go_at_once() -> None:
    """There is nothing to move (C-HB-6)."""
    cluster = ControlledCluster(brokers=(1, 2))
    cluster.topic("t", [1, 2])
    assert beat(cluster, Sessions(9000), 2, want_shut_down=True).should_shut_down


def test_after_an_unclean_stop_a_broker_is_not_eligible() -> None:
    """What it had not flushed is lost (C-REG-5)."""
    for is_clean in (False, True):
        cluster = ControlledCluster(brokers=(1, 2))
        topic_id = cluster.topic("t", [1, 2], min_insync_replicas="2")
        previous = cluster.image.brokers[2].epoch if is_clean else -1
        start_again(cluster, 2, previous)
        partition = cluster.partition((topic_id, 0))
        assert partition.isr == [1]
        assert partition.eligible_leader_replicas == ([2] if is_clean else None)


def test_a_broker_that_is_removed_leaves_the_isr_and_stays_a_replica() -> None:
    """An operator reassigns its partitions (C-FEN-5)."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", [1, 2])
    request = UnregisterBrokerRequest(broker_id=1)
    cluster.do(brokers.unregister_broker(cluster.view, request))
    partition = cluster.partition((topic_id, 0))
    assert (partition.isr, partition.leader, partition.replicas) == ([2], 2, [1, 2])
    assert 1 not in cluster.image.brokers


def test_replicas_in_an_offline_directory_leave_the_isr() -> None:
    """The broker stays with its other directories (C-DIR-3)."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", [1, 2])
    epoch = cluster.image.brokers[1].epoch
    more = (7777).to_bytes(16, "big")
    both = [*cluster.image.brokers[1].log_dirs, more]
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, log_dirs=both)
    cluster.replay([(change, 2)])
    beat(cluster, Sessions(9000), 1, offline_log_dirs=both[:1])
    assert cluster.partition((topic_id, 0)).leader == 2
    assert cluster.image.brokers[1].log_dirs == (more,)
    before = cluster.image.next_offset
    beat(cluster, Sessions(9000), 1, offline_log_dirs=both[:1])
    assert cluster.image.next_offset == before, "nothing that is known is written again"


def test_all_directories_go_offline_in_one_heartbeat() -> None:
    """The replicas leave the isr, then the registration loses its directories: a record without
    any, which changes none, so that later heartbeats write it again (C-DIR-3)."""
    cluster = ControlledCluster(brokers=(1, 2))
    keys = [(cluster.topic(name, [1, 2]), 0) for name in ("t", "u")]
    alone = cluster.topic("alone", [1]), 0
    directories = cluster.image.brokers[1].log_dirs
    for written in (4, 1):
        before = cluster.image.next_offset
        beat(cluster, Sessions(9000), 1, offline_log_dirs=list(directories))
        assert cluster.image.next_offset == before + written
        assert [cluster.partition(key).isr for key in keys] == [[2], [2]]
        assert [cluster.partition(key).leader for key in (*keys, alone)] == [2, 2, -1]
        assert cluster.image.brokers[1].log_dirs == directories


def test_a_leader_changes_the_isr_and_learns_the_new_epoch() -> None:
    """Its next report names that epoch (C-ISR-4)."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    topic_id = cluster.topic("t", [1, 2, 3])
    answer = alter(cluster, topic_id, 3, 1)
    assert (answer.isr, answer.partition_epoch, answer.leader_epoch) == ([3, 1], 1, 0)
    assert alter(cluster, topic_id, 3, 1).partition_epoch == 1, "nothing changes (C-ISR-3)"


@pytest.mark.parametrize(
    ("isr", "more", "code"),
    [
        ((1, 2), {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ((1, 2), {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ((1, 2), {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ((1, 2), {"sender": 2}, ErrorCode.INVALID_REQUEST),
        ((1, 2), {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ((1, 2, 2), {}, ErrorCode.INVALID_REQUEST),
        ((1, 4), {}, ErrorCode.INVALID_REQUEST),
        ((2, 3), {}, ErrorCode.INVALID_REQUEST),
        ((1,), {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ((1,), {"leader_recovery_state": 5}, ErrorCode.INVALID_REQUEST),
        ((1, 3), {}, ErrorCode.INELIGIBLE_REPLICA),
        ((1, 2), {"epochs": {2: 99}}, ErrorCode.INELIGIBLE_REPLICA),
        ((1, 2), {"partition_index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_report_that_cannot_be_right_changes_nothing(
    isr: tuple[int, ...], more: dict[str, Any], code: ErrorCode
) -> None:
    """The code tells the leader what to do (C-ISR-2)."""
    cluster = ControlledCluster(brokers=(1, 2, 3, 4))
    topic_id = cluster.topic("t", [1, 2, 3])
    cluster.fence(3)
    before = cluster.image.next_offset
    assert alter(cluster, topic_id, *isr, **more).error_code == code
    assert cluster.image.next_offset == before


def test_a_report_of_an_earlier_process_changes_nothing() -> None:
    """The broker has started again since, and may lead with fewer records (C-ISR-2)."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", [1, 2])
    before = cluster.image.next_offset
    own = cluster.image.brokers[1].epoch
    partition = PartitionData(new_isr_with_epochs=[BrokerState(broker_id=1, broker_epoch=own)])
    topics = [TopicData(topic_id=topic_id, partitions=[partition])]
    for broker_id, epoch in ((1, own - 1), (1, own + 1), (9, own)):
        request = AlterPartitionRequest(broker_id=broker_id, broker_epoch=epoch, topics=topics)
        answer = cluster.do(alter_partition(cluster.view, request, 3))
        assert (answer.error_code, answer.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert cluster.image.next_offset == before


def test_a_leader_that_recovers_is_alone_in_sync() -> None:
    """Nobody has what it may have lost, until it says that it is done (C-ISR-2)."""
    cluster = ControlledCluster(has_elr=False, brokers=(1, 2))
    topic_id = cluster.topic("t", [1, 2], unclean_leader_election_enable="true")
    lost = PartitionChangeRecord(
        topic_id=topic_id, partition_id=0, isr=[1], leader=1, leader_recovery_state=1
    )
    cluster.replay([(lost, 2)])
    before = cluster.image.next_offset
    refused = alter(cluster, topic_id, 1, 2, leader_recovery_state=1)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert cluster.image.next_offset == before
    assert alter(cluster, topic_id, 1, leader_recovery_state=1).error_code == 0
    assert alter(cluster, topic_id, 1, 2, leader_recovery_state=0).isr == [1, 2]


def test_a_partition_that_is_named_twice_is_elected_once() -> None:
    """The second record would be of the state before the first (C-ELE)."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic_id = cluster.topic("t", [1, 2])
    led = PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)
    cluster.replay([(led, 2)])
    wanted = [
        TopicPartitions(topic="t", partitions=[0, 0]),
        TopicPartitions(topic="t", partitions=[0]),
    ]
    request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=wanted)
    result = elect_leaders(cluster.view, request)
    assert changes(result.records) == [{"leader": 1}]
    cluster.do(result)
    assert cluster.partition((topic_id, 0)).leader_epoch == 2


def test_leadership_goes_back_to_the_preferred_leader() -> None:
    """On request and at intervals (C-ELE)."""
    for is_requested in (True, False):
        cluster = ControlledCluster(brokers=(1, 2))
        topic_id = cluster.topic("t", [1, 2])
        led = PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)
        cluster.replay([(led, 2)])
        if is_requested:
            request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None)
            answer = cluster.do(elect_leaders(cluster.view, request))
            (topic,) = answer.replica_election_results
            (one,) = topic.partition_result
            assert (one.partition_id, one.error_code) == (0, 0)
        else:
            cluster.replay(elect_preferred(cluster.view))
        assert cluster.partition((topic_id, 0)).leader == 1
        assert elect_preferred(cluster.view) == []


def test_an_election_that_cannot_be_held_says_why() -> None:
    """Each partition by itself (C-ELE)."""
    cluster = ControlledCluster(brokers=(1, 2))
    cluster.topic("t", [1, 2], [2, 1])
    led = PartitionChangeRecord(topic_id=cluster.image.topics.ids["t"], partition_id=1, leader=1)
    cluster.replay([(led, 2)])
    cluster.fence(2)
    wanted = [
        TopicPartitions(topic="t", partitions=[0, 1, 2]),
        TopicPartitions(topic="x", partitions=[0]),
    ]
    request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=wanted)
    answer = cluster.do(elect_leaders(cluster.view, request))
    codes = [
        one.error_code
        for topic in answer.replica_election_results
        for one in topic.partition_result
    ]
    assert codes == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    with pytest.raises(ApiError):
        elect_leaders(cluster.view, ElectLeadersRequest(election_type=2, topic_partitions=wanted))


def test_an_unclean_election_needs_the_topics_permission_at_intervals_only() -> None:
    """An operator who asks for it has decided (C-ELE-7)."""
    cluster = ControlledCluster(has_elr=False, brokers=(1, 2))
    for name, allowed in (("no", "false"), ("yes", "true")):
        topic_id = cluster.topic(name, [1, 2], unclean_leader_election_enable=allowed)
        lost = PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=[1], leader=-1)
        cluster.replay([(lost, 2)])
    cluster.fence(1)
    elected = elect_unclean(cluster.view)
    assert changes(elected) == [{"isr": [2], "leader": 2, "leader_recovery_state": 1}]
    cluster.replay(elected)
    wanted = [TopicPartitions(topic="no", partitions=[0])]
    request = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=wanted)
    answer = cluster.do(elect_leaders(cluster.view, request))
    assert answer.replica_election_results[0].partition_result[0].error_code == 0
    assert not cluster.image.topics.without_leader
