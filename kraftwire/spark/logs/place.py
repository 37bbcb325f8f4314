"""What a file's place in a log directory implies for its records: topic, partition, family."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kraftwire.decode.files.kinds import FileKind, partition_of
from kraftwire.decode.files.source import ByteSource
from kraftwire.errors import UsageError, WireError
from kraftwire.log.properties import read_properties
from kraftwire.raft.config import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.messages import ControlType, control_type, family_of_topic
from kraftwire.records.reader import read_batches
from kraftwire.spark.paths import readable
from kraftwire.wire.json_form import uuid_to_text

__all__ = ["Place", "cluster_of", "place_of"]

_METADATA_ID = uuid_to_text(METADATA_TOPIC_ID)
_TOPIC_ID = re.compile(r"topic_id:\s*(\S+)", re.ASCII)
_META = "meta.properties"
_HEAD_SIZE = 64 * 1024
_KRAFT_TYPES = frozenset(ControlType) - {ControlType.ABORT, ControlType.COMMIT}


@dataclass(frozen=True, slots=True)
class Place:
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


def place_of(source: ByteSource, file: str) -> Place:
    """Return the place of an open file.

    Snapshots are metadata; a segment outside a partition's folder is taken for the metadata log if
    it begins with a record that only KRaft writes.
    """
    path = source.path
    found = partition_of(path)
    is_snapshot = source.kind is FileKind.SNAPSHOT
    if is_snapshot or (found is None and _begins_as_metadata(source)):
        kind = "snapshot" if is_snapshot else "log"
        return Place(file, kind, METADATA_TOPIC, _METADATA_ID, 0, "metadata")
    if found is None:
        return Place(file, "log", None, None, None, None)
    topic_id = _topic_id(path.absolute().parent / "partition.metadata")
    if topic_id is None and found.topic == METADATA_TOPIC:
        topic_id = _METADATA_ID
    family = family_of_topic(found.topic)
    return Place(file, "log", readable(found.topic), topic_id, found.index, family)


def cluster_of(path: Path) -> str | None:
    """Return the cluster of a file, from meta.properties in its folder or the one above."""
    folder = path.absolute().parent
    for each in (folder, folder.parent):
        try:
            entries = {one.key: one.value for one in read_properties(str(each / _META))}
        except (OSError, UsageError):
            continue
        return entries.get("cluster.id")
    return None


def _topic_id(path: Path) -> str | None:
    try:
        match = _TOPIC_ID.search(path.read_text("latin-1"))
    except OSError:
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
