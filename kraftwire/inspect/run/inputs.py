"""Opens the inputs of a run: captures, files and folders, pipes, frames without packets.

Owns the order of inputs and what is done about one that cannot be read: it is reported, and the run
continues with the next. A pipe is recognized by its first bytes, no more than a packet's worth of a
capture, which may be live. Frames without packets come one per line as hex, or as a stream with
length prefixes, without time and connection; what a response answers has to be said.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO, Literal

from kraftwire.capture.bounded_lines import read_lines
from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.series import families, recordings
from kraftwire.capture.packets.source import CaptureInput, CaptureSource
from kraftwire.capture.packets.unpacking import PACKED_MAGIC_SIZE
from kraftwire.decode.body.frame import Frame, uncaptured
from kraftwire.decode.files.folders import walk
from kraftwire.decode.files.kinds import HEAD_SIZE, FileKind, guess, producer_snapshot_size
from kraftwire.decode.files.source import ByteSource, SupportsRead, open_source, open_stream, peek
from kraftwire.errors import KraftwireError, StorageError, UsageError, WireError
from kraftwire.inspect.run.run import Run
from kraftwire.limits import FILE_WINDOW_BYTES, FRAME_SIZE_MAX, STATE_FILE_BYTES_MAX
from kraftwire.log.names import META_PROPERTIES_FILE
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.small_files import open_ending
from kraftwire.wire.frame import LENGTH_SIZE, frame_size

# Zstandard gives nothing before a whole block, of 128 KiB at most.
_PACKED_SIZE = 1 << 18

# A longer line of `kraftwire decode --input hex` is skipped. The largest frame has this size with
# colons between its bytes, and leaves room for a comment.
HEX_LINE_BYTES_MAX = 3 * FRAME_SIZE_MAX + 64 * 1024
_COMMENT = "#"
_RPC = "rpc"
_CUT = "cut-by-capture-end"
STDIN = "-"
_STDIN_PATH = Path("/dev/stdin")
_METADATA_PARTITION = f"{METADATA_TOPIC}-0"

_NAMELESS = (
    "neither a capture nor a file of a log directory that its bytes identify; an index (.index, "
    ".timeindex, .txnindex) is known by its name only: pass its path"
)
InputKind = Literal["auto", "capture", "file", "hex", "frames"]


class Piped:
    """A stream that can be read once, of which the first bytes are read ahead."""

    name = "-"

    def __init__(self, stream: SupportsRead) -> None:
        self._stream = stream
        self._head = b""
        self.is_packed = False

    @property
    def has_bytes(self) -> bool:
        """Whether any bytes were found. Order: after `kind`, before anything is read."""
        return bool(self._head)

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most as many as wanted; those looked at come first."""
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        return self._stream.read(size) or b""

    def kind(self, path: Path) -> FileKind:
        """Return the kind of the input, once unpacked. Order: before anything is read.

        The kind of its compression if it cannot be unpacked: too little of it is there, or it is
        damaged.
        """
        self._look(PACKED_MAGIC_SIZE)
        found = guess(path, self._head)
        if found.is_capture:
            return found
        self._look(_PACKED_SIZE if found.is_compressed else HEAD_SIZE)
        found = guess(path, self._head[:HEAD_SIZE])
        self.is_packed = found.is_compressed
        if found is FileKind.UNKNOWN:
            return self._unless_producers(path)
        return self._inner(path, found) if self.is_packed else found

    def _unless_producers(self, path: Path) -> FileKind:
        """Return the kind of what may be a producer snapshot: if so, its size is right."""
        size = producer_snapshot_size(self._head)
        if size is None or size > STATE_FILE_BYTES_MAX:
            return FileKind.UNKNOWN
        self._look(size + 1)
        return guess(path, self._head[:HEAD_SIZE], len(self._head))

    def _inner(self, path: Path, kind: FileKind) -> FileKind:
        packed: IO[bytes] = BytesIO(self._head)
        try:
            return guess(path, peek(path, packed, kind))
        except StorageError:
            return kind

    def _look(self, size: int) -> None:
        while len(self._head) < size and (part := self._stream.read(size - len(self._head))):
            self._head += part


@dataclass(slots=True)
class UncapturedFrames:
    """Makes frames from bytes without packets.

    `on_error` is called for what is not a frame. `api` are key and version of the requests that the
    frames answer; None if the frames are requests, whose headers have them.
    """

    file: str
    on_error: Callable[[StorageError], None]
    api: tuple[int, int] | None = None

    def of_hex(self, stream: BinaryIO) -> Iterator[RawFrame]:
        """Frames in hex, with or without their length prefix; blank lines and comments are skipped.

        Of the lines that are not hex the first is reported, and how many more there are.
        """
        bad = 0
        for number, line in enumerate(read_lines(stream, HEX_LINE_BYTES_MAX), 1):
            problem = f"is longer than {HEX_LINE_BYTES_MAX} bytes"
            if line is not None:
                text = line.decode("ascii", errors="replace")
                text = text.partition(_COMMENT)[0].replace(":", " ").strip()
                if not text:
                    continue
                try:
                    data = bytes.fromhex(text.removeprefix("0x"))
                except ValueError:
                    problem = f"is not hexadecimal: {text[:40]!r}"
                else:
                    yield self._frame(_without_prefix(data))
                    continue
            if not bad:
                self._fail(f"line {number} {problem}")
            bad += 1
        if bad > 1:
            self._fail(f"{bad - 1:,} more lines are not hexadecimal")

    def of_stream(self, stream: BinaryIO) -> Iterator[RawFrame]:
        """Frames with their length prefixes, one after the other; the last one may be cut off.

        Ends at an impossible length, after which no frame can be found.
        """
        buffer = bytearray()
        position = 0
        try:
            while data := stream.read(FILE_WINDOW_BYTES):
                buffer += data
                while (size := _whole_size(buffer)) is not None:
                    whole = bytes(buffer[LENGTH_SIZE : LENGTH_SIZE + size])
                    yield self._frame(whole, position=position)
                    del buffer[: LENGTH_SIZE + size]
                    position += LENGTH_SIZE + size
            if buffer:
                yield self._cut(bytes(buffer), position)
        except WireError as error:
            self._fail(f"nothing is decoded from here on: {error}", position)

    def _fail(self, problem: str, position: int | None = None) -> None:
        self.on_error(StorageError(problem, file=self.file, position=position))

    def _cut(self, rest: bytes, position: int) -> RawFrame:
        data = rest[LENGTH_SIZE:]
        size = frame_size(rest) if len(rest) >= LENGTH_SIZE else len(data) + 1
        frame = self._frame(data, size, position=position)
        frame.missing = ((len(data), size - len(data)),)
        frame.end_position = position + len(rest)
        frame.packet_findings = [(_CUT, len(data), "", "the input ends before the frame does")]
        return frame

    def _frame(self, data: bytes, size: int | None = None, *, position: int = -1) -> RawFrame:
        frame = uncaptured(data, is_request=self.api is None, api=self.api, size=size)
        frame.file = frame.end_file = self.file
        frame.position = position
        frame.end_position = position if position < 0 else position + LENGTH_SIZE + len(data)
        return frame


def _without_prefix(data: bytes) -> bytes:
    """The payload; a prefix is recognised by its value."""
    is_prefixed = int.from_bytes(data[:LENGTH_SIZE], "big") == len(data) - LENGTH_SIZE
    return data[LENGTH_SIZE:] if is_prefixed and len(data) > LENGTH_SIZE else data


def _whole_size(buffer: bytearray) -> int | None:
    """Size of the first frame's payload if all of it is there."""
    if len(buffer) < LENGTH_SIZE:
        return None
    size = frame_size(bytes(buffer[:LENGTH_SIZE]), limit=FRAME_SIZE_MAX)
    return size if len(buffer) >= LENGTH_SIZE + size else None


@dataclass(frozen=True, slots=True)
class Inputs:
    """Reads the inputs of a command line, one after the other.

    `report` takes a line about what cannot be read. `api` are key and version of the requests
    that raw frames answer, None if these are requests. If it `is_merging`, captures that were
    taken at the same time are read as one.
    """

    run: Run
    report: Callable[[str], None]
    kind: InputKind = "auto"
    api: tuple[int, int] | None = None
    is_merging: bool = True

    def read(self, paths: Iterable[str]) -> None:
        """Decode everything, one input after the other.

        Order: the files of a recording that was rotated are read as one, where the first is named.
        """
        named = list(paths)
        _ensure_named(named)
        rotated = Rotated(named if self.kind in ("auto", "capture") else ())
        if self.run.needs_order and self.kind in ("auto", "capture"):
            self._read_by_time(named, rotated)
        elif together := self._overlapping(named, rotated):
            self._read_merged(together)
            rotated.pass_over(together)
        for path in named:
            self._attempt(partial(self._read_one, path, rotated))

    def _attempt(self, read: Callable[[], None]) -> None:
        try:
            read()
        except StorageError as error:
            self._fail(error)

    def _read_by_time(self, named: Sequence[str], rotated: Rotated) -> None:
        """Read all captures in the order in which they were recorded, also those in folders."""
        from kraftwire.inspect.run.merged import overlapping  # most runs have one capture

        files = [str(each) for each in walk(map(Path, named), _ignore) if each.is_file()]
        alone = [path for path in dict.fromkeys(files) if rotated.is_alone(path)]
        series = rotated.recordings
        if len(alone) + len(series) < 2:
            return
        begun = {path: first_ns for path in alone if (first_ns := _first_ns(path)) is not None}
        together = overlapping(list(begun)) if self.is_merging and len(begun) > 1 else []
        units = [[path] for path in begun if path not in together] + series
        units += [sorted(together, key=begun.__getitem__)] if together else []
        if len(units) == 1 and not together:
            return
        begun |= {path: _first_ns(path) or 0 for path, *_ in series}
        for unit in sorted(units, key=lambda each: begun[each[0]]):
            read = self._read_merged if unit[0] in together else self._read_capture
            self._attempt(partial(read, unit))
            rotated.pass_over(unit)

    def follow(self, paths: Iterable[str], wait: Callable[[], bool]) -> None:
        """Decode a segment, or the last one of a folder, and what is written to it and after it.

        `wait` waits for more and returns whether to continue. Raises: UsageError unless there is
        one path, of a segment; StorageError if it cannot be read.
        """
        from kraftwire.decode.files.growing_segment import follow  # few runs follow a segment

        first, *others = paths
        if others:
            raise UsageError("only one segment can be followed")
        _ensure_named([first])
        self.run.ensure_for_files(first)
        report = self.run.totals.files
        self.run.file_lines(follow(Path(first), self.run.options.files(), report, wait))

    def _fail(self, error: KraftwireError) -> None:
        self.run.totals.unreadable += 1
        self.report(str(error))

    def _read_one(self, path: str, rotated: Rotated) -> None:
        if self.kind in ("hex", "frames"):
            self._read_raw(path)
        elif self.kind == "capture":
            self._read_capture(rotated.take(path))
        elif is_live([path]):
            self._read_pipe()
        else:
            self._read_files(_STDIN_PATH if path == STDIN else Path(path), rotated)

    def _read_capture(self, paths: Sequence[str]) -> None:
        if not paths:
            return
        name = paths[0] if len(paths) == 1 else f"{paths[0]} to {paths[-1]}"
        # Before the file is opened: an error leaves nothing open.
        self.run.line_filter.ensure_for_captures(name)
        self._show_capture(self._capture(*paths, on_ending=self.run.ending), name)

    def _capture(
        self, *captures: CaptureInput, on_ending: Callable[[Ending], None]
    ) -> Capture:
        keys = self.run.options.keys
        return Capture(*captures, on_ending=on_ending, keys=keys, frame_class=Frame)

    def _show_capture(self, capture: Capture, name: str) -> None:
        self.run.begin_capture(name, capture.health)
        self.run.lists(capture.lists())

    def _overlapping(self, named: Sequence[str], rotated: Rotated) -> list[str]:
        """The captures that are named and were taken at the same time, if there are several."""
        if self.kind not in ("auto", "capture") or not self.is_merging or len(named) < 2:
            return []
        from kraftwire.inspect.run.merged import overlapping  # most runs have one capture

        return overlapping([path for path in dict.fromkeys(named) if rotated.is_alone(path)])

    def _read_merged(self, paths: Sequence[str]) -> None:
        """Read captures of several nodes as one."""
        from kraftwire.inspect.run.merged import MergedEndings, compare, merged

        self.run.line_filter.ensure_for_captures(paths[0])
        clocks = compare(paths, self.run.options.keys)
        endings = MergedEndings(clocks, self.run.ending)
        captures = [
            self._capture(path, on_ending=endings.of(at))
            for at, path in enumerate(paths)
        ]
        for path, capture, offset in zip(paths, captures, clocks.offsets_ns, strict=True):
            self.run.begin_capture(path, capture.health)
            capture.health.recorded.offset_ns = offset
            if offset:
                words = f"{abs(offset) / 1e6:,.3f} ms"
                self.report(f"{path}: its clock is {words} {'behind' if offset > 0 else 'ahead'}")
        for place in clocks.alone:
            self.report(f"{paths[place]}: no frame in common with {paths[0]}, its clock is trusted")
        self.run.frames(merged(captures, clocks, endings))

    def _read_pipe(self) -> None:
        """Read standard input, whatever it is; of a capture each packet as it comes."""
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stream:
            piped = Piped(stream)
            try:
                kind = piped.kind(_STDIN_PATH)
            except OSError as error:
                raise StorageError(f"cannot open: {error.strerror}", file=STDIN) from error
            # Packed bytes that give too few yet: the reader of captures goes on.
            if self.kind == "auto" and (kind.is_capture or kind.is_compressed):
                self.run.line_filter.ensure_for_captures(STDIN)
                self._show_capture(self._capture(piped, on_ending=self.run.ending), STDIN)
                return
            if kind.is_capture:
                raise UsageError(f"--input file: {STDIN} is a capture")
            if self.kind == "auto" and kind is FileKind.UNKNOWN and not piped.is_packed:
                # It may never end.
                raise StorageError(_NAMELESS if piped.has_bytes else "no bytes", file=STDIN)
            with open_stream(_STDIN_PATH, piped) as source:
                self._read_source(source)

    def _read_files(self, path: Path, rotated: Rotated) -> None:
        is_empty, folders = path.is_dir(), dict[Path, None]()
        for each in walk([path], self._fail, self.run.totals.unserved.add):
            is_empty = False
            if each.name == META_PROPERTIES_FILE and path.is_dir():
                folders.setdefault(each.parent)
            try:
                self._read_file(each, rotated)
            except StorageError as error:
                self._fail(error)
        if is_empty:
            self.report(f"{path}: no file in it can be decoded")
        for folder in folders:
            if (folder / _METADATA_PARTITION).is_dir():
                self._check_start(folder)

    def _check_start(self, folder: Path) -> None:
        """Note why a node would not start on a log directory, unless one runs there."""
        from kraftwire.log.files import LocalFiles
        from kraftwire.replica.start_check import refusal_of

        refusal = refusal_of(str(folder), LocalFiles())
        if refusal:
            self.run.refused_directory(str(folder), refusal)

    def _read_file(self, path: Path, rotated: Rotated) -> None:
        with open_source(path) as source:
            if source.kind.is_capture and self.kind == "file":
                raise UsageError(f"--input file: {path} is a capture")
            if source.kind.is_capture:
                self._read_capture(rotated.take(str(path)))
            else:
                self._read_source(source)

    def _read_source(self, source: ByteSource) -> None:
        from kraftwire.decode.files.decode import decode_source  # most runs have captures

        lines = self.run.line_filter
        if source.kind is FileKind.UNKNOWN and source.path == _STDIN_PATH and source.size:
            raise StorageError(_NAMELESS, file=STDIN)
        if not source.kind.is_unknown:
            self.run.ensure_for_files(source.path)
        if lines.passes_file(source.path):
            report = self.run.totals.files
            lines_of = decode_source(source, self.run.options.files(), report)
            self.run.file_lines(lines_of, source)
        else:
            self.run.totals.passed_over += 1

    def _read_raw(self, path: str) -> None:
        self.run.line_filter.ensure_for_captures(path)
        frames = UncapturedFrames(path, self._fail, self.api)
        try:
            with _open(path) as stream:
                is_hex = self.kind == "hex"
                self.run.frames(frames.of_hex(stream) if is_hex else frames.of_stream(stream))
        except OSError as error:
            raise StorageError(f"cannot read: {error.strerror}", file=path) from error


class Rotated:
    """Finds the files that are one rotated recording."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._series: dict[str, list[str]] = {}
        self._taken: list[str] = []
        files = walk(map(Path, paths), _ignore)
        # A pipe must not be opened twice.
        named = dict.fromkeys(str(file) for file in files if file.is_file())
        alike = [family for family in families(named, str) if len(family) > 1]
        captures = [path for family in alike for path in family if is_capture(path)]
        for recording in recordings(captures):
            self._series.update(dict.fromkeys(recording, recording))

    @property
    def recordings(self) -> list[list[str]]:
        """The recordings of several files that were found."""
        return list({id(each): each for each in self._series.values()}.values())

    def pass_over(self, paths: Iterable[str]) -> None:
        """Note captures that were read: they are not read again where they are named."""
        for path in paths:
            self._series.pop(str(Path(path)), None)
            self._taken.append(str(Path(path)))

    def is_alone(self, path: str) -> bool:
        """Whether a path is a capture that is not part of a series."""
        return os.path.isfile(path) and str(Path(path)) not in self._series and is_capture(path)

    def take(self, path: str) -> list[str]:
        """Return the files to read where a path is named: its recording, or none if that was
        read before.
        """
        name = str(Path(path))
        if name in self._taken:
            self._taken.remove(name)
            return []
        recording = self._series.get(name, [path])
        for each in recording:
            self._series.pop(each, None)
        self._taken += [each for each in recording if each not in (name, path)]
        return recording


def are_apart(paths: Sequence[str], *, is_merging: bool) -> bool:
    """Whether all paths are captures, none of which is read together with another one."""
    rotated = Rotated(paths)
    if not all(map(rotated.is_alone, paths)):
        return False
    if is_merging:
        from kraftwire.inspect.run.merged import overlapping  # most runs have one capture

        return not overlapping(paths)
    return True


def _ensure_named(paths: Iterable[str]) -> None:
    """Raises: UsageError for a name that is empty, which would mean the current folder."""
    if "" in paths:
        raise UsageError("an empty name is not a file")


def _ignore(_error: StorageError) -> None:
    """Ignore it: it is reported where the path is read."""


def _first_ns(path: str) -> int | None:
    """The time of a capture's first packet; None if it cannot be read, or has none."""
    try:
        with CaptureSource(path) as source:
            return next((p.time_ns for p in read_packets(source, Health())), None)
    except StorageError:
        return None


def is_capture(path: str) -> bool:
    """Whether a file can be read and is a capture."""
    return kind_of(Path(path)).is_capture


def kind_of(path: Path) -> FileKind:
    """Return the kind of a file, once unpacked; unknown if it cannot be read."""
    try:
        with open_source(path) as source:
            return source.kind
    except (OSError, KraftwireError):
        return FileKind.UNKNOWN


def _open(path: str) -> BinaryIO:
    if path == STDIN:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    return open(path, "rb", opener=open_ending)


def _is_regular(descriptor: int) -> bool:
    """Whether a descriptor is that of an ordinary file."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def is_live(paths: Iterable[str]) -> bool:
    """Whether lines are awaited one by one, as standard input is a pipe that may never end."""
    return STDIN in paths and not _is_regular(sys.stdin.fileno())
