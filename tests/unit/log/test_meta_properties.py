"""meta.properties: read as Kafka writes it, written so that Kafka reads it, never guessed at."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraftwire.log.uuids import random_uuid
from kraftwire.wire.json_form import uuid_from_text, uuid_to_text

_DIRECTORY_ID = "VcMx9jjsQtyN74NNAUrvig"
_REAL = (
    "#\n#Fri Nov 20 20:19:11 UTC 2026\nnode.id=3\n"
    f"directory.id={_DIRECTORY_ID}\nversion=1\ncluster.id=9CIbsF9FQuGtwD837BRpPA\n"
)


def _read(folder: Path, content: str) -> MetaProperties | None:
    path = folder / "meta.properties"
    path.write_text(content, encoding="latin-1")
    return read_meta_properties(LocalFiles(), str(path))


def test_a_file_of_a_real_controller_is_written_again_byte_for_byte(tmp_path: Path) -> None:
    """Order and comment lines included, so that directories can be compared."""
    properties = _read(tmp_path, _REAL)
    assert properties == MetaProperties(
        "9CIbsF9FQuGtwD837BRpPA", 3, uuid_from_text(_DIRECTORY_ID)
    )
    path = tmp_path / "other.properties"
    comment = "Fri Nov 20 20:19:11 UTC 2026"
    write_meta_properties(LocalFiles(), str(path), properties, comment=comment)
    assert path.read_text() == _REAL


def test_unknown_keys_are_kept(tmp_path: Path) -> None:
    """A later Kafka may have more to remember."""
    properties = _read(tmp_path, _REAL + "new.key=a b\n")
    assert properties is not None
    path = str(tmp_path / "other.properties")
    write_meta_properties(LocalFiles(), path, properties)
    assert read_meta_properties(LocalFiles(), path) == properties
    assert properties.extra == {"new.key": "a b"}


def test_a_directory_without_the_file_is_not_formatted(tmp_path: Path) -> None:
    """That is not an error: `storage format` checks for the file as well."""
    assert read_meta_properties(LocalFiles(), str(tmp_path / "meta.properties")) is None


def test_cluster_id_and_directory_id_may_be_missing(tmp_path: Path) -> None:
    """A cluster may have no id yet; an older Kafka wrote no directory id (R-START-1)."""
    assert _read(tmp_path, "version=1\nnode.id=3\n") == MetaProperties(None, 3, bytes(16))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "expected version 1, found no version"),
        ("version=0\nbroker.id=1\n", "before KRaft"),
        ("version=2\nnode.id=1\n", "found version 2"),
        ("version=1\n", "a number for node.id, found None"),
        ("version=1\nnode.id=-1\n", "a number for node.id"),
        ("version=1\nnode.id=99999999999\n", "a number for node.id"),
        ("version=1\nnode.id=1\ndirectory.id=short\n", "a uuid for directory.id"),
        ("version=1\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\n", "a uuid"),
        ("version=1\nnode.id=\\u12\n", "not an escape"),
    ],
)
def test_what_cannot_be_understood_is_refused(
    tmp_path: Path, content: str, problem: str
) -> None:
    """A node must not take another's directory for its own."""
    with pytest.raises(StorageError, match=problem):
        _read(tmp_path, content)


def test_random_uuids_are_of_version_4_and_no_options() -> None:
    """Kafka's tools take a text that begins with a dash for an option."""
    uuids = {random_uuid() for _ in range(2000)}
    assert len(uuids) == 2000
    assert not any(uuid_to_text(uuid).startswith("-") for uuid in uuids)
    assert {uuid[6] >> 4 for uuid in uuids} == {4}
    assert {uuid[8] >> 6 for uuid in uuids} == {2}
