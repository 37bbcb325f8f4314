"""Bugs of snapshots: written wrong, deleted too early, loaded by the wrong replica."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftwire.errors import StorageError
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.names import checkpoint_name, join, partition_directory
from kraftwire.log.settings import LogSettings, SnapshotSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.messages.leader_change_message import LeaderChangeMessage
from kraftwire.raft import effects, events
from kraftwire.raft.histories import VoterHistory, voters_record
from kraftwire.raft.voters import VoterSet
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica import SnapshotReader
from kraftwire.sim.disk import SimFiles
from tests.history.putting_back import Edit, history
from tests.support.logs.batches import TOPIC, TOPIC_ID, append, put_snapshot
from tests.support.raft.disk import snapshot_bytes
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import dynamic_set, fetch, fetched, snapshot_part, voters_control
from tests.support.raft.replica import LoneReplica

_SETTINGS = LogSettings(segment_bytes=600, index_interval_bytes=200, index_bytes=600)
_PARTITION = partition_directory("/log", TOPIC)
_ID = OffsetAndEpoch(6, 1)


def _open(files: SimFiles, store: SnapshotStore | None = None) -> MetadataLog:
    return MetadataLog.open(files, "/log", _SETTINGS, TOPIC, TOPIC_ID, snapshots=store)


class _Machine:
    """A state machine that keeps every value and ignores leaders."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.next_offset = 0

    def apply(self, batches: Sequence[RecordBatch]) -> None:
        """Keep the values."""
        for batch in batches:
            self.next_offset = batch.last_offset + 1
            if not batch.is_control:
                self.values += [record.value or b"" for record in batch.records()]

    def load(self, snapshot: SnapshotReader) -> None:
        """Start over with those of a snapshot."""
        self.values = [r.value for batch in snapshot for r in batch.records() if r.value]
        self.next_offset = snapshot.id.offset

    def freeze(self) -> Iterable[bytes]:
        """All of them."""
        return list(self.values)

    def leadership(self, leader_id: int, epoch: int, end_offset: int) -> None:
        """Nothing depends on it."""


@history(
    43,
    "KAFKA-15078",
    "R-FET-7",
    Edit(
        "kraftwire.raft.log_view:LogView.check_position",
        "(not offset or self._needs_snapshot(offset, epoch))",
        "self._needs_snapshot(offset, max(epoch, self.snapshots[0].epoch))",
    ),
    red="reads the whole log",
)
def test_a_new_replica_is_sent_to_the_snapshot_although_the_log_is_complete() -> None:
    """It has nothing, so the snapshot saves it the records of the cluster's whole history."""
    lone = Lone(log=stored_log((1, 10)))
    lone.disk.snapshots[_ID] = snapshot_bytes(_ID, (), [b"state"])
    lone.restart()
    lone.lead()
    told = lone.request(fetch(2, 0, 0, lone.core.epoch))
    named = told.responses[0].partitions[0].snapshot_id
    assert named is not None, "reads the whole log"
    assert (named.end_offset, named.epoch) == (6, 1)


@history(
    44,
    "KAFKA-15076",
    "R-START-2, S14",
    Edit(
        "kraftwire.log.metadata_log:MetadataLog._start",
        "if snapshot is not None:",
        "if False:",
    ),
    red="the log is older than the snapshot",
)
def test_a_snapshot_that_is_ahead_of_the_log_replaces_it() -> None:
    """A crash came between the download and the emptying of the log: the log's records are part
    of the snapshot, or differ from it."""
    files = SimFiles()
    log = _open(files)
    append(log, 10)
    log.close()
    put_snapshot(_PARTITION, 30, 3, files=files)
    log = _open(files)
    found = (log.start_offset, log.end_offset)
    assert found == (30, 30), "the log is older than the snapshot"


@history(
    45,
    "KAFKA-14618",
    "R-SNAP-1, S14",
    Edit(
        "kraftwire.raft.snapshots:handle_wanted",
        "snapshot = OffsetAndEpoch(end, state.log.epoch_before(end))",
        "snapshot = OffsetAndEpoch(end - 1, state.log.epoch_before(end))",
    ),
    Edit(
        "kraftwire.replica.machines:StateMachines.write",
        "if subscription.applied != effect.id.offset:",
        "if False:",
    ),
    red="applied twice",
)
def test_a_snapshot_is_named_by_the_offset_after_its_last_record() -> None:
    """With one less, a replica that loads it gets its last record twice."""
    files = SimFiles()
    replica = LoneReplica(files, _Machine(), SnapshotSettings())
    values = [b"%d" % number + bytes(700) for number in range(8)]
    for value in values:
        replica.append(value)
    replica.runner.write_snapshot(replica.number, replica.now_ms, replica.wall_ms)
    replica.settle()
    (stored,) = replica.storage.snapshots.stored()
    replica.submit(events.LogStartProposed(stored.id))
    replica.settle()
    replica.storage.close()
    again = _Machine()
    replica = LoneReplica(files, again, SnapshotSettings())
    assert replica.core.start_offset > 0
    assert again.values == values, "applied twice"


@history(
    46,
    "KAFKA-14240",
    "R-START-2, S14",
    Edit(
        "kraftwire.log.snapshots.store:SnapshotStore.check_start",
        "newest is not None and newest.offset >= start_offset",
        "True",
    ),
    red="opened without the records below its start",
)
def test_a_log_whose_beginning_is_in_no_snapshot_is_refused() -> None:
    """Its state machine would begin in the middle, and be wrong for ever."""
    files = SimFiles()
    log = _open(files)
    for _ in range(20):
        append(log, 5)
    snapshot = put_snapshot(_PARTITION, 60, files=files)
    log.drop_prefix(60)
    log.close()
    files.unlink(join(_PARTITION, checkpoint_name(snapshot)))
    problem = ""
    try:
        _open(files)
    except StorageError as error:
        problem = str(error)
    assert problem, "opened without the records below its start"
    assert "no snapshot covers what is before" in problem


@history(
    47,
    "KAFKA-14238",
    "R-SNAP-6, S14",
    Edit(
        "kraftwire.log.metadata_log:MetadataLog.drop_prefix",
        "while len(segments) > 1 and segments[0].end_offset <= start_offset:",
        "while len(segments) > 1:",
    ),
    red="nobody has them any more",
)
def test_only_segments_wholly_below_the_snapshot_are_deleted() -> None:
    """Records above the snapshot's end are in no snapshot."""
    files = SimFiles()
    log = _open(files)
    for _ in range(20):
        append(log, 5)
    put_snapshot(_PARTITION, 40, files=files)
    log.drop_prefix(40)
    held = log.batches()[0].offset
    assert held <= 40, "nobody has them any more"
    assert log.read(40, 1 << 20, 100)


@history(
    48,
    "KAFKA-12205, KAFKA-12155",
    "R-FSN-4, L5",
    Edit(
        "kraftwire.raft.downloading:handle_fetch_snapshot_response",
        "is_gone = part.error_code in _GONE or part.snapshot_id.end_offset < 0",
        "is_gone = False",
    ),
    red="asks for it for ever",
)
def test_a_snapshot_that_the_leader_deleted_meanwhile_is_not_requested_again() -> None:
    """Only a new Fetch tells which one the leader has now."""
    lone = Lone()
    lone.follow(2, 3)
    gone, next_one = OffsetAndEpoch(50, 2), OffsetAndEpoch(80, 2)
    lone.fetch_gets(fetched(2, 3, snapshot=gone))
    data = snapshot_bytes(gone, (), [b"state"])
    part = snapshot_part(2, 3, gone, data=data[:20], size=len(data))
    lone.answer(lone.last_request, part)
    lone.answer(lone.last_request, snapshot_part(2, 3, gone, error=98))
    lone.fetch_gets(fetched(2, 3, error=6))
    lone.wait(100)
    assert lone.last_request.message.NAME == "FetchRequest", "asks for it for ever"
    lone.fetch_gets(fetched(2, 3, snapshot=next_one))
    (partition,) = lone.last_request.message.topics[0].partitions  # type: ignore[attr-defined]
    assert (partition.snapshot_id.end_offset, partition.position) == (80, 0)


@history(
    49,
    "KAFKA-13098",
    "R-START-2, R-SNAP-5",
    Edit(
        "kraftwire.log.snapshots.store:SnapshotStore._look",
        'name.endswith((f".checkpoint{PART_SUFFIX}", f".checkpoint{DELETED_SUFFIX}"))',
        "False",
    ),
    red="what a crash left behind stays",
)
def test_unfinished_and_deleted_snapshots_are_removed_at_the_start() -> None:
    """Nothing would ever remove them later, and each may take hundreds of megabytes."""
    files = SimFiles()
    _open(files).close()
    put_snapshot(_PARTITION, 30, files=files)
    store = SnapshotStore(files, _PARTITION)
    store.writer(OffsetAndEpoch(40, 1), (), 0, 0)
    store.append(OffsetAndEpoch(50, 1), 0, b"a part")
    put_snapshot(_PARTITION, 20, files=files)
    store = SnapshotStore(files, _PARTITION)
    store.append(OffsetAndEpoch(50, 1), 0, b"a part")
    store.delete([OffsetAndEpoch(20, 1)], 0)
    found = SnapshotStore(files, _PARTITION)
    assert [one.id.offset for one in found.stored()] == [30]
    left = [name for name in files.listdir(_PARTITION) if not name.endswith(".checkpoint")]
    assert not [name for name in left if ".checkpoint." in name], "what a crash left behind stays"


@history(
    50,
    "KAFKA-13078",
    "R-SNAP-5, R-SNAP-7",
    Edit(
        "kraftwire.replica.machines:StateMachines._save",
        "return _WriteResult(writer.freeze())",
        "writer.discard(); return _WriteResult(writer.freeze())",
    ),
    red="nothing came of it",
)
def test_a_snapshot_is_not_closed_before_it_is_frozen() -> None:
    """It is written in pieces, between other work, long after the call that began it returned."""
    replica = LoneReplica(SimFiles(), _Machine(), SnapshotSettings())
    for number in range(5):
        replica.append(b"%d" % number)
    replica.is_busy = True
    replica.runner.write_snapshot(replica.number, replica.now_ms, replica.wall_ms)
    replica.append(b"next to it")
    replica.is_busy = False
    replica.settle()
    newest = replica.storage.snapshots.newest
    assert newest is not None, "nothing came of it"
    reader = replica.storage.snapshots.reader(newest)
    values = [record.value for batch in reader for record in batch.records()]
    reader.close()
    assert values == [b"0", b"1", b"2", b"3", b"4"]


@history(
    51,
    "KAFKA-14300",
    "R-SNAP-7, L10",
    Edit(
        "kraftwire.replica.machines:StateMachines.leader_changed",
        "subscription = self._all[effect.listener_id]",
        "subscription = self._all[effect.listener_id]; subscription.unsaved = 0",
    ),
    red="the log grows for ever",
)
def test_a_change_of_leader_does_not_delay_snapshots() -> None:
    """With an occasional election there would never be one."""
    replica = LoneReplica(SimFiles(), _Machine(), SnapshotSettings(between_bytes=2000))
    for number in range(10):
        replica.append(b"%d" % number + bytes(300))
        replica.submit(events.ResignRequested(replica.core.epoch))
        replica.settle()
        replica.wait(3000)
        assert replica.core.role == "leader"
    assert replica.core.epoch > 10
    assert replica.storage.snapshots.newest is not None, "the log grows for ever"


@history(
    52,
    "KAFKA-12958",
    "R-FSN-5, S15",
    Edit(
        "kraftwire.raft.downloading:handle_finished",
        "is_needless = type(state.role) is Leader or snapshot.offset <= log.start_offset",
        "is_needless = snapshot.offset <= log.start_offset",
    ),
    red="discarded the log that it was elected for",
)
def test_a_leader_takes_no_snapshot_of_another_leader() -> None:
    """A majority has voted for its present log; the download began while it was a follower."""
    lone = Lone(log=stored_log((1, 3)))
    lone.handle(events.ListenerRegistered(0, 0))
    lone.follow(2, 3)
    named = OffsetAndEpoch(50, 2)
    lone.fetch_gets(fetched(2, 3, snapshot=named))
    data = snapshot_bytes(named, (), [b"state"])
    lone.answer(lone.last_request, snapshot_part(2, 3, named, data=data, size=len(data)))
    lone.lead()
    lone.finish_snapshot()
    assert not lone.all_of(effects.ResetLog), "discarded the log that it was elected for"
    assert not lone.all_of(effects.LoadSnapshot)
    assert lone.core.end_offset == 4


def _set_at(offset: int, voters: VoterSet) -> bytes:
    records = [(ControlType.KRAFT_VOTERS, voters_record(voters))]
    return control_batch(offset, 1, 0, records)


@history(
    53,
    "KAFKA-19850, Kafka PR 21025",
    "R-ID-8, R-SNAP-2, S16",
    Edit(
        "kraftwire.raft.histories:_prune",
        "del entries[: max(contained - 1, 0)]",
        "del entries[:contained]",
    ),
    red="the removed voter counts again",
)
def test_a_snapshot_does_not_make_the_log_forget_who_votes() -> None:
    """The last change before it is still in force; if that is forgotten, the voter that it removed
    votes again, and the next snapshot has no voters."""
    bootstrap = control_batch(
        0,
        0,
        0,
        [
            (ControlType.SNAPSHOT_HEADER, LeaderChangeMessage()),
            *voters_control(dynamic_set([1, 2, 3])),
        ],
    )
    history_ = VoterHistory(VoterSet(), snapshot=(0, bootstrap))
    history_.observe(5, _set_at(5, dynamic_set([1, 2])))
    history_.prune(20)
    assert history_.at(30).voters == dynamic_set([1, 2]), "the removed voter counts again"
    # Another change is undone.
    history_.observe(25, _set_at(25, dynamic_set([1, 2, 4])))
    history_.truncate(22)
    assert history_.current == dynamic_set([1, 2])
    kinds = [kind for kind, _ in history_.control_at(19)]
    assert kinds == [ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
