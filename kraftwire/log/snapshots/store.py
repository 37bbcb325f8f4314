"""The snapshots in a replicated log's directory: listing, creating and deleting them.

A file gets its final name only when it is complete and durable, so every file with a snapshot's
name is complete. Source: Kafka's `KafkaRaftLog`, `FileRawSnapshotWriter` and `Snapshots`; rules
R-SNAP-1 to R-SNAP-6, R-START-2, R-FSN-4.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from kraftwire.errors import StorageError, UsageError, WireError, check
from kraftwire.log.files import File, Files
from kraftwire.log.names import (
    DELETED_SUFFIX,
    PART_SUFFIX,
    checkpoint_name,
    checkpoint_of,
    join,
    part_name,
)
from kraftwire.log.snapshots.reader import SnapshotFile, SnapshotReader, check_snapshot
from kraftwire.log.snapshots.writer import ControlRecords, SnapshotWriter
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch

_LOG = logging.getLogger(__name__)

# A download leaves this share of the disk free, but no more than these bytes: a log that cannot
# grow ends its node.
DISK_RESERVE_SHARE = 20
DISK_RESERVE_BYTES_MAX = 256 * 1024 * 1024


@dataclass(slots=True)
class _Download:
    file: File
    path: str
    size: int = 0


class SnapshotStore:
    """The snapshots of a directory; the bootstrap checkpoint 0-0 is one of them here.

    One owner calls one method at a time. `finish` and the methods of a writer or reader may run in
    another thread at the same time.
    """

    def __init__(self, files: Files, directory: str) -> None:
        """List and check every snapshot in a directory, which may be missing.

        Unfinished files of a crash are removed. A damaged snapshot is not in `stored`; `settle`
        decides what to do with it. Raises: StorageError if a file cannot be read.
        """
        self._files = files
        self._directory = directory
        self._stored: dict[OffsetAndEpoch, SnapshotFile] = {}
        self._damaged: dict[OffsetAndEpoch, str] = {}
        self._downloads: dict[OffsetAndEpoch, _Download] = {}
        self._deleted: list[tuple[int, str]] = []
        self._part_count = 0
        if files.exists(directory):
            self._look()

    def _look(self) -> None:
        for name in self._files.listdir(self._directory):
            path = join(self._directory, name)
            if name.endswith((f".checkpoint{PART_SUFFIX}", f".checkpoint{DELETED_SUFFIX}")):
                _LOG.info("%s: leftover of a crash removed", path)
                self._files.unlink(path)
            snapshot = checkpoint_of(name)
            if snapshot is None:
                continue
            file = self._files.open_to_read(path)
            try:
                self._stored[snapshot] = check_snapshot(file, snapshot)
            except WireError as error:
                self._damaged[snapshot] = str(error)
            finally:
                file.close()

    def stored(self) -> list[SnapshotFile]:
        """Return all snapshots, 0-0 included. Order: by end offset."""
        return sorted(self._stored.values(), key=lambda one: one.id)

    @property
    def newest(self) -> OffsetAndEpoch | None:
        """The newest snapshot other than 0-0."""
        newest = max(list(self._stored), default=BOOTSTRAP_SNAPSHOT)
        return newest if newest != BOOTSTRAP_SNAPSHOT else None

    def check_start(self, start_offset: int, log_name: str) -> None:
        """Refuse a log that begins at an offset that no valid snapshot reaches (R-START-2).

        Raises: StorageError.
        """
        newest = self.newest
        if not start_offset or (newest is not None and newest.offset >= start_offset):
            return
        found = f"the newest sound snapshot ends at {newest.offset}" if newest else "there is none"
        problem = (
            f"the log begins at offset {start_offset}, but no snapshot covers what is before: "
            f"{found}"
        )
        for snapshot, damage in self._damaged.items():
            problem += f"; {checkpoint_name(snapshot)} is damaged ({damage})"
        problem += (
            "; restore one that does, or let the replica rejoin the quorum with a new "
            "directory"
        )
        raise StorageError(problem, file=log_name)

    def settle(self, start_offset: int) -> None:
        """Remove what a log that begins at this offset does not need.

        These are snapshots that end below it (a crash came before they were deleted) and damaged
        ones: log and other snapshots hold what was in them, which `check_start` has made sure of.
        Raises: StorageError if 0-0 is damaged and nothing else has the first voters.
        """
        for snapshot, damage in self._damaged.items():
            path = self._path(snapshot)
            if snapshot == BOOTSTRAP_SNAPSHOT and self.newest is None:
                raise StorageError(
                    f"{damage}; this file holds the first voters of the quorum: restore it from "
                    "another controller, which has the same",
                    file=path,
                )
            _LOG.error("%s: %s; removed, because the log can do without it", path, damage)
            self._files.unlink(path)
        self._damaged.clear()
        for snapshot in [one for one in self._stored if one.offset < start_offset]:
            _LOG.info("%s: removed, it ends below the log's start", self._path(snapshot))
            self._files.unlink(self._path(snapshot))
            del self._stored[snapshot]

    # ---- downloads

    def append(self, snapshot: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        """Write bytes of a download at this position; position 0 begins one, in place of any other.

        Raises: StorageError, also if the disk would be left too full for the log; InvariantError if
        the position is not where the download ends.
        """
        self._check_space(len(data))
        if not position:
            for other in list(self._downloads):
                self.discard(other)
            file, path = self._create_part(snapshot)
            self._downloads[snapshot] = _Download(file, path)
        download = self._downloads.get(snapshot)
        check(
            download is not None and download.size == position,
            f"bytes of snapshot {snapshot} for position {position}, "
            f"have {download.size if download else 'no download'}",
        )
        assert download is not None
        download.file.pwrite(data, position)
        download.size = position + len(data)

    def finish(self, snapshot: OffsetAndEpoch) -> SnapshotFile:
        """Check a download and give it its name, durably.

        Raises: WireError if it is damaged or was discarded; it is then removed; StorageError.
        """
        download = self._downloads.pop(snapshot, None)
        if download is None:
            raise WireError("the download was discarded", message="Snapshot")
        try:
            found = check_snapshot(download.file, snapshot)
        except WireError:
            download.file.close()
            self._files.unlink(download.path)
            raise
        self._publish(download.file, download.path, found)
        return found

    def discard(self, snapshot: OffsetAndEpoch) -> None:
        """Discard the unfinished download with this id, if there is one."""
        download = self._downloads.pop(snapshot, None)
        if download is not None:
            download.file.close()
            self._files.unlink(download.path)

    # ---- own snapshots

    def writer(
        self, snapshot: OffsetAndEpoch, control: ControlRecords, timestamp: int, now_ms: int
    ) -> SnapshotWriter:
        """Begin to write a snapshot.

        `control` are the records of kraft.version and voters that go with it, none for version 0;
        `timestamp` is that of the last record contained, `now_ms` that of the snapshot's own
        records. Raises: UsageError if it already exists; StorageError.
        """
        if snapshot in self._stored:
            raise UsageError(f"the snapshot {snapshot} already exists")
        file, path = self._create_part(snapshot)

        def publish(file: File) -> int:
            try:
                found = check_snapshot(file, snapshot)
            except WireError as error:
                raise StorageError(f"reads back as damaged: {error}", file=path) from error
            self._publish(file, path, found)
            return found.size

        def withdraw(file: File) -> None:
            file.close()
            self._files.unlink(path)

        writer = SnapshotWriter(file, snapshot, now_ms, publish=publish, withdraw=withdraw)
        writer.begin(timestamp, control)
        return writer

    # ---- reading

    def reader(self, snapshot: OffsetAndEpoch) -> SnapshotReader:
        """Open a snapshot to load it. Raises: UsageError if it does not exist; StorageError."""
        return SnapshotReader(self._files, self._directory, self._known(snapshot))

    def read(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Return bytes of a snapshot: at most `max_bytes`, fewer at its end.

        Raises: UsageError if it does not exist, or no longer, or ends before the position;
        StorageError.
        """
        found = self._known(snapshot)
        if not 0 <= position < found.size:
            raise UsageError(
                f"position {position} of snapshot {snapshot}, which has {found.size} bytes"
            )
        file = self._files.open_to_read(self._path(snapshot))
        try:
            return file.pread(min(max_bytes, found.size - position), position)
        finally:
            file.close()

    # ---- deletion

    def delete(self, snapshots: Iterable[OffsetAndEpoch], due_ms: int) -> None:
        """Forget snapshots; `purge` removes their files from `due_ms` on, when no reader is left.

        Order: the log starts after them, or will after the next restart. Missing ones are ignored.
        Raises: StorageError.
        """
        for snapshot in snapshots:
            if self._stored.pop(snapshot, None) is not None:
                path = self._path(snapshot)
                self._files.rename(path, path + DELETED_SUFFIX)
                self._deleted.append((due_ms, path + DELETED_SUFFIX))

    def purge(self, now_ms: int) -> None:
        """Remove the files of deleted snapshots that are due (R-SNAP-6).

        Raises: StorageError.
        """
        due = [path for due_ms, path in self._deleted if due_ms <= now_ms]
        self._deleted = [entry for entry in self._deleted if entry[0] > now_ms]
        for path in due:
            if self._files.exists(path):
                self._files.unlink(path)

    # ---- inside

    def _check_space(self, count: int) -> None:
        free, total = self._files.space(self._directory)
        reserve = min(total // DISK_RESERVE_SHARE, DISK_RESERVE_BYTES_MAX)
        if free - count < reserve:
            problem = f"{free} of {total} bytes are free, and {reserve} are kept for the log"
            raise StorageError(problem, file=self._directory)

    def _known(self, snapshot: OffsetAndEpoch) -> SnapshotFile:
        found = self._stored.get(snapshot)
        if found is None:
            raise UsageError(f"there is no snapshot {snapshot} in {self._directory}")
        return found

    def _path(self, snapshot: OffsetAndEpoch) -> str:
        return join(self._directory, checkpoint_name(snapshot))

    def _create_part(self, snapshot: OffsetAndEpoch) -> tuple[File, str]:
        self._part_count += 1
        path = join(self._directory, part_name(snapshot, self._part_count))
        return self._files.open(path, create=True), path

    def _publish(self, file: File, path: str, found: SnapshotFile) -> None:
        """Rename a complete file to its final name: first the contents, then the name are made
        durable (R-SNAP-5)."""
        try:
            file.fdatasync()
        finally:
            file.close()
        self._files.make_read_only(path)
        self._files.rename(path, self._path(found.id))
        self._files.fsync_dir(self._directory)
        self._stored[found.id] = found
