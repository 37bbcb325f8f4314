"""Mistakes in files: what is durable, what a start believes."""

from __future__ import annotations

from tests.history.putting_back import Edit
from tests.mutants.mutant import Mutant

_LOG = "kraftwire.log.metadata_log:MetadataLog"
_RUNNER = "kraftwire.replica.runner:Runner"
_LOCKED = "with self._workers.lock:"
_LOCKS = "tests/unit/replica/test_runner.py"

MUTANTS = (
    Mutant(
        "a batch whose CRC field is zero is taken for whole",
        "D11, S12",
        Edit(
            "kraftwire.log.scan:_scan_chunk",
            "if crc32c(view[position + CRC_START : end]) != crc:",
            "if crc and crc32c(view[position + CRC_START : end]) != crc:",
        ),
        "tests/unit/log/test_torn_tail.py",
    ),
    Mutant(
        "a start does not check checksums",
        "D11",
        Edit(
            "kraftwire.log.scan:_scan_chunk",
            "if crc32c(view[position + CRC_START : end]) != crc:",
            "if crc < 0:",
        ),
        "tests/unit/log/test_torn_tail.py",
    ),
    Mutant(
        "a start takes a batch of a lower epoch",
        "S13",
        Edit(
            "kraftwire.log.scan:_scan_chunk",
            "if base != offset or its_epoch < epoch:",
            "if base != offset:",
        ),
        "tests/unit/log/test_recovery.py",
    ),
    Mutant(
        "damage below the flush mark is cut off",
        "D11, S12",
        Edit(
            "kraftwire.log.recovery:check_mark",
            "if last.end_offset < flushed and damage:",
            "if last.end_offset < flushed:\n    return\nif last.end_offset < 0 and damage:",
        ),
        "tests/unit/log/test_recovery.py tests/unit/log/test_mark.py",
    ),
    Mutant(
        "an epoch checkpoint is cut at its border",
        "R-FET-9, KAFKA-10706",
        Edit(
            "kraftwire.log.partition_files:epochs_from",
            "before = [epoch for epoch, start in entries if start <= start_offset]",
            "before = [epoch for epoch, start in entries if start < start_offset]",
        ),
        "tests/unit/log/test_epoch_file.py",
    ),
    Mutant(
        "a cut keeps the epoch that begins at its border",
        "R-FET-9, KAFKA-10706",
        Edit(
            f"{_LOG}._truncate",
            "self._epochs = [entry for entry in self._epochs if entry[1] < end]",
            "self._epochs = [entry for entry in self._epochs if entry[1] <= end]",
        ),
        "tests/unit/log/test_epoch_file.py",
    ),
    Mutant(
        "a flush syncs nothing",
        "D2, D3",
        Edit(f"{_LOG}.flush", "segment.sync()", "pass"),
        "tests/unit/log/test_power.py",
    ),
    Mutant(
        "a new segment's name is not durable",
        "D7",
        Edit(f"{_LOG}._roll", "self._files.fsync_dir(self.directory)", "pass"),
        "tests/unit/log/test_power.py",
    ),
    Mutant(
        "an empty segment rolls for a large batch",
        "D7, S12",
        Edit(
            "kraftwire.log.segment:Segment.must_roll",
            "if not self.size:",
            "if self.size < 0:",
        ),
        "tests/unit/log/test_start.py",
    ),
    Mutant(
        "a log continues after its disk has failed",
        "D9",
        Edit(f"{_LOG}.append", "self._health.ensure()", "pass"),
        "tests/unit/log/test_power.py",
    ),
    Mutant(
        "the mark is lowered after the cut",
        "D5, D11",
        Edit(f"{_LOG}._truncate", "self._mark.set(self._mark_at(end))", "pass"),
        "tests/unit/log/test_mark.py tests/unit/log/test_metadata_log.py",
    ),
    Mutant(
        "a replaced file is not synced before it gets its name",
        "D1",
        Edit("kraftwire.log.files:replace_file", "fdatasync()", "size()"),
        "tests/history/test_votes.py tests/unit/log/test_quorum_state.py",
    ),
    Mutant(
        "the flush mark comes before the flush",
        "D3, D11",
        Edit(
            "kraftwire.log.flush_mark:FlushMark.raise_to",
            "file.fdatasync()",
            "pass",
        ),
        "tests/unit/log/test_mark.py",
    ),
    Mutant(
        "a lower mark goes into one copy",
        "D11",
        Edit(
            "kraftwire.log.flush_mark:FlushMark.set",
            "if self._file is None:",
            "if self._file is not None:\n    self.raise_to(mark)\n    return\n"
            "if self._file is None:",
        ),
        "tests/unit/log/test_mark.py",
    ),
    Mutant(
        "a quorum state of an unknown version is forgotten",
        "R-ID-10, S3",
        Edit(
            "kraftwire.log.quorum_state:QuorumStateFile.read",
            "if type(version) is not int or version not in (0, 1):",
            "if type(version) is not int:",
        ),
        "tests/unit/log/test_quorum_state.py tests/history/test_votes.py",
    ),
    Mutant(
        "a quorum state with one wrong bit is believed",
        "R-ID-10, S3",
        Edit(
            "kraftwire.log.quorum_state:QuorumStateFile._lines",
            "if rest and rest != checksum_line(line):",
            "if rest and not rest.startswith(b'crc32c'):",
        ),
        "tests/unit/log/test_quorum_state.py",
    ),
    Mutant(
        "the directory id of a vote is lost at kraft.version 1",
        "R-ID-9, S3",
        Edit(
            "kraftwire.log.quorum_state:QuorumStateFile.read",
            'self._uuid(data, "votedDirectoryId") if version else ZERO_UUID',
            "ZERO_UUID",
        ),
        "tests/unit/log/test_quorum_state.py",
    ),
    Mutant(
        "a log starts without the snapshot of what is before",
        "KAFKA-14240, S14",
        Edit(
            "kraftwire.log.snapshots.store:SnapshotStore.check_start",
            "if not start_offset or (newest is not None and newest.offset >= start_offset):",
            "if start_offset >= 0:",
        ),
        "tests/unit/log/test_start.py",
    ),
    Mutant(
        "a log is cut during a flush",
        "D5, D9",
        Edit(f"{_RUNNER}._truncate_log", _LOCKED, "if self._workers.lock:"),
        _LOCKS,
    ),
    Mutant(
        "a log is replaced during a flush",
        "D5, D9",
        Edit(f"{_RUNNER}._reset_log", _LOCKED, "if self._workers.lock:"),
        _LOCKS,
    ),
    Mutant(
        "a log's beginning is deleted during a flush",
        "D5, D9",
        Edit(f"{_RUNNER}._drop_log_prefix", _LOCKED, "if self._workers.lock:"),
        _LOCKS,
    ),
    Mutant(
        "a flush does not lock the files",
        "D5, D9",
        Edit(f"{_RUNNER}._sync", _LOCKED, "if self._workers.lock:"),
        _LOCKS,
    ),
    Mutant(
        "the lock of a node's files lets two in",
        "D5, D9",
        Edit(
            "kraftwire.node.driver:_Threads.__init__",
            "self.lock = threading.Lock()",
            "self.lock = threading.Semaphore(2)",
        ),
        "tests/unit/node/test_driver.py",
    ),
    Mutant(
        "the mark covers what was appended beside the flush",
        "D11",
        Edit(
            "kraftwire.log.metadata_log:MetadataLog.flush",
            "self._mark_at(end_offset)",
            "self._mark_at(self.end_offset)",
        ),
        "tests/crash/test_crash_images.py::test_no_crash_loses_what_was_acknowledged",
    ),
    Mutant(
        "a torn write damages both copies of the mark",
        "D11",
        Edit("kraftwire.log.flush_mark:FlushMark.raise_to", "self._number % 2 * COPY_BYTES", "0"),
        "tests/crash/test_crash_images.py::test_no_crash_loses_what_was_acknowledged",
    ),
)
