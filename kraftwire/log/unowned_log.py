"""A log in a directory without meta.properties: nobody knows whose log it is.

To format such a directory would give the log to another node or cluster, and a replica that has
forgotten its directory id could vote twice in an epoch.
"""

from __future__ import annotations

import re

from kraftwire.errors import StorageError
from kraftwire.log.files import Files
from kraftwire.log.flush_mark import NOBODY, FlushMark
from kraftwire.log.names import META_PROPERTIES_FILE, base_offset_of, join
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.json_form import uuid_to_text

_PARTITION = re.compile(r".+-\d+", re.ASCII | re.DOTALL)


def unowned_log(files: Files, directory: str) -> str | None:
    """Return why a directory without meta.properties must not be formatted, None if it may be."""
    partition = _partition_with_log(files, directory)
    if partition is None:
        return None
    text = (
        f"{directory} has no {META_PROPERTIES_FILE}, but holds the log {partition}: do not format "
        f"it. Restore the file with the node.id, cluster.id and directory.id that it had"
    )
    known = _known(files, join(directory, partition))
    return f"{text}{known}, or move the log away"


def _partition_with_log(files: Files, directory: str) -> str | None:
    """Return the first folder of a partition with a segment that is not empty."""
    if not files.exists(directory):
        return None
    for name in files.listdir(directory):
        if not _PARTITION.fullmatch(name):
            continue
        folder = join(directory, name)
        try:
            segments = [each for each in files.listdir(folder) if _is_segment(each)]
        except StorageError:
            continue
        if any(files.size(join(folder, each)) for each in segments):
            return name
    return None


def _is_segment(name: str) -> bool:
    return base_offset_of(name, "log") is not None


def _known(files: Files, partition: str) -> str:
    """Return the ids that the flush mark of kraftwire names."""
    mark = FlushMark(files, partition).mark
    if mark is None or mark.identity == NOBODY or mark.identity.directory_id == ZERO_UUID:
        return ""
    directory_id = uuid_to_text(mark.identity.directory_id)
    return f" (node.id={mark.identity.node_id}, directory.id={directory_id})"
