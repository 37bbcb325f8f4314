"""Snapshot files: which there are, how far they reach, and what is in the last one.

A snapshot repeats the state of the log up to its offset, so its records are not counted with the
log's; only where there is no log do they have to speak for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kraftwire.decode.files.names import parse_file_name
from kraftwire.decode.render.raft.metadata_log import MetadataLog, Place
from kraftwire.decode.render.raft.model import Event
from kraftwire.decode.render.text import count_text, listed, size_text, words
from kraftwire.limits import RAFT_EVENT_COUNT_MAX
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.messages.voters_record import VotersRecord
from kraftwire.records.decoded import Decoded
from kraftwire.records.reader import Batch

__all__ = ["SnapshotFiles"]


@dataclass(slots=True)
class _Snapshot:
    """One snapshot; its copies on several nodes are the same."""

    name: str
    files: set[str] = field(default_factory=set)
    time: float | None = None
    voters: list[int] = field(default_factory=list)
    records: int = 0
    size: int = 0


class SnapshotFiles:
    """The snapshots among the files of a run."""

    def __init__(self, *, show_secrets: bool = False) -> None:
        self.latest: MetadataLog | None = None
        self._show_secrets = show_secrets
        self._by_name: dict[str, _Snapshot] = {}
        self._current: _Snapshot | None = None
        self._file = ""

    def see_batch(self, file: str, batch: Batch) -> None:
        """Take note of a batch of a snapshot file."""
        if file != self._file:
            self._begin(file)
        current = self._current
        if current is None or self.latest is None:
            return
        if len(current.files) == 1:
            current.size += batch.size
            if not batch.is_control:
                current.records += batch.count or 0
        self.latest.see_batch(batch)

    def events(self) -> Iterator[Event]:
        """One event per snapshot, at the time of the last record of the log that is in it."""
        for each in self._by_name.values():
            name = parse_file_name(each.name)
            remarks = [count_text(each.records, "record"), size_text(each.size)]
            if each.voters:
                remarks.append(f"voters {listed(each.voters)}")
            if len(each.files) > 1:
                remarks.append(f"{len(each.files)} copies")
            label = each.name
            if each.name[0].isdigit():
                label = f"snapshot {name.base_offset}-{name.epoch}"
            details = {
                "endOffset": name.base_offset,
                "snapshotEpoch": name.epoch,
                "records": each.records,
                "voters": each.voters,
                "files": sorted(each.files),
            }
            text = words(f"{label} reaches to here", remarks)
            yield Event(each.time or 0.0, "snapshot-file", text, name.epoch, None, details)

    def _begin(self, file: str) -> None:
        self._file = file
        name = file.rpartition("/")[2]
        self._current = self._by_name.get(name)
        if self._current is None and len(self._by_name) < RAFT_EVENT_COUNT_MAX:
            self._current = self._by_name[name] = _Snapshot(name)
        if self._current is not None:
            self._current.files.add(file)
        self.latest = MetadataLog(self._see_control, show_secrets=self._show_secrets)

    def _see_control(self, decoded: Decoded, place: Place) -> None:
        current, message = self._current, decoded.message
        if current is None:
            return
        if isinstance(message, SnapshotHeaderRecord):
            told = message.last_contained_log_timestamp
            # A snapshot of nothing, as formatting makes it, has no such time.
            current.time = told / 1000 if told > 0 else place.time
        elif isinstance(message, VotersRecord):
            current.voters = sorted(each.voter_id for each in message.voters)
