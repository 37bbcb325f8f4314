"""Snapshot files: ours are those that Kafka's own writer makes, and Kafka's tools read them."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from kraftwire.log.files import LocalFiles
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.log.snapshots.writer import ControlRecords, SnapshotWriter
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.messages.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from kraftwire.records.control import ControlType
from kraftwire.records.metadata import encode_metadata
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.kafka.java import run_java_source, run_kafka_tool

_ID = OffsetAndEpoch(7_000_000_000, 12)
_NOW = 1_700_000_000_000
_VOTERS = VotersRecord(
    version=0,
    voters=[
        Voter(
            voter_id=number,
            voter_directory_id=bytes([number]) * 16,
            endpoints=[Endpoint(name="CONTROLLER", host=f"host{number}", port=9000 + number)],
            kraft_version_feature=KRaftVersionFeature(
                min_supported_version=0, max_supported_version=1
            ),
        )
        for number in (1, 2, 3)
    ],
)
_CONTROL: ControlRecords = (
    (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
    (ControlType.KRAFT_VOTERS, _VOTERS),
)


def _ours(folder: Path, lists: list[list[bytes]], control: ControlRecords, limit: int) -> bytes:
    store = SnapshotStore(LocalFiles(), str(folder))
    whole = store.writer(_ID, control, _NOW - 77, _NOW)
    # The limit is a constant of the quorum; a small one exposes the boundaries of batches.
    writer = SnapshotWriter(
        LocalFiles().open(str(folder / "written"), create=True),
        _ID,
        _NOW,
        publish=lambda file: file.close() or 0,  # type: ignore[func-returns-value]
        withdraw=lambda file: file.close(),
        batch_max_bytes=limit,
    )
    writer.begin(_NOW - 77, control)
    for values in lists:
        writer.append(values)
        whole.append(values)
    writer.freeze()
    whole.freeze()
    return (folder / "written").read_bytes()


# The largest batch, and how many values a list may have.
_SIZES = ((8 << 20, 60), (3000, 4), (700, 1), (20_000, 90))
_WITH_VOTERS = (True, False)


def _lists(limit: int, list_max: int) -> list[list[bytes]]:
    source = random.Random(limit)
    return [
        [source.randbytes(source.randint(1, 200)) for _ in range(source.randint(1, list_max))]
        for _ in range(80)
    ]


def _folder(root: Path, limit: int, with_voters: bool) -> Path:
    return root / f"{limit}-{with_voters}"


@pytest.fixture(scope="module")
def javas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what Kafka's writer makes of all cases, by one JVM."""
    root = tmp_path_factory.mktemp("java")
    given = b""
    for limit, list_max in _SIZES:
        for with_voters in _WITH_VOTERS:
            folder = _folder(root, limit, with_voters)
            folder.mkdir()
            name = str(folder).encode()
            given += struct.pack(">H", len(name)) + name
            given += struct.pack(">qiiqq", *_ID, limit, _NOW - 77, _NOW)
            given += _counted(_VOTERS.encode(0) if with_voters else b"")
            for values in _lists(limit, list_max):
                given += struct.pack(">i", len(values)) + b"".join(map(_counted, values))
            given += struct.pack(">i", 0)
    run_java_source("WriteSnapshot", given + struct.pack(">H", 0))
    return root


def _counted(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@pytest.mark.parametrize("with_voters", _WITH_VOTERS)
@pytest.mark.parametrize(("limit", "list_max"), _SIZES)
def test_the_bytes_are_those_of_kafkas_writer(
    tmp_path: Path, javas: Path, limit: int, list_max: int, with_voters: bool
) -> None:
    """Headers, batches and where they end, for both kraft.versions (R-SNAP-3)."""
    folder = _folder(javas, limit, with_voters)
    control = _CONTROL if with_voters else ()
    ours = _ours(tmp_path, _lists(limit, list_max), control, limit)
    (java,) = folder.iterdir()
    assert java.read_bytes() == ours
    assert java.stat().st_mode & 0o777 == 0o400
    if limit == 8 << 20:
        store = SnapshotStore(LocalFiles(), str(tmp_path))
        assert store.read(_ID, 0, len(ours)) == ours
    assert SnapshotStore(LocalFiles(), str(folder)).newest == _ID


def test_dump_log_reads_our_snapshots(tmp_path: Path) -> None:
    """Kafka's decoder of metadata snapshots reports no errors."""
    store = SnapshotStore(LocalFiles(), str(tmp_path))
    writer = store.writer(_ID, _CONTROL, _NOW, _NOW)
    value = encode_metadata(NoOpRecord(), 0)
    for _ in range(30):
        writer.append([value] * 100)
    writer.freeze()
    (path,) = tmp_path.iterdir()
    result = run_kafka_tool(
        "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", path
    )
    out = result.stdout
    assert out.count('"type":"NO_OP_RECORD"') == 3000
    for kind in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"):
        assert kind in out
    assert "isvalid: false" not in out
    assert "xception" not in out + result.stderr
