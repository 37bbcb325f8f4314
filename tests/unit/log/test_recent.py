"""What was appended last is read without the file, as long as it equals the file's contents."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.segment import RECENT_APPENDS_BYTES, RECENT_APPENDS_MAX, RecentAppends
from kraftwire.log.settings import LogSettings
from tests.support.logs.batches import TOPIC, TOPIC_ID, append

_ALL = 1_000_000


def _open(folder: Path) -> MetadataLog:
    return MetadataLog.open(LocalFiles(), str(folder), LogSettings(), TOPIC, TOPIC_ID)


def test_an_append_is_found_by_exactly_its_place() -> None:
    """Half of it, or more than it, has to come from the file."""
    recent = RecentAppends()
    recent.add(0, b"first")
    recent.add(5, b"second")
    assert recent.find(0, 5) == b"first"
    assert recent.find(5, 11) == b"second"
    for start, stop in ((0, 4), (0, 11), (1, 5), (5, 10), (6, 11), (11, 12)):
        assert recent.find(start, stop) is None
    recent.clear()
    assert recent.find(0, 5) is None


def test_a_view_is_not_kept() -> None:
    """It would keep the whole message that contained it."""
    recent = RecentAppends()
    recent.add(0, memoryview(b"fetched"))
    assert recent.find(0, 7) is None


@pytest.mark.parametrize("size", [1, RECENT_APPENDS_BYTES // 3, RECENT_APPENDS_BYTES])
def test_what_is_kept_is_bounded(size: int) -> None:
    """By bytes, and by number, so that an idle leader does not keep old batches for ever."""
    recent, data = RecentAppends(), bytes(size)
    for number in range(50):
        recent.add(number * size, data)
    found = [n for n in range(50) if recent.find(n * size, (n + 1) * size) is not None]
    assert len(found) == min(RECENT_APPENDS_MAX, RECENT_APPENDS_BYTES // size)
    assert found == list(range(50))[-len(found) :]


def test_the_last_append_is_read_as_it_was_given(tmp_path: Path) -> None:
    """A leader reads it once for every replica."""
    log = _open(tmp_path)
    append(log)
    given = append(log, 3)
    assert log.read(1, _ALL, log.end_offset) is given
    assert log.read(2, _ALL, log.end_offset) is given
    log.close()


def test_what_was_cut_off_is_never_read_again(tmp_path: Path) -> None:
    """Another leader's batch of the same length may be there."""
    log = _open(tmp_path)
    append(log)
    gone = append(log, 3, epoch=1)
    log.truncate(1)
    assert log.read(1, _ALL, log.end_offset) == b""
    there = append(log, 3, epoch=2)
    assert len(there) == len(gone)
    assert there != gone
    assert log.read(1, _ALL, log.end_offset) == there
    log.close()
