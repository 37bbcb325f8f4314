"""The small state files of a log directory: JSON, properties, and lists of offsets.

Every parser takes the file's bytes, returns what the `data` of its line holds, and says in a
list its faults. Nothing here opens a file.

Source: Kafka's `FileQuorumStateStore`, `MetaProperties`, `PartitionMetadataFile`,
`CheckpointFile`, `CleanShutdownFileHandler`; kraftwire's own `FlushMark`.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from kraftwire.decode.body.secrets import REDACTED
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import ODDITIES_MAX, more_text
from kraftwire.errors import UsageError, WireError
from kraftwire.limits import STATE_FILE_BYTES_MAX
from kraftwire.log.flush_mark import COPY_BYTES, read_copies
from kraftwire.log.quorum_state import checksum_line
from kraftwire.messages.producer_snapshot import ProducerSnapshot
from kraftwire.properties_file import parse_properties
from kraftwire.records.crc import crc32c
from kraftwire.small_files import SMALL_FILE_BYTES_MAX
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.size_estimate import decode_bounded

# A line of a list takes up to 70 times its bytes as an entry; brokers have far fewer partitions.
ENTRIES_MAX = 200_000
# Lists of offsets, which grow with the number of partitions and of epochs.
_LISTS = (FileKind.LEADER_EPOCHS, FileKind.OFFSETS, FileKind.PRODUCER_SNAPSHOT)


def state_bytes_max(kind: FileKind) -> int:
    """Return the most bytes that a file of a kind may have to be read."""
    return STATE_FILE_BYTES_MAX if kind in _LISTS else SMALL_FILE_BYTES_MAX


@dataclass(slots=True)
class StateFile:
    """The content of a state file, and its faults as (finding id, position, detail)."""

    data: dict[str, Any]
    oddities: list[tuple[str, int, str]] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)

    def note(self, id: str, position: int, detail: str) -> None:
        """Remember an oddity; of a kind only the first few, and how many more there are."""
        if sum(each[0] == id for each in self.oddities) < ODDITIES_MAX:
            self.oddities.append((id, position, detail))
        else:
            self.more[id] += 1

    def noted(self) -> Iterator[tuple[str, int, str]]:
        """Yield the oddities, and a line for those of a kind that were not remembered."""
        yield from self.oddities
        for id, count in self.more.items():
            yield id, 0, more_text(count)


def parse_state(kind: FileKind, content: bytes) -> StateFile:
    """Read a state file.

    Raises: WireError with the offset of the line that cannot be understood.
    """
    return _PARSERS[kind](content)


QUORUM_STATE_KEYS = {
    0: {
        "clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters",
        "data_version",
    },
    1: {"leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "data_version"},
}


def _quorum_state(content: bytes) -> StateFile:
    line, _, rest = content.partition(b"\n")
    state = StateFile(_json_object(line))
    # kraftwire writes a checksum, Kafka does not.
    if rest and rest != checksum_line(line):
        state.note("state-crc", len(line) + 1, f"expected {checksum_line(line).decode()!r}")
    version = state.data.get("data_version")
    if type(version) is not int or version not in QUORUM_STATE_KEYS:
        raise _bad("quorum-state of an unknown version", 0, "data_version 0 or 1", version)
    known = QUORUM_STATE_KEYS[version]
    for key in sorted(known - state.data.keys()):
        state.note("missing-key", 0, f"quorum-state v{version} has no {key!r}")
    for key in sorted(state.data.keys() - known):
        state.note("unknown-key", 0, f"quorum-state v{version} does not define {key!r}")
    return state


def _flushed_offset(content: bytes) -> StateFile:
    copies = read_copies(content)
    sound = [copy for copy in copies if copy is not None]
    if not sound:
        raise _bad("both copies are damaged", 0, "a right checksum", content[:8])
    number, mark = max(sound, key=lambda copy: copy[0])
    identity = mark.identity
    state = StateFile(
        {
            "number": number,
            "flushedOffset": mark.end.offset,
            "leaderEpoch": mark.end.epoch,
            "startOffset": mark.start_offset,
            "epochsCrc": mark.epochs_crc,
            "nodeId": identity.node_id,
            "directoryId": uuid_to_text(identity.directory_id),
            "clusterIdCrc": identity.cluster_crc,
        }
    )
    for index, copy in enumerate(copies):
        if copy is None:
            state.note("state-crc", index * COPY_BYTES, "one of the two copies is damaged")
    return state


def _clean_shutdown(content: bytes) -> StateFile:
    # Before Kafka 3.7 the file was empty.
    state = StateFile(_json_object(content) if content else {})
    if content and state.data.get("version") != 0:
        raise _bad("an unknown version", 0, "version 0", state.data.get("version"))
    return state


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        offset = error.pos if isinstance(error, json.JSONDecodeError) else 0
        raise WireError(f"no JSON: {error}", offset=offset) from error
    if not isinstance(data, dict):
        raise _bad("no JSON object", 0, "an object", data)
    return data


def _meta_properties(content: bytes) -> StateFile:
    """Read meta.properties; values stay text, as they are in the file."""
    state = StateFile(dict(_properties(content)))
    version = state.data.get("version")
    if version not in ("0", "1"):
        raise _bad("an unknown version", 0, "version 0 or 1", version)
    required = {"cluster.id", "node.id"} if version == "1" else set()
    for key in sorted(required - state.data.keys()):
        state.note("missing-key", 0, f"meta.properties v1 has no {key!r}")
    return state


def _properties(content: bytes) -> Iterator[tuple[str, str]]:
    """Key and value of every entry of a Java properties file (ISO 8859-1 with escapes)."""
    try:
        entries = parse_properties(content.decode("latin-1"), "properties")
    except UsageError as error:
        raise WireError(str(error), offset=0) from error
    for entry in entries:
        if not entry.key:  # Java accepts this, but no file here has it
            start = sum(len(line) for line in content.splitlines(keepends=True)[: entry.line - 1])
            raise _bad("no property", start, "key=value", f"={entry.value}")
        yield entry.key, entry.value


def _partition_metadata(content: bytes) -> StateFile:
    data: dict[str, Any] = {}
    for position, line in _lines(content):
        key, colon, value = line.partition(":")
        if not colon:
            raise _bad("no entry", position, "key: value", line)
        data[key.strip()] = value.strip()
    data["version"] = _number(data.get("version", ""), 0)
    if data["version"] != 0:
        raise _bad("an unknown version", 0, "version 0", data["version"])
    state = StateFile(data)
    if "topic_id" not in data:
        state.note("missing-key", 0, "partition.metadata has no 'topic_id'")
    return state


def _leader_epochs(content: bytes) -> StateFile:
    def entry(words: list[str], position: int) -> dict[str, Any]:
        epoch, start_offset = (_number(word, position) for word in words)
        return {"epoch": epoch, "startOffset": start_offset}

    state = _checkpoint(content, 2, entry)
    entries = state.data["entries"]
    for before, after in pairwise(entries):
        if before["epoch"] >= after["epoch"] or before["startOffset"] > after["startOffset"]:
            state.note("not-monotonic", 0, f"epoch entry {after} follows {before}")
    return state


def _offsets(content: bytes) -> StateFile:
    def entry(words: list[str], position: int) -> dict[str, Any]:
        topic, *numbers = words
        partition, offset = (_number(word, position) for word in numbers)
        return {"topic": topic, "partition": partition, "offset": offset}

    return _checkpoint(content, 3, entry)


def _checkpoint(
    content: bytes, word_count: int, entry: Callable[[list[str], int], dict[str, Any]]
) -> StateFile:
    """Read a list of offsets: a version, the number of entries, an entry on each line.

    Kafka creates the file empty, and takes an empty one for no entries.
    """
    if not content:
        return StateFile({"version": None, "entries": []})
    lines = _lines(content)
    head = list(islice(lines, 2))
    if len(head) < 2:
        raise _bad("too short", 0, "a version and a count", f"{len(head)} lines")
    version, count = (_number(line, position) for position, line in head)
    if version != 0:
        raise _bad("an unknown version", 0, "version 0", version)
    entries: list[dict[str, Any]] = []
    for position, line in lines:
        if len(entries) == ENTRIES_MAX:
            raise _bad("too long", position, f"at most {ENTRIES_MAX:,} entries", line)
        words = line.split()
        if len(words) != word_count:
            raise _bad("no entry", position, f"{word_count} words", line)
        entries.append(entry(words, position))
    state = StateFile({"version": version, "entries": entries})
    if count != len(entries):
        position = head[1][0]
        state.note("wrong-count", position, f"{count} entries announced, {len(entries)} there")
    return state


def _lines(content: bytes) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, each with its position."""
    position, size = 0, len(content)
    while position <= size:
        end = content.find(b"\n", position)
        raw = content[position : end if end >= 0 else size]
        try:
            line = raw.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise _bad("no text", position + error.start, "UTF-8", raw[:40]) from error
        if line:
            yield position, line
        position += len(raw) + 1


def _number(text: str, position: int) -> int:
    # int() alone takes underscores, blanks and digits of other scripts.
    if not re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
        raise _bad("no number", position, "digits", text)
    return int(text)


def _bad(problem: str, position: int, expected: str, found: object) -> WireError:
    return WireError(problem, offset=position, expected=expected, found=repr(found)[:80])


_PARSERS: dict[FileKind, Callable[[bytes], StateFile]] = {
    FileKind.QUORUM_STATE: _quorum_state,
    FileKind.META_PROPERTIES: _meta_properties,
    FileKind.PARTITION_METADATA: _partition_metadata,
    FileKind.LEADER_EPOCHS: _leader_epochs,
    FileKind.OFFSETS: _offsets,
    FileKind.FLUSHED_OFFSET: _flushed_offset,
    FileKind.CLEAN_SHUTDOWN: _clean_shutdown,
}
STATE_KINDS = frozenset(_PARSERS)


_KNOWN = {
    FileKind.QUORUM_STATE: frozenset[str]().union(*QUORUM_STATE_KEYS.values()),
    FileKind.META_PROPERTIES: frozenset(
        {"version", "cluster.id", "node.id", "broker.id", "directory.id"}
    ),
    FileKind.PARTITION_METADATA: frozenset({"version", "topic_id"}),
    FileKind.CLEAN_SHUTDOWN: frozenset({"version", "brokerEpoch"}),
}


def hide_unknown(kind: FileKind, state: StateFile) -> bool:
    """Put a mark in place of the values of unknown keys; returns whether there were any."""
    known = _KNOWN.get(kind)
    found = [] if known is None else [key for key in state.data if key not in known]
    for key in found:
        state.data[key] = REDACTED
    return bool(found)


_VERSION = struct.Struct(">h")
_CRC_END = 6


def parse_producer_snapshot(content: bytes) -> StateFile:
    """Read a producer snapshot: its version and the message in the form of Kafka's converters.

    Raises: WireError if it is cut or of an unknown version.
    """
    if len(content) < _VERSION.size:
        raise WireError(
            "the file ends inside the version",
            offset=0,
            expected=f"{_VERSION.size} bytes",
            found=str(len(content)),
        )
    (version,) = _VERSION.unpack_from(content)
    if version not in ProducerSnapshot.VERSIONS:
        raise WireError(
            "a producer snapshot of an unknown version",
            offset=0,
            expected=f"version {ProducerSnapshot.VERSIONS}",
            found=str(version),
        )
    snapshot, end = decode_bounded(ProducerSnapshot, content, version, _VERSION.size)
    data: dict[str, Any] = {"version": version, **snapshot.to_json(version)}
    state = StateFile(data)
    crc = crc32c(content[_CRC_END:])
    if crc != snapshot.crc:
        state.note(
            "snapshot-crc",
            _VERSION.size,
            f"the CRC is {crc}, the producer snapshot says {snapshot.crc}",
        )
    if end < len(content):
        state.note("trailing-bytes", end, f"{len(content) - end} bytes after the last entry")
    return state
