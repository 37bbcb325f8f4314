"""A follower fetches its leader's snapshot: in parts, despite failures, as a whole or not."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.messages.fetch_response import NodeEndpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.raft import effects, events
from kraftwire.raft.downloading import PART_BYTES_PER_MS_MIN
from kraftwire.raft.effects import ElectionState
from kraftwire.records.plain import data_batch
from tests.support.raft.downloads import (
    EPOCH,
    LEADER,
    NEWER,
    SNAPSHOT,
    behind,
    checking,
    file_of,
    half_way,
    kinds,
    names_asked,
    next_part,
    part_asked_for,
    sent_to,
    serve,
    take,
)
from tests.support.raft.lone import Lone
from tests.support.raft.messages import begin, directory_id, endpoint, fetched, updated, vote, voted

# ---- part by part --------------------------------------------------------------------------------


def test_a_follower_that_lacks_too_much_asks_for_the_snapshot() -> None:
    """R-FSN-1: from its beginning, in the present epoch."""
    lone = behind(fetch_snapshot_max_bytes=77)
    sent_to(lone)
    assert part_asked_for(lone) == (SNAPSHOT, 0)
    message: Any = lone.last_request.message
    assert (message.cluster_id, message.replica_id, message.max_bytes) == ("cluster", 1, 77)
    assert message.topics[0].name == METADATA_TOPIC
    [partition] = message.topics[0].partitions
    assert (partition.current_leader_epoch, partition.partition) == (EPOCH, 0)
    assert partition.replica_directory_id == directory_id(1)
    assert lone.core.high_watermark == -1


@pytest.mark.parametrize("chunk", [1, 7, 100, 1 << 20])
def test_the_parts_are_assembled_whatever_their_size(chunk: int) -> None:
    """R-FSN-4: each at its position, then the file is checked, and nothing more is asked for."""
    lone, data = behind(), file_of()
    sent_to(lone)
    while not lone.all_of(effects.FinishSnapshot):
        serve(lone, data, chunk)
    written = lone.all_of(effects.AppendToSnapshot)
    assert [one.position for one in written] == list(range(0, len(data), chunk))
    assert b"".join(bytes(one.data) for one in written) == data
    before = len(lone.requests)
    lone.wait(1000)
    assert len(lone.requests) == before
    assert lone.core.end_offset == 4


def test_the_log_begins_where_the_snapshot_ends() -> None:
    """R-FSN-4, trap 12: start, end, epoch, high watermark, and what the next fetch says."""
    lone = behind()
    sent_to(lone)
    found = take(lone, file_of())
    assert kinds(found) == ["ResetLog"]
    core = lone.core
    assert (core.start_offset, core.end_offset, core.flushed_offset) == (10, 10, 10)
    assert (core.last_epoch, core.high_watermark, core.snapshots) == (2, 10, [SNAPSHOT])
    assert [one.offset for one in lone.all_of(effects.HighWatermarkAdvanced)] == [10]
    message: Any = lone.last_request.message
    [partition] = message.topics[0].partitions
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (10, 2)
    assert partition.high_watermark == 10
    order = [type(one) for one in found]
    assert order.index(effects.ResetLog) < order.index(effects.SendRequest)


def test_the_log_continues_after_the_snapshot() -> None:
    """The first record after it continues both."""
    lone = behind()
    sent_to(lone)
    take(lone, file_of())

    lone.fetch_gets(fetched(LEADER, EPOCH, data_batch(10, 3, 0, [b"x"]), high_watermark=11))
    assert (lone.core.end_offset, lone.core.last_epoch) == (11, 3)
    lone.restart()
    assert (lone.core.start_offset, lone.core.end_offset) == (10, 11)


def _serve_slowly(lone: Lone, data: bytes, chunk: int, wait_ms: int) -> None:
    """Serve a part after each wait, until the file is complete or none is asked for."""
    asked = ("FetchSnapshotRequest", "UpdateRaftVoterRequest")
    while lone.last_request.message.NAME in asked and not lone.all_of(effects.FinishSnapshot):
        lone.wait(wait_ms)
        if lone.last_request.message.NAME == "UpdateRaftVoterRequest":
            lone.answer(lone.last_request, updated(LEADER, EPOCH))
        if lone.last_request.message.NAME == "FetchSnapshotRequest":
            serve(lone, data, chunk)


def test_a_download_keeps_a_voter_from_standing_for_election() -> None:
    """R-FET-5: a leader that serves a large snapshot is alive."""
    lone, chunk = behind(), 1 << 20
    data = file_of(values=[bytes(chunk)] * 40)
    sent_to(lone)
    _serve_slowly(lone, data, chunk, chunk // PART_BYTES_PER_MS_MIN)
    assert lone.now > lone.config.timers.fetch_timeout_ms
    lone.finish_snapshot()
    assert [one.new for one in lone.all_of(effects.RoleChanged)] == ["follower"]


def test_a_replica_without_any_log_waits_for_a_slow_leader_too() -> None:
    """Two of them would elect each other, and lose what only the leader has."""
    lone, data = Lone(election=ElectionState(1)), file_of()
    lone.follow(LEADER, EPOCH)
    sent_to(lone)
    _serve_slowly(lone, data, 9, 1500)
    lone.finish_snapshot()
    assert [one.new for one in lone.all_of(effects.RoleChanged)] == ["follower"]


def test_a_slow_download_goes_on_after_pre_votes_that_others_refuse() -> None:
    """They hear from the leader, which was slow only here."""
    lone, data = half_way()
    lone.wait(3000)
    assert lone.core.role == "prospective"
    for sent in [one for one in lone.requests if one.message.NAME == "VoteRequest"]:
        lone.answer(sent, voted(EPOCH, is_granted=False))
    assert (lone.core.role, lone.core.epoch) == ("follower", EPOCH)
    assert part_asked_for(lone) == (SNAPSHOT, 7)
    take(lone, data)
    assert lone.core.start_offset == 10


def test_a_download_does_not_end_in_an_election_without_pre_votes() -> None:
    """A peer of before KIP-996 cannot say that it hears from the leader, and would follow."""
    lone, _ = half_way()
    lone.wait(3000)
    sent = next(one for one in lone.requests if one.message.NAME == "VoteRequest")
    lone.fail(sent, ErrorCode.UNSUPPORTED_VERSION)
    assert (lone.core.role, lone.core.epoch) == ("follower", EPOCH)
    assert part_asked_for(lone) == (SNAPSHOT, 7)


def test_a_flush_of_the_log_before_does_not_count_for_the_log_after() -> None:
    """D2: it concerns bytes that are gone."""
    lone = behind()
    sent_to(lone)
    stale = events.LogFlushed(12, 0)
    take(lone, file_of())
    lone.handle(stale)
    assert lone.core.flushed_offset == 10


def test_an_observer_comes_back_the_same_way() -> None:
    """A broker that was away while two snapshots passed."""
    lone = behind(node_id=4, can_be_voter=False)
    sent_to(lone)
    take(lone, file_of(), 50)
    assert (lone.core.start_offset, lone.core.high_watermark) == (10, 10)


# ---- despite failures ----------------------------------------------------------------------------


def test_a_download_resumes_where_it_broke_off() -> None:
    """The same leader, the same epoch: the bytes received so far stay."""
    lone, data = half_way()
    lone.fail(lone.last_request)
    assert names_asked(lone)[-1] == "Fetch", "somebody else may know another leader"
    assert next_part(lone) == (SNAPSHOT, 7)
    assert not lone.all_of(effects.DiscardSnapshot)
    take(lone, data)
    assert lone.core.start_offset == 10


def test_a_download_resumes_after_a_failed_election() -> None:
    """Differs from R-FSN-5: as long as leader and epoch are the same, so is the file."""
    lone, data = half_way()
    lone.wait(3000)
    roles = [one.new for one in lone.all_of(effects.RoleChanged)]
    assert roles[1] == "prospective"
    for sent in list(lone.requests):
        if sent.message.NAME == "VoteRequest":

            lone.answer(sent, voted(EPOCH, leader=LEADER))
    assert (lone.core.role, lone.core.leader_id) == ("follower", LEADER)
    assert part_asked_for(lone) == (SNAPSHOT, 7)
    take(lone, data)
    assert lone.core.start_offset == 10


def test_another_leader_starts_over() -> None:
    """Its file of the same name may have other bytes: snapshots are not equal, states are."""
    lone, _ = half_way()
    lone.request(begin(3, EPOCH + 1))
    assert effects.DiscardSnapshot(SNAPSHOT) in lone.effects
    assert lone.last_request.message.NAME == "FetchRequest"
    sent_to(lone, leader=3, epoch=EPOCH + 1)
    assert part_asked_for(lone) == (SNAPSHOT, 0)
    take(lone, file_of(values=[b"other", b"bytes"]), 50, leader=3, epoch=EPOCH + 1)
    assert lone.core.start_offset == 10


def test_the_same_leader_in_another_epoch_starts_over() -> None:
    """It was restarted in between, and may have written another snapshot."""
    lone, _ = half_way()
    lone.request(begin(LEADER, EPOCH + 2))
    sent_to(lone, epoch=EPOCH + 2)
    assert part_asked_for(lone) == (SNAPSHOT, 0)


def test_another_snapshot_starts_over() -> None:
    """The leader has a newer one by now, which it names in answer to a fetch."""
    lone, _ = half_way()
    lone.fail(lone.last_request)
    found = sent_to(lone, NEWER)
    assert effects.DiscardSnapshot(SNAPSHOT) in found
    assert next_part(lone) == (NEWER, 0)
    take(lone, file_of(NEWER))
    assert (lone.core.start_offset, lone.core.last_epoch) == (20, 3)


def test_a_restart_starts_over() -> None:
    """Half a file is deleted at the start (R-START-2)."""
    lone, data = half_way()
    lone.restart()
    lone.follow(LEADER, EPOCH + 1)
    sent_to(lone, epoch=EPOCH + 1)
    take(lone, data, epoch=EPOCH + 1)
    assert lone.core.start_offset == 10


def test_records_instead_of_the_snapshot_end_the_download() -> None:
    """The leader's log reaches back far enough after all."""
    lone, _ = half_way()
    lone.fail(lone.last_request)
    found = lone.fetch_gets(fetched(LEADER, EPOCH))
    assert effects.DiscardSnapshot(SNAPSHOT) in found


# ---- other roles in between ----------------------------------------------------------------------


@pytest.mark.parametrize("role", ["unattached", "prospective", "candidate"])
def test_a_correct_file_counts_in_every_role_but_one(role: str) -> None:
    """A snapshot's contents are committed, whichever node leads now."""
    lone = checking()
    if role == "unattached":
        lone.request(vote(3, EPOCH + 1, (1, 4)))
    else:
        lone.wait(3000)
    if role == "candidate":
        sent = next(one for one in lone.requests if one.message.NAME == "VoteRequest")
        lone.answer(sent, voted(EPOCH, is_granted=True))
    assert lone.core.role == role
    lone.finish_snapshot()
    assert (lone.core.start_offset, lone.core.high_watermark) == (10, 10)


def test_a_leader_does_not_load_a_snapshot() -> None:
    """S15: a majority voted for the log that it has. The file is deleted."""
    lone = checking()
    lone.lead()
    end = lone.core.end_offset
    found = lone.finish_snapshot()
    assert effects.DropLogPrefix(0, (SNAPSHOT,)) in found
    assert (lone.core.role, lone.core.start_offset, lone.core.end_offset) == ("leader", 0, end)
    assert lone.core.snapshots == []


def test_a_new_leader_discards_its_unfinished_download() -> None:
    """S15: a leader has everything; half a file would take its place on the disk for ever."""
    lone, _ = half_way()
    lone.lead()
    assert lone.all_of(effects.DiscardSnapshot) == [effects.DiscardSnapshot(SNAPSHOT)]
    lone.handle(events.ResignRequested(lone.core.epoch))
    lone.request(begin(3, 9))
    assert lone.last_request.message.NAME == "FetchRequest"


def test_a_check_that_takes_long_costs_no_epoch() -> None:
    """Voters that hear the leader refuse a pre-vote; meanwhile the check continues."""
    lone = checking()
    lone.wait(10_000)
    assert lone.core.epoch == EPOCH
    lone.finish_snapshot()
    assert lone.core.start_offset == 10


def test_another_leader_may_send_the_records_while_the_file_is_checked() -> None:
    """Then nothing is replaced: the snapshot is an additional one to serve."""
    lone = checking(bootstrap_servers=(endpoint(3),))
    lone.request(vote(3, EPOCH + 1, (1, 4)))
    batches = [data_batch(4, 2, 0, [b"x"] * 6), data_batch(10, EPOCH + 1, 0, [b"y"])]
    lone.fetch_gets(fetched(-1, EPOCH + 1, error=6))
    lone.wait(20)
    answer = fetched(3, EPOCH + 1, b"".join(batches), high_watermark=11)
    answer.node_endpoints = [NodeEndpoint(node_id=3, host="node3", port=9003)]
    lone.fetch_gets(answer)
    assert (lone.core.role, lone.core.high_watermark) == ("follower", 11)
    found = lone.finish_snapshot()
    assert "ResetLog" not in kinds(found)
    assert (lone.core.start_offset, lone.core.end_offset) == (0, 11)
    assert lone.core.snapshots == [SNAPSHOT]


def test_a_snapshot_that_contradicts_what_is_committed_is_deleted() -> None:
    """Only a leader that lies can have it; it must not be served to others."""
    lone = checking(bootstrap_servers=(endpoint(3),))
    lone.request(vote(3, EPOCH + 1, (1, 4)))
    lone.fetch_gets(fetched(-1, EPOCH + 1, error=6))
    lone.wait(20)
    answer = fetched(3, EPOCH + 1, data_batch(4, 3, 0, [b"x"] * 6), high_watermark=10)
    answer.node_endpoints = [NodeEndpoint(node_id=3, host="node3", port=9003)]
    lone.fetch_gets(answer)
    found = lone.finish_snapshot()
    assert effects.DropLogPrefix(0, (SNAPSHOT,)) in found
    assert lone.core.snapshots == []


def test_a_snapshot_that_is_already_there_is_kept() -> None:
    """The node's own file of the same name must not be deleted."""
    lone = checking()
    lone.handle(events.SnapshotWritten(SNAPSHOT, 10))
    found = lone.finish_snapshot()
    assert kinds(found) == []
    assert lone.core.snapshots == [SNAPSHOT]
