"""Snapshot files: their end offsets, their writers, and the content of the last one.

A snapshot repeats the state of the log up to its offset, so its records are not counted with those
of the log; they are used only where the log is missing. Every replica writes its own snapshots: of
files with the same bytes, one was fetched from the other, or both were written in the same
millisecond.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from kraftwire.decode.files.names import parse_file_name
from kraftwire.decode.text import count_text, listed, size_text, words
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.records.decoded import Decoded
from kraftwire.records.reader import Batch
from kraftwire.story.raft.metadata_log import MetadataLog, Place
from kraftwire.story.raft.model import Event

__all__ = ["SnapshotFiles"]


@dataclass(slots=True)
class _Snapshot:
    """A snapshot file; `digest` covers the checksums of its batches.

    `reached` is the time of the last record of the log in it, `written` the time when its header
    was made. Both are None where the file says 0, which stands for no time.
    """

    name: str
    file: str
    reached: float | None = None
    written: float | None = None
    voters: list[int] = field(default_factory=list)
    records: int = 0
    size: int = 0
    digest: int = 0

    @property
    def folder(self) -> str:
        """The log directory, which holds the folder of the partition."""
        return self.file.rpartition("/")[0].rpartition("/")[0]


class SnapshotFiles:
    """Gathers the snapshots among the files of a run."""

    def __init__(self, *, show_secrets: bool = False) -> None:
        self.latest: MetadataLog | None = None
        self._show_secrets = show_secrets
        self._files: dict[str, _Snapshot] = {}
        self._current: _Snapshot | None = None
        self._file = ""
        self._nodes: dict[str, int] = {}

    def see_directory(self, meta_properties: str, node: int) -> None:
        """Note the node whose meta.properties is in a log directory."""
        if len(self._nodes) < RAFT_EVENT_COUNT_MAX:
            self._nodes[meta_properties.rpartition("/")[0]] = node

    def see_batch(self, file: str, batch: Batch) -> None:
        """Add a batch of a snapshot file."""
        if self._file != file or batch.position == 0:
            self._begin(file)
        current = self._current
        if current is None or self.latest is None:
            return  # a file that was read before, or beyond the limit
        current.size += batch.size
        current.digest = zlib.crc32(batch.crc.to_bytes(4, "big"), current.digest)
        if current.written is None and batch.max_timestamp > 0:
            current.written = batch.max_timestamp / 1000
        if not batch.is_control:
            current.records += batch.count or 0
        self.latest.see_batch(batch)

    def events(self, start: float) -> Iterator[Event]:
        """Yield each snapshot at the time of the last record in it, and when it was written.

        A snapshot without a time is put at the `start` of the story.
        """
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
            owners = [self._nodes.get(each.folder, each.folder) for each in same]
            node = owners[0] if len(same) == 1 and isinstance(owners[0], int) else None
            remarks = [count_text(first.records, "record"), size_text(first.size)]
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
            yield Event(time, "snapshot-written", words(text, remarks), id.epoch, node, details)

    def _begin(self, file: str) -> None:
        self._file, self._current = file, None
        if file in self._files or len(self._files) >= RAFT_EVENT_COUNT_MAX:
            return
        self._current = self._files[file] = _Snapshot(file.rpartition("/")[2], file)
        self.latest = MetadataLog(self._see_control, show_secrets=self._show_secrets)

    def _see_control(self, decoded: Decoded, place: Place) -> None:
        current, message = self._current, decoded.message
        if current is None:
            return
        if isinstance(message, SnapshotHeaderRecord):
            told = message.last_contained_log_timestamp
            # An empty snapshot, which formatting writes, has no such time.
            current.reached = told / 1000 if told > 0 else place.time or None
        elif isinstance(message, VotersRecord):
            current.voters = sorted(each.voter_id for each in message.voters)


def _reached_event(name: str, files: list[_Snapshot], start: float) -> Event:
    first, id = files[0], parse_file_name(name)
    remarks = [count_text(first.records, "record"), size_text(first.size)]
    if first.voters:
        remarks.append(f"voters {listed(first.voters)}")
    if len(files) > 1:
        remarks.append(f"{len(files)} copies")
    details = {
        "endOffset": id.base_offset,
        "snapshotEpoch": id.epoch,
        "records": first.records,
        "voters": first.voters,
        "files": sorted(each.file for each in files),
    }
    text = words(f"{_label(name)} reaches to here", remarks)
    return Event(first.reached or start, "snapshot-file", text, id.epoch, None, details)


def _label(name: str) -> str:
    if not name[0].isdigit():
        return name
    id = parse_file_name(name)
    return f"snapshot {id.base_offset}-{id.epoch}"
