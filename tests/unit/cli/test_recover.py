"""`kraftwire storage recover`: its exit codes, and directories that a refusal leaves alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.log.files import LocalFiles
from kraftwire.log.quorum_state import QuorumState
from kraftwire.records.reader import read_batches
from kraftwire.replica.storage import Storage
from tests.support.logs.survivors import Made, endpoint, make, node_of
from tests.support.metadata.files import WRONG, batch_of

_PARTITION = "__cluster_metadata-0"


def _survivor(folder: Path, made: Made, *lines: str, roles: str = "controller") -> str:
    """Make a controller's directory and its properties file; returns the file."""
    node = make(LocalFiles(), made)
    config = folder / f"n{made.id}.properties"
    own = endpoint(made.id)
    quorum = f"controller.quorum.bootstrap.servers={own.host}:{own.port}"
    config.write_text("\n".join([
        f"process.roles={roles}",
        f"node.id={made.id}",
        "controller.listener.names=CONTROLLER",
        f"listeners=CONTROLLER://{own.host}:{own.port}",
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        f"log.dirs={node.directories.metadata}",
        *(lines or (quorum,)),
    ]))  # fmt: skip
    return str(config)


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["storage", "recover", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_the_plan_is_printed_and_nothing_changes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Exit code 3: there is something to confirm."""
    config = _survivor(tmp_path, Made(id=1, root=str(tmp_path)))
    before = _contents(tmp_path)
    code, out, err = _run(capsys, "-c", config)
    assert (code, err) == (3, "kraftwire storage: nothing was changed; add --yes to write this\n")
    assert "cannot be known from offset 4 on" in out
    assert _contents(tmp_path) == before


def test_with_yes_it_is_written_and_a_second_run_has_nothing_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Exit code 0 both times."""
    made = [Made(id=one, epochs=((1, 6 - one),), root=str(tmp_path)) for one in (1, 2)]
    configs = [word for one in made for word in ("-c", _survivor(tmp_path, one))]
    code, out, err = _run(capsys, *configs, "--yes")
    assert (code, err) == (0, "")
    assert f"set aside: {tmp_path}/n2.before-recover-1" in out
    assert not (tmp_path / "n2" / _PARTITION).exists()
    assert (tmp_path / "n2" / "meta.properties").exists()
    before = _contents(tmp_path)
    for more in ((), ("--yes",)):
        code, out, _ = _run(capsys, *configs, *more)
        assert (code, out.splitlines()[-1]) == (0, "Nothing is left to write.")
    assert _contents(tmp_path) == before


def _lock(folder: Path) -> object:
    return LocalFiles().lock(str(folder / "n1" / ".lock"))


def _damage(folder: Path) -> None:
    log = folder / "n1" / _PARTITION / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)


def _another_cluster(folder: Path) -> None:
    meta = folder / "n2" / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=9", "cluster.id=8"))


def _own_link(folder: Path) -> None:
    (folder / "n1").rename(folder / "elsewhere")
    (folder / "n1").symlink_to(folder / "elsewhere")


def _gone(folder: Path) -> None:
    (folder / "n2").rename(folder / "gone")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_lock, "another process uses this directory"),
        (_damage, "the checksum of a batch is wrong"),
        (_another_cluster, "cluster.id"),
        (_own_link, "is a mount point or a link"),
        (_gone, "n2, which"),
    ],
    ids=["in use", "damaged", "another cluster", "a link", "missing"],
)
@pytest.mark.parametrize("more", [(), ("--yes",)], ids=["plan", "yes"])
def test_what_cannot_be_trusted_is_refused_and_left_alone(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    change: object,
    problem: str,
    more: tuple[str, ...],
) -> None:
    """Exit code 1, and no file is different afterwards."""
    made = [Made(id=one, root=str(tmp_path)) for one in (1, 2)]
    configs = [word for one in made for word in ("-c", _survivor(tmp_path, one))]
    assert callable(change)
    lock = change(tmp_path)
    before = _contents(tmp_path)
    code, _, err = _run(capsys, *configs, *more)
    if lock is not None:
        lock.close()
    assert code == 1
    assert problem in err
    assert _contents(tmp_path) == before


def test_a_directory_is_given_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Under two names too: the lock would blame another process, which nobody finds."""
    config = _survivor(tmp_path, Made(id=1, root=str(tmp_path)))
    other = tmp_path / "other.properties"
    other.write_bytes(Path(config).read_bytes())
    code, _, err = _run(capsys, "-c", config, "-c", str(other))
    assert code == 1
    assert "give each survivor's file once" in err


@pytest.mark.parametrize("more", [(), ("--yes",)], ids=["plan", "yes"])
def test_a_log_that_contradicts_itself_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: tuple[str, ...]
) -> None:
    """Nobody would lead with it: not a node of ours, and Kafka's would end at the record."""
    config = _survivor(tmp_path, Made(id=1, epochs=((1, 0),), root=str(tmp_path)))
    with open(tmp_path / "n1" / _PARTITION / f"{0:020}.log", "ab") as log:
        log.write(batch_of(WRONG[1:2], 1))
    before = _contents(tmp_path)
    code, out, err = _run(capsys, "-c", config, *more)
    assert (code, "furthest log first" in out) == (1, True)
    assert "offset 1: PartitionChangeRecord" in err
    assert "no controller leads with this metadata log" in err
    assert _contents(tmp_path) == before


def test_static_voters_are_set_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The plan shows the line; --yes refuses until the files have it."""
    made = Made(id=1, is_static=True, root=str(tmp_path))
    key = "controller.quorum.voters="
    config = _survivor(tmp_path, made, f"{key}1@host1:9093,2@host2:9093,3@host3:9093")
    before = _contents(tmp_path)
    code, out, _ = _run(capsys, "-c", config)
    assert (code, f"  {key}1@host1:9093" in out.splitlines()) == (3, True)
    code, _, err = _run(capsys, "-c", config, "--yes")
    assert (code, f"set {key}1@host1:9093 in" in err) == (1, True)
    assert _contents(tmp_path) == before
    text = Path(config).read_text()
    Path(config).write_text(text.replace(",2@host2:9093,3@host3:9093", ""))
    assert _run(capsys, "-c", config, "--yes")[0] == 0


def test_root_is_told_to_run_it_as_the_nodes_user(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node could not write the files that root leaves."""
    config = _survivor(tmp_path, Made(id=1, root=str(tmp_path)))
    if os.geteuid() == 0:
        os.chown(tmp_path / "n1", 1234, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    code, _, err = _run(capsys, "-c", config, "--yes")
    assert (code, "run the command as the node's user" in err) == (1, True)


def test_a_broker_is_no_survivor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its copy of the log cannot be led from."""
    made = Made(id=1, root=str(tmp_path))
    config = _survivor(tmp_path, made)
    text = Path(config).read_text().replace("roles=controller", "roles=broker")
    Path(config).write_text(text.replace("listeners=CONTROLLER", "listeners=PLAINTEXT"))
    code, _, err = _run(capsys, "-c", config)
    assert (code, "found a broker alone" in err) == (1, True)


@pytest.mark.parametrize("below", ["", f"/{_PARTITION}.unfinished"])
def test_a_link_in_the_place_of_what_is_kept_is_refused(
    below: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The folder beside the log directory may be everybody's. Nothing is written or removed through
    the link."""
    config = _survivor(tmp_path, Made(id=1, root=str(tmp_path)))
    victim = tmp_path / "victim"
    (victim / f"{_PARTITION}.unfinished").mkdir(parents=True)
    (victim / f"{_PARTITION}.unfinished" / "diary").write_text("dear")
    kept = Path(f"{tmp_path}/n1.before-recover-1{below}")
    kept.parent.mkdir(exist_ok=True)
    kept.symlink_to(f"{victim}{below}")
    before = _contents(tmp_path / "n1"), _contents(victim)
    code, _, err = _run(capsys, "-c", config, "--yes")
    assert code == 1
    assert f"{kept}: making the directory failed: it is a link, which may lead anywhere" in err
    assert (_contents(tmp_path / "n1"), _contents(victim)) == before


def test_a_log_that_was_cut_before_the_records_of_an_impostor_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By the commands of docs/security.md, with what decode says."""
    made = Made(id=1, epochs=((1, 0),), state=QuorumState(5, leader_id=1), root=str(tmp_path))
    config = _survivor(tmp_path, made)
    partition = tmp_path / "n1" / _PARTITION
    segment = partition / f"{0:020}.log"
    position = segment.stat().st_size
    end = max(batch.last_offset for batch in read_batches(segment.read_bytes())) + 1
    with segment.open("ab") as log:
        log.write(batch_of(WRONG[1:2], end, epoch=2))
    assert _run(capsys, "-c", config)[0] == 1
    assert cli.main(["decode", "-q", str(partition)]) in (0, 3)
    assert f"contradiction at {position}" in capsys.readouterr().err
    page = Path("docs/security.md").read_text().partition("## After an impostor")[2]
    block = page.partition("```sh")[2].partition("```")[0]
    values = {"DIR": partition.parent, "POSITION": position, "SEGMENT": segment.name, "EPOCH": 7}
    environment = {**os.environ, **{name: str(value) for name, value in values.items()}}
    subprocess.run(["sh", "-euc", block], env=environment, check=True)
    code, out, err = _run(capsys, "-c", config, "--yes")
    assert (code, err) == (0, "")
    assert f"a record of the voters (1 alone) at offset {end}, epoch 8" in out
    assert cli.main(["metadata", "show", str(partition), "voters"]) == 0
    storage = Storage.open(node_of(Made(id=1, root=str(tmp_path))).directories, LocalFiles())
    assert storage.log.end_offset == end + 1
    storage.close()
    assert '"leaderEpoch":8' in (partition / "quorum-state").read_text()
