"""Power loss at every operation of a scripted run: what was flushed is never lost.

The script appends, flushes, rolls, truncates and writes the quorum state. At each of its disk
operations the power fails; the log is then opened on several disks that may be found afterwards.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.names import join, partition_directory
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.settings import LogSettings
from tests.support.crash_files import CrashFiles, PowerLoss
from tests.support.log_batches import TOPIC, TOPIC_ID, batch

_SETTINGS = LogSettings(segment_bytes=2500, index_interval_bytes=300, index_bytes=600)
_ROOT = "/log"
_STATE = join(partition_directory(_ROOT, TOPIC), "quorum-state")


@dataclass
class Run:
    """What the script has done so far.

    Shape: `written` are all batches of the log in order, (base offset, bytes); `flushed` is how
    many of them are durable for certain, `kept` how many every outcome has of the truncation
    that is under way; `state` is what was written last, `writing` what is being written.
    """

    written: list[tuple[int, bytes]] = field(default_factory=list)
    flushed: int = 0
    state: QuorumState | None = None
    writing: QuorumState | None = None


def _append(log: MetadataLog, run: Run, epoch: int, sizes: list[int]) -> None:
    """Several batches in one append, as a follower does."""
    start = log.end_offset
    parts = []
    for count, size in enumerate(sizes):
        parts.append((start + 2 * count, batch(start + 2 * count, 2, epoch=epoch, size=size)))
    run.written += parts
    log.append(b"".join(data for _, data in parts), start, start + 2 * len(parts))


def _flush(log: MetadataLog, run: Run) -> None:
    log.flush()
    run.flushed = len(run.written)


def _truncate(log: MetadataLog, run: Run, count: int) -> None:
    run.flushed = min(run.flushed, count)
    log.truncate(run.written[count][0])
    del run.written[count:]
    run.flushed = len(run.written)


def _vote(files: CrashFiles, run: Run, epoch: int, version: int) -> None:
    run.writing = QuorumState(epoch, -1, epoch % 3)
    QuorumStateFile(files, _STATE).write(run.writing, version, [0, 1, 2])
    run.state = run.writing


def _script(files: CrashFiles, run: Run) -> None:
    log = MetadataLog.open(files, _ROOT, _SETTINGS, TOPIC, TOPIC_ID)
    _vote(files, run, 1, 0)
    _append(log, run, 1, [10])
    _flush(log, run)
    _append(log, run, 1, [10, 300, 20])
    _append(log, run, 1, [10, 40])
    _flush(log, run)
    _vote(files, run, 2, 1)
    _append(log, run, 2, [200, 200, 200])
    _flush(log, run)
    _append(log, run, 2, [400, 10])  # rolls
    _append(log, run, 3, [10])
    _flush(log, run)
    _vote(files, run, 4, 1)
    _truncate(log, run, 10)
    _append(log, run, 4, [10, 600, 30])
    _append(log, run, 5, [10])
    _flush(log, run)
    _append(log, run, 5, [900, 10, 10, 10])  # rolls
    _flush(log, run)
    _append(log, run, 6, [300, 300])
    _truncate(log, run, 3)  # over a segment, with records that were never flushed
    _append(log, run, 7, [10, 10])
    log.close()
    run.flushed = len(run.written)
    log = MetadataLog.open(files, _ROOT, _SETTINGS, TOPIC, TOPIC_ID)
    _truncate(log, run, len(run.written) - 1)  # below the producer snapshot of the stop
    _append(log, run, 8, [10])
    _flush(log, run)
    log.close()


def _operations() -> int:
    files = CrashFiles()
    _script(files, Run())
    return files.operations


def _check(found: CrashFiles, run: Run) -> None:
    """Open the log that a crash has left, compare it, and use it."""
    log = MetadataLog.open(found, _ROOT, _SETTINGS, TOPIC, TOPIC_ID)
    read, offset = [], 0
    while offset < log.end_offset:
        data = log.read(offset, 1, log.end_offset)
        read.append((offset, data))
        offset += 2
    assert len(read) >= run.flushed
    assert read == run.written[: len(read)]
    assert log.flushed_offset == log.end_offset == 2 * len(read)
    assert QuorumStateFile(found, _STATE).read() in _states(run)
    end = log.end_offset
    log.append(batch(end, 2, epoch=9), end, end + 2)
    log.flush()
    log.close()
    again = MetadataLog.open(found, _ROOT, _SETTINGS, TOPIC, TOPIC_ID)
    assert again.end_offset == end + 2
    again.close()


def _states(run: Run) -> list[QuorumState | None]:
    """What may be read: version 0 does not keep the directory id, which is zero here anyway."""
    return [run.state, run.writing]


@pytest.mark.parametrize("style", ["none", "all", "prefix", "sectors"])
def test_no_crash_loses_what_was_flushed(style: str) -> None:
    """At every operation, twelve outcomes each; a log that was damaged by nothing else opens."""
    chance = random.Random(4)
    for crash_at in range(_operations()):
        files, run = CrashFiles(crash_at), Run()
        with pytest.raises(PowerLoss):
            _script(files, run)
        for _ in range(1 if style in ("none", "all") else 12):
            _check(files.after_crash(chance, style), run)


def test_what_is_found_after_a_killed_process_is_made_durable() -> None:
    """The process dies, what it wrote is still in memory; then the power fails as well."""
    chance = random.Random(6)
    for crash_at in range(_operations()):
        files, run = CrashFiles(crash_at), Run()
        with pytest.raises(PowerLoss):
            _script(files, run)
        files.crash_at = None
        log = MetadataLog.open(files, _ROOT, _SETTINGS, TOPIC, TOPIC_ID)
        run.flushed = sum(1 for base, _ in run.written if base < log.flushed_offset)
        _check(files.after_crash(chance, "none"), run)
        del run.written[run.flushed :]
        # Of the same epoch: a new one would sync the directory in passing.
        _append(log, run, (log.epochs() or [(1, 0)])[-1][0], [10])
        _flush(log, run)
        for style in ("none", "sectors"):
            _check(files.after_crash(chance, style), run)


def test_a_second_crash_during_recovery_changes_nothing() -> None:
    """Recovery cuts and rewrites; each of these steps may be the last one too."""
    chance = random.Random(5)
    total = _operations()
    for crash_at in range(0, total, 5):
        files, run = CrashFiles(crash_at), Run()
        with pytest.raises(PowerLoss):
            _script(files, run)
        found = files.after_crash(chance, "sectors")
        for second in range(40):
            copy = found.after_crash(chance, "all")
            copy.crash_at = second
            try:
                MetadataLog.open(copy, _ROOT, _SETTINGS, TOPIC, TOPIC_ID)
            except PowerLoss:
                _check(copy.after_crash(chance, "sectors"), run)
            else:
                break


@pytest.mark.parametrize("kind", ["sync", "write"])
def test_an_error_of_the_disk_is_never_tried_again(kind: str) -> None:
    """After a failed sync the kernel may have dropped the pages: a second one would lie (D9)."""
    files = CrashFiles()
    log = MetadataLog.open(files, _ROOT, _SETTINGS, TOPIC, TOPIC_ID)
    run = Run()

    def fail(found: str, path: str) -> None:
        if found == kind and path.endswith(".log"):
            raise StorageError("syncing failed: Input/output error", file=path, fatal=True)

    def use() -> None:
        _append(log, run, 1, [10])
        log.flush()

    files.fail = fail
    with pytest.raises(StorageError, match="Input/output error"):
        use()
    files.fail = lambda _kind, _path: None
    for action in (log.flush, lambda: _append(log, run, 1, [10]), lambda: log.truncate(0)):
        with pytest.raises(StorageError, match="Input/output error"):
            action()
    assert log.flushed_offset == 0
    log.close()
