"""The two indexes of a segment: sparse lists of entries that grow at their end.

Layout: an entry of the offset index is (last offset of a batch relative to the segment, position of
that batch), of the time index (largest timestamp so far, relative last offset of its batch). The
files of the active segment are preallocated; zeros follow the entries. They are trimmed when the
segment or the log is closed.

Order: entries are written after a flush of what they point to, never before, so that an entry in
the file proves that the log was durable that far (D11). The files themselves are rarely synced: the
log is authoritative, and indexes that disagree with it are rebuilt.

Source: Kafka's `AbstractIndex`, `OffsetIndex`, `TimeIndex`.
"""

from __future__ import annotations

import struct

from kraftwire.log.files import File

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")

_CHUNK_BYTES = 64 * 1024


class Index:
    """An index file with its entries."""

    def __init__(self, file: File, entry: struct.Struct, size_max: int) -> None:
        self._file = file
        self._entry = entry
        self.count = 0
        self.count_max = size_max // entry.size
        self.last: tuple[int, int] | None = None
        self._waiting: list[tuple[int, int]] = []

    @property
    def is_full(self) -> bool:
        """Whether the segment must end; the time index keeps room for its closing entry."""
        return self.count >= self.count_max - (self._entry is TIME_ENTRY)

    def stored(self) -> list[tuple[int, int]]:
        """The entries in the file: those before the first one that is all zeros."""
        entries: list[tuple[int, int]] = []
        step = _CHUNK_BYTES // self._entry.size * self._entry.size
        position = 0
        while chunk := self._file.pread(step, position):
            whole = len(chunk) // self._entry.size * self._entry.size
            for first, second in self._entry.iter_unpack(chunk[:whole]):
                if first == second == 0:
                    return entries
                entries.append((first, second))
            position += len(chunk)
        return entries

    def adopt(self, entries: list[tuple[int, int]]) -> None:
        """Adopt the entries that are in the file."""
        self.count = len(entries)
        self.last = entries[-1] if entries else None
        self._waiting = []

    def append(self, first: int, second: int) -> None:
        """Add an entry after the last one; `write` writes it to the file."""
        self._waiting.append((first, second))
        self.count += 1
        self.last = first, second

    def write(self, count: int) -> None:
        """Write entries that are not in the file yet, so that it has `count` of them."""
        waiting = self._waiting
        start = self.count - len(waiting)
        if count <= start:
            return
        entries = waiting[: count - start]
        data = b"".join(self._entry.pack(*entry) for entry in entries)
        self._file.pwrite(data, start * self._entry.size)
        del waiting[: len(entries)]

    def rewrite(self, entries: list[tuple[int, int]]) -> None:
        """Replace all entries in the file."""
        self._file.truncate(0)
        self._file.pwrite(b"".join(self._entry.pack(*entry) for entry in entries), 0)
        self.adopt(entries)

    def cut(self, offset: int, part: int) -> None:
        """Drop the entries from a relative offset on, durably: the log is cut next.

        `part` says which half of an entry is the offset.
        """
        entries = self.stored()
        kept = [entry for entry in entries if entry[part] < offset]
        self._file.truncate(len(kept) * self._entry.size)
        self._file.fdatasync()
        self.adopt(kept)

    def extend(self) -> None:
        """Preallocate the file of an active segment."""
        self._file.truncate(self.count_max * self._entry.size)

    def trim(self) -> None:
        """Truncate the file after its entries."""
        self._file.truncate(self.count * self._entry.size)

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()
