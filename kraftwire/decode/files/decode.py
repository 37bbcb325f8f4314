"""One file to lines, whatever kind of Kafka's files it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kraftwire.decode.body.secrets import may_be_secret
from kraftwire.decode.files.entries import INDEX_KINDS, read_entries
from kraftwire.decode.files.foreign_formats import EDITCAP, conversion_hint
from kraftwire.decode.files.index_check import index_checker
from kraftwire.decode.files.kinds import FileKind, parse_file_name
from kraftwire.decode.files.report import FileLine, FileReport, FindingSink
from kraftwire.decode.files.scan import Scanner
from kraftwire.decode.files.segment import FileOptions, SegmentLines
from kraftwire.decode.files.snapshot_state import checked_log
from kraftwire.decode.files.source import ByteSource, open_source
from kraftwire.decode.files.state import (
    STATE_KINDS,
    StateFile,
    hide_unknown,
    parse_producer_snapshot,
    parse_state,
    state_bytes_max,
)
from kraftwire.errors import StorageError, UsageError, WireError
from kraftwire.limits import FINDING_HEX_BYTES

# How many bytes of a file of unknown kind are looked at.
_HEAD_BYTES = 4096


def decode_file(path: Path, options: FileOptions, report: FileReport) -> Iterator[FileLine]:
    """The lines of a file, from its first byte to its last.

    A file of an unknown kind and one that cannot be read are findings.
    Raises: UsageError for a capture, which has its own reader.
    """
    sink = report.sink(str(path))
    try:
        with open_source(path) as source:
            yield from decode_source(source, options, report)
    except StorageError as error:
        at = "" if error.position is None else f"at byte {error.position}: "
        detail = f"{at}{error.problem}"
        sink.add("unreadable-file", error.position or 0, detail)


def decode_source(
    source: ByteSource, options: FileOptions, report: FileReport
) -> Iterator[FileLine]:
    """The lines of a file that is open already, for callers who look at its kind first.

    Raises: UsageError for a capture; StorageError if the file cannot be read.
    """
    if source.kind.is_capture:
        raise UsageError(f"{source.path} is a capture, not a file of a log directory")
    sink = report.sink(str(source.path))
    report.files[source.kind] += 1
    if source.kind.is_unknown:
        is_hidden = not options.show_secrets and may_be_secret(bytes(source.read(0, _HEAD_BYTES)))
        is_hidden = is_hidden or source.kind is FileKind.TAR
        rest = b"" if is_hidden else source.read(0, 16)
        sink.add("unknown-file", 0, unknown_text(source), rest=rest)
        return
    for line in _lines(source, options, sink, report):
        report.line_count += 1
        yield line


def _lines(
    source: ByteSource, options: FileOptions, sink: FindingSink, report: FileReport
) -> Iterator[FileLine]:
    if source.kind.has_batches:
        return _batches(source, options, sink, report)
    if source.kind in INDEX_KINDS:
        return _entries(source, sink)
    return iter(()) if source.kind is FileKind.NOTHING else _state(source, options, sink)


def _batches(
    source: ByteSource, options: FileOptions, sink: FindingSink, report: FileReport
) -> Iterator[FileLine]:
    """The batches of a file; a segment of the metadata log must go on where the last one ended."""
    folder = source.path.absolute().parent
    before, end = report.last_segment or (None, 0)
    log = checked_log(report, folder)
    begins_at = end if before == folder else None
    segment = SegmentLines(source, options, sink, log, begins_at=begins_at)
    yield from segment.lines(Scanner(source, sink))
    if segment.end_offset is not None:
        report.last_segment = folder, segment.end_offset


def _entries(source: ByteSource, sink: FindingSink) -> Iterator[FileLine]:
    base_offset = parse_file_name(source.path.name).base_offset or 0
    with sink.folded() as few, index_checker(source.kind, source.path, few) as check:
        for entry in read_entries(source.kind, source, base_offset, few):
            if check is not None:
                check(entry)
            json = {"file": sink.file, "entry": entry.number, **entry.fields}
            yield FileLine(source.kind, entry.start, json, entry.data)


def _state(
    source: ByteSource, options: FileOptions, sink: FindingSink
) -> Iterator[FileLine]:
    kind = source.kind
    if source.size > min(state_bytes_max(kind), source.whole_max):
        detail = f"{source.size} bytes are too many for a file of this kind"
        sink.add("unreadable-state", 0, detail, size=source.size)
        return
    content = bytes(source.read(0, source.size))
    try:
        state = _parse(kind, content)
    except WireError as error:
        at = error.offset or 0
        rest = memoryview(content)[at:]
        is_hidden = not options.show_secrets and may_be_secret(content, at)
        detail = error.problem if is_hidden else str(error)
        shown = b"" if is_hidden else bytes(rest[:FINDING_HEX_BYTES])
        sink.add("unreadable-state", at, detail, size=len(rest), rest=shown)
        return
    for id, position, detail in state.noted():
        sink.add(id, position, detail)
    json = {"file": sink.file, "type": _type(source), "data": state.data}
    is_hidden = not options.show_secrets and hide_unknown(kind, state)
    yield FileLine(kind, 0, json, content, hides_records=is_hidden)


def _parse(kind: FileKind, content: bytes) -> StateFile:
    if kind is FileKind.PRODUCER_SNAPSHOT:
        return parse_producer_snapshot(content)
    if kind in STATE_KINDS:
        return parse_state(kind, content)
    raise UsageError(f"no reader for files of the kind {kind}")


def _type(source: ByteSource) -> str:
    """The kind of a state file; the name distinguishes the lists of offsets."""
    stem = parse_file_name(source.path.name).stem
    return stem if stem.endswith(f"-{FileKind.OFFSETS}") else str(source.kind)


def unknown_text(source: ByteSource) -> str:
    """Describe a file of which nothing is decoded, and how to convert it where that is known."""
    if source.size == 0 and not source.kind.is_compressed:
        return "empty"
    return way_out(source) or (
        f"{source.size} bytes of no kind that is known; if it is a capture, {EDITCAP}"
    )


def way_out(source: ByteSource) -> str | None:
    """Describe a file that has to be converted or unpacked, and how; None if it is unknown."""
    if source.kind.is_compressed:
        return f"compressed twice, by {source.kind} inside: unpack it, and decode the files in it"
    if source.kind is FileKind.TAR:
        return "a tar archive: unpack it, and decode the files in it"
    return conversion_hint(bytes(source.read(0, _HEAD_BYTES)), source.path.name)
