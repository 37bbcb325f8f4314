"""What is left of a log when the power fails: everything flushed, with the names of its files."""

from __future__ import annotations

from random import Random

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.settings import LogSettings
from kraftwire.sim.disk import SimFiles
from tests.support.logs.batches import TOPIC, TOPIC_ID, append

_SMALL = LogSettings(segment_bytes=1000, index_interval_bytes=200, index_bytes=2400)


def _opened(files: SimFiles) -> MetadataLog:
    files.mkdir("/d")
    return MetadataLog.open(files, "/d", _SMALL, TOPIC, TOPIC_ID)


def _after_power_loss(files: SimFiles) -> MetadataLog:
    """The log found when only what was made durable has survived."""
    files.lose_power(Random(1), "none")
    return _opened(files)


def test_what_was_flushed_is_there_after_the_power_failed() -> None:
    """D2, D3: the leader counts it as its own copy, a follower acknowledges it."""
    files = SimFiles()
    log = _opened(files)
    append(log)
    assert log.flush() == 1
    append(log)
    append(log)
    assert log.flush() == 3
    append(log)
    assert _after_power_loss(files).end_offset == 3


def test_segments_that_were_flushed_are_found_after_the_power_failed() -> None:
    """D7: the bytes of a file that has no name are lost with it."""
    files = SimFiles()
    log = _opened(files)
    append(log, size=300)
    log.flush()
    # No epoch begins from here on: a new epochs file would make all names durable with its own.
    for _ in range(7):
        append(log, size=300)
    assert log.flush() == 8
    segments = [name for name in files.listdir(log.directory) if name.endswith(".log")]
    assert len(segments) > 2
    assert _after_power_loss(files).end_offset == 8


@pytest.mark.parametrize("change", ["append", "flush", "truncate", "drop_prefix"])
def test_a_log_whose_disk_has_failed_takes_nothing_more(change: str) -> None:
    """D9: what a failed sync was to make durable is lost, though a second one would succeed."""
    files = SimFiles()
    log = _opened(files)
    append(log)
    files.break_next_sync()
    with pytest.raises(StorageError):
        log.flush()
    changes = {
        "append": lambda: append(log),
        "flush": log.flush,
        "truncate": lambda: log.truncate(0),
        "drop_prefix": lambda: log.drop_prefix(0),
    }
    with pytest.raises(StorageError, match="syncing"):
        changes[change]()
    assert log.end_offset == 1
