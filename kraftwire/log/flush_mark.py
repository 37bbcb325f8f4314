"""The flush mark: a small file that records durably how far the log was flushed.

The mark is written after the log was synced and is durable before the flush is reported. So
everything below it was complete and may have been acknowledged; nothing above it was. It also
holds a checksum of the leader epochs, which a batch's own checksum leaves out, and the owner of the
directory.

The file has two copies, each in a separate page, with an increasing number and a checksum. A higher
mark goes into the older copy, so a torn write leaves the other one. A lower mark goes into both
before records are truncated, so no copy ever claims more than the log has.

Kafka does not know the file and leaves it alone. quorum-state shows whether Kafka ran on the
directory in between; see `quorum_state.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kraftwire.errors import check
from kraftwire.log.files import File, Files, replace_file
from kraftwire.log.names import FLUSH_MARK_FILE, MARK_MAGIC, join
from kraftwire.records.crc import crc32c
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.fast import ZERO_UUID

# Each copy has a page, so that a torn write of one does not affect the other.
COPY_BYTES = 4096

# Magic, number, flushed offset and its epoch, start offset, checksum of the epochs, node id,
# directory id, checksum of the cluster id.
_FIELDS = struct.Struct(">8sQqiqIi16sI")
_CRC = struct.Struct(">I")
_EPOCH = struct.Struct(">iq")


class Identity(NamedTuple):
    """The owner of a directory; -1, zeros and 0 where unknown."""

    node_id: int = -1
    directory_id: bytes = ZERO_UUID
    cluster_crc: int = 0


NOBODY = Identity()


@dataclass(frozen=True, slots=True)
class Mark:
    """The durable part of the log.

    Every record from `start_offset` to below `end.offset` is; `end.epoch` is that of the last one
    (-1 if the log is empty and the epoch is unknown). `epochs_crc` covers the leader epochs in
    between.
    """

    end: OffsetAndEpoch
    start_offset: int
    epochs_crc: int
    identity: Identity = NOBODY


def epochs_crc(entries: Iterable[tuple[int, int]]) -> int:
    """Return the checksum of (epoch, start offset) pairs in order."""
    value: int = crc32c(b"".join(_EPOCH.pack(*entry) for entry in entries))
    return value


def parse_mark(content: bytes) -> tuple[int, Mark] | None:
    """Return the number and the mark of the newest valid copy in a file, None without one."""
    found = [copy for copy in read_copies(content) if copy is not None]
    return max(found, key=lambda copy: copy[0], default=None)


def read_copies(content: bytes) -> list[tuple[int, Mark] | None]:
    """Return number and mark of both copies in a file, None for a damaged one."""
    return [_parse_copy(content[:COPY_BYTES]), _parse_copy(content[COPY_BYTES:])]


def _parse_copy(content: bytes) -> tuple[int, Mark] | None:
    data = content[: _FIELDS.size]
    if len(content) < _FIELDS.size + _CRC.size:
        return None
    if _CRC.unpack_from(content, _FIELDS.size)[0] != crc32c(data) or data[:8] != MARK_MAGIC:
        return None
    _, number, offset, epoch, start, epochs, node_id, directory_id, cluster = _FIELDS.unpack(data)
    identity = Identity(node_id, directory_id, cluster)
    return number, Mark(OffsetAndEpoch(offset, epoch), start, epochs, identity)


def _copy(number: int, mark: Mark) -> bytes:
    start, epochs = mark.start_offset, mark.epochs_crc
    data = _FIELDS.pack(MARK_MAGIC, number, *mark.end, start, epochs, *mark.identity)
    return data + _CRC.pack(crc32c(data))


class FlushMark:
    """The mark of a directory, and the file that holds it.

    `mark` is what was written last, None without a valid copy; `is_damaged` if there is a file.
    """

    def __init__(self, files: Files, directory: str) -> None:
        """Read the file, if it exists. Raises: StorageError if it cannot be read."""
        self._files = files
        self.path = join(directory, FLUSH_MARK_FILE)
        self._file: File | None = None
        self._number = 0
        self.mark: Mark | None = None
        exists = files.exists(self.path)
        if exists and (found := parse_mark(files.read_bytes(self.path))):
            self._number, self.mark = found
        self.is_damaged = exists and self.mark is None

    @property
    def end_offset(self) -> int:
        """The offset up to which records are covered, 0 without a mark."""
        return self.mark.end.offset if self.mark else 0

    def open(self, mark: Mark) -> None:
        """Set the first mark of a run; nothing is written if the file already has it.

        Raises: StorageError. Order: before the others; what the mark covers is durable.
        """
        if self.mark == mark:
            self._file = self._files.open(self.path)
        else:
            self._create(mark)

    def raise_to(self, mark: Mark) -> None:
        """Set a mark that is not lower than the last one, durably. Raises: StorageError.

        Order: what it covers is durable; a mark was set before.
        """
        file = self._file
        check(file is not None, "a mark is raised before the first one was set")
        assert file is not None
        self._number += 1
        file.pwrite(_copy(self._number, mark), self._number % 2 * COPY_BYTES)
        file.fdatasync()
        self.mark = mark

    def set(self, mark: Mark) -> None:
        """Set any mark, durably, in both copies. Raises: StorageError.

        Order: before removing the records that a lower mark leaves out.
        """
        if self._file is None:
            self._create(mark)
        else:
            self.raise_to(mark)
            self.raise_to(mark)

    def _create(self, mark: Mark) -> None:
        """Write the whole file: it is new, or its copies may differ."""
        self._number += 2
        copies = [(self._number - 1, mark), (self._number, mark)]
        copies.sort(key=lambda copy: copy[0] % 2)
        content = b"".join(_copy(*copy).ljust(COPY_BYTES, b"\0") for copy in copies)
        replace_file(self._files, self.path, content)
        self._file = self._files.open(self.path)
        self.mark = mark

    def close(self) -> None:
        """Close the file; closing it again has no effect."""
        if self._file is not None:
            self._file.close()
