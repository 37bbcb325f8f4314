"""The files that a metadata log is read from: a log directory, segments, snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from kraftwire.decode.api.logs import batches
from kraftwire.decode.files.folders import walk
from kraftwire.decode.files.kinds import parse_file_name, parse_folder_name
from kraftwire.decode.files.report import FileFinding
from kraftwire.errors import StorageError, UsageError
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import Batch
from kraftwire.story.metadata.log_state import LogState, Snapshot, replay

OnRead = Callable[[int], None]


def read_files(
    paths: Sequence[Path], at: int | None = None, on_read: OnRead = lambda _: None
) -> LogState:
    """Return the state that the files of one log describe, after all records or up to an offset.

    A folder is a log directory, or that of the partition in it. `on_read` gets the offset of each
    batch. Raises: UsageError for files of no metadata log, or of several; StorageError for a file
    that cannot be read.
    """
    problems: list[str] = []
    segments, snapshots = _files(paths)

    def note(finding: FileFinding) -> None:
        if finding.is_loss:
            problems.append(str(finding))

    def read(path: Path) -> Iterator[Batch]:
        for each in batches(path, note):
            on_read(each.batch.base_offset)
            yield each.batch

    state = replay(
        (batch for path in segments for batch in read(path)),
        [Snapshot(id, partial(read, path)) for id, path in snapshots],
        at,
    )
    state.problems += problems
    return state


def _files(paths: Iterable[Path]) -> tuple[list[Path], list[tuple[OffsetAndEpoch, Path]]]:
    """Return the segments of a metadata log in their order, and its snapshots."""
    segments: dict[int, Path] = {}
    snapshots = []
    given = set(paths)
    folders = set()
    for path in walk(given, _fail):
        name = parse_file_name(path.name)
        if name.base_offset is None or name.suffix not in ("log", "checkpoint"):
            if path in given:
                raise UsageError(f"{path} is neither a segment nor a snapshot of a metadata log")
            continue
        if name.state or not (path in given or _is_metadata(path)):
            continue
        folders.add(path.absolute().parent)
        if name.suffix == "log":
            segments[name.base_offset] = path
        else:
            snapshots.append((OffsetAndEpoch(name.base_offset, name.epoch or 0), path))
    if not folders:
        raise UsageError(f"{', '.join(map(str, given))}: there is no metadata log")
    if len(folders) > 1:
        several = ", ".join(map(str, sorted(folders)))
        raise UsageError(f"these are several logs, and one is shown at a time: {several}")
    return [path for _, path in sorted(segments.items())], snapshots


def _is_metadata(path: Path) -> bool:
    folder = parse_folder_name(path.absolute().parent.name)
    return folder is not None and folder.topic == METADATA_TOPIC


def _fail(error: StorageError) -> None:
    raise error
