"""Bugs of votes and epochs: what a node voted for, and what a restart must remember."""

from __future__ import annotations

import contextlib
from random import Random

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.sim.disk import SimFiles
from kraftwire.sim.invariants import Violation
from tests.history.putting_back import Edit, history
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import directory_id, vote

_STATE = "/log/quorum-state"


@history(
    1,
    "KAFKA-10527",
    "R-START-6, S13",
    Edit(
        "kraftwire.raft.startup:first_role",
        "return _resigned(state)",
        "return Candidate(election.epoch, Votes(state.voters, config.key), "
        "state.random_timeout(), config.key)",
    ),
    red="S13: offset 1 of epoch 1 is two batches",
    fails_with=Violation,
)
def test_a_restarted_leader_does_not_lead_its_epoch_again() -> None:
    """Other nodes may have records that it wrote and lost: it must not use that epoch's offsets."""
    cluster = Cluster([1], [2])
    cluster.start(1, 2)
    assert cluster.run_until(lambda: cluster.core(2).end_offset == 1)
    cluster.flush_delay_ms = 500
    cluster.append(1, b"lost")
    assert cluster.run_until(lambda: cluster.disks[2].end == 2)
    cluster.kill(1)
    cluster.start(1)
    assert cluster.run_until(lambda: cluster.leaders() == [1])
    cluster.append(1, b"other")
    cluster.run(3000)
    logs = [{(base, epoch): what for base, epoch, what in cluster.log_of(one)} for one in (1, 2)]
    both = logs[0].keys() & logs[1].keys()
    clashes = [place for place in both if logs[0][place] != logs[1][place]]
    assert not clashes, "the same epoch and offset hold different records"


@history(
    2,
    "KAFKA-10661",
    "R-START-6, S1",
    Edit(
        "kraftwire.raft.startup:first_role",
        "return _resigned(state)",
        "return Unattached(election.epoch, deadline_ms=deadline)",
    ),
    red="voted for another in an epoch that it led itself",
)
def test_a_restarted_leader_does_not_vote_in_its_epoch() -> None:
    """With its vote another node would lead the same epoch."""
    lone = Lone(election=ElectionState(epoch=3, leader_id=1), log=stored_log((2, 4)))
    granted = lone.request(vote(2, 3, (2, 4))).topics[0].partitions[0].vote_granted
    assert not granted, "voted for another in an epoch that it led itself"


def _voter_on(files: SimFiles) -> Lone:
    """A voter with the quorum-state file on this disk."""
    found = QuorumStateFile(files, _STATE).read() or QuorumState()
    key = ReplicaKey(found.voted_id, found.voted_directory_id)
    kept = ElectionState(found.epoch, found.leader_id, key if key.id >= 0 else None)
    return Lone(election=kept)


def _write(files: SimFiles, lone: Lone) -> None:
    """Carry out what the voter wants to be persisted, with the shipped code."""
    state = lone.all_of(effects.PersistQuorumState)[-1].state
    voted_for = state.voted or ReplicaKey(-1)
    QuorumStateFile(files, _STATE).write(
        QuorumState(state.epoch, state.leader_id, voted_for.id, voted_for.directory_id), 1, [1, 2]
    )


def _granted(lone: Lone, candidate: int, epoch: int) -> bool:
    return bool(lone.request(vote(candidate, epoch)).topics[0].partitions[0].vote_granted)


@history(
    3,
    "KCORE-349",
    "R-VOTE-7, R-ID-10, S3",
    Edit("kraftwire.log.files:replace_file", "files.fsync_dir(parent(path))", "pass"),
    red="voted twice in an epoch",
)
def test_a_vote_outlives_a_power_loss() -> None:
    """A quorum-state file that is lost with the power allows a second vote in the same epoch."""
    files = SimFiles()
    files.mkdir("/log")
    lone = _voter_on(files)
    assert _granted(lone, 2, 5)
    _write(files, lone)
    files.lose_power(Random(1), "none")
    assert not _granted(_voter_on(files), 3, 5), "voted twice in an epoch"


@history(
    4,
    "KAFKA-15412",
    "R-ID-10, S3",
    Edit(
        "kraftwire.log.quorum_state:QuorumStateFile.read",
        'raise self._bad("data_version 0 or 1", repr(version))',
        "return None",
    ),
    red="voted twice in an epoch",
)
def test_a_quorum_state_of_an_unknown_version_is_not_forgotten() -> None:
    """A node after a downgrade must not start, because it does not know for whom it voted."""
    files = SimFiles()
    files.mkdir("/log")
    lone = _voter_on(files)
    assert _granted(lone, 2, 5)
    _write(files, lone)
    line = files.read_bytes(_STATE).split(b"\n")[0]
    file = files.open(_STATE)
    file.truncate(0)
    file.pwrite(line.replace(b'"data_version":1', b'"data_version":2'), 0)
    again = None
    with contextlib.suppress(StorageError):
        again = _voter_on(files)
    assert again is None or not _granted(again, 3, 5), "voted twice in an epoch"
    with pytest.raises(StorageError, match="data_version 0 or 1"):
        _voter_on(files)


@history(
    5,
    "KAFKA-16526",
    "R-VOTE-6, R-ID-9, S3",
    Edit(
        "kraftwire.log.quorum_state:QuorumStateFile.read",
        'self._uuid(data, "votedDirectoryId") if version else ZERO_UUID',
        "ZERO_UUID",
    ),
    red="voted for two replicas in an epoch",
)
def test_the_directory_id_of_a_vote_is_remembered() -> None:
    """A node whose disk was replaced is another replica: a vote for the old one is not for it."""
    files = SimFiles()
    files.mkdir("/log")
    lone = _voter_on(files)
    assert _granted(lone, 2, 5)
    _write(files, lone)
    answer = _voter_on(files).request(vote(2, 5, directory=b"another disk...."))
    granted = answer.topics[0].partitions[0].vote_granted
    assert not granted, "voted for two replicas in an epoch"


@history(
    11,
    "redpanda 7407",
    "R-ID-10, S20",
    Edit(
        "kraftwire.log.files:replace_file",
        "temporary = path + TEMPORARY_SUFFIX",
        "temporary = path",
    ),
    Edit("kraftwire.log.files:replace_file", "files.unlink(temporary)", "pass"),
    Edit("kraftwire.log.files:replace_file", "files.rename(temporary, path)", "pass"),
    red="the file is torn",
)
def test_a_vote_that_could_not_be_written_does_not_prevent_the_next_start() -> None:
    """A full disk ends the node; the file must still say what it said before."""
    files = SimFiles()
    files.mkdir("/log")
    before = QuorumState(4, -1, 2, directory_id(2))
    QuorumStateFile(files, _STATE).write(before, 1, [1, 2, 3])
    lone = _voter_on(files)
    assert _granted(lone, 3, 5)
    files.fill(True, Random(4))
    with pytest.raises(StorageError):
        _write(files, lone)
    files.kill()
    files.fill(False)
    found = None
    with contextlib.suppress(StorageError):
        found = QuorumStateFile(files, _STATE).read()
    assert found == before, "the file is torn"


