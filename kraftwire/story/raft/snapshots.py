"""Snapshots in the story of a quorum: files, replicas that must load one, downloads."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kraftwire.controller.check import Contradiction
from kraftwire.decode.files.kinds import parse_file_name
from kraftwire.decode.text import count_text, duration_text, listed, size_text, with_remarks
from kraftwire.limits import RAFT_EVENT_COUNT_MAX, RAFT_PENDING_COUNT_MAX
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.protocol.error_codes import error_name
from kraftwire.records.messages import Decoded
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import Batch
from kraftwire.story.raft.metadata_log import MetadataLog, RecordPosition
from kraftwire.story.raft.model import Event, NodeId, ObservedFrame, partitions
from kraftwire.story.raft.nodes import Nodes
from kraftwire.story.raft.replica_files import Owners
from kraftwire.story.raft.voters import directories_of


@dataclass(slots=True)
class _Snapshot:
    """A snapshot file; `digest` covers the checksums of its batches, `is_whole` if it has its end.

    `reached` is the time of the last record of the log in it, `written` the time when its header
    was made. Both are None where the file says 0, which stands for no time. `voters` maps ids to
    directory ids, empty where unknown.
    """

    name: str
    file: str
    reached: float | None = None
    written: float | None = None
    voters: dict[int, str] = field(default_factory=dict)
    records: int = 0
    size: int = 0
    digest: int = 0
    is_whole: bool = False

    @property
    def id(self) -> OffsetAndEpoch:
        """End offset and epoch, as in the name."""
        name = parse_file_name(self.name)
        return OffsetAndEpoch(name.base_offset or 0, name.epoch or 0)

    @property
    def folder(self) -> str:
        """The log directory, which holds the folder of the partition."""
        return self.file.rpartition("/")[0].rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """A snapshot file whose records were decoded elsewhere.

    `records` are its control records with offset and time, `count` the number of all others;
    `digest` is the same for the same batches. Units: times in seconds since the epoch, those of the
    first batch, of the oldest and of the newest one, None without any.
    """

    size: int
    count: int
    digest: int
    records: tuple[tuple[Decoded, int, float], ...] = ()
    written: float | None = None
    first_time: float | None = None
    last_time: float | None = None


class SnapshotFiles:
    """Gathers the snapshots among the files of a run."""

    def __init__(self, owners: Owners, *, show_secrets: bool = False) -> None:
        """Gather snapshots. `owners` grow while files come."""
        # The content of the newest snapshot, and what it is called.
        self.latest: MetadataLog | None = None
        self.latest_name = ""
        self._latest_id = OffsetAndEpoch(0, 0)
        self._log: MetadataLog | None = None
        self._show_secrets = show_secrets
        self._files: dict[str, _Snapshot] = {}
        self._current: _Snapshot | None = None
        self._file = ""
        self._contradictions: list[Event] = []
        self._owners = owners

    def on_batch(
        self, file: str, batch: Batch, contradictions: Sequence[Contradiction] = ()
    ) -> None:
        """Add a batch of a snapshot file, and the records of it that contradict others."""
        if self._file != file or batch.position == 0:
            self._begin(file)
        current = self._current
        log = self._log
        if current is None or log is None:
            return  # a file that was read before, or beyond the limit
        current.size += batch.size
        current.digest = zlib.crc32(batch.crc.to_bytes(4, "big"), current.digest)
        if current.written is None and batch.max_timestamp > 0:
            current.written = batch.max_timestamp / 1000
        if not batch.is_control:
            current.records += batch.count or 0
        known_count = len(log.events)
        log.on_batch(batch, None, contradictions)
        for event in log.events[known_count:]:
            if len(self._contradictions) < RAFT_EVENT_COUNT_MAX:
                text = f"snapshot {current.name}: {event.text}"
                self._contradictions.append(replace(event, text=text))

    def on_summary(self, file: str, summary: SnapshotSummary) -> None:
        """Add a snapshot file whose records were decoded elsewhere."""
        if file in self._files or len(self._files) >= RAFT_EVENT_COUNT_MAX:
            return
        name = file.rpartition("/")[2]
        self._current = self._files[file] = _Snapshot(
            name, file, None, summary.written, {}, summary.count, summary.size, summary.digest
        )
        for decoded, offset, time in summary.records:
            self._on_control(decoded, RecordPosition(offset, 0, time))
        self._current = None

    def is_whole(self, file: str) -> bool:
        """Whether a snapshot file was read up to its end."""
        known = self._files.get(file)
        return known is not None and known.is_whole

    def times(self) -> Iterator[tuple[int, float]]:
        """Yield the epoch of each snapshot and the time of the last record in it."""
        for each in self._files.values():
            if each.id.offset and each.reached is not None:
                yield each.id.epoch, each.reached

    def newest_voters(self) -> tuple[OffsetAndEpoch, dict[int, str]] | None:
        """Return the newest snapshot that names voters, and these."""
        named = [each for each in self._files.values() if each.voters]
        newest = max(named, key=lambda each: each.id.rank, default=None)
        return None if newest is None else (newest.id, newest.voters)

    def events(self, start: float) -> Iterator[Event]:
        """Yield each snapshot at the time of the last record in it, and when it was written.

        A snapshot without a time is put at the `start` of the story.
        """
        yield from self._contradictions
        by_name: dict[str, list[_Snapshot]] = {}
        for each in self._files.values():
            by_name.setdefault(each.name, []).append(each)
        for name, files in by_name.items():
            yield _reached_event(name, files, start)
            end_offset = parse_file_name(name).base_offset
            if end_offset:  # the empty ones come from formatting
                yield from self._written_events(name, files, start)

    def _written_events(
        self, name: str, files: list[_Snapshot], start: float
    ) -> Iterator[Event]:
        by_digest: dict[int, list[_Snapshot]] = {}
        for each in files:
            by_digest.setdefault(each.digest, []).append(each)
        for same in by_digest.values():
            first, id = same[0], parse_file_name(name)
            owners = [self._owner(each.folder) for each in same]
            node = owners[0] if len(same) == 1 and isinstance(owners[0], int) else None
            remarks = _remarks(first)
            text = f"writes {_label(name)}"
            if node is None:
                text = f"{_label(name)} is written"
                what = "the same bytes in" if len(same) > 1 else "in"
                if all(isinstance(each, int) for each in owners):
                    what = "the same bytes on"
                remarks.append(f"{what} {listed(owners)}")
            details = {
                "endOffset": id.base_offset,
                "snapshotEpoch": id.epoch,
                "owners": owners,
                "records": first.records,
                "size": first.size,
            }
            time = first.written or start
            text = with_remarks(text, remarks)
            yield Event(time, "snapshot-written", text, id.epoch, node, details)

    def _owner(self, folder: str) -> int | str:
        """Return the node whose log directory a folder is, or the folder if that is unknown."""
        node, _ = self._owners.get(folder, (None, None))
        return folder if node is None else node

    def _begin(self, file: str) -> None:
        self._file, self._current = file, None
        if file in self._files or len(self._files) >= RAFT_EVENT_COUNT_MAX:
            return
        current = self._current = self._files[file] = _Snapshot(file.rpartition("/")[2], file)
        self._log = MetadataLog(self._on_control, show_secrets=self._show_secrets)
        if self.latest is None or current.id.rank >= self._latest_id.rank:
            self.latest, self._latest_id = self._log, current.id
            self.latest_name = _label(current.name)

    def _on_control(self, decoded: Decoded, position: RecordPosition) -> None:
        current, message = self._current, decoded.message
        if current is None:
            return
        if isinstance(message, SnapshotHeaderRecord):
            time_ms = message.last_contained_log_timestamp
            # An empty snapshot, which formatting writes, has no such time.
            current.reached = time_ms / 1000 if time_ms > 0 else position.time or None
        elif isinstance(message, SnapshotFooterRecord):
            current.is_whole = True
        elif isinstance(message, VotersRecord):
            current.voters = directories_of(message)


def _reached_event(name: str, files: list[_Snapshot], start: float) -> Event:
    first, id = files[0], parse_file_name(name)
    remarks = _remarks(first)
    if first.voters:
        remarks.append(f"voters {listed(sorted(first.voters))}")
    if len(files) > 1:
        remarks.append(f"{len(files)} copies")
    details = {
        "endOffset": id.base_offset,
        "snapshotEpoch": id.epoch,
        "records": first.records,
        "voters": sorted(first.voters),
        "files": sorted(each.file for each in files),
    }
    text = with_remarks(f"{_label(name)} reaches to here", remarks)
    return Event(first.reached or start, "snapshot-file", text, id.epoch, None, details)


def _remarks(snapshot: _Snapshot) -> list[str]:
    end = [] if snapshot.is_whole else ["without its end"]
    return [count_text(snapshot.records, "record"), size_text(snapshot.size), *end]


def _label(name: str) -> str:
    if not name[0].isdigit():
        return name
    id = parse_file_name(name)
    return f"snapshot {id.base_offset}-{id.epoch}"


# A replica that continues requests the next slice at once. After this pause it has given up.
_GIVEN_UP_S = 3.0


@dataclass(slots=True)
class _Instruction:
    """A leader's answer to Fetch that names a snapshot; it was sent `count` times in a row."""

    time: float
    replica: NodeId
    snapshot: OffsetAndEpoch
    epoch: int
    offset: int
    log_start: int
    count: int = 0


@dataclass(slots=True)
class _Download:
    """An uninterrupted download of a snapshot by a replica.

    `first_position` is where it began; `size` is -1 until an answer gives it.
    """

    replica: NodeId
    snapshot: OffsetAndEpoch
    source: NodeId
    start: float
    end: float
    first_position: int
    size: int = -1
    received: int = 0
    slices: int = 0
    error: int = 0
    is_given_up: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the whole snapshot has arrived."""
        return 0 <= self.size <= self.received

    @property
    def is_over(self) -> bool:
        """Whether the download has ended, so that another request begins a new one."""
        return self.is_complete or self.error != 0 or self.is_given_up


class Downloads:
    """Gathers the snapshots that leaders name, and those that replicas fetch."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._instructions: list[_Instruction] = []
        self._latest_instructions: dict[NodeId, _Instruction] = {}
        self._downloads: list[_Download] = []
        self._current: dict[tuple[NodeId, OffsetAndEpoch], _Download] = {}
        self._log_starts: dict[NodeId, int] = {}
        self._events: list[Event] = []

    # -- answers to Fetch ----------------------------------------------------------------------

    def on_instruction(
        self,
        replica: NodeId,
        snapshot: OffsetAndEpoch,
        *,
        time: float,
        epoch: int,
        offset: int,
        log_start: int,
    ) -> None:
        """Note that a replica which fetches from an offset is told to load a snapshot."""
        known = self._latest_instructions.get(replica)
        if known is None or (known.snapshot, known.epoch, known.offset) != (
            snapshot,
            epoch,
            offset,
        ):
            known = _Instruction(time, replica, snapshot, epoch, offset, log_start)
            if len(self._latest_instructions) < RAFT_PENDING_COUNT_MAX:
                self._latest_instructions[replica] = known
            if len(self._instructions) < RAFT_EVENT_COUNT_MAX:
                self._instructions.append(known)
        known.count += 1

    def on_records(self, replica: NodeId) -> None:
        """Note that a replica got an answer to Fetch that names no snapshot."""
        self._latest_instructions.pop(replica, None)

    def on_log_start(self, leader: NodeId, offset: int, *, time: float, epoch: int) -> None:
        """Note the log start offset in a leader's answer."""
        known = self._log_starts.get(leader)
        if known is None and len(self._log_starts) >= RAFT_PENDING_COUNT_MAX:
            return
        self._log_starts[leader] = offset
        if offset <= (known or 0) or len(self._events) >= RAFT_EVENT_COUNT_MAX:
            return
        text, remarks = f"drops its log before offset {offset}", [f"it began at {known}"]
        if known is None:
            text, remarks = f"has dropped its log before offset {offset}", []
        remarks.append("what was before is in a snapshot")
        details = {"logStart": offset, "before": known}
        event = Event(time, "log-start", with_remarks(text, remarks), epoch, leader, details)
        self._events.append(event)

    # -- FetchSnapshot -------------------------------------------------------------------------

    def on_request(self, frame: ObservedFrame, body: FetchSnapshotRequest) -> None:
        """Add a replica's request for a slice of a snapshot."""
        self._nodes.learn_client(frame, body.replica_id)
        source = self._nodes.server(frame)
        for partition in partitions(body):
            id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            known = self._current.get((body.replica_id, id))
            if known is not None and not _goes_on(known, source, partition.position, frame.time):
                is_recorded = not self._nodes.recordings.pauses(known.end, frame.time)
                known.is_given_up = is_recorded and not known.is_complete
                known = None
            if known is None:
                known = _Download(
                    body.replica_id, id, source, frame.time, frame.time, partition.position
                )
                if len(self._current) < RAFT_PENDING_COUNT_MAX:
                    self._current[body.replica_id, id] = known
                if len(self._downloads) < RAFT_EVENT_COUNT_MAX:
                    self._downloads.append(known)
            known.end = frame.time

    def on_response(self, frame: ObservedFrame, body: FetchSnapshotResponse) -> None:
        """Add a leader's answer: a slice, or an error."""
        request = frame.request
        if not isinstance(request, FetchSnapshotRequest):
            return
        requested = partitions(request)
        answered = partitions(body)
        for index, partition in enumerate(requested):
            id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            known = self._current.get((request.replica_id, id))
            if known is None:
                continue
            known.end = frame.time
            # A top-level error comes without partitions.
            answer = answered[index] if index < len(answered) else None
            known.error = body.error_code or (answer.error_code if answer else 0)
            if answer is None or known.error:
                continue
            data = answer.unaligned_records
            known.size = answer.size
            known.slices += 1
            known.received = max(known.received, answer.position + len(data or b""))

    # -- the end -------------------------------------------------------------------------------

    def events(self, end: float) -> Iterator[Event]:
        """Yield the events of instructions, downloads and raised log start offsets.

        `end` is the end of the story, in seconds since the epoch.
        """
        yield from self._events
        for instruction in self._instructions:
            yield _instruction_event(instruction)
        for download in self._downloads:
            until = self._nodes.recordings.until(download.end, end)
            is_given_up = download.is_given_up or until - download.end > _GIVEN_UP_S
            yield _download_event(download, is_given_up=is_given_up)


def _goes_on(known: _Download, source: NodeId, position: int, time: float) -> bool:
    """Return whether a request continues a download."""
    starts_again = position == 0 and known.received > 0
    is_late = time - known.end > _GIVEN_UP_S
    return not (known.is_over or source != known.source or starts_again or is_late)


def _instruction_event(each: _Instruction) -> Event:
    remarks = [f"asked for offset {each.offset}"]
    if each.log_start > 0:
        remarks.append(f"the leader's log begins at {each.log_start}")
    if each.count > 1:
        remarks.append(count_text(each.count, "time"))
    text = with_remarks(f"is told to load snapshot {each.snapshot} first", remarks)
    details = {
        "endOffset": each.snapshot.offset,
        "snapshotEpoch": each.snapshot.epoch,
        "offset": each.offset,
        "logStart": each.log_start,
        "count": each.count,
    }
    return Event(each.time, "snapshot-needed", text, each.epoch, each.replica, details)


def _download_event(each: _Download, *, is_given_up: bool) -> Event:
    head = f"fetches snapshot {each.snapshot} from {each.source}"
    if each.first_position:
        begun = size_text(each.first_position)
        head = f"goes on to fetch snapshot {each.snapshot} from {each.source} at {begun}"
    parts = [_amount(each)]
    if each.error:
        parts.append(error_name(each.error))
    elif not each.is_complete:
        parts.append("broken off" if is_given_up else "the rest is not recorded")
    parts.append(duration_text(each.end - each.start))
    details = {
        "endOffset": each.snapshot.offset,
        "snapshotEpoch": each.snapshot.epoch,
        "from": each.source,
        "position": each.first_position,
        "size": each.size if each.size >= 0 else None,
        "received": each.received,
        "slices": each.slices,
        "isComplete": each.is_complete,
        "seconds": each.end - each.start,
        "error": error_name(each.error),
    }
    return Event(each.start, "snapshot", with_remarks(head, parts), None, each.replica, details)


def _amount(each: _Download) -> str:
    if not each.slices:
        return "nothing came"
    text = size_text(each.received)
    if not each.is_complete:
        text += f" of {size_text(each.size)}"
    if each.slices > 1:
        return f"{text} in {each.slices} slices"
    return f"{text} at once" if each.is_complete else f"{text} in 1 slice"
