"""Names of files and folders in a log directory, and telling the kinds of file apart."""

from __future__ import annotations

import gzip
import lzma
import os
import struct
import tarfile
import threading
import zlib
from pathlib import Path

import cramjam
import pytest

from kraftwire.decode.files.decode import decode_file
from kraftwire.decode.files.folders import UnservedFolders, walk
from kraftwire.decode.files.kinds import (
    UNSERVED,
    FileKind,
    Partition,
    guess,
    parse_file_name,
    partition_of,
)
from kraftwire.decode.files.report import FileFinding, FileReport
from kraftwire.decode.files.segment import FileOptions
from kraftwire.decode.files.source import open_source
from kraftwire.decode.options import FilterOptions
from kraftwire.errors import StorageError
from tests.support.captures.decoded import decode

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "logs"
SEGMENT = GOLDEN / "broker/tombs-0/00000000000000000000.log"


def fail(error: StorageError) -> None:
    raise error


@pytest.mark.parametrize(
    ("name", "suffix", "base_offset", "epoch", "state"),
    [
        ("00000000000000000807.log", "log", 807, None, ""),
        ("00000000000000000000.timeindex.deleted", "timeindex", 0, None, ".deleted"),
        ("00000000000000000005.log.swap", "log", 5, None, ".swap"),
        ("00000000000000000005.index.cleaned", "index", 5, None, ".cleaned"),
        ("00000000000000000140-0000000003.checkpoint", "checkpoint", 140, 3, ""),
        ("00000000000000000140-0000000003.checkpoint.part", "checkpoint", 140, 3, ".part"),
        ("bootstrap.checkpoint", "checkpoint", 0, 0, ""),
        ("00000000000000000007_AAAAAAAAAAAAAAAAAAAAAQ.txnindex", "txnindex", 7, None, ""),
        ("00000000000000000007.log.xz", "log", 7, None, ""),
        ("server.log", "", None, None, ""),
    ],
)
def test_a_file_name_tells_kind_offset_and_state(
    name: str, suffix: str, base_offset: int | None, epoch: int | None, state: str
) -> None:
    """Relative offsets of an index count from the base offset, which only the name has."""
    parsed = parse_file_name(name)
    assert (parsed.suffix, parsed.base_offset) == (suffix, base_offset)
    assert (parsed.epoch, parsed.state) == (epoch, state)


@pytest.mark.parametrize(
    ("folder", "partition"),
    [
        ("__cluster_metadata-0", Partition("__cluster_metadata", 0)),
        ("a-b-12", Partition("a-b", 12)),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", Partition("orders", 3, "delete")),
        ("orders-3.0123456789abcdef0123456789abcdef-stray", Partition("orders", 3, "stray")),
        ("data", None),
    ],
)
def test_a_folder_name_tells_the_partition(folder: str, partition: Partition | None) -> None:
    """The topic decides how records are decoded, even in a folder that is being deleted."""
    assert partition_of(Path("/logs") / folder / "x.log") == partition


_SEGMENT_NAME = "00000000000000001234-tqimKeZwStOEOwRzT3L5oQ"


@pytest.mark.parametrize(
    ("path", "partition"),
    [
        ("b/a-b-MWJ6FHTfRYy67jzwZdeqSQ/7", Partition("a-b", 7, topic_id="MWJ6FHTfRYy67jzwZdeqSQ")),
        ("b/t-5fEBmixCR5-dMntYSLIr-g/0", Partition("t", 0, topic_id="5fEBmixCR5-dMntYSLIr-g")),
        ("a-b-3-5fEBmixCR5-dMntYSLIr-4", Partition("a-b", 3, topic_id="5fEBmixCR5-dMntYSLIr-4")),
        ("b/a-b-12", Partition("a-b", 12)),
        ("b/MWJ6FHTfRYy67jzwZdeqSQ/7", None),
        ("remote-log-index-cache", None),
    ],
)
def test_the_name_of_an_object_in_tiered_storage_tells_its_partition(
    path: str, partition: Partition | None
) -> None:
    """Topic, topic id, partition and offset, as plugins arrange them."""
    for suffix in ("log", "timeindex", "log.zst"):
        assert partition_of(Path("/store") / path / f"{_SEGMENT_NAME}.{suffix}") == partition
    assert parse_file_name(f"{_SEGMENT_NAME}.log").base_offset == 1234


def test_a_segment_of_tiered_storage_keeps_its_topic(tmp_path: Path) -> None:
    """Its records are read as those of its topic, and a filter by topic finds it."""
    folder = tmp_path / "__consumer_offsets-MWJ6FHTfRYy67jzwZdeqSQ" / "1"
    folder.mkdir(parents=True)
    (source,) = (GOLDEN / "broker" / "__consumer_offsets-1").glob("*.log")
    data = source.read_bytes()
    (folder / f"{'0' * 20}-tqimKeZwStOEOwRzT3L5oQ.log").write_bytes(data)
    wanted = FilterOptions(topic=("__consumer_offsets",), partition=("1",))
    lines = decode(tmp_path, options=wanted).lines
    assert lines
    assert any(each["decoded"] for line in lines for each in line["records"])


def test_folders_that_no_broker_serves_are_left_out_and_counted(tmp_path: Path) -> None:
    """Their records are copies, or of a topic that is gone; who names such a folder reads it."""
    uuid = "0123456789abcdef0123456789abcdef"
    names = ["orders-3", *(f"orders-3.{uuid}-{state}" for state in UNSERVED)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").touch()
    unserved = UnservedFolders()
    found = list(walk([tmp_path], fail, unserved.add))
    assert [path.parent.name for path in found] == ["orders-3"]
    assert "1 -delete (of a deleted topic" in str(unserved)
    for state in UNSERVED:
        assert f"1 -{state} (" in str(unserved)
    named = list(walk([tmp_path / names[1]], fail, unserved.add))
    assert [path.parent.name for path in named] == [names[1]]


def test_every_golden_file_is_known_by_its_name() -> None:
    """The log directories of a real cluster hold nothing that the tool does not know."""
    for folder in ("controller", "observer", "broker"):
        for path in walk([GOLDEN / folder], fail):
            head = path.read_bytes()[:4096]
            assert guess(path, head, path.stat().st_size) is not FileKind.UNKNOWN, path


@pytest.mark.parametrize(
    "name",
    [
        "controller/__cluster_metadata-0/00000000000000000993.log",
        "controller/__cluster_metadata-0/quorum-state",
        "observer/__cluster_metadata-0/quorum-state",
        "controller/meta.properties",
        "broker/tombs-0/partition.metadata",
        "broker/tombs-0/00000000000000000200.snapshot",
        "controller/__cluster_metadata-0/leader-epoch-checkpoint",
        "broker/recovery-point-offset-checkpoint",
        "broker/.kafka_cleanshutdown",
    ],
)
def test_a_renamed_file_is_known_by_its_content(name: str) -> None:
    """People copy files out of log directories and rename them."""
    path = GOLDEN / name
    content = path.read_bytes()
    by_name = guess(path, content[:4096], len(content))
    assert guess("copy.bin", content[:4096], len(content)) is by_name


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xa1\xb2\xc3\xd4" + bytes(20), FileKind.PCAP),
        (b"\x4d\x3c\xb2\xa1" + bytes(20), FileKind.PCAP),
        (b"\x0a\x0d\x0d\x0a" + bytes(24), FileKind.PCAPNG),
        (b"\x1f\x8b\x08", FileKind.GZIP),
        (b"2026-01-01 INFO started (kafka.server)\n" * 9, FileKind.UNKNOWN),
        (b'{"some": "json"}', FileKind.UNKNOWN),
        (b"", FileKind.UNKNOWN),
        (bytes(4096), FileKind.UNKNOWN),
    ],
)
def test_magics_and_foreign_content(head: bytes, kind: FileKind) -> None:
    """A capture is a capture whatever its name; a server's text log is not a segment."""
    assert guess("server.log", head, len(head)) is kind


def test_an_index_without_its_name_is_not_taken_for_a_segment() -> None:
    """Its numbers stand where a batch has length and magic; only its name tells its kind."""
    for path in walk([GOLDEN], fail):
        content = path.read_bytes()
        if path.suffix in (".index", ".timeindex") and content.strip(b"\0"):
            assert guess("copy.bin", content[:4096], len(content)) is FileKind.UNKNOWN, path
    entries = b"".join(struct.pack(">ii", 40 * n, 4200 * n) for n in range(1, 600))
    assert guess("copy.bin", entries[:4096], len(entries)) is FileKind.UNKNOWN


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 5000])
def test_a_message_of_a_legacy_format_is_known_by_its_lengths(
    magic: int, key: bytes | None
) -> None:
    """These formats have few other marks."""
    sizes = [struct.pack(">i", -1 if each is None else len(each)) for each in (key, b"value")]
    message = bytes([magic, 0]) + bytes(8 * magic) + sizes[0] + (key or b"") + sizes[1] + b"value"
    content = struct.pack(">qiI", 7, len(message) + 4, zlib.crc32(message)) + message
    assert guess("copy.bin", content[:4096], len(content)) is FileKind.LOG
    content = struct.pack(">qiI", 7, len(message) + 5, zlib.crc32(message)) + message
    if len(content) < 4096:
        assert guess("copy.bin", content[:4096], len(content)) is FileKind.UNKNOWN


@pytest.mark.parametrize("suffix", [".tar", ".tar.xz", ".log"])
def test_a_tar_archive_is_one_whatever_its_name(tmp_path: Path, suffix: str) -> None:
    """Its first bytes are the name of a file, which look like the header of a batch."""
    folder = tmp_path / "broker"
    folder.mkdir()
    (folder / SEGMENT.name).write_bytes(SEGMENT.read_bytes())
    path = tmp_path / f"logs{suffix}"
    with tarfile.open(path, "w:xz" if suffix == ".tar.xz" else "w") as archive:
        archive.add(folder, "broker")
    with open_source(path) as source:
        assert source.kind is FileKind.TAR
    findings: list[FileFinding] = []
    assert list(decode_file(path, FileOptions(), FileReport(findings.append))) == []
    (finding,) = findings
    assert str(finding).endswith("a tar archive: unpack it, and decode the files in it")


@pytest.mark.parametrize("packed", [gzip.compress, lzma.compress, cramjam.zstd.compress])
def test_a_compressed_segment_is_unpacked(tmp_path: Path, packed: object) -> None:
    """Segments are shipped compressed; the kind is that of what is inside."""
    assert callable(packed)
    path = tmp_path / "00000000000000000000.log.z"
    path.write_bytes(bytes(packed(SEGMENT.read_bytes())))
    with open_source(path) as source:
        assert source.kind is FileKind.LOG
        assert bytes(source.read(0, source.size)) == SEGMENT.read_bytes()


def test_a_compressed_capture_stays_compressed(tmp_path: Path) -> None:
    """The capture reader unpacks its files itself; here only their kind matters."""
    path = tmp_path / "c.gz"
    path.write_bytes(gzip.compress(b"\xd4\xc3\xb2\xa1" + bytes(20)))
    with open_source(path) as source:
        assert source.kind is FileKind.PCAP
        assert source.size == path.stat().st_size


def test_a_broken_compressed_file_is_a_storage_error(tmp_path: Path) -> None:
    """A truncated download must be reported, not silently decoded in part."""
    path = tmp_path / "00000000000000000000.log.gz"
    path.write_bytes(gzip.compress(os.urandom(10_000))[:-100])
    with pytest.raises(StorageError, match="cannot unpack gzip"), open_source(path):
        pass


def test_a_pipe_is_copied_before_it_is_read(tmp_path: Path) -> None:
    """``kraftwire decode <(xz -dc x.log.xz)`` passes a pipe, which has no positions."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(SEGMENT.read_bytes(),))
    writer.start()
    with open_source(pipe) as source:
        assert source.kind is FileKind.LOG
        assert source.size == SEGMENT.stat().st_size
    writer.join()


def test_a_walk_is_sorted_and_enters_a_looping_folder_once(tmp_path: Path) -> None:
    """Output must not depend on the file system, nor end in a loop of links."""
    for name in ("b/2", "b/1", "a/9", "0"):
        file = tmp_path / "root" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    (tmp_path / "root/a/loop").symlink_to(tmp_path / "root")
    found = [str(path.relative_to(tmp_path / "root")) for path in walk([tmp_path / "root"], fail)]
    assert found == ["0", "a/9", "b/1", "b/2"]


def test_a_missing_path_is_reported_and_the_walk_continues(tmp_path: Path) -> None:
    """One wrong argument must not hide the others."""
    file = tmp_path / "there"
    file.write_bytes(b"")
    errors: list[StorageError] = []
    assert list(walk([tmp_path / "gone", file], errors.append)) == [file]
    assert "no such file" in str(errors[0])
