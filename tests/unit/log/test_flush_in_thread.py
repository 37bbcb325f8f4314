"""A flush that runs in a thread, during appends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.segment import BatchFacts, Segment
from kraftwire.log.settings import LogSettings
from tests.support.log_batches import TOPIC, TOPIC_ID, append


@pytest.mark.parametrize("before", [True, False], ids=["before the write", "after the write"])
def test_what_is_reported_durable_was_synced_after_its_write(
    before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2, D3: a flush that begins in the middle of an append must not swallow the append's mark."""
    log = MetadataLog.open(LocalFiles(), str(tmp_path), LogSettings(), TOPIC, TOPIC_ID)
    story: list[str] = []
    write, sync = Segment.append, Segment.sync

    def interrupted(
        segment: Segment, data: bytes | memoryview, batches: Sequence[BatchFacts]
    ) -> None:
        if before:
            log.flush()
        write(segment, data, batches)
        story.append("write")
        if not before:
            log.flush()

    def synced(segment: Segment) -> None:
        sync(segment)
        story.append("sync")

    monkeypatch.setattr(Segment, "append", interrupted)
    monkeypatch.setattr(Segment, "sync", synced)
    append(log, 1, epoch=1)
    assert log.flush() == log.flushed_offset == 1
    assert "sync" in story[story.index("write") :]
    log.close()
