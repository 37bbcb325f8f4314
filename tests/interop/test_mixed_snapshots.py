"""Snapshots and dropped prefixes of the log, between Java's controllers and ours, both ways.

One quorum for all tests, in order: it takes a minute until Kafka drops the beginning of its log for
the first time. `KRAFTWIRE_TESTED_KIND=java` runs the same stories with Kafka's nodes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.support.kafka.mixed_quorum import (
    JAVA,
    SNAPSHOT_KNOBS,
    MixedQuorum,
    kind_under_test,
    wait_until,
)
from tests.support.kafka.mixed_quorum.fill import fill
from tests.support.kafka.mixed_quorum.tools import Tools

TESTED = kind_under_test()
VOTER, LATE, SERVED, BROKER = 3, 4, 5, 11
JAVAS = (1, 2)

# The first cleaning, after a minute, finds more than this.
KNOBS: Mapping[str, object] = {
    **SNAPSHOT_KNOBS,
    "metadata.max.idle.interval.ms": 300,
    "metadata.max.retention.bytes": 3000,
}
MANY = 50_000


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedQuorum]:
    """Two Java voters and one of ours run; observers of either kind and a broker do not yet."""
    kinds = {1: JAVA, 2: JAVA, VOTER: TESTED, LATE: TESTED, SERVED: JAVA}
    with MixedQuorum(
        tmp_path_factory.mktemp("snapshots"),
        kinds,
        KNOBS,
        is_dynamic=True,
        observers=[LATE, SERVED],
        brokers={BROKER: JAVA},
    ) as quorum:
        quorum.start(*JAVAS, VOTER)
        quorum.wait_commit(0)
        yield quorum


def check_all(quorum: MixedQuorum) -> None:
    """Every running member has what is committed; none has anything else or logs an error."""
    quorum.wait_commit(quorum.status().high_watermark - 1)
    quorum.check_logs_agree()
    quorum.check_health()


def java_leader(quorum: MixedQuorum) -> int:
    """Let one of the Java voters lead; returns its id."""
    member = quorum.members[VOTER]
    if quorum.leader() == VOTER:
        member.stop()
        member.start()
        member.wait_ready()
    return quorum.leader(among=JAVAS)


def wait_caught_up(quorum: MixedQuorum, node_id: int) -> None:
    """Wait until the leader knows that a member has everything committed before."""
    mark = quorum.status().high_watermark

    def look() -> bool:
        told = quorum.replica(node_id)
        return told is not None and told.log_end_offset >= mark

    wait_until(look, f"node {node_id} at offset {mark}", quorum.last_lines)


def test_a_voter_that_is_50_000_records_late_catches_up(quorum: MixedQuorum) -> None:
    """It catches up from the log, and votes again."""
    java_leader(quorum)
    member = quorum.members[VOTER]
    member.stop()
    fill(quorum, MANY)
    assert quorum.status().high_watermark > MANY
    member.start()
    member.wait_ready()
    wait_caught_up(quorum, VOTER)
    check_all(quorum)


def test_a_voter_that_was_away_while_snapshots_passed(quorum: MixedQuorum) -> None:
    """The others have deleted what it lacks: it loads a snapshot and continues after it."""
    member = quorum.members[VOTER]
    java_leader(quorum)
    member.kill()
    end = member.end_offset
    passed: set[tuple[int, int]] = set()

    def have_passed() -> bool:
        folders = [quorum.members[node_id].folder for node_id in JAVAS]
        passed.update(one for one in folders[0].snapshots() if one[0] > end)
        return len(passed) >= 2 and all(folder.start_offset > end for folder in folders)

    wait_until(have_passed, f"two snapshots, and logs that begin above {end}", quorum.last_lines)
    member.start()
    member.wait_ready()
    wait_caught_up(quorum, VOTER)
    assert member.folder.start_offset > end
    check_all(quorum)


def test_an_observer_joins_a_quorum_whose_log_begins_above_0(quorum: MixedQuorum) -> None:
    """It begins with a snapshot, and counts as a voter."""
    member = quorum.members[LATE]
    quorum.start(LATE)
    wait_caught_up(quorum, LATE)
    assert member.folder.start_offset > 0
    check_all(quorum)
    assert Tools(quorum).add_controller(LATE).returncode == 0
    assert LATE in quorum.voters()
    check_all(quorum)
    assert Tools(quorum).remove_controller(LATE).returncode == 0
    quorum.members[LATE].stop()


def test_a_voter_with_a_wiped_disk_comes_back(quorum: MixedQuorum) -> None:
    """Under its old id, with a new directory id: the old voter is removed, the new one added."""
    member = quorum.members[VOTER]
    lost = member.directory_id
    java_leader(quorum)
    member.kill()
    quorum.reformat(VOTER)
    quorum.start(VOTER)
    wait_caught_up(quorum, VOTER)
    tools = Tools(quorum)
    assert tools.remove_controller(VOTER, lost).returncode == 0
    assert tools.add_controller(VOTER).returncode == 0
    assert sorted(quorum.voters()) == [*JAVAS, VOTER]
    assert member.folder.start_offset > 0
    check_all(quorum)


def test_java_takes_a_snapshot_that_we_serve(quorum: MixedQuorum) -> None:
    """A controller and a broker with empty disks follow a leader of ours; then Java leads again."""
    member = quorum.members[VOTER]
    wait_until(lambda: len(member.folder.snapshots()) >= 2, "snapshots of our own")
    member.stop()
    member.start()
    member.wait_ready()
    wait_caught_up(quorum, VOTER)
    former = quorum.depose(VOTER)
    assert quorum.leader() == VOTER
    broker = quorum.members[BROKER]
    broker.start()
    quorum.start(SERVED, former)
    for node_id in (SERVED, BROKER):
        wait_caught_up(quorum, node_id)
        assert quorum.members[node_id].folder.start_offset > 0
    member.stop()
    member.start()
    member.wait_ready()
    java_leader(quorum)
    broker.wait_ready()
    check_all(quorum)
    broker.stop()


def test_directories_with_snapshots_change_hands(quorum: MixedQuorum) -> None:
    """Java starts on one of ours, ours on one of Java's, and back again."""
    ours, javas = quorum.members[VOTER], quorum.members[java_leader(quorum)]
    for mine, theirs in ((JAVA, TESTED), (TESTED, JAVA)):
        for member, kind in ((ours, mine), (javas, theirs)):
            assert member.folder.snapshots()
            member.stop()
            member.start(kind)
            member.wait_ready()
            wait_caught_up(quorum, member.node_id)
        check_all(quorum)
