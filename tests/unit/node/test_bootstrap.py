"""What the log of a new cluster begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.format import bootstrap_checkpoint, voters_checkpoint
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.node.bootstrap import new_cluster_id, read_bootstrap

LEVEL = (FeatureLevelRecord(name="metadata.version", feature_level=29), 0)
TOPIC = "__cluster_metadata"
CHECKPOINT = f"{TOPIC}-0/00000000000000000000-0000000000.checkpoint"
GROUPS = (FeatureLevelRecord(name="group.version", feature_level=1), 0)


def test_the_records_of_a_formatted_directory_are_taken_as_they_are(tmp_path: Path) -> None:
    """The levels were chosen when the directory was formatted."""
    (tmp_path / "bootstrap.checkpoint").write_bytes(bootstrap_checkpoint([LEVEL, GROUPS], 1000))
    assert read_bootstrap(str(tmp_path), TOPIC) == [LEVEL, GROUPS]


def test_the_checkpoint_of_the_log_counts_first(tmp_path: Path) -> None:
    """Kafka 4.4 formats so; a file beside it is one of an earlier release (C-ACT-6)."""
    (tmp_path / f"{TOPIC}-0").mkdir()
    (tmp_path / CHECKPOINT).write_bytes(bootstrap_checkpoint([LEVEL, GROUPS], 1000))
    assert read_bootstrap(str(tmp_path), TOPIC) == [LEVEL, GROUPS]
    (tmp_path / "bootstrap.checkpoint").write_bytes(bootstrap_checkpoint([LEVEL], 1000))
    assert read_bootstrap(str(tmp_path), TOPIC) == [LEVEL, GROUPS]
    voters = voters_checkpoint([], "CONTROLLER", 1000)
    (tmp_path / CHECKPOINT).write_bytes(voters)
    assert read_bootstrap(str(tmp_path), TOPIC) == [LEVEL]


def test_without_the_file_only_metadata_version_is_finalized(tmp_path: Path) -> None:
    """Other features concern groups and transactions, which do not exist here."""
    ((record, version),) = read_bootstrap(str(tmp_path), TOPIC)
    assert record == FeatureLevelRecord(name="metadata.version", feature_level=33)
    assert version == 0


def test_a_damaged_file_stops_the_start(tmp_path: Path) -> None:
    """Levels other than the chosen ones could never be reverted."""
    data = bytearray(bootstrap_checkpoint([LEVEL], 1000))
    data[data.index(b"metadata.version")] ^= 1
    (tmp_path / "bootstrap.checkpoint").write_bytes(data)
    with pytest.raises(StorageError, match="bootstrap"):
        read_bootstrap(str(tmp_path), TOPIC)


def test_a_cluster_id_has_kafkas_form() -> None:
    """22 characters, the first of which no tool takes for an option."""
    cluster_id = new_cluster_id()
    assert len(cluster_id) == 22
    assert not cluster_id.startswith("-")
