"""`kraftwire storage` next to kafka-storage: the same contents, words and exit codes.

The records of a new cluster are in bootstrap.checkpoint here, which all releases read; Kafka writes
them into the checkpoint 0-0 since 4.4.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.records.batch import RecordBatch
from kraftwire.records.control import ControlType, control_type
from kraftwire.records.reader import read_batches
from kraftwire.wire.json_form import uuid_from_text
from tests.support.kafka.java import shared_tools

_CLUSTER = "9CIbsF9FQuGtwD837BRpPA"
_OTHER_CLUSTER = "VcMx9jjsQtyN74NNAUrvig"
_IDS = ("hwDlIK5BSPidpHwFaUr4mA", "jEzlMbgGDXFk9oDANJIHtg", "VcMx9jjsQtyN74NNAUrvig")
_VOTERS = (
    f"1@127.0.0.1:19091:{_IDS[0]},7@controller.example:9093:{_IDS[1]},3@[::1]:19093:{_IDS[2]}"
)
_STATIC = "controller.quorum.voters=1@127.0.0.1:19091"
_DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:19091"
_LISTENERS = {"controller": "CONTROLLER://127.0.0.1:19091", "broker": "PLAINTEXT://127.0.0.1:9"}
_VOTERS_RECORD = ControlType.KRAFT_VOTERS


@dataclass(frozen=True)
class Case:
    """A node, flags, and the files in its folder before."""

    flags: tuple[str, ...] = ()
    line: str = _STATIC
    roles: str = "controller"
    dirs: str = "data"
    metadata_dir: str = ""
    cluster: str = _CLUSTER
    files: dict[str, str] = field(default_factory=dict)

    def config(self, folder: Path) -> Path:
        """The folder with the files and the node's properties."""
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        folder.mkdir(exist_ok=True)
        path = folder / "server.properties"
        lines = [
            f"process.roles={self.roles}",
            "node.id=1",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "listeners=" + ",".join(_LISTENERS[role] for role in self.roles.split(",")),
            "log.dirs=" + ",".join(str(folder / name) for name in self.dirs.split(",")),
            self.line,
        ]
        if self.metadata_dir:
            lines.append(f"metadata.log.dir={folder / self.metadata_dir}")
        path.write_text("\n".join(lines))
        return path


@dataclass(frozen=True)
class Result:
    """What a run left: the folder's name stands for its path in the texts."""

    code: int
    out: str
    err: str
    files: dict[str, bytes | list[str]]


Both = Callable[[Case], tuple[Result, Result]]


@pytest.fixture
def both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Both:
    """Run a case with Kafka's tool and with ours, each in a separate folder."""

    def run(case: Case) -> tuple[Result, Result]:
        results = []
        for who in ("java", "ours"):
            folder = tmp_path / who
            arguments = ["format", "-t", case.cluster, "-c", str(case.config(folder)), *case.flags]
            if who == "java":
                told = shared_tools().run("storage", *arguments)
                code, out, err = told.returncode, told.stdout, told.stderr
            else:
                code = cli.main(["storage", *arguments])
                captured = capsys.readouterr()
                out, err = captured.out, captured.err
            texts = [text.replace(str(folder), "FOLDER") for text in (out, err)]
            results.append(Result(code, *texts, files=_files(folder)))
        return results[0], results[1]

    return run


def _files(folder: Path) -> dict[str, bytes | list[str]]:
    """Every file without what differs from run to run: times, checksums, random ids."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    random_ids = [
        found
        for path in paths
        if path.name == "meta.properties"
        for found in re.findall(r"^directory\.id=(.+)$", path.read_text(), re.MULTILINE)
        if found not in _IDS
    ]
    found: dict[str, bytes | list[str]] = {
        str(path.relative_to(folder)): _masked(path, random_ids)
        for path in paths
        if path.name != "server.properties" and path.suffix != ".checkpoint"
    }
    checkpoints = [path for path in paths if path.suffix == ".checkpoint"]
    return found | ({"the first records": _first_records(checkpoints, random_ids)} if found else {})


def _masked(path: Path, random_ids: list[str]) -> bytes | list[str]:
    if path.name != "meta.properties":
        return path.read_bytes()
    text = path.read_text()
    for random_id in random_ids:
        text = text.replace(random_id, "RANDOM")
    return [re.sub(r"^#.+", "#", line) for line in text.splitlines()]


def _first_records(paths: list[Path], random_ids: list[str]) -> list[str]:
    """What a new cluster begins with: the voters, the metadata records."""
    found: dict[bytes, None] = {}
    for path in paths:
        for batch in read_batches(path.read_bytes()):
            assert isinstance(batch, RecordBatch)
            assert batch.is_valid
            for record in batch.records():
                value = record.value or b""
                is_voters = batch.is_control and control_type(record.key) == _VOTERS_RECORD
                if batch.is_control and not is_voters:
                    continue
                for random_id in random_ids:
                    value = value.replace(uuid_from_text(random_id), bytes(16))
                found[value] = None
    return [value.hex() for value in found]


@pytest.mark.parametrize(
    "case",
    [
        Case(),
        Case(("-N",)),
        Case(("-N", "-f", "kraft.version=0")),
        Case(("--standalone",), _DYNAMIC),
        Case(("-s", "-f", "kraft.version=1"), _DYNAMIC),
        Case(("--initial-controllers", _VOTERS), _DYNAMIC),
        Case(("-I", _VOTERS.partition(",")[2]), _DYNAMIC),
        Case(("-I", f" {_VOTERS.replace(',', ' , ')},"), _DYNAMIC),
        Case(("--no-initial-controllers",), _DYNAMIC),
        Case(("-N", "-f", "kraft.version=1"), _DYNAMIC),
        Case(("-s",), _DYNAMIC, roles="broker,controller"),
        Case(("-I", _VOTERS, "-f", "group.version=0"), _DYNAMIC, roles="broker,controller"),
        Case((), _DYNAMIC, roles="broker"),
        Case(("-f", "kraft.version=1"), _DYNAMIC, roles="broker"),
        Case(("-I", _VOTERS), _DYNAMIC, roles="broker"),
        Case(("--release-version", "4.0"), _DYNAMIC, roles="broker"),
        *(
            Case(("-s", "-r", release), _DYNAMIC)
            for release in ("3.3", "3.5-IV1", "3.6.1", "3.9.2", "4.0-IV2", "4.2", "4.3.1", "4.4")
        ),
        Case(("-r", "3.9", "-f", "group.version=1")),
        Case(("-f", "metadata.version=25", "-f", "transaction.version=1")),
        Case(("-f", "group.version=0", "-f", "group.version=1")),
        Case(("-s",), _DYNAMIC, dirs="data,more"),
        Case(("-s",), _DYNAMIC, dirs="one", metadata_dir="meta"),
        Case(files={"data/topic-0/00000000000000000000.log": ""}),
        Case(("-g",), files={"data/meta.properties": "version=7\n"}, dirs="data,more"),
    ],
    ids=str,
)
def test_a_formatted_directory_has_what_kafka_storages_has(both: Both, case: Case) -> None:
    """But for times and random ids; the words are the same, too."""
    java, ours = both(case)
    assert java.code == ours.code == 0
    # Kafka visits its directories in the order of a hash table.
    assert sorted(ours.out.splitlines()) == sorted(java.out.splitlines())
    if case.roles == "broker" or ("data,more" in case.dirs and case.files):
        # What is formatted begins no cluster: Kafka 4.4 leaves the records out.
        assert ours.files.pop("the first records")
        assert java.files.pop("the first records") == []
    assert ours.files == java.files


_DONE = f"version=1\ncluster.id={_CLUSTER}\nnode.id=1\ndirectory.id={_IDS[0]}\n"


@pytest.mark.parametrize(
    "case",
    [
        Case(("-s",)),
        Case(("-I", _VOTERS)),
        Case((), _DYNAMIC),
        Case(("-s",), _DYNAMIC, roles="broker"),
        Case(("-f", "kraft.version=1")),
        Case(("-N", "-f", "kraft.version=1")),
        Case(("-f", "kraft.version=2")),
        Case(("-s", "-f", "kraft.version=2"), _DYNAMIC),
        Case(("-s", "-f", "kraft.version=0"), _DYNAMIC),
        Case(("-N", "-f", "kraft.version=0"), _DYNAMIC),
        Case(("-f", "kraft.version=0"), _DYNAMIC, roles="broker"),
        Case(("-f", "kraft.version=1", "-f", "group.version=9")),
        Case(("-f", "kraft.version=1", "-f", "foo=1")),
        Case(("-r", "3.2")),
        Case(("-r", "9", "-f", "foo=1")),
        Case(("-s", "-r", "9")),
        Case(("-r", "4.0", "-f", "metadata.version=25")),
        Case(("-f", "metadata.version=34")),
        Case(("-f", "metadata.version=6")),
        Case(("-f", "foo=1")),
        Case(("-f", "group.version")),
        Case(("-f", "group.version=x")),
        Case(("-f", "group.version=70000")),
        Case(("-f", "group.version=-1")),
        Case(("-f", "group.version=9")),
        Case(("-s", "-f", "foo=x")),
        Case(("-r", "3.9", "-f", "eligible.leader.replicas.version=1")),
        Case(("-I", ""), _DYNAMIC),
        Case(("-I", f"{_VOTERS},1@h:2:{_IDS[1]}"), _DYNAMIC),
        *(
            Case(("-I", voter), _DYNAMIC)
            for voter in (
                f"1h:1:{_IDS[0]}",
                "@",
                "1@",
                f"x@h:1:{_IDS[0]}",
                f"1@[::1:1:{_IDS[0]}",
                f"1@[::1]1:{_IDS[0]}",
                "1@h",
                f"1@h:{_IDS[0]}",
                f"1@h:x:{_IDS[0]}",
                f"1@h:65536:{_IDS[0]}",
                f"1@h:-1:{_IDS[0]}",
                "1@h:1:short",
                f"1@2001:db8::7:9093:{_IDS[0]}",
            )
        ),
        Case(("-I", "x", "-f", "foo=1"), _DYNAMIC),
        Case(("-I", "x")),
        Case(files={"data/meta.properties": _DONE}),
        Case(files={"data/meta.properties": _DONE}, dirs="more,data"),
        Case(files={"data/meta.properties": _DONE}, cluster=_OTHER_CLUSTER),
        Case(("-g",), files={"data/meta.properties": _DONE}, cluster=_OTHER_CLUSTER),
        Case(("-g",), files={"data/meta.properties": _DONE.replace("node.id=1", "node.id=7")}),
        Case(("-g",), files={"data/meta.properties": _DONE.replace("version=1", "version=2")}),
        Case(("-g",), files={"data/meta.properties": "version=1\nnode.id=1\n"}),
        Case(files={"data": "no directory"}),
    ],
    ids=str,
)
def test_what_kafka_storage_refuses_is_refused_in_its_words(both: Both, case: Case) -> None:
    """The exit code is the same, and nothing is written; ours may name the place more precisely."""
    java, ours = both(case)
    assert (ours.code, ours.out, ours.files) == (java.code, java.out, java.files)
    assert java.code == 1
    # An exception's class, where Kafka prints a stack trace.
    words = re.sub(r"^[\w.]+\.\w+(Exception|Error): ", "", java.err).strip()
    assert words
    last = ours.err.splitlines()[-1].removeprefix("kraftwire storage: ")
    assert last.startswith(words)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("-g",), "All of the log directories are already formatted.\n"),
        (("-g", "-f", "group.version=0"), "All of the log directories are already formatted.\n"),
    ],
)
def test_a_formatted_directory_is_left_alone(both: Both, flags: tuple[str, ...], told: str) -> None:
    """It keeps its ids."""
    java, ours = both(Case(flags, files={"data/meta.properties": _DONE}))
    assert (ours.code, ours.out, ours.err) == (java.code, java.out, java.err) == (0, told, "")
    assert ours.files == java.files


_USERS = (
    "SCRAM-SHA-256=[name=alice,password=a b,salt=c2FsdHNhbHRzYWx0]",
    'SCRAM-SHA-512=[name="bob",saltedpassword=c2VjcmV0,salt=c2FsdHNhbHRzYWx0,iterations=16384]',
)


def test_users_are_the_same_records(both: Both) -> None:
    """Kafka's tool prints their keys; ours does not."""
    flags = tuple(word for user in _USERS for word in ("--add-scram", user))
    java, ours = both(Case(flags))
    assert (java.code, ours.code) == (0, 0)
    assert java.files == ours.files
    assert "storedKey=[" in java.out
    assert "[hidden]" in ours.out


@pytest.mark.parametrize(
    "user",
    [
        *("SCRAM-SHA-1=[name=a,password=b]", "SCRAM-SHA-256=[password=b]", "SCRAM-SHA-256"),
        *("SCRAM-SHA-256=[name=a]", "SCRAM-SHA-256=[name=a,saltedpassword=c2VjcmV0]"),
        *("SCRAM-SHA-256=[name=a,password=b,iterations=1]", "SCRAM-SHA-256=name=a,password=b"),
        "SCRAM-SHA-256=[name=a,password=b,x=y]",
        *("SCRAM-SHA-256=[name=a,password=]", 'SCRAM-SHA-256=[name=a,password=""]'),
        "SCRAM-SHA-256=[name=a,saltedpassword=,salt=c2VjcmV0]",
    ],
)
def test_users_that_both_refuse(both: Both, user: str) -> None:
    """Nothing is written."""
    java, ours = both(Case(("--add-scram", user)))
    assert (java.code != 0, ours.code) == (True, 2)
    assert ours.files == java.files == {}
