"""Carrying out a recovery: first copies, then the furthest log, last the other survivors.

Each step is durable before the next one begins, so after a crash the same command goes on: the
furthest log stays the furthest, and what was set aside is whole under its new name.

What a directory held is kept beside it, as `NAME.before-recover-N`: copies of its small files and
the directory of the metadata log, under the same names.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.errors import check
from kraftwire.log.files import Files, replace_file
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.names import (
    BOOTSTRAP_FILE,
    META_PROPERTIES_FILE,
    QUORUM_STATE_FILE,
    join,
    parent,
)
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.raft.histories import voters_record
from kraftwire.records.control import ControlType, control_batch
from kraftwire.replica.lost_majority.plan import Recovery
from kraftwire.replica.lost_majority.survivors import ControllerNode

_KEPT = ".before-recover-"
_UNFINISHED = ".unfinished"
_CHUNK_BYTES = 1024 * 1024


def carry_out(recovery: Recovery, files: Files, now_ms: int) -> Iterator[str]:
    """Write what a plan says; yields a line for each step that is done.

    Order: all directories are locked, and were since the plan was made. Raises: StorageError.
    """
    first = recovery.furthest
    if not recovery.is_written:
        yield f"kept a copy: {_keep_copy(first.node, files)}"
        if recovery.kraft_version:
            _append_voters(recovery, files, now_ms)
            yield f"{first.node.partition}: ends with the voters of epoch {recovery.epoch}"
    # After a crash the log may have been changed without it.
    _write_quorum_state(recovery, files)
    yield f"{first.node.partition}: epoch {recovery.epoch}, no leader, no vote"
    for one in recovery.set_aside:
        yield f"set aside: {_set_aside(one.node, files)}"


def _append_voters(recovery: Recovery, files: Files, now_ms: int) -> None:
    first, directories = recovery.furthest, recovery.furthest.node.directories
    topic, end = directories.topic, recovery.furthest.end.offset
    record = (ControlType.KRAFT_VOTERS, voters_record(recovery.voters))
    log = MetadataLog.open(
        files, directories.metadata, directories.settings, topic.name, topic.topic_id
    )
    check(
        log.end_offset == end,
        f"{first.node.partition} ends at {log.end_offset}, and ended at {end}",
    )
    log.append(control_batch(end, recovery.epoch, now_ms, [record]), end, end + 1)
    # Closed only after success: closing writes, and after a failure nothing more is written.
    log.close()


def _write_quorum_state(recovery: Recovery, files: Files) -> None:
    path = join(recovery.furthest.node.partition, QUORUM_STATE_FILE)
    QuorumStateFile(files, path).write(
        QuorumState(recovery.epoch),
        recovery.kraft_version,
        [voter.key.id for voter in recovery.voters],
    )


def _keep_copy(node: ControllerNode, files: Files) -> str:
    """Copy a node's metadata log; returns the directory of the copy."""
    kept = _kept_directory(node, files)
    target = _inside(kept, node)
    unfinished = target + _UNFINISHED
    files.mkdir_private(unfinished)
    for name in files.listdir(unfinished):
        files.unlink(join(unfinished, name))
    for name in files.listdir(node.partition):
        _copy(files, join(node.partition, name), join(unfinished, name))
    files.fsync_dir(unfinished)
    files.rename(unfinished, target)
    files.fsync_dir(kept)
    return kept


def _set_aside(node: ControllerNode, files: Files) -> str:
    """Move a node's metadata log away; returns the directory that holds it."""
    kept = _kept_directory(node, files)
    files.rename(node.partition, _inside(kept, node))
    # The new place first: a log in two places is better than in none.
    files.fsync_dir(kept)
    files.fsync_dir(node.directories.metadata)
    return kept


def _kept_directory(node: ControllerNode, files: Files) -> str:
    """Make the directory that will keep a node's log, with copies of the small files beside it.

    One that has no log yet was left by a crash, and is used again.
    """
    number = 1
    while files.exists(_inside(_kept_name(node, number), node)):
        number += 1
    kept = _kept_name(node, number)
    files.mkdir_private(kept)
    files.fsync_dir(parent(kept))
    for name in (META_PROPERTIES_FILE, BOOTSTRAP_FILE):
        path = join(node.directories.metadata, name)
        if files.exists(path):
            replace_file(files, join(kept, name), files.read_bytes(path))
    return kept


def _kept_name(node: ControllerNode, number: int) -> str:
    return f"{node.directories.metadata.rstrip('/')}{_KEPT}{number}"


def _inside(kept: str, node: ControllerNode) -> str:
    return join(kept, node.partition.rpartition("/")[2])


def _copy(files: Files, source: str, target: str) -> None:
    old, new = files.open_to_read(source), files.open(target, create=True)
    try:
        position = 0
        while data := old.pread(_CHUNK_BYTES, position):
            new.pwrite(data, position)
            position += len(data)
        new.fdatasync()
    finally:
        old.close()
        new.close()

