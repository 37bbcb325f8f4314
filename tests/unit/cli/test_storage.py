"""`kraftwire storage`: kafka-storage's flags, words and refusals, without Java."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraftwire.cli import main as cli
from kraftwire.log.files import LocalFiles
from kraftwire.log.meta_properties import read_meta_properties
from kraftwire.records.reader import read_batches
from kraftwire.wire.json_form import uuid_to_text
from tests.support.metadata.files import SOUND, WRONG, write_segment

_CLUSTER = "9CIbsF9FQuGtwD837BRpPA"
_IDS = ("hwDlIK5BSPidpHwFaUr4mA", "VcMx9jjsQtyN74NNAUrvig")
_VOTERS = f"1@h1:9093:{_IDS[0]},2@h2:9093:{_IDS[1]}"
_STATIC = "controller.quorum.voters=1@127.0.0.1:9093"
_DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:9093"


def _config(folder: Path, *lines: str, roles: str = "controller", dirs: str = "data") -> str:
    listeners = {"controller": "CONTROLLER://127.0.0.1:9093", "broker": "PLAINTEXT://127.0.0.1:9"}
    path = folder / "server.properties"
    path.write_text(
        "\n".join(
            [
                f"process.roles={roles}",
                "node.id=1",
                "controller.listener.names=CONTROLLER",
                f"listeners={listeners[roles]}",
                "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "log.dirs=" + ",".join(str(folder / name) for name in dirs.split(",")),
                *lines,
            ]
        )
    )
    return str(path)


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["storage", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _format(capsys: pytest.CaptureFixture[str], config: str, *more: str) -> tuple[int, str, str]:
    return _run(capsys, "format", "-t", _CLUSTER, "-c", config, *more)


def _tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


_CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@pytest.mark.parametrize(
    ("line", "flags", "kind", "has_voters"),
    [
        (_STATIC, (), "metadata directory", False),
        (_STATIC, ("-N",), "metadata directory", False),
        (_DYNAMIC, ("-N",), "metadata directory", False),
        (_DYNAMIC, ("--standalone",), "dynamic metadata voter directory", True),
        (_DYNAMIC, ("-I", _VOTERS), "dynamic metadata voter directory", True),
        (_DYNAMIC, ("-I", _VOTERS.split(",")[1]), "dynamic metadata directory", True),
    ],
)
def test_each_way_to_name_the_voters_leaves_its_files(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    line: str,
    flags: tuple[str, ...],
    kind: str,
    has_voters: bool,
) -> None:
    """As kafka-storage: only a dynamic quorum gets a snapshot with voters."""
    code, out, err = _format(capsys, _config(tmp_path, line), *flags)
    assert (code, err) == (0, "")
    text = f"Formatting {kind} {tmp_path}/data with metadata.version 4.4-IV2."
    assert out.splitlines()[-1] == text
    expected = ["bootstrap.checkpoint", "meta.properties"]
    assert _tree(tmp_path / "data") == [_CHECKPOINT] * has_voters + expected


def test_a_voter_takes_its_directory_id_from_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every node is formatted with the same list, and finds itself in it."""
    _format(capsys, _config(tmp_path, _DYNAMIC), "-I", _VOTERS)
    found = read_meta_properties(LocalFiles(), str(tmp_path / "data/meta.properties"))
    assert found is not None
    assert uuid_to_text(found.directory_id) == _IDS[0]
    assert (found.cluster_id, found.node_id) == (_CLUSTER, 1)


def test_every_directory_is_formatted_with_its_own_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the metadata directory gets the voters."""
    config = _config(
        tmp_path, _DYNAMIC, f"metadata.log.dir={tmp_path}/meta", dirs="data1,data2"
    )
    code, out, _ = _format(capsys, config, "-s")
    assert code == 0
    assert [line.split(str(tmp_path))[0] for line in out.splitlines()[1:]] == [
        "Formatting data directory ",
        "Formatting data directory ",
        "Formatting dynamic metadata voter directory ",
    ]
    names = ("data1", "data2", "meta")
    metas = [
        read_meta_properties(LocalFiles(), str(tmp_path / name / "meta.properties"))
        for name in names
    ]
    assert len({meta.directory_id for meta in metas if meta}) == 3
    assert [(tmp_path / name / _CHECKPOINT).exists() for name in names] == [False, False, True]


def _bootstrap_values(folder: Path) -> list[bytes]:
    data = (folder / "data/bootstrap.checkpoint").read_bytes()
    batches = [batch for batch in read_batches(data) if not batch.is_control]
    return [bytes(r.value or b"") for batch in batches for r in batch.records()]


@pytest.mark.parametrize(
    ("flags", "features"),
    [
        (("-r", "3.3"), {"metadata.version": 7}),
        (("-r", "3.9.2"), {"metadata.version": 21}),
        (("-r", "4.0-IV1"), {"metadata.version": 23, "group.version": 1}),
        (
            ("-r", "4.0"),
            {"metadata.version": 25, "group.version": 1, "transaction.version": 2},
        ),
        (("-r", "3.9", "-f", "group.version=1"), {"metadata.version": 21, "group.version": 1}),
        (
            ("-f", "metadata.version=25", "-f", "group.version=0"),
            {"metadata.version": 25, "transaction.version": 2},
        ),
    ],
)
def test_a_release_decides_on_the_features(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    features: dict[str, int],
) -> None:
    """The records that the first active controller will write; observed with kafka-storage."""
    assert _format(capsys, _config(tmp_path, _STATIC), *flags)[0] == 0
    found = {}
    for value in _bootstrap_values(tmp_path):
        size = value[3] - 1
        found[value[4 : 4 + size].decode()] = int.from_bytes(value[4 + size : 6 + size], "big")
    assert found == features


@pytest.mark.parametrize(
    ("line", "flags", "problem"),
    [
        (_STATIC, ("-s",), "You cannot specify controller.quorum.voters and format"),
        (_DYNAMIC, (), "Because controller.quorum.voters is not set on this controller"),
        (_STATIC, ("-r", "3.2"), "Unknown metadata.version '3.2'. Supported"),
        (_STATIC, ("-f", "foo=1"), "Unsupported feature: foo. Supported features are: eligible"),
        (_STATIC, ("-f", "group.version"), "group.version: equals sign not found."),
        (_STATIC, ("-f", "group.version=x"), "unable to parse x as a short."),
        (_STATIC, ("-f", "group.version=9"), "No feature:group.version with feature level 9"),
        (_STATIC, ("-f", "kraft.version=1"), "Cannot set kraft.version to 1 unless"),
        (_DYNAMIC, ("-s", "-f", "kraft.version=0"), "Cannot set kraft.version to 0 if"),
        (_STATIC, ("-r", "4.0", "-f", "metadata.version=9"), "Use --release-version instead"),
        (_STATIC, ("-f", "metadata.version=34"), "4.5-IV0 is not yet stable."),
        (_STATIC, ("-f", "metadata.version=6"), "Valid feature levels are from 7 to 34."),
        (
            _STATIC,
            ("-r", "3.9", "-f", "eligible.leader.replicas.version=1"),
            "it depends on metadata.version level 23",
        ),
    ],
)
def test_what_kafka_storage_refuses_is_refused_and_nothing_written(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    line: str,
    flags: tuple[str, ...],
    problem: str,
) -> None:
    """It is refused in Kafka's words, in one line, with its exit code."""
    code, out, err = _format(capsys, _config(tmp_path, line), *flags)
    assert (code, out) == (1, "")
    assert problem in err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("voters", "problem"),
    [
        ("", "No voters given"),
        (f"1@h:1:{_IDS[0]},1@h:2:{_IDS[1]}", "Node id 1 was specified more than once"),
        (f"1@h:{_IDS[0]}", "No colon following port could be found. Expected id@host:port:dir"),
        (f"x@h:1:{_IDS[0]}", "Failed to parse node id in dynamic voter string."),
        (f"1@h:x:{_IDS[0]}", "Failed to parse port in dynamic voter string."),
        (f"1@:1:{_IDS[0]}", "No hostname found after node id."),
        (f"1@[x]:1:{_IDS[0]}", "'x' is not an IPv6 address. Expected id@"),
        ("1@h:1:short", "Failed to parse directory ID in dynamic voter string."),
        ("1@h:1:AAAAAAAAAAAAAAAAAAAAAA", "Failed to parse directory ID"),
        (f"1@h:0:{_IDS[0]}", "Invalid port 0 in dynamic voter string."),
    ],
)
def test_impossible_voters_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], voters: str, problem: str
) -> None:
    """A quorum that begins with a wrong list cannot be repaired by restarting it."""
    code, _, err = _format(capsys, _config(tmp_path, _DYNAMIC), "-I", voters)
    assert code == 1
    assert problem in err


def test_flags_that_exclude_each_other_are_refused_in_kafka_storages_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its parser names both, the later one first."""
    config = _config(tmp_path, _DYNAMIC)
    code, _, err = _format(capsys, config, "-s", "-N")
    assert code == 1
    words = "argument --no-initial-controllers/-N: not allowed with argument --standalone/-s"
    assert words in err


def test_users_for_scram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are named, their keys and passwords are not shown; an old cluster has no place for
    them."""
    user = "SCRAM-SHA-256=[name=alice,password=hunter2]"
    code, _, err = _format(capsys, _config(tmp_path, _STATIC), "-S", user, "-r", "3.4-IV0")
    assert (code, "SCRAM is only supported in" in err) == (1, True)
    code, _, err = _format(capsys, _config(tmp_path, _STATIC), "-S", user.replace("name", "x"))
    assert (code, "hunter2" in err) == (2, False)
    code, _, err = _format(capsys, _config(tmp_path, _STATIC), "-S", user.replace("hunter2", ""))
    assert (code, "password is empty" in err) == (2, True)
    code, out, _ = _format(capsys, _config(tmp_path, _STATIC), "-S", user)
    assert code == 0
    assert "UserScramCredentialRecord(name='alice', mechanism=1, [hidden], iterations=4096)" in out


def test_a_directory_that_cannot_be_read_is_left_alone_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka says only that there was an error; the reason goes to standard error."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/meta.properties").write_text("version=7\n")
    code, out, err = _format(capsys, _config(tmp_path, _STATIC, dirs="data,more"))
    assert code == 0
    told = f"I/O error trying to read log directory {tmp_path}/data. Ignoring..."
    assert out.splitlines()[0] == told
    assert err.endswith("data/meta.properties: expected version 1, found version 7\n")
    assert _tree(tmp_path / "data") == ["meta.properties"]
    code, _, err = _format(capsys, _config(tmp_path, _STATIC))
    assert (code, "No available log directories to format." in err) == (1, True)


def test_an_impossible_configuration_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with kafka-storage, only the command line itself is wrong usage."""
    for verb in (("format", "-t", _CLUSTER), ("info",)):
        code, out, err = _run(capsys, *verb, "-c", _config(tmp_path, ""))
        assert (code, out) == (1, "")
        assert "controller.quorum.voters is not set" in err


def test_only_a_controller_can_be_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker may be formatted without any flag."""
    config = _config(tmp_path, _DYNAMIC, roles="broker")
    code, _, err = _format(capsys, config, "-s")
    assert (code, "You can only use --standalone on a controller." in err) == (1, True)
    assert _format(capsys, config)[0] == 0


def test_a_formatted_directory_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Formatting again would give it another id; `-g` formats what is new."""
    _format(capsys, _config(tmp_path, _STATIC))
    before = (tmp_path / "data/meta.properties").read_bytes()
    code, _, err = _format(capsys, _config(tmp_path, _STATIC))
    assert code == 1
    assert f"Log directory {tmp_path}/data is already formatted. Use --ignore-formatted" in err
    code, out, _ = _format(capsys, _config(tmp_path, _STATIC), "-g")
    assert (code, out) == (0, "All of the log directories are already formatted.\n")
    code, out, _ = _format(capsys, _config(tmp_path, _STATIC, dirs="data,more"), "-g")
    assert (code, len(out.splitlines())) == (0, 2)
    assert (tmp_path / "data/meta.properties").read_bytes() == before


def test_a_directory_of_another_cluster_or_node_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even with `-g`."""
    _format(capsys, _config(tmp_path, _STATIC))
    code, _, err = _run(
        capsys, "format", "-t", _IDS[0], "-c", _config(tmp_path, _STATIC), "-g"
    )
    assert code == 1
    assert f"Invalid cluster.id in: {tmp_path}/data/meta.properties. Expected {_IDS[0]}" in err
    path = tmp_path / "data/meta.properties"
    path.write_text(path.read_text().replace("node.id=1", "node.id=7"))
    code, _, err = _format(capsys, _config(tmp_path, _STATIC), "-g")
    assert code == 1
    assert "Stored node id 7 doesn't match previous node id 1" in err


def test_info_shows_directories_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In kafka-storage's layout; exit code 1 if there is a problem."""
    _format(capsys, _config(tmp_path, _STATIC))
    config = _config(tmp_path, _STATIC, dirs="data,gone")
    found = read_meta_properties(LocalFiles(), str(tmp_path / "data/meta.properties"))
    assert found is not None
    code, out, err = _run(capsys, "info", "-c", config)
    assert (code, err) == (1, "")
    assert out == (
        f"Found log directory:\n  {tmp_path}/data\n\n"
        f"Found metadata: {{cluster.id={_CLUSTER}, "
        f"directory.id={uuid_to_text(found.directory_id)}, node.id=1, version=1}}\n\n"
        f"Found problem:\n  {tmp_path}/gone does not exist\n\n"
    )
    (tmp_path / "gone").mkdir()
    assert f"{tmp_path}/gone is not formatted." in _run(capsys, "info", "-c", config)[1]
    code, out, _ = _run(capsys, "info", "-c", _config(tmp_path, _STATIC))
    assert (code, "problem" in out) == (0, False)


def test_a_random_uuid_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """For `--cluster-id` and `--initial-controllers`."""
    code, out, _ = _run(capsys, "random-uuid")
    assert (code, len(out)) == (0, 23)


def test_a_log_without_its_properties_is_not_formatted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It would become the log of a node that has forgotten its votes, or of another cluster."""
    config = _config(tmp_path, _DYNAMIC)
    partition = tmp_path / "data" / "__cluster_metadata-0"
    partition.mkdir(parents=True)
    (partition / "00000000000000000000.log").write_bytes(b"a batch")
    before = _tree(tmp_path)
    code, _, err = _format(capsys, config, "-s")
    assert code == 1
    assert "has no meta.properties, but holds the log __cluster_metadata-0: do not format" in err
    assert _tree(tmp_path) == before
    code, out, _ = _run(capsys, "info", "-c", config)
    assert code == 1
    assert "do not format it" in out
    assert "is not formatted" not in out


def test_an_empty_log_does_not_keep_a_directory_from_being_formatted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A crash while a directory is formatted leaves a folder without a segment."""
    config = _config(tmp_path, _DYNAMIC)
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(parents=True)
    assert _format(capsys, config, "-s")[0] == 0


def test_info_says_why_a_node_would_not_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By the code of the start itself."""
    config = _config(tmp_path, _DYNAMIC)
    _format(capsys, config, "-s")
    assert _run(capsys, "info", "-c", config)[0] == 0
    partition = tmp_path / "data" / "__cluster_metadata-0"
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    before = _tree(tmp_path)
    code, out, _ = _run(capsys, "info", "-c", config)
    assert code == 1
    assert "Found problem:" in out
    assert "belongs to topic id AAAAAAAAAAAAAAAAAAAAAg" in out
    assert _tree(tmp_path) == before


def test_info_names_records_that_contradict_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node would start on such a log, and refuse to lead; Kafka's would not even start."""
    config = _config(tmp_path, _STATIC)
    assert _run(capsys, "format", "-t", _CLUSTER, "-c", config)[0] == 0
    partition = tmp_path / "data" / "__cluster_metadata-0"
    write_segment(partition, [*SOUND, *WRONG])
    election = {"leaderId": -1, "leaderEpoch": 1, "votedId": -1, "currentVoters": []}
    election |= {"clusterId": "", "appliedOffset": 0, "data_version": 0}
    (partition / "quorum-state").write_text(json.dumps(election))
    code, out, _ = _run(capsys, "info", "-c", config)
    assert code == 1
    assert "offset 4: BrokerRegistrationChangeRecord is of broker 3 with broker epoch 99" in out
    assert out.count("but ") == 3
    assert "no controller leads with this metadata log" in out
    write_segment(partition, SOUND)
    assert _run(capsys, "info", "-c", config)[0] == 0
