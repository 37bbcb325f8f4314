"""The kinds of file in a log directory, by their names and their bytes."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kraftwire.capture.packets import unpacking
from kraftwire.log.names import MARK_MAGIC
from kraftwire.records.header import (
    CRC_START,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC_FIELD,
    fields,
)

# Kafka renames a file before it deletes it, while it swaps cleaned segments in, and while it
# writes a snapshot or a state file.
_STATES = (".deleted", ".cleaned", ".swap", ".part", ".tmp")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")
# The other forms are of tiered storage: base offset, then the id of the segment, with an underscore
# in the cache of indexes, with a dash in the store.
_SEGMENT_FILE = re.compile(
    r"(\d{20})(?:[_-][\w-]{22})?\.(log|index|timeindex|txnindex|snapshot)", re.ASCII
)
# Where tiered storage keeps segments by topic: Aiven's plugin in topic-ID/PARTITION, the one that
# comes with Kafka's tests in topic-PARTITION-ID. Source: `ObjectKeyFactory` of the first,
# `RemoteTopicPartitionDirectory` of the second.
_TIERED_FILE = re.compile(r"\d{20}-[\w-]{22}\.", re.ASCII)
_TIERED_FOLDERS = re.compile(r"(?s:(.+))-([\w-]{22})/(\d+)", re.ASCII)
_TIERED_FOLDER = re.compile(r"(?s:(.+))-(\d+)-([\w-]{22})", re.ASCII)
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)
_PARTITION = re.compile(
    r"(.+)-(\d+)(?:\.[0-9a-fA-F]{32}-(delete|future|stray))?", re.ASCII | re.DOTALL
)

# A broker renames the folder of a partition that it does not serve from there. Suffix -> whose
# records the folder holds.
UNSERVED = {
    "delete": "of a deleted topic, until file.delete.delay.ms has passed",
    "future": "a copy on its way to another log directory",
    "stray": "of a partition that is not assigned to the broker",
}


@dataclass(frozen=True, slots=True)
class FileName:
    """A file's name, taken apart.

    `stem` is the name without the suffixes of renaming and compression; `suffix` is the
    part that shows the kind (``log``, ``index``, ``checkpoint``, ...), empty if the name is not
    that of a segment's file or of a snapshot; `state` is the suffix of a file that is being
    removed or put in place, such as ``.deleted``.
    """

    stem: str
    suffix: str = ""
    base_offset: int | None = None
    epoch: int | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class Partition:
    """Topic and partition index that a folder's name stands for.

    `state` is the suffix, a key of `UNSERVED`, of a folder that the broker does not serve;
    `topic_id` is the topic's id where the name has it.
    """

    topic: str
    index: int
    state: str = ""
    topic_id: str = ""


def parse_file_name(name: str) -> FileName:
    """Take a file's name apart (the last component of a path)."""
    stem, state = name, ""
    for ending in (*_COMPRESSIONS, *_STATES):
        if stem.endswith(ending) and stem != ending:
            stem = stem.removesuffix(ending)
            state = ending if ending in _STATES else state
    if match := _SEGMENT_FILE.fullmatch(stem):
        return FileName(stem, match[2], int(match[1]), state=state)
    if match := _SNAPSHOT.fullmatch(stem):
        return FileName(stem, "checkpoint", int(match[1]), int(match[2]), state)
    if stem == "bootstrap.checkpoint":
        return FileName(stem, "checkpoint", 0, 0, state)
    return FileName(stem, state=state)


def partition_of(path: Path) -> Partition | None:
    """The partition that a file belongs to by the name of its folder, or None."""
    folder = path.absolute().parent
    if _TIERED_FILE.match(path.name):
        if match := _TIERED_FOLDERS.fullmatch(f"{folder.parent.name}/{folder.name}"):
            return Partition(match[1], int(match[3]), topic_id=match[2])
        if match := _TIERED_FOLDER.fullmatch(folder.name):
            return Partition(match[1], int(match[2]), topic_id=match[3])
    return parse_folder_name(folder.name)


def parse_folder_name(name: str) -> Partition | None:
    """The partition that the name of a folder stands for, or None."""
    match = _PARTITION.fullmatch(name)
    return Partition(match[1], int(match[2]), match[3] or "") if match else None


def is_unserved(folder: str) -> bool:
    """Whether a folder's name is that of a partition that its broker does not serve."""
    partition = parse_folder_name(folder)
    return partition is not None and bool(partition.state)


# Enough for every magic, a batch header and the keys of a JSON or properties file.
HEAD_SIZE = 4096


class FileKind(StrEnum):
    """A kind of file; the value is the `type` of its lines where the lines have one."""

    LOG = "log"
    SNAPSHOT = "checkpoint"
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TXN_INDEX = "txnindex"
    PRODUCER_SNAPSHOT = "producer-snapshot"
    QUORUM_STATE = "quorum-state"
    META_PROPERTIES = "meta.properties"
    PARTITION_METADATA = "partition.metadata"
    LEADER_EPOCHS = "leader-epoch-checkpoint"
    FLUSHED_OFFSET = "flushed-offset"
    OFFSETS = "offset-checkpoint"
    CLEAN_SHUTDOWN = "kafka_cleanshutdown"
    PCAP = "pcap"
    PCAPNG = "pcapng"
    GZIP = "gzip"
    XZ = "xz"
    ZSTD = "zstd"
    BZIP2 = "bzip2"
    ZIP = "zip"
    TAR = "tar"
    NOTHING = "nothing"
    UNKNOWN = "unknown"

    @property
    def is_capture(self) -> bool:
        """Whether packets are inside, which the capture reader decodes."""
        return self in (FileKind.PCAP, FileKind.PCAPNG)

    @property
    def is_compressed(self) -> bool:
        """Whether the file must be decompressed before its kind is known."""
        return self in _COMPRESSED

    @property
    def is_unknown(self) -> bool:
        """Whether nothing of the file is decoded.

        The files in an archive have to be unpacked, and what is still compressed inside of another
        compression.
        """
        return self in (FileKind.UNKNOWN, FileKind.TAR) or self.is_compressed

    @property
    def has_batches(self) -> bool:
        """Whether the file is a row of record batches."""
        return self in (FileKind.LOG, FileKind.SNAPSHOT)


_COMPRESSED = frozenset(
    {FileKind.GZIP, FileKind.BZIP2, FileKind.XZ, FileKind.ZSTD, FileKind.ZIP}
)
_MAGICS = (
    (b"\xa1\xb2\xc3\xd4", FileKind.PCAP),
    (b"\xd4\xc3\xb2\xa1", FileKind.PCAP),
    (b"\xa1\xb2\x3c\x4d", FileKind.PCAP),
    (b"\x4d\x3c\xb2\xa1", FileKind.PCAP),
    (b"\x0a\x0d\x0d\x0a", FileKind.PCAPNG),
    (unpacking.GZIP, FileKind.GZIP),
    (unpacking.BZIP2, FileKind.BZIP2),
    (unpacking.XZ, FileKind.XZ),
    *((magic, FileKind.ZSTD) for magic in (unpacking.ZSTD, *unpacking.ZSTD_SKIPPED)),
    (unpacking.ZIP, FileKind.ZIP),
    (MARK_MAGIC, FileKind.FLUSHED_OFFSET),
)
_BY_SUFFIX = {
    "log": FileKind.LOG,
    "checkpoint": FileKind.SNAPSHOT,
    "index": FileKind.OFFSET_INDEX,
    "timeindex": FileKind.TIME_INDEX,
    "txnindex": FileKind.TXN_INDEX,
    "snapshot": FileKind.PRODUCER_SNAPSHOT,
}
_BY_NAME = {
    "quorum-state": FileKind.QUORUM_STATE,
    "meta.properties": FileKind.META_PROPERTIES,
    "partition.metadata": FileKind.PARTITION_METADATA,
    "leader-epoch-checkpoint": FileKind.LEADER_EPOCHS,
    "flushed-offset": FileKind.FLUSHED_OFFSET,
    "recovery-point-offset-checkpoint": FileKind.OFFSETS,
    "replication-offset-checkpoint": FileKind.OFFSETS,
    "log-start-offset-checkpoint": FileKind.OFFSETS,
    "cleaner-offset-checkpoint": FileKind.OFFSETS,
    ".kafka_cleanshutdown": FileKind.CLEAN_SHUTDOWN,
    # An empty file that a running broker holds locked.
    ".lock": FileKind.NOTHING,
}
_BY_TEXT = (
    (rb"\s*\{.*\"leaderEpoch\"\s*:", FileKind.QUORUM_STATE),
    (rb"\s*\{.*\"brokerEpoch\"\s*:", FileKind.CLEAN_SHUTDOWN),
    (rb"version:\s*\d+\s*\n\s*topic_id:", FileKind.PARTITION_METADATA),
    (
        rb"(?=(?:.*\n)?version=[01]\s*(?:\n|$))"
        rb"(?:.*\n)?(?:cluster\.id|node\.id|broker\.id|directory\.id)=",
        FileKind.META_PROPERTIES,
    ),
    (rb"\d+\n\d+\n\d+ \d+\s*(?:\n|$)", FileKind.LEADER_EPOCHS),
    (rb"\d+\n\d+\n[\w.-]+ \d+ \d+\s*(?:\n|$)", FileKind.OFFSETS),
)
_TEXTS = tuple((re.compile(pattern, re.DOTALL), kind) for pattern, kind in _BY_TEXT)

# Where every format of a batch agrees.
_BATCH_START = fields("base_offset", "batch_length", "partition_leader_epoch", "magic")
_BATCH_COUNTS = fields("attributes", "last_offset_delta", "count", start="attributes")
_ATTRIBUTES_MAX = 0x7F
# A message of the legacy formats has a CRC, magic, attributes, a timestamp in magic 1, a key and a
# value, which have their lengths before them.
_LEGACY_ATTRIBUTES_MAX = 0x0F
_LEGACY_KEY = {0: LOG_OVERHEAD + 6, 1: LOG_OVERHEAD + 14}
_LENGTH = struct.Struct(">i")
_PRODUCER_SNAPSHOT_START = struct.Struct(">hIi")
_PRODUCER_ENTRY_SIZE = 46

# The header of a member of a tar archive: "ustar", and its checksum, with blanks in its own place.
_TAR_HEADER_SIZE = 512
_TAR_MAGIC = slice(257, 262)
_TAR_CHECKSUM = slice(148, 156)


def guess(path: str | Path, head: bytes, size: int | None = None) -> FileKind:
    """Recognize the kind of a file by its name and its first bytes.

    `head` is the file's first `HEAD_SIZE` bytes, or all if it is shorter; `size` is the
    whole file's, where it is known. A capture, an archive or a compressed file is one whatever its
    name.
    """
    name = parse_file_name(Path(path).name)
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    if _is_tar(head):
        return FileKind.TAR
    by_name = _BY_NAME.get(name.stem) or _BY_SUFFIX.get(name.suffix)
    if by_name is not None:
        return by_name
    # Before batches: as a base offset, the version of a producer snapshot would be absurd.
    if _starts_with_producers(head, size):
        return FileKind.PRODUCER_SNAPSHOT
    if _starts_with_batch(head):
        return FileKind.SNAPSHOT if name.stem.endswith(".checkpoint") else FileKind.LOG
    return next((kind for text, kind in _TEXTS if text.match(head)), FileKind.UNKNOWN)


def _starts_with_batch(head: bytes) -> bool:
    if len(head) < _BATCH_START.size:
        return False
    base_offset, length, leader_epoch, magic = _BATCH_START.unpack_from(head)
    if base_offset < 0 or magic not in (0, 1, 2):
        return False
    if magic != 2:
        # The CRC takes the place of the leader epoch.
        return _is_message(head, length, _LEGACY_KEY[magic])
    if length < LENGTH_MIN or leader_epoch < -1 or len(head) < HEADER_SIZE:
        return False
    attributes, last_offset_delta, count = _BATCH_COUNTS.unpack_from(head, CRC_START)
    return bool(0 <= attributes <= _ATTRIBUTES_MAX and last_offset_delta >= 0 and count >= 0)


def _is_message(head: bytes, length: int, key_at: int) -> bool:
    """Whether a message of the legacy formats is as long as its key and its value.

    An index has small numbers in the same places, but not such a sum.
    """
    value_at = _end_of(head, key_at)
    if value_at is None or head[MAGIC_FIELD + 1] > _LEGACY_ATTRIBUTES_MAX:
        return False
    end = LOG_OVERHEAD + length
    if value_at + _LENGTH.size > len(head):
        # The key is so long that the length of the value is not among the first bytes.
        return len(head) == HEAD_SIZE and value_at < end
    return _end_of(head, value_at) == end


def _end_of(head: bytes, position: int) -> int | None:
    """Return the end of bytes that have their length before them; None if it is not there."""
    if position + _LENGTH.size > len(head):
        return None
    (size,) = _LENGTH.unpack_from(head, position)
    return position + _LENGTH.size + max(size, 0) if size >= -1 else None


def _starts_with_producers(head: bytes, size: int | None) -> bool:
    return size is not None and producer_snapshot_size(head) == size


def producer_snapshot_size(head: bytes) -> int | None:
    """Return how long a producer snapshot is that begins so; None if none begins so."""
    if len(head) < _PRODUCER_SNAPSHOT_START.size:
        return None
    version, _, count = _PRODUCER_SNAPSHOT_START.unpack_from(head)
    size: int = _PRODUCER_SNAPSHOT_START.size + count * _PRODUCER_ENTRY_SIZE
    return size if version == 1 and count >= 0 else None


def _is_tar(head: bytes) -> bool:
    if head[_TAR_MAGIC] != b"ustar" or len(head) < _TAR_HEADER_SIZE:
        return False
    header = bytearray(head[:_TAR_HEADER_SIZE])
    stated = bytes(header[_TAR_CHECKSUM]).strip(b" \0")
    header[_TAR_CHECKSUM] = b" " * 8
    return stated.isdigit() and stated == b"%0*o" % (len(stated), sum(header))
