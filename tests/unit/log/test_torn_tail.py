"""The end of a log after a crash: what was never flushed and is not whole is cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.settings import LogSettings
from kraftwire.records.header import CRC_START
from tests.support.logs.batches import TOPIC, TOPIC_ID, append, batch

_CRC = slice(17, 21)


def _open(folder: Path) -> MetadataLog:
    return MetadataLog.open(LocalFiles(), str(folder), LogSettings(), TOPIC, TOPIC_ID)


def _segment(folder: Path) -> Path:
    return folder / f"{TOPIC}-0" / f"{'0' * 20}.log"


@pytest.fixture
def flushed(tmp_path: Path) -> Path:
    """A folder with a log of three flushed batches; its process was killed."""
    log = _open(tmp_path)
    for _ in range(3):
        append(log)
    log.flush()
    log._close_files()
    return tmp_path


def _write(folder: Path, data: bytes) -> None:
    """Let the kernel have written this after what was flushed."""
    path = _segment(folder)
    whole = batch(0), batch(1), batch(2)
    end = sum(map(len, whole))
    content = path.read_bytes()
    path.write_bytes(content[:end] + data + content[end + len(data) :])


def _torn(change: slice, value: bytes) -> bytes:
    data = bytearray(batch(3, 2, size=900))
    data[change] = value
    return bytes(data)


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(_torn(_CRC, bytes(4)), id="crc field zero"),
        pytest.param(_torn(slice(512, 1024), bytes(512)), id="a sector of zeros"),
        pytest.param(_torn(slice(17, 512), bytes(495)), id="zeros from the crc on"),
        pytest.param(_torn(slice(CRC_START + 60, CRC_START + 61), b"?"), id="one byte"),
        pytest.param(batch(3, 2, size=900)[:700], id="cut in the middle"),
    ],
)
def test_a_torn_batch_is_cut_off(flushed: Path, tail: bytes) -> None:
    """A zero is a checksum like any other: it has to be correct."""
    _write(flushed, tail)
    log = _open(flushed)
    assert log.end_offset == 3
    assert [offset for offset, _ in log.batches()] == [0, 1, 2]
    log.close()


def test_a_whole_batch_that_was_not_flushed_stays(flushed: Path) -> None:
    """It was not acknowledged, yet it is sound."""
    _write(flushed, batch(3, 2, size=900))
    log = _open(flushed)
    assert log.end_offset == 5
    log.close()
