"""What a replica finds on disk when it starts, in both modes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire.errors import StorageError, UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.meta_properties import MetaProperties, write_meta_properties
from kraftwire.raft.effects import ElectionState, PersistQuorumState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.replica.storage import Directories, Storage
from tests.support.logs.batches import append, put_snapshot

CLUSTER_ID = "vPeOCWypqUOSepEvx0cbog"
DIRECTORY_ID = bytes(range(16))
FILES = LocalFiles()


def config(*directories: Path, is_self_formatted: bool = True) -> Directories:
    first, *others = map(str, directories)
    return Directories(
        node_id=1,
        metadata=first,
        others=tuple(others),
        is_self_formatted=is_self_formatted,
        source="node.properties",
    )


def write_meta(directory: Path, meta: MetaProperties) -> None:
    directory.mkdir(exist_ok=True)
    write_meta_properties(FILES, str(directory / "meta.properties"), meta)


def test_a_directory_is_formatted_at_the_first_start_and_kept(tmp_path: Path) -> None:
    """Raft-README mode: the identity of the directory must survive a restart."""
    node = config(tmp_path / "a")
    storage = Storage.open(node, FILES)
    directory_id = storage.directory_id
    assert storage.cluster_id is None
    assert directory_id != bytes(16)
    storage.close()
    storage = Storage.open(node, FILES)
    assert storage.directory_id == directory_id
    storage.close()


def test_the_clusters_id_is_kept_in_every_directory(tmp_path: Path) -> None:
    """A node that forgot it would take part in any other cluster's elections."""
    node = config(tmp_path / "a", tmp_path / "b")
    storage = Storage.open(node, FILES)
    storage.keep_cluster_id(CLUSTER_ID)
    assert storage.cluster_id == CLUSTER_ID
    storage.close()
    for name in ("a", "b"):
        assert f"cluster.id={CLUSTER_ID}" in (tmp_path / name / "meta.properties").read_text()
    storage = Storage.open(node, FILES)
    assert storage.cluster_id == CLUSTER_ID
    storage.close()


def test_an_unformatted_directory_is_refused_with_the_command(tmp_path: Path) -> None:
    """Kafka mode: an empty disk where a full one was mounted must not look like a new node."""
    with pytest.raises(UsageError, match=r"kraftwire storage format --config node\.properties"):
        Storage.open(config(tmp_path / "a", is_self_formatted=False), FILES)
    assert not (tmp_path / "a").exists()


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    """Two nodes that swap their disks would vote twice."""
    write_meta(tmp_path / "a", MetaProperties(CLUSTER_ID, 7, DIRECTORY_ID))
    for is_self_formatted in (True, False):
        with pytest.raises(UsageError, match="belongs to node 7"):
            Storage.open(config(tmp_path / "a", is_self_formatted=is_self_formatted), FILES)


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    """One of them was mounted by mistake, and it is unknown which."""
    write_meta(tmp_path / "a", MetaProperties(CLUSTER_ID, 1, DIRECTORY_ID))
    write_meta(tmp_path / "b", MetaProperties("b" * 22, 1, DIRECTORY_ID))
    with pytest.raises(UsageError, match="must belong to one cluster"):
        Storage.open(config(tmp_path / "a", tmp_path / "b", is_self_formatted=False), FILES)


def test_a_missing_directory_id_is_made(tmp_path: Path) -> None:
    """R-START-1: directories that an older Kafka formatted lack it."""
    write_meta(tmp_path / "a", MetaProperties(CLUSTER_ID, 1))
    storage = Storage.open(config(tmp_path / "a", is_self_formatted=False), FILES)
    directory_id = storage.directory_id
    storage.close()
    assert directory_id != bytes(16)
    storage = Storage.open(config(tmp_path / "a", is_self_formatted=False), FILES)
    assert storage.directory_id == directory_id
    storage.close()


def test_a_directory_in_use_is_refused_and_a_failed_start_leaves_no_lock(tmp_path: Path) -> None:
    """D10: one process per directory; a process that fails to start must not lock out others."""
    node = config(tmp_path / "a")
    storage = Storage.open(node, FILES)
    with pytest.raises(StorageError):
        Storage.open(node, FILES)
    storage.close()
    with pytest.raises(UsageError):
        Storage.open(replace(node, node_id=2), FILES)
    Storage.open(node, FILES).close()


def test_a_vote_is_remembered(tmp_path: Path) -> None:
    """D1: what was promised before a restart holds after it."""
    node = config(tmp_path / "a")
    storage = Storage.open(node, FILES)
    state = ElectionState(epoch=4, leader_id=-1, voted=ReplicaKey(2))
    storage.persist(PersistQuorumState(state, 0, (1, 2)))
    storage.close()
    storage = Storage.open(node, FILES)
    assert storage.stored_state().election == state
    storage.close()


def test_a_lost_quorum_state_is_noticed(tmp_path: Path) -> None:
    """S3: it may have held a vote, which must not be given again; an empty log needs none."""
    node = config(tmp_path / "a")
    storage = Storage.open(node, FILES)
    assert storage.stored_state().election == ElectionState()
    storage.persist(PersistQuorumState(ElectionState(epoch=4), 0, (1, 2)))
    append(storage.log, epoch=4)
    storage.close()
    (state_file,) = (tmp_path / "a").rglob("quorum-state")
    state_file.unlink()
    storage = Storage.open(node, FILES)
    with pytest.raises(StorageError, match=r"although the log ends at offset 1: .* may have voted"):
        storage.stored_state()
    storage.close()


def test_a_lost_quorum_state_is_noticed_next_to_a_snapshot(tmp_path: Path) -> None:
    """S3: a log that a snapshot has emptied implies votes as well."""
    node = config(tmp_path / "a")
    storage = Storage.open(node, FILES)
    (partition,) = (tmp_path / "a").glob("__cluster_metadata-0")
    storage.log.reset(put_snapshot(partition, 20, epoch=4))
    storage.close()
    storage = Storage.open(node, FILES)
    assert (storage.log.start_offset, storage.log.end_offset) == (20, 20)
    with pytest.raises(StorageError, match="although the log ends at offset 20"):
        storage.stored_state()
    storage.close()
