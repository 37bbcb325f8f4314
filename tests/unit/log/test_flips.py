"""Every single bit of every file of a directory, flipped: noticed, or without any consequence.

Noticed means that the start is refused, or that the log reports a repair. Without consequence means
that the records, the vote and the identity after the start are the same.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import cache

import pytest

from kraftwire.errors import KraftwireError
from kraftwire.log.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.names import join
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.settings import LogSettings
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.sim.disk import SimFiles
from tests.support.logs.batches import TOPIC, TOPIC_ID, append, put_snapshot

pytestmark = pytest.mark.slow

_SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=90, index_bytes=48)
_ROOT = "/d"
_PARTITION = f"{_ROOT}/{TOPIC}-0"
_META = join(_ROOT, "meta.properties")
_VOTES = "quorum-state"
_STATE = join(_PARTITION, _VOTES)
_IDENTITY = MetaProperties("RTLZsjHzTnmF-YtFiTXzYA", 3, bytes(range(16)), {"more": "x"})
_VOTE = QuorumState(9, -1, 2, bytes(range(1, 17)))

# Of the mark's copies only the beginning is used; each takes a page.
_PAGE = 4096
_COPY = 80

Picture = tuple[object, ...]


@cache
def _directory(version: int) -> dict[str, bytes]:
    """The files of a small directory: two segments, three epochs, two snapshots."""
    files = SimFiles()
    files.mkdir(_ROOT)
    write_meta_properties(files, _META, _IDENTITY, comment="Sat Nov 21 12:00:00 UTC 2026")
    files.mkdir(_PARTITION)
    put_snapshot(_PARTITION, 0, 0, files=files)
    log = MetadataLog.open(files, _ROOT, _SETTINGS, TOPIC, TOPIC_ID)
    QuorumStateFile(files, _STATE).write(_VOTE, version, [1, 2, 3])
    for epoch in (1, 1, 5, 5, 9, 9):
        append(log, epoch=epoch, size=20)
    log.flush()
    put_snapshot(_PARTITION, 3, 5, files=files)
    log.close()
    paths = [join(_PARTITION, name) for name in files.listdir(_PARTITION)]
    return {path: files.read_bytes(path) for path in [_META, *paths]}


def _disk(contents: dict[str, bytes]) -> SimFiles:
    files = SimFiles()
    files.mkdir(_PARTITION)
    for path, content in contents.items():
        files.open(path, create=True).pwrite(content, 0)
    return files


def _started(contents: dict[str, bytes]) -> tuple[Picture, list[object]]:
    """What a node that starts on these files holds: records and the rest, and the snapshots."""
    files = _disk(contents)
    store = SnapshotStore(files, _PARTITION)
    log = MetadataLog.open(files, _ROOT, _SETTINGS, TOPIC, TOPIC_ID, snapshots=store)
    records = [(each, log.read(each.offset, 1, log.end_offset)) for each in log.batches()]
    meta = read_meta_properties(files, _META)
    assert meta is not None
    identity = (meta.cluster_id, meta.node_id, meta.directory_id)
    vote = QuorumStateFile(files, _STATE).read()
    ends = (log.start_offset, log.end_offset, log.epochs())
    snapshots = [(one, store.read(one.id, 0, one.size)) for one in store.stored()]
    return (records, ends, vote, identity), list(snapshots)


def _kinds(version: int) -> dict[str, str]:
    return {path.rsplit("/", 1)[1]: path for path in _directory(version)}


def _bits(name: str, content: bytes) -> list[int]:
    if name != "flushed-offset":
        return list(range(8 * len(content)))
    used = [8 * _PAGE * copy + bit for copy in (0, 1) for bit in range(8 * _COPY)]
    return used + list(range(0, 8 * len(content), 997))


def _sweep(version: int, name: str, caplog: pytest.LogCaptureFixture) -> Counter[str]:
    """Flip every bit of a file in turn and start."""
    good = _directory(version)
    path = _kinds(version)[name]
    expected, snapshots = _started(good)
    outcomes: Counter[str] = Counter()
    for bit in _bits(name, good[path]):
        damaged = bytearray(good[path])
        damaged[bit // 8] ^= 1 << bit % 8
        caplog.clear()
        try:
            found, stored = _started({**good, path: bytes(damaged)})
        except KraftwireError:
            outcomes["refused"] += 1
            continue
        assert found == expected, f"bit {bit} of {name}"
        is_told = bool(caplog.records)
        assert is_told or stored == snapshots, f"bit {bit} of {name}"
        outcomes["repaired" if is_told else "harmless"] += 1
    return outcomes


_OUTCOMES = {
    f"{0:020d}.log": {"refused"},
    f"{4:020d}.log": {"refused"},
    f"{0:020d}.index": {"repaired", "harmless"},
    f"{0:020d}.timeindex": {"repaired", "harmless"},
    f"{4:020d}.snapshot": {"harmless"},
    f"{0:020d}-{0:010d}.checkpoint": {"repaired"},
    f"{3:020d}-{5:010d}.checkpoint": {"repaired"},
    "leader-epoch-checkpoint": {"harmless"},
    "partition.metadata": {"refused", "harmless"},
    _VOTES: {"refused"},
    "meta.properties": {"refused", "harmless"},
    "flushed-offset": {"harmless"},
}


# Only the file of votes has two versions.
@pytest.mark.parametrize(("name", "version"), [*((name, 1) for name in _OUTCOMES), (_VOTES, 0)])
def test_every_flipped_bit_is_noticed_or_harmless(
    name: str, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A replicated log must never have silent damage: it would be replicated."""
    with caplog.at_level(logging.INFO):
        found = _sweep(version, name, caplog)
    print(f"{name}, version {version}: {dict(found)}")
    assert set(found) <= _OUTCOMES[name]
    assert found


def test_the_sweep_covers_every_kind_of_file() -> None:
    """A kind of file that is not tested might have no protection."""
    kinds = {name.rpartition(".")[2] for name in _kinds(1)}
    assert kinds == {
        "log", "index", "timeindex", "snapshot", "checkpoint", "leader-epoch-checkpoint",
        "metadata", "quorum-state", "properties", "flushed-offset",
    }
