"""The quorum-state file: Kafka's bytes and a checksum, no guess at what cannot be understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile

_VOTED = QuorumState(5, 1, 1, bytes.fromhex("870ec394ae41489762a7c15a14ad78"[:30] + "98"))


def _file(folder: Path) -> QuorumStateFile:
    return QuorumStateFile(LocalFiles(), str(folder / "quorum-state"))


def _first_line(folder: Path) -> bytes:
    return (folder / "quorum-state").read_bytes().split(b"\n")[0]


def test_version_0_is_what_a_static_quorum_writes(tmp_path: Path) -> None:
    """The bytes of a real controller with controller.quorum.voters."""
    _file(tmp_path).write(QuorumState(2, 1), 0, [1, 2])
    assert _first_line(tmp_path) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )
    assert [path.name for path in tmp_path.iterdir()] == ["quorum-state"]


def test_only_version_0_names_the_voters(tmp_path: Path) -> None:
    """After the properties file has changed it is the only place that has the old ones."""
    file = _file(tmp_path)
    assert file.voter_ids() == ()
    file.write(QuorumState(2, 1), 0, [1, 2])
    assert file.voter_ids() == (1, 2)
    file.write(QuorumState(2, 1), 1, [1, 2])
    assert file.voter_ids() == ()


@pytest.mark.parametrize("voters", [b"[1]", b'[{"voterId":"x"}]', b"7"])
def test_voters_that_are_none_are_refused(tmp_path: Path, voters: bytes) -> None:
    """The file names what was expected."""
    (tmp_path / "quorum-state").write_bytes(
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"currentVoters":%s,"data_version":0}' % voters
    )
    with pytest.raises(StorageError, match="ids of voters for currentVoters"):
        _file(tmp_path).voter_ids()


def test_version_1_is_what_a_dynamic_quorum_writes(tmp_path: Path) -> None:
    """The bytes of a real controller with kraft.version 1."""
    _file(tmp_path).write(QuorumState(1, 1), 1, [])
    assert _first_line(tmp_path) == (
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
    """Starting as if there were none could mean a second vote in an epoch (KAFKA-15412)."""
    (tmp_path / "quorum-state").write_bytes(content)
    with pytest.raises(StorageError, match=r"quorum-state at byte 0: expected .* restore the file"):
        _file(tmp_path).read()


@pytest.mark.parametrize("version", [0, 1])
def test_every_wrong_bit_is_noticed(tmp_path: Path, version: int) -> None:
    """Without a checksum one bit in seven would read as another vote, epoch or leader."""
    file = _file(tmp_path)
    file.write(_VOTED, version, [1, 2, 3])
    path = tmp_path / "quorum-state"
    good = path.read_bytes()
    for bit in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(StorageError, match=r"quorum-state at byte 0: expected .* found"):
            file.read()


def test_a_file_of_java_is_taken_and_given_a_checksum(tmp_path: Path) -> None:
    """It writes one line; a line end after it has no meaning."""
    file = _file(tmp_path)
    assert not file.is_foreign
    file.write(_VOTED, 1, [])
    path = tmp_path / "quorum-state"
    ours = path.read_bytes()
    assert not file.is_foreign
    for end in (b"", b"\n"):
        path.write_bytes(_first_line(tmp_path) + end)
        assert file.is_foreign
        assert file.read() == _VOTED
        file.adopt()
        assert path.read_bytes() == ours


def test_a_temporary_file_of_a_crash_is_replaced(tmp_path: Path) -> None:
    """It may be longer than the new content."""
    (tmp_path / "quorum-state.tmp").write_bytes(b"x" * 1000)
    file = _file(tmp_path)
    file.write(_VOTED, 1, [])
    assert file.read() == _VOTED
    assert not (tmp_path / "quorum-state.tmp").exists()
