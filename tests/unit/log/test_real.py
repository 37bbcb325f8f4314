"""Log directories of real controllers: written again with the same bytes, opened, left alone."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from kraftwire.log.files import LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.quorum_state import QuorumStateFile
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.records.reader import read_batches
from tests.support.captures.decoded import shared
from tests.support.logs.batches import TOPIC, TOPIC_ID

# The controllers ran with metadata.log.segment.ms=90000.
_SETTINGS = LogSettings(segment_bytes=8 * 1024 * 1024, segment_ms=90_000)
_PARTITION = f"{TOPIC}-0"


def _open(folder: Path) -> MetadataLog:
    return MetadataLog.open(LocalFiles(), str(folder), _SETTINGS, TOPIC, TOPIC_ID)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def real_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories of three real controllers."""
    folder = tmp_path_factory.mktemp("real")
    with tarfile.open(shared("logs", "kafka-4.3.1-logs.tar.xz")) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def real(real_logs: Path) -> Path:
    """The directory of a controller that was a follower all the time and restarted once."""
    return real_logs / "metadata/c3"


def test_a_log_written_again_has_the_same_files(real: Path, tmp_path: Path) -> None:
    """Segments end where Kafka ends them, and index entries are where Kafka puts them."""
    log = _open(tmp_path)
    for path in sorted((real / _PARTITION).glob("*.log")):
        for batch in read_batches(path.read_bytes()):
            if batch.base_offset == 848:  # here the controller restarted
                log.close()
                log = _open(tmp_path)
            log.append(batch.raw, batch.base_offset, batch.last_offset + 1)
    log.close()
    written = _files(tmp_path / _PARTITION)
    del written["flushed-offset"]
    expected = _files(real / _PARTITION)
    assert {name: expected.get(name) for name in written} == written
    rest = {name for name in expected.keys() - written.keys() if ".checkpoint" not in name}
    assert rest == {"quorum-state"}


@pytest.mark.parametrize("name", ["c1", "c2", "c3"])
def test_opening_a_real_directory_changes_nothing(
    real_logs: Path, tmp_path: Path, name: str
) -> None:
    """Except for an epoch without records that a killed leader noted, which is derived again, and
    for our own files: the mark, and the checksum of quorum-state.
    """
    copy = tmp_path / name
    shutil.copytree(real_logs / "metadata" / name, copy)
    before = _files(copy / _PARTITION)
    log = _open(copy)
    assert (log.start_offset, log.end_offset) == (0, 1168)
    assert log.epochs() == [(1, 0), (2, 810), (3, 848), (4, 878)]
    newest = max(path.stem for path in (copy / _PARTITION).glob("*.checkpoint"))
    store = SnapshotStore(LocalFiles(), str(copy / _PARTITION))
    assert store.newest == tuple(map(int, newest.split("-")))
    assert len(store.stored()) == len(list((copy / _PARTITION).glob("*.checkpoint")))
    assert len(log.control()) == 6  # four leaders, two changes of the voters
    log.close()
    after = _files(copy / _PARTITION)
    assert after.pop("flushed-offset")
    assert after["quorum-state"].startswith(before["quorum-state"] + b"\n")
    after["quorum-state"] = before["quorum-state"]
    changed = {name for name in before if before[name] != after.get(name)}
    assert after.keys() == before.keys()
    assert changed <= {"leader-epoch-checkpoint"}


def test_a_real_quorum_state_is_written_again(real: Path, tmp_path: Path) -> None:
    """Its order of keys; a line with the checksum follows."""
    path = real / _PARTITION / "quorum-state"
    state = QuorumStateFile(LocalFiles(), str(path)).read()
    assert state is not None
    assert (state.epoch, state.leader_id, state.voted_id) == (5, 1, 1)
    copy = tmp_path / "quorum-state"
    QuorumStateFile(LocalFiles(), str(copy)).write(state, 1, [])
    assert copy.read_bytes().split(b"\n")[0] == path.read_bytes()
