"""Bugs of finding the leader, and of telling state machines and others about it."""

from __future__ import annotations

from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.raft import effects, events
from tests.history.putting_back import Edit, history
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import LISTENER, begin, endpoint, fetch, fetched


@history(
    64,
    "KAFKA-16927",
    "R-ROLE-9",
    Edit(
        "kraftwire.raft.transitions:maybe_transition",
        "if not is_new and not set(addresses) > set(role.leader_endpoints):",
        "if not is_new:",
    ),
    red="the new address is not known",
)
def test_more_addresses_of_the_same_leader_are_taken_over() -> None:
    """A follower that learnt of the leader from an old peer knows one address; the leader's own
    announcement has them all, and brokers use other listener names."""
    lone = Lone()
    lone.follow(2, 1)
    lone.request(begin(2, 1, listeners=(LISTENER, "OTHER")))
    names = [one.listener for one in lone.core.leader_endpoints]
    assert names == [LISTENER, "OTHER"], "the new address is not known"
    lone.request(begin(2, 1))
    assert len(lone.core.leader_endpoints) == 2


@history(
    65,
    "KAFKA-19354",
    "R-FET-3",
    Edit(
        "kraftwire.raft.following:poll_follower",
        "if leader is None or not state.is_ready(leader):",
        "if leader is None or not state.is_voter:",
    ),
    red="does not fetch from the leader",
)
def test_an_observer_returns_from_the_bootstrap_servers_to_the_leader() -> None:
    """The servers only know who leads: from them alone it would get no record."""
    observer = Lone(4, bootstrap_servers=(endpoint(3),))
    observer.wait(0)
    observer.fetch_gets(fetched(2, 1, error=6))
    observer.fail(observer.last_request)
    assert observer.last_request.destination.id == -2
    observer.fetch_gets(fetched(2, 1, error=6))
    observer.wait(100)
    assert observer.last_request.destination.id == 2, "does not fetch from the leader"


@history(
    66,
    "KAFKA-20514",
    "R-FET-3, R-FET-4",
    Edit(
        "kraftwire.raft.following:poll_follower",
        "_fetch_from_bootstrap(state)",
        "pass",
    ),
    red="waits for a leader that is gone",
)
def test_an_observer_finds_another_leader_when_its_own_cannot_be_reached() -> None:
    """An observer's role does not end with its leader: it has to ask others meanwhile."""
    cluster = Cluster([1, 2, 3], [4], seed=3)
    cluster.start(1, 2, 3, 4)
    cluster.run(4000)
    [leader] = cluster.leaders()
    assert cluster.core(4).leader_id == leader
    others = {1, 2, 3} - {leader}
    cluster.cut([leader], [*others, 4])
    cluster.run(10_000)
    assert cluster.core(4).leader_id in others, "waits for a leader that is gone"


@history(
    67,
    "KAFKA-16286",
    "R-LIS-6",
    Edit(
        "kraftwire.raft.listeners:Listeners.register",
        "self._is_changed = True",
        "pass",
    ),
    red="was not told who leads",
)
def test_a_state_machine_that_is_added_late_is_told_who_leads() -> None:
    """Nothing else may happen for a long time; until then it would know no leader."""
    lone = Lone()
    lone.follow(2, 1)
    lone.handle(events.ListenerRegistered(7))
    told = [(one.leader_id, one.epoch) for one in lone.all_of(effects.LeaderChanged)]
    assert told == [(2, 1)], "was not told who leads"


@history(
    67,
    "KAFKA-15345",
    "R-LIS-6, S15",
    Edit(
        "kraftwire.raft.listeners:_leader_change",
        "if listener.next_offset < max(end_offset, listener.leads_from):",
        "if listener.next_offset < 0:",
    ),
    red="was told before it had everything",
)
def test_a_leaders_state_machine_is_told_once_it_has_all_of_older_epochs() -> None:
    """It decides from what it has read: records that it does not have yet would be overruled."""
    lone = Lone(voters=(1,), log=stored_log((1, 5)))
    lone.handle(events.ListenerRegistered(7))
    lone.lead()
    assert not _told_to_lead(lone), "was told before it had everything"
    lone.handle(events.ListenerConsumed(7, 3))
    assert not _told_to_lead(lone), "was told before it had everything"
    lone.handle(events.ListenerConsumed(7, lone.core.end_offset))
    assert _told_to_lead(lone)


def _told_to_lead(lone: Lone) -> bool:
    return any(one.leader_id == 1 for one in lone.all_of(effects.LeaderChanged))


@history(
    68,
    "KAFKA-15100",
    "R-FET-14, R-LOOP-1",
    Edit(
        "kraftwire.raft.parked:ParkedFetches.expired",
        "return self._take(list(islice(waited, PARKED_WOKEN_MAX)))",
        "self.next_deadline_ms = None\nreturn list(self._parked.values())",
    ),
    red="answered twice",
)
def test_a_fetch_whose_time_is_up_as_records_come_is_answered_once() -> None:
    """A second answer to one request would be taken for the answer to the next one."""
    lone = Lone(voters=(1,))
    lone.lead()
    epoch, end = lone.core.epoch, lone.core.end_offset
    request = fetch(4, end, epoch, epoch, high_watermark=end, max_wait_ms=10)
    assert lone.request(request) is None
    lone.handle(events.AppendRequested(1, epoch, [b"x"]))
    lone.wait(100)
    answers = lone.all_of(effects.SendReply)
    tokens = [one.token for one in answers]
    assert len(tokens) == len(set(tokens)) == 1, "answered twice"


def _described(lone: Lone) -> tuple[list[int], list[int]]:
    """Ids and log ends that the leader knows of observers."""
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])
    partition = lone.request(DescribeQuorumRequest(topics=[topic])).topics[0].partitions[0]
    observers = [one.replica_id for one in partition.observers]
    return observers, [one.log_end_offset for one in partition.current_voters]


@history(
    69,
    "KAFKA-13986",
    "R-FET-1, R-REP-4",
    Edit(
        "kraftwire.raft.following:_fetch_request",
        "ReplicaState(replica_id=config.key.id)",
        "ReplicaState(replica_id=-1)",
    ),
    red="the leader does not know the observer",
)
def test_an_observer_fetches_under_its_own_id() -> None:
    """Without it the lag of a broker is invisible."""
    observer = Lone(4)
    observer.wait(0)
    sent = observer.last_request.message
    leader = Lone()
    leader.lead()
    epoch = leader.core.epoch
    sent.topics[0].partitions[0].current_leader_epoch = epoch  # type: ignore[attr-defined]
    leader.request(sent)
    assert _described(leader)[0] == [4], "the leader does not know the observer"


@history(
    69,
    "KAFKA-13168",
    "R-FET-12, R-CQ-3",
    Edit(
        "kraftwire.raft.serving:_fetch_answer",
        "replica.id == state.config.key.id",
        "replica.id < -1",
    ),
    red="took another node for itself",
)
def test_a_fetch_under_the_leaders_own_id_does_not_count() -> None:
    """A broker that was given a controller's id must not speak for its log."""
    lone = Lone()
    lone.is_slow = True
    lone.lead()
    epoch = lone.core.epoch
    lone.request(fetch(2, 1, epoch, epoch))
    lone.request(fetch(1, 1, epoch, epoch))
    assert lone.core.high_watermark == -1, "took another node for itself"


def test_a_fetch_answer_teaches_an_observer_who_leads() -> None:
    """The ordinary case, next to those that failed once: one answer of any server is enough."""
    observer = Lone(4)
    observer.wait(0)
    observer.fetch_gets(fetched(2, 1, error=6))
    assert (observer.core.role, observer.core.leader_id) == ("follower", 2)
