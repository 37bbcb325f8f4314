"""Voter sets and kraft.version by offset, with truncation."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.batches import leader_change, read_fetched
from kraftwire.raft.histories import VoterHistory, voter_set, voters_record
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.control import ControlType, control_batch
from kraftwire.wire.message import Message

SEGMENT = (
    Path(__file__).resolve().parents[2]
    / "golden/logs/controller/__cluster_metadata-0/00000000000000000000.log"
)
STATIC = VoterSet.of(Voter(ReplicaKey(1)), Voter(ReplicaKey(2)))


def voter(number: int, port: int = 9093) -> Voter:
    """A voter with a directory, an endpoint and a range of versions."""
    key = ReplicaKey(number, bytes([number]) * 16)
    return Voter(key, (Endpoint("CONTROLLER", "host", port),), 0, 1)


def voters(*numbers: int) -> tuple[ControlType, Message]:
    """The control record of a voter set."""
    return ControlType.KRAFT_VOTERS, voters_record(VoterSet.of(*map(voter, numbers)))


VERSION_1 = (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1))


def batch(base: int, *records: tuple[ControlType, Message]) -> bytes:
    """A control batch of epoch 1."""
    return control_batch(base, 1, 0, records)


def test_without_records_the_static_voters_count_at_version_0() -> None:
    """R-ID-5: an empty history means the configuration."""
    history = VoterHistory(STATIC)
    assert history.current is STATIC
    assert (history.kraft_version, history.last_voters_offset) == (0, None)


def test_the_newest_record_counts_with_its_own_offset() -> None:
    """R-ID-6: base offset plus index in the batch, effective once it is appended."""
    history = VoterHistory(STATIC)
    start = batch(4, leader_change(1, [1], [1]), VERSION_1, voters(1, 2, 3))
    assert history.observe(4, start)
    assert sorted(history.current.voters) == [1, 2, 3]
    assert (history.kraft_version, history.last_voters_offset) == (1, 6)
    assert history.current.get(2) == voter(2)


def test_other_control_records_change_nothing() -> None:
    """Every epoch begins with one, so most control batches do not matter here."""
    history = VoterHistory(STATIC)
    assert not history.observe(0, batch(0, leader_change(1, [1], [1])))
    assert not history.observe(1, b"")
    assert history.current is STATIC


def test_cutting_the_log_takes_changes_back_one_by_one() -> None:
    """R-ID-8: the set before is in force again as if nothing had happened."""
    log = [(0, batch(0, VERSION_1, voters(1))), (9, batch(9, voters(1, 2)))]
    history = VoterHistory(STATIC, log)
    assert not history.truncate(10)
    assert history.truncate(9)
    assert (sorted(history.current.voters), history.last_voters_offset) == ([1], 1)
    assert history.truncate(0)
    assert history.current is STATIC
    assert history.kraft_version == 0


def test_a_batch_at_a_known_offset_replaces_what_was_there() -> None:
    """Offsets of the history always rise, even if a truncation was not reported."""
    history = VoterHistory(STATIC, [(0, batch(0, voters(1))), (5, batch(5, voters(1, 2)))])
    assert history.observe(3, batch(3, voters(1, 3)))
    assert history.truncate(3)
    assert sorted(history.current.voters) == [1]


def test_a_voter_set_survives_its_record() -> None:
    """Directory ids, endpoints and version ranges are all kept."""
    wanted = VoterSet.of(voter(3), voter(1, 1234), Voter(ReplicaKey(2)))
    assert voter_set(voters_record(wanted)) == wanted


def test_listener_names_become_upper_case() -> None:
    """R-ID-4: peers are looked up by the name in upper case."""
    record = voters_record(VoterSet.of(Voter(ReplicaKey(1), (Endpoint("Controller", "h", 1),))))
    assert voter_set(record).endpoint(1, "CONTROLLER") == Endpoint("CONTROLLER", "h", 1)


def test_the_voters_of_a_java_quorum_are_read_from_its_log() -> None:
    """The golden log begins with version 1 and three voters with directories."""
    fetched = read_fetched(SEGMENT.read_bytes(), 0, 4)
    history = VoterHistory(STATIC, fetched.control)
    assert history.kraft_version == 1
    assert history.last_voters_offset == 2
    assert sorted(history.current.voters) == [1, 2, 3]
    for entry in history.current:
        assert entry.key.has_directory_id
        assert (entry.kraft_version_min, entry.kraft_version_max) == (0, 1)


def test_a_snapshot_takes_all_sets_but_the_one_in_force_at_its_end() -> None:
    """R-ID-8: the next snapshot states it, and a truncation returns to it."""
    log = [(0, batch(0, VERSION_1, voters(1))), (9, batch(9, voters(1, 2)))]
    history = VoterHistory(STATIC, [*log, (20, batch(20, voters(1, 2, 3)))])
    history.prune(15)
    assert sorted(history.at(19).voters.voters) == [1, 2]
    assert history.at(8).voters is STATIC
    assert history.truncate(20)
    assert (sorted(history.current.voters), history.kraft_version) == ([1, 2], 1)


@pytest.mark.parametrize("end", range(23))
def test_a_pruned_history_is_cut_like_a_whole_one(end: int) -> None:
    """R-ID-8: a snapshot may end exactly where a record that is not committed begins. If that one
    is cut off, the set before it is in force, and not the configured one."""
    log = [
        (0, batch(0, VERSION_1, voters(1))),
        (9, batch(9, voters(1, 2))),
        (15, batch(15, VERSION_1, voters(1, 2, 3))),
        (20, batch(20, voters(1, 2, 3, 4))),
    ]
    for cut in range(max(end, 1), 24):
        whole, pruned = VoterHistory(STATIC, log), VoterHistory(STATIC, log)
        pruned.prune(end)
        assert (whole.truncate(cut), pruned.truncate(cut)) == ((cut <= 20,) * 2)
        assert pruned.current == whole.current, cut
        assert pruned.kraft_version == whole.kraft_version == (cut > 0), cut
        assert pruned.last_voters_offset == whole.last_voters_offset, cut
        for offset in range(max(end - 1, 0), 24):
            assert pruned.at(offset) == whole.at(offset), (cut, offset)


@pytest.mark.parametrize("end", [15, 16])
def test_a_version_that_is_not_committed_outlives_no_cut(end: int) -> None:
    """R-ID-8: pruned where the record begins, and one after it."""
    log = [(0, batch(0, voters(1))), (15, batch(15, VERSION_1))]
    history = VoterHistory(STATIC, log)
    history.prune(end)
    assert history.kraft_version == 1
    assert history.truncate(15)
    assert history.kraft_version == 0
