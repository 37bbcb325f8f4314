"""Files of logs among paths and patterns, and what their names say: topic, partition, family."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from kraftwire.decode.files.folders import UnservedFolders, walk
from kraftwire.decode.files.kinds import FileKind, parse_file_name, partition_of
from kraftwire.decode.files.source import ByteSource
from kraftwire.errors import StorageError, UsageError, WireError
from kraftwire.log.files import LocalFiles
from kraftwire.properties_file import parse_properties
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.control import ControlType, control_type
from kraftwire.records.messages import family_of_topic
from kraftwire.records.reader import read_batches
from kraftwire.spark.paths import expanded, has_name, readable
from kraftwire.wire.json_form import uuid_to_text

_METADATA_ID = uuid_to_text(METADATA_TOPIC_ID)
_TOPIC_ID = re.compile(r"topic_id:\s*(\S+)", re.ASCII)
_META = "meta.properties"
# The name of a snapshot in tables, as a kind of file and as a source of batches.
SNAPSHOT = "snapshot"
_HEAD_SIZE = 64 * 1024
_KRAFT_TYPES = frozenset(ControlType) - {ControlType.ABORT, ControlType.COMMIT}


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file that may hold batches.

    `topic` and `partition` are those of its folder, None outside a partition's folder;
    `base_offset` is in its name, and `next_offset` in that of the segment after it.
    """

    path: Path
    topic: str | None
    partition: int | None
    is_segment: bool
    base_offset: int | None
    next_offset: int | None


def list_files(
    paths: Iterable[str], *, with_snapshots: bool = True, pattern: str = "*"
) -> Iterator[LogFile]:
    """Return every segment and snapshot whose name matches `pattern` once, in a stable order.

    In folders, files that are being removed or swapped in (``.deleted``, ``.swap``, ...) and other
    kinds of files are skipped; a file named explicitly is taken whatever its name. Folders of
    partitions that their broker does not serve are left out, which a warning says. Raises:
    StorageError for a path or pattern that leads to nothing, and for a folder that cannot be read.
    """
    seen: set[Path] = set()
    unserved = UnservedFolders()
    next_offsets = cache(_next_offsets)
    for start in expanded(paths):
        for path in walk([start], _refuse, unserved.add):
            name = parse_file_name(path.name)
            is_wanted = path == start or _has_batches(path, with_snapshots)
            if path in seen or not is_wanted or not has_name(path, pattern):
                continue
            seen.add(path)
            place = partition_of(path)
            is_segment = name.suffix == "log" and not name.state and place is not None
            following = next_offsets(path.parent) if is_segment else {}
            yield LogFile(
                path,
                place.topic if place else None,
                place.index if place else None,
                is_segment,
                name.base_offset,
                following.get(name.base_offset or 0),
            )
    if unserved:
        warnings.warn(str(unserved), stacklevel=2)


def _has_batches(path: Path, with_snapshots: bool) -> bool:
    name = parse_file_name(path.name)
    suffixes = ("log", "checkpoint") if with_snapshots else ("log",)
    return not name.state and name.suffix in suffixes


def _next_offsets(folder: Path) -> dict[int, int]:
    """Return, for each segment of a folder, the base offset of the next one."""
    names = (parse_file_name(path.name) for path in folder.iterdir())
    bases = sorted(
        name.base_offset
        for name in names
        if name.suffix == "log" and not name.state and name.base_offset is not None
    )
    return dict(pairwise(bases))


def _refuse(error: StorageError) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A segment or snapshot: its path as given, and whose records it holds.

    `source` is ``log`` or ``snapshot``; `topic`, `topic_id` and `partition` are None where
    the folder does not name them; `family` as of `family_of_topic`.
    """

    file: str
    source: str
    topic: str | None
    topic_id: str | None
    partition: int | None
    family: str | None


def place_of(source: ByteSource, file: str) -> LogPlace:
    """Return the place of an open file.

    Snapshots are metadata; a segment outside a partition's folder is taken for the metadata log if
    it begins with a record that only KRaft writes.
    """
    path = source.path
    found = partition_of(path)
    is_snapshot = source.kind is FileKind.SNAPSHOT
    if is_snapshot or (found is None and _begins_as_metadata(source)):
        kind = SNAPSHOT if is_snapshot else "log"
        return LogPlace(file, kind, METADATA_TOPIC, _METADATA_ID, 0, "metadata")
    if found is None:
        return LogPlace(file, "log", None, None, None, None)
    topic_id = found.topic_id or _topic_id(path.absolute().parent / "partition.metadata")
    if topic_id is None and found.topic == METADATA_TOPIC:
        topic_id = _METADATA_ID
    family = family_of_topic(found.topic)
    return LogPlace(file, "log", readable(found.topic), topic_id, found.index, family)


def cluster_of(path: Path) -> str | None:
    """Return the cluster of a file, from meta.properties in its folder or the one above."""
    folder = path.absolute().parent
    for each in (folder, folder.parent):
        try:
            entries = {one.key: one.value for one in parse_properties(_text(each / _META), _META)}
        except (StorageError, UsageError):
            continue
        return entries.get("cluster.id")
    return None


def _text(path: Path) -> str:
    """Return what a small file says. Raises: StorageError."""
    return LocalFiles().read_bytes(str(path)).decode("latin-1")


def _topic_id(path: Path) -> str | None:
    try:
        match = _TOPIC_ID.search(_text(path))
    except StorageError:
        return None
    return match[1] if match else None


def _begins_as_metadata(source: ByteSource) -> bool:
    """Whether the first record is a control record of KRaft's."""
    try:
        batch = next(read_batches(bytes(source.read(0, _HEAD_SIZE))), None)
        if batch is None or not batch.is_control:
            return False
        return control_type(batch.records()[0].key) in _KRAFT_TYPES
    except (IndexError, WireError):
        return False
