"""The state files of a log directory."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from kraftwire.decode.files.kinds import FileKind, guess
from kraftwire.decode.files.state import parse_producer_snapshot, parse_state
from kraftwire.errors import WireError
from kraftwire.log.flush_mark import FlushMark, Identity, Mark
from kraftwire.log.quorum_state import checksum_line
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.disk import SimFiles

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "logs"


def test_quorum_state_of_both_versions_is_read_unchanged() -> None:
    """The keys are Kafka's own, so a controller's state can be compared field by field."""
    old = (GOLDEN / "observer/__cluster_metadata-0/quorum-state").read_bytes()
    new = (GOLDEN / "controller/__cluster_metadata-0/quorum-state").read_bytes()
    assert parse_state(FileKind.QUORUM_STATE, old).data == {
        "clusterId": "",
        "leaderId": 3,
        "leaderEpoch": 4,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [],
        "data_version": 0,
    }
    state = parse_state(FileKind.QUORUM_STATE, new)
    assert state.data["votedDirectoryId"] == "hwDlIK5BSPidpHwFaUr4mA"
    assert state.oddities == []


def test_a_quorum_state_with_wrong_keys_is_noted() -> None:
    """A hand-edited file stops a controller; the finding says which key is wrong."""
    text = b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":3,"data_version":1}'
    oddities = parse_state(FileKind.QUORUM_STATE, text).oddities
    assert [(id, detail.split()[-1]) for id, _, detail in oddities] == [
        ("missing-key", "'votedDirectoryId'"),
        ("unknown-key", "'appliedOffset'"),
    ]


def test_the_checksum_of_our_own_quorum_state_is_checked() -> None:
    """It is in a second line, which Kafka neither reads nor writes."""
    line = b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"A","data_version":1}'
    state = parse_state(FileKind.QUORUM_STATE, line + b"\n" + checksum_line(line))
    assert (state.data["leaderEpoch"], state.oddities) == (2, [])
    damaged = line.replace(b"2", b"3") + b"\n" + checksum_line(line)
    ((id, position, _),) = parse_state(FileKind.QUORUM_STATE, damaged).oddities
    assert (id, position) == ("state-crc", len(line) + 1)


def test_the_flush_mark_is_shown_with_what_it_covers() -> None:
    """The newest sound copy counts; one damaged copy is reported, two are an error."""
    files = SimFiles()
    mark = FlushMark(files, "/d")
    identity = Identity(3, bytes(range(16)), 7)
    mark.open(Mark(OffsetAndEpoch(10, 2), 5, 99, identity))
    mark.raise_to(Mark(OffsetAndEpoch(12, 2), 5, 99, identity))
    content = bytearray(files.read_bytes(mark.path))
    assert guess("x", bytes(content)) == guess("flushed-offset", b"") == FileKind.FLUSHED_OFFSET
    state = parse_state(FileKind.FLUSHED_OFFSET, bytes(content))
    assert state.oddities == []
    assert state.data == {
        "number": 3,
        "flushedOffset": 12,
        "leaderEpoch": 2,
        "startOffset": 5,
        "epochsCrc": 99,
        "nodeId": 3,
        "directoryId": "AAECAwQFBgcICQoLDA0ODw",
        "clusterIdCrc": 7,
    }
    content[4096 + 20] ^= 1
    state = parse_state(FileKind.FLUSHED_OFFSET, bytes(content))
    assert state.data["flushedOffset"] == 10
    assert [id for id, *_ in state.oddities] == ["state-crc"]
    content[20] ^= 1
    with pytest.raises(WireError, match="both copies are damaged"):
        parse_state(FileKind.FLUSHED_OFFSET, bytes(content))


def test_meta_properties_keeps_values_as_text() -> None:
    """A property is text to Kafka; escapes, comments and continued lines are Java's."""
    content = (GOLDEN / "broker/meta.properties").read_bytes()
    assert parse_state(FileKind.META_PROPERTIES, content).data == {
        "node.id": "10",
        "directory.id": "1Lze8TV4hwrKNGLkx4VZrQ",
        "version": "1",
        "cluster.id": "9CIbsF9FQuGtwD837BRpPA",
    }
    odd = b"#c\n! d\n\nversion = 0\ncluster.id:a\\u00e9\\\n  b\r\nk\\=ey v\\tx\nempty=\n"
    assert parse_state(FileKind.META_PROPERTIES, odd).data == {
        "version": "0",
        "cluster.id": "a\u00e9b",
        "k=ey": "v\tx",
        "empty": "",
    }


def test_partition_metadata_and_clean_shutdown() -> None:
    """The two smallest files of a broker."""
    content = (GOLDEN / "controller/__cluster_metadata-0/partition.metadata").read_bytes()
    data = parse_state(FileKind.PARTITION_METADATA, content).data
    assert data == {"version": 0, "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    content = (GOLDEN / "broker/.kafka_cleanshutdown").read_bytes()
    assert parse_state(FileKind.CLEAN_SHUTDOWN, content).data == {"version": 0, "brokerEpoch": 33}
    assert parse_state(FileKind.CLEAN_SHUTDOWN, b"").data == {}


def test_checkpoints_are_lists_of_entries() -> None:
    """Offsets are numbers, topics text, and the announced count must be right."""
    content = (GOLDEN / "controller/__cluster_metadata-0/leader-epoch-checkpoint").read_bytes()
    state = parse_state(FileKind.LEADER_EPOCHS, content)
    assert state.data["entries"][0] == {"epoch": 1, "startOffset": 0}
    assert state.oddities == []
    content = (GOLDEN / "broker/log-start-offset-checkpoint").read_bytes()
    assert parse_state(FileKind.OFFSETS, content).data == {
        "version": 0,
        "entries": [{"topic": "comp-none", "partition": 0, "offset": 100}],
    }
    empty = parse_state(FileKind.OFFSETS, b"0\n0\n")
    assert empty.data["entries"] == []


@pytest.mark.parametrize("kind", [FileKind.OFFSETS, FileKind.LEADER_EPOCHS])
def test_an_empty_checkpoint_has_no_entries(kind: FileKind) -> None:
    """Kafka creates these files empty, and a broker of a few seconds has nothing else."""
    state = parse_state(kind, b"")
    assert state.data == {"version": None, "entries": []}
    assert not state.oddities


def test_an_epoch_that_goes_back_and_a_wrong_count_are_noted() -> None:
    """Kafka stops on the second and truncates wrongly on the first."""
    oddities = parse_state(FileKind.LEADER_EPOCHS, b"0\n3\n1 0\n1 5\n").oddities
    assert [id for id, _, _ in oddities] == ["wrong-count", "not-monotonic"]


@pytest.mark.parametrize(
    ("kind", "content", "offset"),
    [
        (FileKind.QUORUM_STATE, b"", 0),
        (FileKind.QUORUM_STATE, b"[1]", 0),
        (FileKind.QUORUM_STATE, b'{"data_version":2}', 0),
        (FileKind.QUORUM_STATE, b'{"data_version":true}', 0),
        (FileKind.QUORUM_STATE, b'{"leaderId":1,', 14),
        (FileKind.QUORUM_STATE, b"[" * 100_000, 0),
        (FileKind.QUORUM_STATE, b"\xff\xfe\xfd", 0),
        (FileKind.META_PROPERTIES, b"node.id=1\n", 0),
        (FileKind.META_PROPERTIES, b"version=1\n=x\n", 10),
        (FileKind.PARTITION_METADATA, b"version: 0\nnonsense\n", 11),
        (FileKind.PARTITION_METADATA, b"topic_id: x\n", 0),
        (FileKind.LEADER_EPOCHS, b"0\n1\n1 x\n", 4),
        (FileKind.LEADER_EPOCHS, b"0\n1\n1 2 3\n", 4),
        (FileKind.LEADER_EPOCHS, b"0\n", 0),
        (FileKind.OFFSETS, b"0\n1\ntopic 1_0 5\n", 4),
        (FileKind.OFFSETS, b"0\n1\n\xff 1 5\n", 4),
        (FileKind.OFFSETS, b"9\n0\n", 0),
        (FileKind.CLEAN_SHUTDOWN, b'{"version":1}', 0),
    ],
)
def test_a_damaged_state_file_names_the_byte(kind: FileKind, content: bytes, offset: int) -> None:
    """Any damage is a WireError with a position, never one of Python's own errors."""
    with pytest.raises(WireError) as caught:
        parse_state(kind, content)
    assert caught.value.offset == offset


def test_a_producer_snapshot_has_its_crc_checked() -> None:
    """Kafka deletes a snapshot with a wrong CRC and rebuilds the state from the log."""
    content = (GOLDEN / "broker/txn-out-0/00000000000000000653.snapshot").read_bytes()
    state = parse_producer_snapshot(content)
    assert state.oddities == []
    assert state.data["version"] == 1
    assert [entry["producerId"] for entry in state.data["producerEntries"]] == [1, 2, 3, 4, 10]
    damaged = bytearray(content)
    damaged[30] ^= 1
    assert [id for id, _, _ in parse_producer_snapshot(bytes(damaged)).oddities] == ["snapshot-crc"]


def test_bytes_after_a_producer_snapshot_are_noted() -> None:
    """The CRC covers them, so they are not damage; but no reader uses them."""
    body = struct.pack(">i", 0) + b"xyz"
    state = parse_producer_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)
    assert state.oddities == [("trailing-bytes", 10, "3 bytes after the last entry")]


@pytest.mark.parametrize("content", [b"", b"\x00", b"\x00\x02" + bytes(8), b"\x00\x01\x00"])
def test_a_producer_snapshot_that_cannot_be_read(content: bytes) -> None:
    """Cut, or of a version that no released Kafka writes."""
    with pytest.raises(WireError):
        parse_producer_snapshot(content)
