"""The quorum-state file: Kafka's bytes, and no guess at what cannot be understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile

_VOTED = QuorumState(5, 1, 1, bytes.fromhex("870ec394ae41489762a7c15a14ad78"[:30] + "98"))


def _file(folder: Path) -> QuorumStateFile:
    return QuorumStateFile(LocalFiles(), str(folder / "quorum-state"))


def test_version_0_is_what_a_static_quorum_writes(tmp_path: Path) -> None:
    """The bytes of a real controller with controller.quorum.voters."""
    _file(tmp_path).write(QuorumState(2, 1), 0, [1, 2])
    assert (tmp_path / "quorum-state").read_bytes() == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )
    assert [path.name for path in tmp_path.iterdir()] == ["quorum-state"]


def test_version_1_is_what_a_dynamic_quorum_writes(tmp_path: Path) -> None:
    """The bytes of a real controller with kraft.version 1."""
    _file(tmp_path).write(QuorumState(1, 1), 1, [])
    assert (tmp_path / "quorum-state").read_bytes() == (
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
        b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )


def test_a_vote_is_read_back(tmp_path: Path) -> None:
    """Version 1 keeps the directory id of the vote, version 0 loses it (R-ID-9)."""
    file = _file(tmp_path)
    assert file.read() is None
    file.write(_VOTED, 1, [])
    assert file.read() == _VOTED
    file.write(_VOTED, 0, [1])
    assert file.read() == QuorumState(5, 1, 1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 103,
        b"[]",
        b"{}",
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":2}',
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":true}',
        b'{"leaderId":1,"leaderEpoch":-1,"votedId":-1,"data_version":0}',
        b'{"leaderId":1,"leaderEpoch":1,"votedId":"1","data_version":0}',
        b'{"leaderId":1,"leaderEpoch":1,"data_version":0}',
        b'{"leaderId":1,"leaderEpoch":1,"votedId":1,"votedDirectoryId":"?","data_version":1}',
        b'{"leaderId":1,"leaderEpoch":1,"votedId":1,"data_version":1}',
        b"\xff\xfe",
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, content: bytes) -> None:
    """Starting as if there was none could mean a second vote in an epoch (KAFKA-15412)."""
    (tmp_path / "quorum-state").write_bytes(content)
    with pytest.raises(StorageError, match="quorum-state at byte 0: expected"):
        _file(tmp_path).read()


def test_only_the_first_line_counts(tmp_path: Path) -> None:
    """Java reads one line (R-ID-10)."""
    file = _file(tmp_path)
    file.write(_VOTED, 1, [])
    path = tmp_path / "quorum-state"
    path.write_bytes(path.read_bytes() + b"\n???")
    assert file.read() == _VOTED


def test_a_temporary_file_of_a_crash_is_replaced(tmp_path: Path) -> None:
    """It may be longer than the new content."""
    (tmp_path / "quorum-state.tmp").write_bytes(b"x" * 1000)
    file = _file(tmp_path)
    file.write(_VOTED, 1, [])
    assert file.read() == _VOTED
    assert not (tmp_path / "quorum-state.tmp").exists()
