"""Starting on a disk that a crash left, and judging what is found."""

from __future__ import annotations

from kraftwire.errors import KraftwireError
from kraftwire.log.flush_mark import FLUSH_MARK_FILE, parse_mark
from kraftwire.log.names import is_leftover, join, partition_directory
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.storage import Storage
from kraftwire.sim.disk import SimFiles
from tests.crash.script import DIRECTORIES, Batches, Expectation
from tests.support.logs.batches import batch


def problem_of(files: SimFiles, expected: Expectation, *, use: bool = False) -> str | None:
    """What is wrong with a start on this disk; None if nothing is.

    With `use` the log is written to and opened once more.
    """
    try:
        problem = _mark_problem(files, expected)
        if problem is not None:
            return problem
        storage = Storage.open(DIRECTORIES, files)
        problem = _problem(storage, files, expected)
        if problem is None and use:
            problem = _use(storage, files)
    except KraftwireError as error:
        return f"refused, or ended by {type(error).__name__}: {error}"
    return problem


def _mark_problem(files: SimFiles, expected: Expectation) -> str | None:
    """What is wrong with the flush mark that the start will find: a torn write leaves one copy."""
    path = join(partition_directory(DIRECTORIES.metadata, DIRECTORIES.topic.name), FLUSH_MARK_FILE)
    if not files.exists(path):
        return "has no flush mark" if expected.durable_end else None
    found = parse_mark(files.read_bytes(path))
    if found is None:
        return "has no valid copy of the flush mark"
    _, mark = found
    # A reset lowers the mark first.
    end = min([expected.durable_end, *([expected.reset.offset] if expected.reset else ())])
    if mark.end.offset < end:
        return f"has a flush mark of {mark.end.offset}, flushed up to {end}"
    return None


def _problem(storage: Storage, files: SimFiles, expected: Expectation) -> str | None:
    log, stored = storage.log, {one.id for one in storage.snapshots.stored()}
    state = storage.stored_state().election
    vote = (state.epoch, state.leader_id, state.voted.id if state.voted else -1)
    if vote not in expected.votes:
        return f"votes {vote}, expected one of {expected.votes}"
    if storage.directory_id != DIRECTORIES.new_id():
        return f"has directory id {storage.directory_id.hex()}"
    if log.flushed_offset != log.end_offset:
        return f"ends at {log.end_offset}, durable up to {log.flushed_offset}"
    useless = [str(one) for one in stored if one.offset < log.start_offset]
    useless += [name for name in files.listdir(log.directory) if is_leftover(name)]
    if useless:
        return f"keeps {', '.join(useless)}"
    if _is_reset(storage, expected.reset):
        return None
    if not expected.snapshots <= stored:
        return f"has snapshots {sorted(stored)}, expected {sorted(expected.snapshots)}"
    problems = [_log_problem(storage, *each, expected.durable_end) for each in expected.logs]
    return None if None in problems else "; ".join(map(str, problems))


def _is_reset(storage: Storage, snapshot: OffsetAndEpoch | None) -> bool:
    """Whether a snapshot has replaced the log."""
    if snapshot is None or storage.snapshots.newest != snapshot:
        return False
    return storage.log.start_offset == storage.log.end_offset == snapshot.offset


def _log_problem(storage: Storage, start: int, batches: Batches, durable_end: int) -> str | None:
    """What is wrong with the log if these batches were written."""
    log = storage.log
    if log.start_offset > start:
        return f"the log begins at {log.start_offset}, after {start}"
    if log.end_offset < durable_end:
        return f"lost what was flushed, from {log.end_offset} to {durable_end}"
    written, offset = dict(batches), log.start_offset
    while offset < log.end_offset:
        if log.read(offset, 1, log.end_offset) != written.get(offset):
            return f"has another batch at {offset} than was written"
        offset += 2
    return None


def _use(storage: Storage, files: SimFiles) -> str | None:
    end = storage.log.end_offset
    storage.log.append(batch(end, 2, epoch=50), end, end + 2)
    storage.log.flush()
    files.kill()
    again = Storage.open(DIRECTORIES, files).log.end_offset
    return None if again == end + 2 else f"ends at {again} after an append up to {end + 2}"
