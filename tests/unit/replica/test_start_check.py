"""What a start would come to: its answer and its files, and no change on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftwire.errors import KraftwireError
from kraftwire.log.files import LocalFiles
from kraftwire.log.format import FormatNode, FormatRequest, VotersFlag, format_directories
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.log.trial import TrialFiles
from kraftwire.replica.start_check import check_start, is_in_use
from kraftwire.replica.storage import Directories, Storage
from tests.support.logs.batches import append

_CLUSTER = "9CIbsF9FQuGtwD837BRpPA"
_PARTITION = "__cluster_metadata-0"
_LOG = f"{_PARTITION}/00000000000000000000.log"


def _directories(folder: Path) -> Directories:
    return Directories(node_id=1, metadata=str(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The directory of a node that was stopped after twenty batches."""
    made = tmp_path / "data"
    node = FormatNode(
        node_id=1, directories=(str(made),), metadata_directory=str(made), is_controller=True,
        has_static_voters=False, endpoint=("127.0.0.1", 9093),
    )  # fmt: skip
    list(format_directories(LocalFiles(), node, FormatRequest(
        cluster_id=_CLUSTER, voters_flag=VotersFlag.STANDALONE
    )))  # fmt: skip
    storage = Storage.open(_directories(made), LocalFiles())
    state = QuorumStateFile(LocalFiles(), str(made / _PARTITION / "quorum-state"))
    state.write(QuorumState(2, 1), 1, ())
    for _ in range(20):
        append(storage.log, 2, epoch=2)
    storage.log.flush()
    storage.close()
    return made


def _cut(size: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / _LOG
        path.write_bytes(path.read_bytes()[:size])

    return change


def _add(name: str, data: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with open(folder / name, "ab") as file:
            file.write(data)

    return change


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _flip(folder: Path) -> None:
    data = bytearray((folder / _LOG).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / _LOG).write_bytes(data)


def _make_foreign(folder: Path) -> None:
    """Kafka's quorum-state has one line."""
    path = folder / _PARTITION / "quorum-state"
    path.write_bytes(path.read_bytes().splitlines()[0])


_CHANGES: dict[str, Callable[[Path], None]] = {
    "nothing": lambda _folder: None,
    "a torn batch": _add(_LOG, b"torn"),
    "a log that was cut": _cut(300),
    "an empty log": _cut(0),
    "a flipped bit": _flip,
    "no quorum-state": _remove(f"{_PARTITION}/quorum-state"),
    "a damaged quorum-state": _add(f"{_PARTITION}/quorum-state", b"}"),
    "no mark": _remove(f"{_PARTITION}/flushed-offset"),
    "no mark, after Kafka": lambda folder: (
        _make_foreign(folder), _remove(f"{_PARTITION}/flushed-offset")(folder)
    )[0],
    "Kafka's quorum-state": _make_foreign,
    "a damaged mark": _add(f"{_PARTITION}/flushed-offset", b"x"),
    "no epochs": _remove(f"{_PARTITION}/leader-epoch-checkpoint"),
    "other epochs": _add(f"{_PARTITION}/leader-epoch-checkpoint", b"9 9\n"),
    "epochs without end": _add(f"{_PARTITION}/leader-epoch-checkpoint", b"1 1\n" * 300_000),
    "no index": _remove(f"{_PARTITION}/00000000000000000000.index"),
    "a damaged index": _add(f"{_PARTITION}/00000000000000000000.index", b"\1" * 8),
    "leftovers": _add(f"{_PARTITION}/quorum-state.tmp", b"{"),
    "no meta.properties": _remove("meta.properties"),
    "another topic": lambda folder: (folder / _PARTITION / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg"
    ) and None,
}  # fmt: skip


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def _start(folder: Path) -> str | None:
    """Why a start fails, None if it does not."""
    try:
        storage = Storage.open(_directories(folder), LocalFiles())
        try:
            storage.stored_state()
        finally:
            storage.close()
    except KraftwireError as error:
        return str(error)
    return None


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_the_answer_is_that_of_a_start(folder: Path, change: Callable[[Path], None]) -> None:
    """And nothing on disk is different afterwards."""
    change(folder)
    before = _contents(folder)
    check = check_start(_directories(folder), LocalFiles())
    assert _contents(folder) == before
    # A start changes the directory, so it gets a copy under the same name.
    kept = folder.with_name("kept")
    shutil.copytree(folder, kept)
    assert check.refusal == _start(folder)
    shutil.rmtree(folder)
    kept.rename(folder)


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_trial_ends_with_the_files_of_a_start(
    folder: Path, change: Callable[[Path], None]
) -> None:
    """Repairs included: what is read back from the trial is what a start leaves on disk."""
    change(folder)
    trial = TrialFiles(LocalFiles())
    try:
        Storage.open(_directories(folder), trial).close()
    except KraftwireError:
        trial.close()
        return
    found: dict[str, bytes] = {}
    for name in trial.listdir(str(folder)):
        if name != _PARTITION and name != ".lock":
            found[name] = trial.read_bytes(f"{folder}/{name}")
    for name in trial.listdir(f"{folder}/{_PARTITION}"):
        found[f"{_PARTITION}/{name}"] = trial.read_bytes(f"{folder}/{_PARTITION}/{name}")
    trial.close()
    assert _start(folder) is None or change is _CHANGES["no quorum-state"]
    assert found == _contents(folder)


def test_a_torn_batch_is_a_repair(folder: Path) -> None:
    """Whoever reads `storage info` should know what a start would do."""
    _CHANGES["a torn batch"](folder)
    check = check_start(_directories(folder), LocalFiles())
    assert check.refusal is None
    assert "4 bytes after offset" in "".join(check.repairs)


def test_a_directory_in_use_is_known_by_its_lock(folder: Path) -> None:
    """A log that grows meanwhile would look damaged."""
    directories = _directories(folder)
    assert not is_in_use(directories, LocalFiles())
    lock = LocalFiles().lock(str(folder / ".lock"))
    assert is_in_use(directories, LocalFiles())
    lock.close()
    assert not is_in_use(directories, LocalFiles())
