"""Opens the inputs of a run: captures, files and folders, pipes, raw frames.

Owns the order of inputs and what is done about one that cannot be read: it is reported, and the run
continues with the next.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from kraftwire.capture.capture import Capture
from kraftwire.capture.packets.series import families, recordings
from kraftwire.decode.files.decode import decode_source
from kraftwire.decode.files.follow import follow
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.source import ByteSource, open_source, open_stream
from kraftwire.decode.files.walk import walk
from kraftwire.errors import KraftwireError, StorageError, UsageError
from kraftwire.inspect.run.piped import Piped
from kraftwire.inspect.run.raw_frames import RawFrames
from kraftwire.inspect.run.run import Run

__all__ = ["STDIN", "InputKind", "Inputs", "is_capture", "is_live", "kind_of"]

STDIN = "-"
_STDIN_PATH = Path("/dev/stdin")
_NAMELESS = (
    "neither a capture nor a file of a log directory that its bytes identify; an index (.index, "
    ".timeindex, .txnindex) is known by its name only: pass its path"
)

InputKind = Literal["auto", "capture", "file", "hex", "frames"]


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
        together = self._overlapping(named, rotated)
        if len(together) > 1:
            self._read_merged(together)
        for path in named:
            if path in together:
                continue
            try:
                self._read_one(path, rotated)
            except StorageError as error:
                self._fail(error)

    def follow(self, paths: Iterable[str], wait: Callable[[], bool]) -> None:
        """Decode a segment, or the last one of a folder, and what is written to it and after it.

        `wait` waits for more and returns whether to continue. Raises: UsageError unless there is
        one path, of a segment; StorageError if it cannot be read.
        """
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
        capture = Capture(*paths, on_ending=self.run.ending, keys=self.run.options.keys)
        self._show_capture(capture, name, sum(map(_size, paths)))

    def _show_capture(self, capture: Capture, name: str, size: int = 0) -> None:
        self.run.totals.captures[name] = capture.health
        self.run.lists(capture.lists(), lambda: capture.packed / size if size else 0.0)

    def _overlapping(self, named: Sequence[str], rotated: Rotated) -> list[str]:
        """The captures that are named and were taken at the same time."""
        if self.kind not in ("auto", "capture") or not self.is_merging or len(named) < 2:
            return []
        from kraftwire.inspect.run.merged import overlapping  # most runs have one capture

        return overlapping([path for path in dict.fromkeys(named) if rotated.is_alone(path)])

    def _read_merged(self, paths: Sequence[str]) -> None:
        """Read captures of several nodes as one."""
        from kraftwire.inspect.run.merged import MergedEndings, compare, merged

        self.run.line_filter.ensure_for_captures(paths[0])
        totals, keys = self.run.totals, self.run.options.keys
        clocks = compare(paths, keys)
        endings = MergedEndings(clocks, self.run.ending)
        captures = [
            Capture(path, on_ending=endings.of(at), keys=keys)
            for at, path in enumerate(paths)
        ]
        for path, capture, offset in zip(paths, captures, clocks.offsets_ns, strict=True):
            totals.captures[path] = capture.health
            if offset:
                words = f"{abs(offset) / 1e6:,.3f} ms"
                self.report(f"{path}: its clock is {words} {'behind' if offset > 0 else 'ahead'}")
        for place in clocks.alone:
            self.report(f"{paths[place]}: no frame in common with {paths[0]}, its clock is trusted")
        size = sum(map(_size, paths))
        self.run.frames(
            merged(captures, clocks, endings),
            lambda: sum(each.packed for each in captures) / size,
        )

    def _read_pipe(self) -> None:
        """Read standard input, whatever it is; of a capture each packet as it comes."""
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stream:
            piped = Piped(stream)
            try:
                kind = piped.kind(_STDIN_PATH)
            except OSError as error:
                raise StorageError(f"cannot open: {error.strerror}", file=STDIN) from error
            # What is packed and gives too few bytes yet: the reader of captures goes on.
            if self.kind == "auto" and (kind.is_capture or kind.is_compressed):
                self.run.line_filter.ensure_for_captures(STDIN)
                keys = self.run.options.keys
                capture = Capture(piped, on_ending=self.run.ending, keys=keys)
                self._show_capture(capture, STDIN)
                return
            if kind.is_capture:
                raise UsageError(f"--input file: {STDIN} is a capture")
            if self.kind == "auto" and kind is FileKind.UNKNOWN and not piped.is_packed:
                # It may never end.
                raise StorageError(_NAMELESS if piped.has_bytes else "no bytes", file=STDIN)
            with open_stream(_STDIN_PATH, piped) as source:
                self._read_source(source)

    def _read_files(self, path: Path, rotated: Rotated) -> None:
        is_empty = path.is_dir()
        for each in walk([path], self._fail, self.run.totals.unserved.add):
            is_empty = False
            try:
                self._read_file(each, rotated)
            except StorageError as error:
                self._fail(error)
        if is_empty:
            self.report(f"{path}: no file in it can be decoded")

    def _read_file(self, path: Path, rotated: Rotated) -> None:
        with open_source(path) as source:
            if source.kind.is_capture and self.kind == "file":
                raise UsageError(f"--input file: {path} is a capture")
            if source.kind.is_capture:
                self._read_capture(rotated.take(str(path)))
            else:
                self._read_source(source)

    def _read_source(self, source: ByteSource) -> None:
        lines = self.run.line_filter
        if source.kind is FileKind.UNKNOWN and source.path == _STDIN_PATH and source.size:
            raise StorageError(_NAMELESS, file=STDIN)
        if not source.kind.is_unknown:
            self.run.ensure_for_files(source.path)
        if lines.passes_file(source.path):
            report = self.run.totals.files
            self.run.file_lines(decode_source(source, self.run.options.files(), report))
        else:
            self.run.totals.passed_over += 1

    def _read_raw(self, path: str) -> None:
        self.run.line_filter.ensure_for_captures(path)
        frames = RawFrames(path, self._fail, self.api)
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


def _ensure_named(paths: Iterable[str]) -> None:
    """Raises: UsageError for a name that is empty, which would mean the current folder."""
    if "" in paths:
        raise UsageError("an empty name is not a file")


def _size(path: str) -> int:
    """The size of a file; 0 if it is gone."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _ignore(_error: StorageError) -> None:
    """Ignore it: it is reported where the path is read."""


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
    return open(path, "rb")


def _is_regular(descriptor: int) -> bool:
    """Whether a descriptor is that of an ordinary file."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def is_live(paths: Iterable[str]) -> bool:
    """Whether lines are awaited one by one, as standard input is a pipe that may never end."""
    return STDIN in paths and not _is_regular(sys.stdin.fileno())
