"""The snapshots among the files of a quorum: when they were written, and up to where they reach."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kraftwire.controller.check import Contradiction
from kraftwire.decode.files.kinds import parse_file_name
from kraftwire.decode.text import count_text, listed, size_text, with_remarks
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.records.messages import Decoded
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import Batch
from kraftwire.story.raft.metadata_log import MetadataLog, RecordPosition
from kraftwire.story.raft.model import RaftEvent
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
        self._contradictions: list[RaftEvent] = []
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

    def events(self, start: float) -> Iterator[RaftEvent]:
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
    ) -> Iterator[RaftEvent]:
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
            yield RaftEvent(time, "snapshot-written", text, id.epoch, node, details)

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


def _reached_event(name: str, files: list[_Snapshot], start: float) -> RaftEvent:
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
    return RaftEvent(first.reached or start, "snapshot-file", text, id.epoch, None, details)


def _remarks(snapshot: _Snapshot) -> list[str]:
    end = [] if snapshot.is_whole else ["without its end"]
    return [count_text(snapshot.records, "record"), size_text(snapshot.size), *end]


def _label(name: str) -> str:
    if not name[0].isdigit():
        return name
    id = parse_file_name(name)
    return f"snapshot {id.base_offset}-{id.epoch}"
