"""Whether an index fits the segment next to it.

Every offset index entry must point at the batch that holds its offset, and every time index entry
must name the largest timestamp of the batch that holds its offset. A broker rebuilds an index
that does not fit, so such an entry is a finding and no data is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kraftwire.decode.files.entries import IndexEntry
from kraftwire.decode.files.kinds import FileKind, parse_file_name
from kraftwire.decode.files.report import FindingSink
from kraftwire.decode.files.scan import BatchHeader, read_header
from kraftwire.decode.files.source import ByteSource, open_source
from kraftwire.records.header import HEADER_SIZE

Check = Callable[[IndexEntry], None]


def segment_of(path: Path) -> Path | None:
    """The segment that an index file belongs to, or None if it is not there.

    An index that is to be deleted goes with a segment that is to be deleted.
    """
    name = parse_file_name(path.name)
    if name.base_offset is None:
        return None
    candidate = path.with_name(f"{name.base_offset:020d}.log{name.state}")
    return candidate if candidate.is_file() else None


@contextmanager
def index_checker(kind: FileKind, path: Path, sink: FindingSink) -> Iterator[Check | None]:
    """A check for the entries of an index, to be called in their order, or None.

    Raises: StorageError if the segment is there but cannot be read.
    """
    segment = segment_of(path) if kind in _CHECKS else None
    if segment is None:
        yield None
        return
    with open_source(segment) as source:
        yield _CHECKS[kind](source, sink)


def _offset_check(source: ByteSource, sink: FindingSink) -> Check:
    def check(entry: IndexEntry) -> None:
        position = entry.fields["position"]
        header = _header_at(source, position)
        if header is None:
            what = "is after the segment's end" if position >= source.size else "is not a batch"
            sink.add("index-mismatch", entry.start, f"entry {entry.number}: {position} {what}")
        elif not _holds(header, entry.offset):
            sink.add(
                "index-mismatch",
                entry.start,
                f"entry {entry.number}: the batch at {position} holds offsets "
                f"{header.base_offset} to {header.last_offset}, not {entry.offset}",
            )

    return check


def _time_check(source: ByteSource, sink: FindingSink) -> Check:
    walk = _HeaderWalk(source)

    def check(entry: IndexEntry) -> None:
        header = walk.find(entry.offset)
        if header is None:
            if not walk.is_at_end:
                return
            problem = f"offset {entry.offset} is after the segment's end"
        elif header.max_timestamp != entry.fields["timestamp"]:
            problem = (
                f"the batch with offset {entry.offset} has the largest timestamp "
                f"{header.max_timestamp}, not {entry.fields['timestamp']}"
            )
        else:
            return
        sink.add("index-mismatch", entry.start, f"entry {entry.number}: {problem}")

    return check


_CHECKS = {FileKind.OFFSET_INDEX: _offset_check, FileKind.TIME_INDEX: _time_check}


def _holds(header: BatchHeader, offset: int) -> bool:
    # A compressed legacy message has only its last offset.
    return header.magic < 2 or header.base_offset <= offset <= header.last_offset


def _header_at(source: ByteSource, position: int) -> BatchHeader | None:
    return read_header(source.read(position, HEADER_SIZE)) if position >= 0 else None


class _HeaderWalk:
    """Goes through a segment's headers, for offsets that are looked up in ascending order.

    Damage ends the walk before the file does, and what comes after it is not judged:
    reading the segment itself reports that.
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        """Whether every byte of the segment has been seen."""
        return self._position >= self._source.size

    def find(self, offset: int) -> BatchHeader | None:
        """The header of the first batch that ends at or after an offset."""
        while (header := _header_at(self._source, self._position)) is not None:
            if header.last_offset >= offset:
                return header
            self._position += header.size
        return None
