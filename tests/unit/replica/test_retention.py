"""Which snapshot a log may start at (R-SNAP-6)."""

from __future__ import annotations

import pytest

from kraftwire.log.snapshots.reader import SnapshotFile
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.cleaning import Retention, log_start_candidate

NOW = 1_000_000
MINUTE = 60_000


def snapshots(*ages: int, size: int = 100) -> list[SnapshotFile]:
    """Snapshots of these ages, each of one size, oldest first."""
    return [
        SnapshotFile(OffsetAndEpoch(100 * number, 1), size, b"", NOW - age)
        for number, age in enumerate(ages)
    ]


def chosen(stored: list[SnapshotFile], log_bytes: int, **limits: int) -> int | None:
    """The end offset of the snapshot that is chosen."""
    found = log_start_candidate(Retention(**limits), stored, log_bytes, NOW)
    return None if found is None else found.offset


@pytest.mark.parametrize(
    ("log_bytes", "limit", "expected"),
    [(200, 500, None), (201, 500, 100), (10_000, -1, None), (0, 0, 100), (0, 300, None)],
)
def test_the_oldest_goes_if_everything_is_too_large(
    log_bytes: int, limit: int, expected: int | None
) -> None:
    """The log counts, and so do all snapshots, including those that stay."""
    assert chosen(snapshots(0, 0, 0), log_bytes, max_bytes=limit) == expected


@pytest.mark.parametrize(
    ("age", "limit", "expected"),
    [(MINUTE, MINUTE, None), (MINUTE + 1, MINUTE, 100), (MINUTE, -1, None), (1, 0, 100)],
)
def test_the_oldest_goes_if_it_is_too_old(age: int, limit: int, expected: int | None) -> None:
    """Its age is that of its newest record, not of the file."""
    assert chosen(snapshots(age, 0), 0, max_ms=limit) == expected
    assert chosen(snapshots(0, age), 0, max_ms=limit) is None


def test_the_only_snapshot_stays() -> None:
    """This holds whatever its age and size: the log begins at it."""
    assert chosen(snapshots(10 * MINUTE), 10**9, max_bytes=1, max_ms=1) is None
    assert chosen([], 10**9, max_bytes=1, max_ms=1) is None


def test_one_snapshot_goes_at_a_time() -> None:
    """The check is repeated with the remaining sizes until they fit."""
    stored, log_bytes = snapshots(0, 0, 0, 0), 400
    starts = []
    while (start := chosen(stored, log_bytes, max_bytes=450)) is not None:
        starts.append(start)
        stored, log_bytes = stored[1:], log_bytes - 100
    assert starts == [100, 200]


def test_kafkas_defaults_hold() -> None:
    """100 MiB and a week."""
    assert Retention() == Retention(max_bytes=104_857_600, max_ms=604_800_000)
