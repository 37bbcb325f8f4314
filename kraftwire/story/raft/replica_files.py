"""The files of replicas as evidence of epochs and leaders, and which replica is the furthest.

A log alone names a leader only where it has the LeaderChange record. The epochs of other batches,
leader-epoch-checkpoint, quorum-state, and the names of snapshots say more, also about records that
were deleted. Everything is taken as evidence with its source; what the sources contradict is
reported, not decided.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from kraftwire.decode.files.kinds import FileKind, parse_file_name, partition_of
from kraftwire.decode.files.report import FileFinding
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.story.raft.coverage import Coverage, Extent
from kraftwire.story.raft.model import (
    UNREAD_TEXTS,
    Majority,
    ReplicaFiles,
    UnreadBytes,
    offsets_text,
)

# Kinds of evidence.
BATCHES, SNAPSHOT = "batches", "snapshot"
CHECKPOINT, QUORUM_STATE = str(FileKind.LEADER_EPOCHS), str(FileKind.QUORUM_STATE)

# Log directory -> node and directory id, as its meta.properties says.
Owners = Mapping[str, tuple[int | None, str | None]]

# Directories of one run that are distinguished; of each, contradictions and places without a batch
# that are kept.
_DIRECTORY_COUNT_MAX = 1_000
_CONTRADICTION_COUNT_MAX = 20
_UNREAD_COUNT_MAX = 20


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one source about an epoch.

    A `start` is the offset of the epoch's first record, a `vote` a node and whom it voted for.
    """

    epoch: int
    source: str
    leader: int | None = None
    start: int | None = None
    vote: tuple[int, int] | None = None


@dataclass(slots=True)
class _Directory:
    """The files of one metadata log as they come."""

    files: ReplicaFiles
    coverage: Coverage = field(default_factory=Coverage)
    # The offsets in the names of segments, and whether snapshots have an end.
    bases: set[int] = field(default_factory=set)
    snapshots: dict[OffsetAndEpoch, bool] = field(default_factory=dict)
    # Epoch -> the leader in its LeaderChange record, and the offset of the record.
    leaders: dict[int, tuple[int, int]] = field(default_factory=dict)
    contradictions: list[str] = field(default_factory=list)
    # Records that contradict those before them: offsets in the log, and snapshots with some.
    wrong_at: list[int] = field(default_factory=list)
    wrong_snapshots: set[OffsetAndEpoch] = field(default_factory=set)
    is_unowned: bool = False

    def add_contradiction(self, text: str) -> None:
        """Add a contradiction."""
        if len(self.contradictions) < _CONTRADICTION_COUNT_MAX:
            self.contradictions.append(f"{self.files.folder}: {text}")


class ReplicasOnDisk:
    """Gathers the files of all replicas of one quorum.

    Order: the files of a directory in any order; then call `finish` once.
    """

    def __init__(self) -> None:
        self._directories: dict[str, _Directory] = {}
        self.owners: dict[str, tuple[int | None, str | None]] = {}
        # Log directory -> why a node does not start on it.
        self._refusals: dict[str, str] = {}
        self.majority: Majority | None = None
        self.replicas: list[ReplicaFiles] = []
        self.contradictions: list[str] = []

    @property
    def is_empty(self) -> bool:
        """Whether no file of a log was seen."""
        return not self._directories

    def on_refusal(self, folder: str, refusal: str) -> None:
        """Note why a node does not start on a log directory."""
        if len(self._refusals) < _DIRECTORY_COUNT_MAX:
            self._refusals[folder.rstrip("/")] = refusal

    def on_batch(self, file: str, extent: Extent) -> None:
        """Add a batch of a segment; what a broker has given up is no part of its log."""
        directory = self._of(file) if _is_segment(file) else None
        if directory is None:
            return
        coverage = directory.coverage
        spans = coverage.spans
        files = directory.files
        files.last_base = max(extent.base_offset, files.last_base or 0)
        if not extent.is_valid and directory.files.damaged_at is None:
            directory.files.damaged_at = extent.base_offset
        if spans and spans[-1].end <= extent.base_offset and spans[-1].epoch > extent.epoch:
            _note_disorder(directory, extent, spans[-1].epoch)
        if not coverage.has(extent):
            coverage.cut(extent)
            coverage.add(extent)

    def on_finding(self, finding: FileFinding, end_offset: int | None) -> None:
        """Add what is wrong with a segment; the batches before it there end before `end_offset`."""
        is_unread = finding.id in UNREAD_TEXTS and _is_segment(finding.file)
        directory = self._of(finding.file) if is_unread else None
        if directory is None:
            return
        name = finding.file.rpartition("/")[2]
        if end_offset is None:
            end_offset = parse_file_name(name).base_offset or 0
        unread = directory.files.unread
        insort(
            unread, UnreadBytes(name, finding.position, finding.id, finding.size, end_offset)
        )
        del unread[_UNREAD_COUNT_MAX:]

    def on_contradiction(self, file: str, offset: int) -> None:
        """Add a record of a segment or a snapshot that contradicts those before it."""
        directory, name = self._of(file), parse_file_name(file.rpartition("/")[2])
        if directory is None or name.state:
            return
        if name.suffix == "checkpoint":
            id = OffsetAndEpoch(name.base_offset or 0, name.epoch or 0)
            directory.wrong_snapshots.add(id)
        elif len(directory.wrong_at) < RAFT_EVENT_COUNT_MAX:
            directory.wrong_at.append(offset)

    def on_leader(self, file: str, epoch: int, leader: int, offset: int) -> None:
        """Add the leader in a LeaderChange record of a segment. Order: after its batch."""
        directory = self._of(file)
        if directory is not None and len(directory.leaders) < RAFT_EVENT_COUNT_MAX:
            directory.leaders.setdefault(epoch, (leader, offset))

    def on_file(self, file: str, kind: FileKind) -> None:
        """Note that there is a file, whatever can be read of it."""
        if kind is FileKind.QUORUM_STATE:
            directory = self._of(file)
            if directory is not None and directory.files.election is None:
                directory.files.election = {}
        elif kind is FileKind.SNAPSHOT:
            self.on_snapshot(file, is_whole=False)
        elif kind is FileKind.LOG:
            name, directory = parse_file_name(file.rpartition("/")[2]), self._of(file)
            if directory is not None and name.base_offset is not None and not name.state:
                directory.bases.add(name.base_offset)

    def on_snapshot(self, file: str, *, is_whole: bool) -> None:
        """Add a snapshot file, or that it has its end; its name is its id."""
        name = parse_file_name(file.rpartition("/")[2])
        if name.state or not name.base_offset or name.epoch is None:
            return  # unfinished or deleted, or what formatting writes: nothing of the log
        directory, id = self._of(file), OffsetAndEpoch(name.base_offset, name.epoch)
        if directory is not None:
            directory.snapshots[id] = is_whole or directory.snapshots.get(id, False)

    def on_state(self, kind: FileKind, file: str, data: dict[str, Any]) -> None:
        """Add meta.properties, or a state file that is evidence of epochs."""
        if kind is FileKind.META_PROPERTIES:
            node = str(data.get("node.id", ""))
            id = int(node) if node.isascii() and node.isdigit() else None
            if len(self.owners) < RAFT_EVENT_COUNT_MAX:
                self.owners[file.rpartition("/")[0]] = id, data.get("directory.id")
            return
        directory = self._of(file)
        if directory is None:
            return
        if kind is FileKind.QUORUM_STATE:
            directory.files.election = data
        elif kind is FileKind.LEADER_EPOCHS:
            entries = data.get("entries") or ()
            directory.files.checkpoint = [(each["epoch"], each["startOffset"]) for each in entries]
        elif kind is FileKind.FLUSHED_OFFSET:
            directory.files.flushed = data.get("flushedOffset")

    def finish(self, voters: Mapping[int, str], unowned: Collection[str] = ()) -> None:
        """Put the files of each directory together, and the directories beside each other.

        `voters` are the newest that are known, with their directory ids, empty where unknown.
        `unowned` are log directories that may be of another cluster.
        """
        self._add_empty()
        directories = list(self._directories.values())
        for each in directories:
            self._complete(each)
            each.is_unowned = each.files.folder.rpartition("/")[0] in unowned
            each.files.is_voter = _is_voter(each.files, voters)
        ranked = sorted(directories, key=_rank)
        _judge(ranked)
        self.replicas = [each.files for each in ranked]
        if voters:
            kept = {e.node for e in self.replicas if e.may_be_kept and e.is_voter}
            self.majority = Majority(
                tuple(sorted(voters)), tuple(sorted(node for node in kept if node is not None))
            )
        self.contradictions = [text for each in ranked for text in each.contradictions]
        self.contradictions += _opposed_leaders(self.replicas)
        self.contradictions += _opposed_records(ranked)
        self.contradictions += _opposed_checkpoints(self.replicas)

    def evidence(self) -> Iterator[Evidence]:
        """Yield the evidence about epochs; the directory that reaches furthest comes first."""
        for each in self.replicas:
            for epoch, start in each.checkpoint or ():
                yield Evidence(epoch, CHECKPOINT, start=start)
            for id in each.snapshots:
                yield Evidence(id.epoch, SNAPSHOT)
            if each.election and _epoch(each) > 0:
                voted = each.election.get("votedId", -1)
                vote = None
                if each.node is not None and isinstance(voted, int) and voted >= 0:
                    vote = each.node, voted
                yield Evidence(_epoch(each), QUORUM_STATE, leader=_leader(each), vote=vote)

    def _add_empty(self) -> None:
        """Add the directories of nodes of which no file of a log was seen."""
        seen = {folder.rpartition("/")[0] for folder in self._directories}
        known = {self.owners[folder][0] for folder in seen & self.owners.keys()}
        for folder, (node, _) in self.owners.items():
            if folder not in seen and node is not None and node not in known:
                self._of(f"{folder}/{METADATA_TOPIC}-0/")

    def _of(self, file: str) -> _Directory | None:
        folder = file.rpartition("/")[0] or "."
        known = self._directories.get(folder)
        if known is None and len(self._directories) < _DIRECTORY_COUNT_MAX:
            known = self._directories[folder] = _Directory(ReplicaFiles(folder))
        return known

    def _complete(self, directory: _Directory) -> None:
        files, spans = directory.files, directory.coverage.spans
        files.node, files.directory_id = self.owners.get(
            files.folder.rpartition("/")[0], (None, None)
        )
        files.refusal = self._refusals.get(files.folder.rpartition("/")[0])
        files.snapshots = sorted(id for id, is_whole in directory.snapshots.items() if is_whole)
        for id in sorted(directory.snapshots.keys() - files.snapshots):
            directory.add_contradiction(f"snapshot {id} has no end, so it stands for no record")
        files.unread = _without_torn_records(files.unread)
        files.missing = directory.coverage.missing
        files.contradiction = _contradiction(directory)
        newest = files.snapshots[-1] if files.snapshots else None
        if files.damaged_at is not None and files.damaged_at == files.last_base:
            directory.coverage.forget_from(files.damaged_at)
        if spans:
            files.end = OffsetAndEpoch(spans[-1].end, spans[-1].epoch)
        _note_missing(directory, newest.offset if newest else 0)
        if newest and (files.end is None or files.end.offset < newest.offset):
            files.end = newest
        _check_state(directory)


def _contradiction(directory: _Directory) -> str:
    """Return where records contradict each other that a start reads: a snapshot and what follows.
    """
    newest = max(directory.files.snapshots, default=OffsetAndEpoch(0, 0))
    if newest in directory.wrong_snapshots:
        return f"in snapshot {newest}"
    first = min((each for each in directory.wrong_at if each >= newest.offset), default=None)
    return "" if first is None else f"at offset {first}"


def is_of_metadata_log(file: str) -> bool | None:
    """Whether a file is in the folder of the metadata log; None if its folder is that of no log."""
    partition = partition_of(Path(file))
    return None if partition is None else partition.topic == METADATA_TOPIC


def _is_segment(file: str) -> bool:
    """Whether a file of a log is a segment that is not marked for deletion or being swapped in."""
    name = parse_file_name(file.rpartition("/")[2])
    return name.suffix != "checkpoint" and not name.state


def _without_torn_records(unread: list[UnreadBytes]) -> list[UnreadBytes]:
    """Leave out what cannot be decoded of batches with a wrong checksum."""
    torn = [each for each in unread if each.is_torn]
    return [
        each
        for each in unread
        if each.is_torn
        or not any(
            each.file == one.file and 0 <= each.position - one.position < one.size for one in torn
        )
    ]


def _note_disorder(directory: _Directory, extent: Extent, before: int) -> None:
    """Report a batch of an earlier epoch than those before it, and not those that follow it."""
    files = directory.files
    if files.disordered_at is None:
        files.disordered_at = extent.base_offset
        directory.add_contradiction(
            f"the batch at offset {extent.base_offset} has epoch {extent.epoch}, and batches "
            f"before it have epoch {before}"
        )


def _note_missing(directory: _Directory, reached: int) -> None:
    """Note what is missing before and after the batches, by the names of segments.

    A snapshot, if any, has everything below the offset `reached`.
    """
    files, spans = directory.files, directory.coverage.spans
    begins = [*directory.bases, *(span.base for span in spans[:1])]
    if not begins:
        return
    files.start = min(begins)
    first = spans[0].base if spans else max(begins)
    ends = spans[-1].end if spans else first
    for start, end in ((min(reached, files.start), files.start), (files.start, first)):
        if max(start, reached) < end:
            files.missing.insert(0, (max(start, reached), end))
    files.missing.sort()
    if ends < max(begins):
        files.missing.append((ends, max(begins)))


def _check_state(directory: _Directory) -> None:
    """Report state files and snapshots of a directory that contradict its batches."""
    files, spans = directory.files, directory.coverage.spans
    if files.checkpoint:
        _check_checkpoint(directory, files.checkpoint)
    for id in files.snapshots:
        for span in spans:
            if span.base < id.offset <= span.end and span.epoch != id.epoch:
                directory.add_contradiction(
                    f"snapshot {id} ends in epoch {id.epoch}, and the batch before offset "
                    f"{id.offset} has epoch {span.epoch}"
                )
    last = files.end.epoch if files.end else 0
    last = max([last, *(epoch for epoch, _ in files.checkpoint or ())])
    if files.election and _epoch(files) < last:
        directory.add_contradiction(
            f"quorum-state is in epoch {_epoch(files)}, which is older than epoch {last} of the log"
        )


def _check_checkpoint(directory: _Directory, checkpoint: list[tuple[int, int]]) -> None:
    """Compare leader-epoch-checkpoint with the epochs of batches. Kafka keeps them equal."""
    spans = directory.coverage.spans
    bounds = [*checkpoint, (0, spans[-1].end if spans else 0)]
    for (epoch, start), (_, end) in pairwise(bounds):
        for span in spans:
            first, last = max(start, span.base), min(end, span.end)
            if first < last and span.epoch != epoch:
                directory.add_contradiction(
                    f"{CHECKPOINT} puts offset {first} into epoch {epoch}, and the batch there has "
                    f"epoch {span.epoch}"
                )
    known = dict(checkpoint)
    for span in spans:
        if span.epoch in known and span.base < known[span.epoch]:
            directory.add_contradiction(
                f"{CHECKPOINT} begins epoch {span.epoch} at offset {known[span.epoch]}, and "
                f"batches of it begin at {span.base}"
            )


# -- several directories -----------------------------------------------------------------------


def _rank(
    directory: _Directory,
) -> tuple[bool, tuple[int, int], tuple[int, int, int], str]:
    """Sort whole logs of the cluster first, of them the furthest.

    The epoch decides, then the offset, as in an election; of equal logs the replica that knows of
    the later epoch, has the newer snapshot, and flushed more.
    """
    files = directory.files
    epoch, offset = (files.end or OffsetAndEpoch(0, 0)).rank
    snapshot = files.snapshots[-1].offset if files.snapshots else 0
    known = (-_epoch(files), -snapshot, -(files.flushed or 0))
    is_last = directory.is_unowned or _is_damaged(files)
    return is_last, (-epoch, -offset), known, files.folder


def _is_damaged(files: ReplicaFiles) -> bool:
    return (
        bool(files.missing)
        or _damage(files) is not None
        or files.disordered_at is not None
        or files.refusal is not None
    )


def _damage(files: ReplicaFiles) -> int | None:
    """Return the offset of a batch with a wrong checksum that others follow.

    The last batch may be torn by a crash: a start truncates it.
    """
    at = files.damaged_at
    return at if at is not None and files.last_base is not None and at < files.last_base else None


def _is_voter(files: ReplicaFiles, voters: Mapping[int, str]) -> bool | None:
    if not voters or files.node is None:
        return None
    id = voters.get(files.node)
    return id is not None and (not id or not files.directory_id or id == files.directory_id)


def _judge(ranked: list[_Directory]) -> None:
    """Say of each directory whether it may be kept."""
    first = ranked[0] if ranked else None
    for number, each in enumerate(ranked):
        files = each.files
        original = next((one.files for one in ranked[:number] if _is_same(one.files, files)), None)
        if each.is_unowned:
            files.verdict = "unowned"
            files.advice = "does not say of which cluster it is, so it is not judged"
        elif _is_damaged(files):
            files.verdict, files.advice = _judge_damaged(files)
        elif files.end is None:
            files.verdict = "empty"
            files.advice = "has no record: it must not vote before it has fetched everything"
        elif original is not None:
            _judge_copy(files, original)
        elif each is first:
            files.verdict = "furthest"
            files.advice = "may be kept" if files.unread else "lacks no record"
            if len(ranked) > 1:
                files.advice = "keep it: no other whole log reaches further"
        elif first is not None:
            _compare(each, first)
        if files.may_be_kept:
            files.advice += _unread_text(files)
            if files.contradiction:
                files.advice += f"; its records contradict each other {files.contradiction}"
                files.advice += ": no controller leads with it, and Kafka's does not start on it"
            files.advice += "" if files.is_voter is False else _doubt(files)
            files.advice += _identity_text(files, ranked)


def _judge_damaged(files: ReplicaFiles) -> tuple[str, str]:
    if files.missing:
        return "damaged", (
            f"must not be kept: it lacks {offsets_text(files.missing)}, and may have acknowledged "
            "what was there"
        )
    damage = _damage(files)
    if damage is not None:
        return "damaged", (
            f"must not be kept: the checksum of the batch at offset {damage} is wrong, and it may "
            "have acknowledged what was in it"
        )
    if files.disordered_at is not None:
        return "damaged", (
            f"must not be kept: the batch at offset {files.disordered_at} has an earlier epoch "
            "than those before it, which no leader writes"
        )
    return "refused", f"must not be kept: no node starts on it: {files.refusal}"


def _unread_text(files: ReplicaFiles) -> str:
    """Return what of a log that may be kept a start truncates, and what was not understood."""
    torn = [each for each in files.unread if each.is_torn]
    undecoded = len(files.unread) - len(torn)
    text = ""
    if torn:
        after = f" after offset {torn[0].offset - 1}" if torn[0].offset else ""
        size = sum(each.size for each in torn)
        text = f"; a start truncates its end{after}, {size:,} bytes that are no whole batch"
    if undecoded:
        text += f"; batches of it cannot be read in full: {undecoded:,}"
    return text


def _doubt(files: ReplicaFiles) -> str:
    """Return what must be known before a whole log votes again."""
    last = files.end.epoch if files.end else 0
    if files.election is None:
        return "; its quorum-state is not here, without which it may vote twice in an epoch"
    if not files.election:
        return "; its quorum-state cannot be read, without which it may vote twice in an epoch"
    if _epoch(files) < last:
        return f"; its quorum-state is older than epoch {last}, so it may vote twice in an epoch"
    return ""


def _identity_text(files: ReplicaFiles, ranked: list[_Directory]) -> str:
    """Return what must be known of whose directory it is, where there are several."""
    if files.node is None:
        return "; its meta.properties is not here, so its node is not known" * (len(ranked) > 1)
    for one in ranked:
        other = one.files
        if other.node == files.node and other.directory_id != files.directory_id:
            place = f"{other.folder} is another directory of node {files.node}"
            return f"; {place}: start only one of them"
    return ""


def _is_same(one: ReplicaFiles, other: ReplicaFiles) -> bool:
    """Whether two directories are of the same replica, so that one is a copy."""
    return other.directory_id is not None and (one.node, one.directory_id) == (
        other.node,
        other.directory_id,
    )


def _judge_copy(files: ReplicaFiles, original: ReplicaFiles) -> None:
    if (files.end, files.election) == (original.end, original.election):
        files.verdict = "copy"
        files.advice = f"is a copy of {original.folder}: start only one of them"
    else:
        files.verdict = "older copy"
        files.advice = (
            f"must not be kept: {original.folder} is a later state of the same replica, which may "
            "have voted or acknowledged records since"
        )


def _compare(directory: _Directory, first: _Directory) -> None:
    files, furthest = directory.files, first.files
    if files.end is None or furthest.end is None:
        return
    name = furthest.name if furthest.node != files.node else furthest.folder
    files.diverges_at = _divergence(directory, first)
    if files.diverges_at is not None:
        lost = files.end.offset - files.diverges_at
        files.verdict = "diverges"
        files.advice = (
            f"may be kept: {lost:,} records from offset {files.diverges_at} on are not in the log "
            f"of {name}, and are removed when it follows"
        )
    else:
        behind = max(0, furthest.end.offset - files.end.offset)
        files.verdict = "behind" if behind else "furthest"
        files.advice = "may be kept: it has all that the furthest has"
        if behind:
            files.advice = f"may be kept: it fetches the last {behind:,} records"


def _divergence(one: _Directory, other: _Directory) -> int | None:
    """Return the first offset that two logs have in different epochs, or of different leaders."""
    found = [
        max(a.base, b.base)
        for a in one.coverage.spans
        for b in other.coverage.spans
        if a.epoch != b.epoch and max(a.base, b.base) < min(a.end, b.end)
    ]
    for epoch, (leader, offset) in one.leaders.items():
        if other.leaders.get(epoch, (leader,))[0] != leader:
            found.append(offset)
    return min(found, default=None)


def _opposed_records(ranked: list[_Directory]) -> Iterator[str]:
    """Yield the epochs for which LeaderChange records of two logs name different leaders."""
    known: dict[int, tuple[int, ReplicaFiles]] = {}
    for each in ranked:
        for epoch, (leader, _) in each.leaders.items():
            first, files = known.setdefault(epoch, (leader, each.files))
            if first != leader:
                yield (
                    f"LeaderChange of epoch {epoch} names {first} in the log of {files.name}, and "
                    f"{leader} in that of {each.files.name}"
                )


def _opposed_checkpoints(replicas: list[ReplicaFiles]) -> Iterator[str]:
    """Yield the epochs that begin at different offsets on two replicas.

    The first entry is left out: deleting the start of a log moves it.
    """
    known: dict[int, tuple[int, ReplicaFiles]] = {}
    for each in replicas:
        for epoch, start in (each.checkpoint or ())[1:]:
            first, files = known.setdefault(epoch, (start, each))
            if first != start:
                yield (
                    f"{CHECKPOINT} of {files.name} begins epoch {epoch} at offset {first}, that of "
                    f"{each.name} at {start}"
                )


def _opposed_leaders(replicas: list[ReplicaFiles]) -> Iterator[str]:
    """Yield the epochs for which the quorum-state files of replicas name different leaders."""
    leaders: dict[int, ReplicaFiles] = {}
    for each in replicas:
        leader = _leader(each)
        if leader is None:
            continue
        known = leaders.setdefault(_epoch(each), each)
        if _leader(known) != leader:
            yield (
                f"quorum-state of {known.name} says that {_leader(known)} leads epoch "
                f"{_epoch(each)}, that of {each.name} says {leader}"
            )


def _epoch(files: ReplicaFiles) -> int:
    value = (files.election or {}).get("leaderEpoch")
    return value if isinstance(value, int) else 0


def _leader(files: ReplicaFiles) -> int | None:
    value = (files.election or {}).get("leaderId")
    return value if isinstance(value, int) and value >= 0 else None
