"""The epochs of a log at the borders where it is cut, at its end and its beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.partition_files import epochs_from, read_epochs
from kraftwire.log.settings import LogSettings
from tests.support.logs.batches import TOPIC, TOPIC_ID, append, put_snapshot

# Epochs 1, 2 and 4 begin at offsets 0, 2 and 5 of a log that ends at 7.
_EPOCHS = [(1, 0), (2, 2), (4, 5)]


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    """A log with three epochs."""
    made = MetadataLog.open(LocalFiles(), str(tmp_path), LogSettings(), TOPIC, TOPIC_ID)
    for epoch, count in ((1, 2), (2, 3), (4, 2)):
        for _ in range(count):
            append(made, epoch=epoch)
    made.flush()
    assert made.epochs() == _EPOCHS
    return made


def _stored(log: MetadataLog) -> object:
    return read_epochs(LocalFiles(), f"{log.directory}/leader-epoch-checkpoint")


@pytest.mark.parametrize(
    ("end", "left"),
    [(6, _EPOCHS), (5, _EPOCHS[:2]), (4, _EPOCHS[:2]), (2, _EPOCHS[:1]), (1, _EPOCHS[:1]), (0, [])],
)
def test_a_cut_takes_the_epochs_that_begin_at_its_border(
    log: MetadataLog, end: int, left: list[tuple[int, int]]
) -> None:
    """An epoch without records would make followers wait for what never comes (KAFKA-10706)."""
    log.truncate(end)
    assert log.epochs() == left
    assert _stored(log) == left
    log.close()


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (0, _EPOCHS),
        (1, [(1, 1), (2, 2), (4, 5)]),
        (2, [(2, 2), (4, 5)]),
        (4, [(2, 4), (4, 5)]),
        (5, [(4, 5)]),
        (6, [(4, 6)]),
    ],
)
def test_the_epoch_in_force_at_a_new_start_begins_there(
    log: MetadataLog, start: int, left: list[tuple[int, int]]
) -> None:
    """If an epoch begins exactly there, the previous one is removed entirely."""
    assert epochs_from(_EPOCHS, start) == left
    if start:
        put_snapshot(log.directory, start)
        log.drop_prefix(start)
    assert log.epochs() == left
    log.close()
