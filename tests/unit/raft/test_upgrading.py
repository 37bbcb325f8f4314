"""kraft.version 0 to 1: the checks in Kafka's order, the record, and what counts after it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.raft import effects, events
from kraftwire.raft.batches import control_records
from kraftwire.records.control import ControlType
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone, fetches, leading
from tests.support.raft.messages import (
    LISTENER,
    begin,
    directory_id,
    dynamic_set,
    fetched,
    remove_voter,
    update_voter,
)


def reported(*replicas: int, versions: tuple[int, int] = (0, 1)) -> Lone:
    """Node 1 leads configured voters, and these have reported their versions."""
    lone = leading(is_dynamic=False)
    for one in replicas:
        answer = lone.request(update_voter(one, lone.core.epoch, versions=versions))
        assert answer.error_code == 0
    return lone


def upgrade(
    lone: Lone, version: int = 1, *, ahead: int = 0, validate_only: bool = False
) -> tuple[effects.UpgradeDecided, list[effects.AppendToLog]]:
    """Ask for an upgrade; returns what was decided and what was written."""
    epoch = lone.core.epoch + ahead
    found = lone.handle(events.UpgradeRequested(7, epoch, version, validate_only))
    [decided] = [one for one in found if isinstance(one, effects.UpgradeDecided)]
    assert decided.token == 7
    return decided, [one for one in found if isinstance(one, effects.AppendToLog)]


# ---- the order of the checks ---------------------------------------------------------------------


def test_only_the_leader_of_that_epoch_upgrades() -> None:
    """R-UPG-1: the requester may have been deposed in between."""
    follower = Lone()
    follower.follow(2, 1)
    assert upgrade(follower)[0].error == 6
    for ahead in (-1, 1):
        decided, written = upgrade(reported(2, 3), 5, ahead=ahead)
        assert (decided.error, written) == (6, [])


@pytest.mark.parametrize("version", [2, -1])
def test_an_unknown_version_is_not_an_upgrade(version: int) -> None:
    """R-UPG-1: this is reported before missing voters are."""
    decided, written = upgrade(reported(), version)
    assert (decided.error, written) == (95, [])
    assert "can become at most 1" in decided.detail


def test_the_present_version_needs_nothing() -> None:
    """R-UPG-1: even if no voter has reported anything."""
    assert upgrade(reported(), 0) == (effects.UpgradeDecided(7, 0, "", -1), [])
    assert upgrade(leading(), 1) == (effects.UpgradeDecided(7, 0, "", -1), [])


def test_a_lower_version_is_refused() -> None:
    """R-UPG-3: an upgrade cannot be undone."""
    decided, written = upgrade(leading(), 0)
    assert (decided.error, written) == (95, [])


def test_a_leader_that_has_committed_nothing_upgrades_nothing() -> None:
    """It might write on top of an upgrade that it does not see yet."""
    lone = Lone()
    lone.lead()
    assert upgrade(lone)[0].error == 7


@pytest.mark.parametrize(("told", "missing"), [((), 2), ((2,), 3), ((3,), 2)])
def test_a_voter_that_has_reported_nothing_is_named(told: Sequence[int], missing: int) -> None:
    """R-UPG-1: its directory is not known, so no entry can be made for it."""
    decided, written = upgrade(reported(*told))
    assert (decided.error, written) == (95, [])
    assert f"voter {missing} has not reported" in decided.detail


def test_a_voter_that_does_not_know_the_version_is_named() -> None:
    """R-UPG-1: it could not read the record."""
    lone = reported(2)
    assert lone.request(update_voter(3, lone.core.epoch, versions=(0, 0))).error_code == 0
    decided, written = upgrade(lone)
    assert (decided.error, written) == (95, [])
    assert "voter 3 supports kraft.version 0 to 0" in decided.detail


# ---- the record ----------------------------------------------------------------------------------


def test_validating_writes_nothing() -> None:
    """R-UPG-1: `kafka-features --dry-run`."""
    lone = reported(2, 3)
    decided, written = upgrade(lone, validate_only=True)
    assert (decided.error, decided.offset, written) == (0, -1, [])
    assert lone.core.kraft_version == 0


def test_the_upgrade_is_one_batch_with_what_voters_reported() -> None:
    """R-UPG-1: version and voters together, so that no log has one of them."""
    lone = reported(2, 3)
    end = lone.core.end_offset
    decided, [written] = upgrade(lone)
    assert (decided.error, decided.offset) == (0, end + 1)
    kinds = [kind for _, kind, _ in control_records(bytes(written.data))]
    assert kinds == [ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    assert (lone.core.kraft_version, lone.core.voters) == (1, dynamic_set([1, 2, 3]))
    assert lone.core.voters_offset == end + 1


def test_the_newest_report_of_a_voter_counts() -> None:
    """R-UPD-6: a voter that restarted with another directory or listener has reported it."""
    lone = reported(2, 3)
    other = b"another one dir."
    request = update_voter(2, lone.core.epoch, directory=other, listeners=(LISTENER, "OTHER"))
    assert lone.request(request).error_code == 0
    upgrade(lone)
    entry = lone.core.voters.get(2)
    assert entry is not None
    assert entry.key.directory_id == other
    assert [one.listener for one in entry.endpoints] == [LISTENER, "OTHER"]


def test_what_voters_reported_is_lost_with_the_leadership() -> None:
    """R-UPD-6: the next leader has to get the reports itself."""
    lone = reported(2, 3)
    lone.handle(events.ResignRequested(lone.core.epoch))
    lone.lead()
    fetches(lone, 2)
    assert "voter 2 has not reported" in upgrade(lone)[0].detail


def test_voters_change_once_the_upgrade_is_committed() -> None:
    """R-ADD-1: the record is a voters record like any other."""
    lone = reported(2, 3)
    upgrade(lone)
    assert lone.request(remove_voter(3)).error_code == 7
    fetches(lone, 2)
    assert lone.request(remove_voter(3)) is None


def test_a_copy_under_another_directory_does_not_count_after_the_upgrade() -> None:
    """R-ID-2: static entries match any directory, those of the log only one."""
    lone = reported(2, 3)
    upgrade(lone)
    mark = lone.core.high_watermark
    for one in (2, 3):
        fetches(lone, one, directory=b"another one dir.")
    assert lone.core.high_watermark == mark
    fetches(lone, 2)
    assert lone.core.high_watermark == lone.core.end_offset


def test_the_progress_of_voters_survives_the_upgrade() -> None:
    """R-REP-5: their states are completed with the directory, not reset."""
    lone = reported(2, 3)
    end, now = lone.core.end_offset, lone.now
    upgrade(lone)
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])
    partition = lone.request(DescribeQuorumRequest(topics=[topic])).topics[0].partitions[0]
    for one in partition.current_voters[1:]:
        assert one.replica_directory_id == directory_id(one.replica_id)
        assert (one.log_end_offset, one.last_fetch_timestamp) == (end, now)
    assert [one.replica_id for one in partition.current_voters] == [1, 2, 3]
    assert partition.observers == []


def test_an_upgrade_that_is_cut_off_is_undone() -> None:
    """R-ID-8: the configured voters count again, at version 0."""
    lone = reported(2, 3)
    end, epoch = lone.core.end_offset, lone.core.epoch
    upgrade(lone)
    lone.request(begin(2, epoch + 1))
    lone.fetch_gets(fetched(2, epoch + 1, diverging=(epoch, end)))
    assert (lone.core.kraft_version, lone.core.voters_offset) == (0, None)
    assert lone.core.voters == leading(is_dynamic=False).core.voters


def test_a_quorum_is_upgraded_while_it_runs() -> None:
    """R-UPG-1 with all sides: refused while a voter is silent, then done, kept over a restart."""
    cluster = Cluster([1, 2, 3])
    cluster.start(1, 2)
    assert cluster.run_until(lambda: bool(cluster.leaders()))
    cluster.run(5000)
    [leader] = cluster.leaders()

    def ask() -> effects.UpgradeDecided:
        cluster.handle(leader, events.UpgradeRequested(99, cluster.core(leader).epoch, 1))
        decided = cluster.results[99]
        assert isinstance(decided, effects.UpgradeDecided)
        return decided

    assert "voter 3 has not reported" in ask().detail
    cluster.start(3)
    cluster.run(5000)
    assert cluster.leaders() == [leader]
    wanted = ask().offset + 1
    assert wanted > 0
    assert cluster.run_until(lambda: all(_mark(cluster, one) >= wanted for one in (1, 2, 3)))
    for one in (1, 2, 3):
        cluster.kill(one)
    cluster.start(1, 2, 3)
    for one in (1, 2, 3):
        core = cluster.core(one)
        assert (core.kraft_version, core.is_voter) == (1, True)
        assert core.voters.is_voter(cluster.key(one))
    assert cluster.run_until(lambda: bool(cluster.leaders()))
    assert cluster.core(1).voters == dynamic_set([1, 2, 3])


def _mark(cluster: Cluster, node_id: int) -> int:
    return cluster.core(node_id).high_watermark
