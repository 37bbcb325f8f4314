"""What a recovery writes, also after a crash at each of its steps."""

from __future__ import annotations

from random import Random

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.partition_files import read_epochs
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.raft.batches import control_records
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.core import RaftCore
from kraftwire.raft.events import TimerExpired
from kraftwire.raft.voters import ReplicaKey
from kraftwire.replica.lost_majority.plan import Recovery, plan_recovery
from kraftwire.replica.lost_majority.survivors import ControllerNode, locked, read_survivor
from kraftwire.replica.lost_majority.writing import carry_out
from kraftwire.replica.storage import Storage
from kraftwire.sim.disk import PowerCut, SimFiles
from tests.support.logs.batches import TIME
from tests.support.logs.survivors import CLUSTER, Made, make, node_of, snapshot

_PARTITION = "__cluster_metadata-0"
_SURVIVORS = (
    Made(id=1, epochs=((1, 3), (4, 2)), voters=(1, 2, 3, 4, 5)),
    Made(id=2, epochs=((1, 3),), voters=(1, 2, 3, 4, 5), state=QuorumState(6, 3)),
)
_STATIC = tuple(
    Made(id=made.id, epochs=made.epochs, voters=(1, 2, 3, 4, 5), state=made.state, is_static=True)
    for made in _SURVIVORS
)


def _recover(files: SimFiles, nodes: list[ControllerNode]) -> Recovery:
    with locked(nodes, files, make=True):
        recovery = plan_recovery([read_survivor(node, files) for node in nodes])
        if not recovery.is_done:
            list(carry_out(recovery, files, TIME))
    return recovery


def _made(files: SimFiles, *, is_static: bool = False) -> list[ControllerNode]:
    """Two directories; with static voters the files already name both nodes."""
    every = _STATIC if is_static else _SURVIVORS
    for made in every:
        make(files, made)
    return [node_of(made, voters=(1, 2)) for made in every]


def _log_files(files: SimFiles, folder: str) -> dict[str, bytes]:
    return {
        name: files.read_bytes(f"{folder}/{_PARTITION}/{name}")
        for name in files.listdir(f"{folder}/{_PARTITION}")
    }


def _start(files: SimFiles, node: ControllerNode) -> RaftCore:
    """Open the directory as the node does, and start its core."""
    storage = Storage.open(node.directories, files)
    config = RaftConfig(
        key=ReplicaKey(node.directories.node_id, storage.directory_id),
        cluster_id=CLUSTER,
        voters=node.static_voters,
        endpoints=node.endpoints,
    )
    core = RaftCore(config, storage.stored_state(), Random(1))
    core.start(0, TIME)
    storage.close()
    return core


def test_the_furthest_log_ends_with_its_own_node_as_the_only_voter() -> None:
    """In an epoch of its own, which the epoch file and quorum-state name too."""
    files = SimFiles()
    nodes = _made(files)
    before = read_survivor(nodes[0], files)
    _recover(files, nodes)
    after = read_survivor(nodes[0], files)
    base, batch = after.log.control[-1]
    records = control_records(batch)
    assert base == before.log.end_offset == after.log.end_offset - 1
    assert [type(message) for _, _, message in records] == [VotersRecord]
    assert [voter.key for voter in after.voters] == [after.key]
    assert read_epochs(files, f"/n1/{_PARTITION}/leader-epoch-checkpoint") == [
        (1, 0), (4, 4), (7, base),
    ]  # fmt: skip
    state = QuorumStateFile(files, f"/n1/{_PARTITION}/quorum-state")
    assert state.read() == QuorumState(7)
    assert b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"' in files.read_bytes(state.path)


def test_what_was_there_is_kept_beside_it() -> None:
    """Byte for byte, both the log that goes on and the one that does not."""
    files = SimFiles()
    nodes = _made(files)
    before = {folder: _log_files(files, folder) for folder in ("/n1", "/n2")}
    _recover(files, nodes)
    for folder, content in before.items():
        kept = f"{folder}.before-recover-1"
        assert _log_files(files, kept) == content
        assert files.read_bytes(f"{kept}/meta.properties") == files.read_bytes(
            f"{folder}/meta.properties"
        )
    assert not files.exists(f"/n2/{_PARTITION}")


def test_the_furthest_leads_at_its_start_and_the_other_only_observes() -> None:
    """The one needs nobody's vote, the other knows no voters."""
    files = SimFiles()
    nodes = _made(files)
    _recover(files, nodes)
    first, other = (_start(files, node) for node in nodes)
    first.handle(TimerExpired(), first.deadline_ms or 0)
    assert (first.role, first.epoch) == ("leader", 8)
    assert (other.role, other.is_voter) == ("unattached", False)


@pytest.mark.parametrize("is_static", [False, True], ids=["kraft.version 1", "kraft.version 0"])
def test_a_second_run_changes_nothing(is_static: bool) -> None:
    """The plan says so, and the directories stay as they are."""
    files = SimFiles()
    nodes = _made(files, is_static=is_static)
    _recover(files, nodes)
    before = _log_files(files, "/n1")
    again = _recover(files, nodes)
    assert again.is_done
    # What may be missing is told as before, without the record that was appended.
    assert again.end == (7, 4)
    assert _log_files(files, "/n1") == before
    assert not files.exists("/n1.before-recover-2")


def test_static_voters_get_an_epoch_and_no_record() -> None:
    """Their set is in the properties files; the log stays as it was."""
    files = SimFiles()
    nodes = _made(files, is_static=True)
    end = read_survivor(nodes[0], files).end
    _recover(files, nodes)
    assert read_survivor(nodes[0], files).end == end
    state = QuorumStateFile(files, f"/n1/{_PARTITION}/quorum-state")
    assert state.read() == QuorumState(7)
    assert state.voter_ids() == (1, 2)
    assert not files.exists(f"/n2/{_PARTITION}")


def test_a_survivor_that_is_found_later_may_have_seen_a_higher_epoch() -> None:
    """Then the log is continued once more, in an epoch above that too."""
    files = SimFiles()
    nodes = _made(files)
    assert _recover(files, nodes[:1]).epoch == 5
    again = _recover(files, nodes)
    assert (again.furthest.key.id, again.is_written, again.epoch) == (1, False, 7)
    assert [voter.key.id for voter in read_survivor(nodes[0], files).voters] == [1]


@pytest.mark.parametrize("is_static", [False, True], ids=["kraft.version 1", "kraft.version 0"])
def test_all_is_durable_at_the_end(is_static: bool) -> None:
    """A power failure right after the command takes nothing back."""
    files = SimFiles()
    nodes = _made(files, is_static=is_static)
    files.lose_power(Random(0), "all")
    before = {folder: _log_files(files, folder) for folder in ("/n1", "/n2")}
    _recover(files, nodes)
    files.lose_power(Random(0), "none")
    assert _recover(files, nodes).is_done
    for folder, content in before.items():
        assert _log_files(files, f"{folder}.before-recover-1") == content


def test_a_log_that_only_a_snapshot_has_goes_on_where_the_snapshot_ends() -> None:
    """As after a download: the voters are in the snapshot, the log is empty."""
    files = SimFiles()
    node = make(files, Made(id=1))
    snapshot(files, node, 20)
    storage = Storage.open(node.directories, files)
    assert (storage.log.start_offset, storage.log.end_offset) == (20, 20)
    storage.close()
    first = _recover(files, [node])
    assert (first.end, first.committed_end, first.kraft_version) == ((20, 1), 20, 1)
    again = _recover(files, [node])
    assert (again.is_done, again.end) == (True, (20, 1))
    core = _start(files, node)
    core.handle(TimerExpired(), core.deadline_ms or 0)
    assert (core.role, core.epoch) == ("leader", 3)


def test_what_a_crash_left_of_an_earlier_copy_is_not_kept() -> None:
    """A copy holds what the log's directory held, nothing else."""
    files = SimFiles()
    nodes = _made(files)
    before = _log_files(files, "/n1")
    left = f"/n1.before-recover-1/{_PARTITION}.unfinished"
    files.mkdir(left)
    for name in ("junk", "quorum-state"):
        files.open(f"{left}/{name}", create=True).pwrite(b"junk" * 100, 0)
    _recover(files, nodes)
    assert _log_files(files, "/n1.before-recover-1") == before


def _steps(is_static: bool) -> int:
    files = SimFiles()
    nodes = _made(files, is_static=is_static)
    steps: list[None] = []
    watched = SimFiles.holding(
        {name: files.read_bytes(name) for name in files.named_after(files.pending_names())},
        before_step=lambda: steps.append(None),
    )
    _recover(watched, nodes)
    return len(steps)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["process", "none", "prefix", "sectors", "zeros"])
@pytest.mark.parametrize("is_static", [False, True], ids=["kraft.version 1", "kraft.version 0"])
def test_after_a_crash_at_any_step_the_same_command_goes_on(policy: str, is_static: bool) -> None:
    """The process is killed, or the power fails with none or some of the pending writes."""
    wanted, kept, originals = _outcome(is_static)
    for step in range(1, _steps(is_static) + 1):
        files = SimFiles()
        nodes = _made(files, is_static=is_static)
        files.lose_power(Random(0), "all")
        files.plan_cut(step)
        with pytest.raises(PowerCut):
            _recover(files, nodes)
        if policy == "process":
            files.kill()
        else:
            files.lose_power(Random(step), policy)
        _recover(files, nodes)
        after = read_survivor(nodes[0], files)
        assert (after.end, after.election) == wanted, step
        assert _recover(files, nodes).is_done, step
        assert not files.exists(f"/n2/{_PARTITION}"), step
        for folder, content in originals.items():
            assert _is_kept(files, folder, content), (step, folder)
    assert kept


def _is_kept(files: SimFiles, folder: str, content: dict[str, bytes]) -> bool:
    names = {path.split("/")[1] for path in files.named_after(files.pending_names())}
    copies = [f"/{name}" for name in names if name.startswith(f"{folder[1:]}.before-recover-")]
    return any(_log_files(files, copy) == content for copy in copies)


def _outcome(is_static: bool) -> tuple[object, bool, dict[str, dict[str, bytes]]]:
    """What a run without a crash leaves, and what was there before it."""
    files = SimFiles()
    nodes = _made(files, is_static=is_static)
    originals = {folder: _log_files(files, folder) for folder in ("/n1", "/n2")}
    _recover(files, nodes)
    after = read_survivor(nodes[0], files)
    kept = all(_is_kept(files, folder, content) for folder, content in originals.items())
    return (after.end, after.election), kept, originals


def test_a_full_disk_leaves_the_log_as_it_was() -> None:
    """The copy comes first, and the error names the file."""
    files = SimFiles()
    nodes = _made(files)
    before = _log_files(files, "/n1")
    with locked(nodes, files, make=True):
        recovery = plan_recovery([read_survivor(node, files) for node in nodes])
        files.fill(True)
        with pytest.raises(StorageError, match="No space left"):
            list(carry_out(recovery, files, TIME))
    files.mend()
    assert _log_files(files, "/n1") == before
    assert files.exists(f"/n2/{_PARTITION}")
    assert not _recover(files, nodes).is_written
