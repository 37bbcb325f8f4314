"""`kraftwire quorum add-controller` and `remove-controller`: what they read, send and refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.describe_quorum_response import ReplicaState
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.messages.unregister_controller_request import UnregisterControllerRequest
from kraftwire.messages.unregister_controller_response import UnregisterControllerResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.json_form import uuid_from_text
from tests.support.nodes.fake_node import (
    ADD_RAFT_VOTER,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    METADATA,
    REMOVE_RAFT_VOTER,
    UNREGISTER_CONTROLLER,
    FakeNode,
    controllers,
    metadata,
    quorum_state,
)

DIRECTORY_ID = "l6CpXS7PU8WM8TMz3NcI7w"


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command; exit code, standard output, standard error."""
    code = main(["quorum", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def controller_config(folder: Path, **changes: str) -> Path:
    """The properties file of a formatted controller; a change to None leaves a key out."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "meta.properties").write_text(f"version=1\ndirectory.id={DIRECTORY_ID}\n")
    properties = {
        "process.roles": "controller",
        "node.id": "4",
        "log.dirs": f"{folder / 'data'},elsewhere",
        "listeners": "CONTROLLER://0.0.0.0:9004,INSIDE://:9005",
        "advertised.listeners": "CONTROLLER://127.0.0.1:9004",
        "controller.listener.names": "CONTROLLER, inside",
    }
    properties |= {key.replace("_", "."): value for key, value in changes.items()}
    path = folder / "controller.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items() if value))
    return path


def test_a_controller_is_added_as_its_files_describe_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Advertised addresses take precedence; all controller listeners are sent."""
    with FakeNode() as broker:
        broker.answers[METADATA] = lambda _: metadata({1: broker})
        broker.answers[ADD_RAFT_VOTER] = lambda _: AddRaftVoterResponse()
        arguments = [
            "add-controller", "--bootstrap-server", broker.address,
            "--command-config", str(controller_config(tmp_path)),
        ]
        expected = (
            f"controller 4 with directory id {DIRECTORY_ID} and endpoints: "
            "CONTROLLER://127.0.0.1:9004, INSIDE://localhost:9005\n"
        )
        assert say(capsys, *arguments, "--dry-run") == (0, f"DRY RUN of adding {expected}", "")
        assert broker.requests == []
        assert say(capsys, *arguments) == (0, f"Added {expected}", "")
        request = broker.requests[-1]
        assert isinstance(request, AddRaftVoterRequest)
        assert (request.voter_id, request.voter_directory_id) == (4, uuid_from_text(DIRECTORY_ID))
        assert [(each.name, each.host, each.port) for each in request.listeners] == [
            ("CONTROLLER", "127.0.0.1", 9004), ("INSIDE", "localhost", 9005),
        ]


def test_the_controllers_properties_may_be_separate_from_the_clients(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Kafka's tool reads both from one file, which few people have."""
    client = tmp_path / "client.properties"
    client.write_text("client.id = me\n")
    code, out, _ = say(
        capsys, "add-controller", "--dry-run", "--bootstrap-controller", "127.0.0.1:1",
        "--command-config", str(client), "--config", str(controller_config(tmp_path)),
    )
    assert (code, out.startswith("DRY RUN of adding controller 4 ")) == (0, True)


def test_an_invalid_directory_id_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A voter with it could never be matched or removed."""
    config = controller_config(tmp_path)
    (tmp_path / "data/meta.properties").write_text("version=1\ndirectory.id=short\n")
    through = ["--bootstrap-controller", "127.0.0.1:1"]
    code, _, err = say(
        capsys, "add-controller", "--dry-run", *through, "--command-config", str(config)
    )
    assert code == 1
    assert f"Unable to read meta.properties from {tmp_path}/data: expected a uuid" in err
    code, _, err = say(
        capsys, "remove-controller", "-i", "4", "-d", "short", "--dry-run", *through
    )
    assert (code, "Failed to parse --controller-directory-id: short" in err) == (1, True)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"node_id": ""}, "node.id not found in configuration file"),
        ({"node_id": "-4"}, "node.id was negative"),
        ({"node_id": "four"}, "node.id is not a number"),
        ({"process_roles": "broker"}, "process.roles did not contain 'controller'"),
        ({"log_dirs": ""}, "Neither metadata.log.dir nor log.dirs were found"),
        ({"log_dirs": "nowhere"}, "Unable to read meta.properties from nowhere"),
        ({"controller_listener_names": ""}, "controller.listener.names was not found"),
        ({"controller_listener_names": "X"}, "controller listener name: X"),
        ({"listeners": "CONTROLLER"}, "expected NAME://host:port, found 'CONTROLLER'"),
    ],
)
def test_a_file_that_describes_no_controller_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, changes: dict[str, str], text: str
) -> None:
    """An unreachable voter still counts in every majority."""
    config = controller_config(tmp_path, **changes)
    code, out, err = say(
        capsys, "add-controller", "--dry-run", "--bootstrap-server", "127.0.0.1:1",
        "--command-config", str(config),
    )
    assert (code, out) == (1, "")
    assert text in err


def _voters(*replicas: tuple[int, str]) -> list[ReplicaState]:
    return [
        ReplicaState(replica_id=number, replica_directory_id=uuid_from_text(directory))
        for number, directory in replicas
    ]


@pytest.mark.parametrize(
    ("voters", "code", "text"),
    [
        ([(1, "A" * 21 + "Q"), (4, DIRECTORY_ID)], 0, f"4 with directory id {DIRECTORY_ID}"),
        ([(4, "A" * 21 + "Q"), (4, DIRECTORY_ID)], 1, "2 voters have the node id 4: choose one"),
        ([(1, DIRECTORY_ID)], 1, "controller 4 is not among the voters: 1"),
    ],
    ids=["one", "several", "none"],
)
def test_the_directory_id_of_the_only_voter_need_not_be_given(
    capsys: pytest.CaptureFixture[str], voters: list[tuple[int, str]], code: int, text: str
) -> None:
    """Who removes a dead controller has no file to look it up in."""
    with FakeNode() as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({1: node}, 1)
        node.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(1, voters=_voters(*voters))
        found = say(
            capsys, "remove-controller", "-i", "4", "--dry-run",
            "--bootstrap-controller", node.address,
        )
    assert found[0] == code
    assert text in found[1] + found[2]


REMOVED = f"Removed KRaft controller 4 with directory id {DIRECTORY_ID}\n"
CHANGES = (REMOVE_RAFT_VOTER, UNREGISTER_CONTROLLER)
UNREGISTERED = "Unregistered KRaft controller 4\n"
LEFT = (
    "{}: no. To unregister the controller from the cluster, run "
    "`kafka-cluster.sh unregister-controller --id 4`.\n"
)


@pytest.mark.parametrize("kind", ["server", "controller"])
@pytest.mark.parametrize(
    ("refusals", "code", "out", "err"),
    [
        ((0, 0), 0, REMOVED + UNREGISTERED, ""),
        ((0, ErrorCode.CONTROLLER_ID_NOT_REGISTERED), 1, REMOVED,
         LEFT.format("Failed to unregister controller 4")),
        ((ErrorCode.VOTER_NOT_FOUND, 0), 1, "", LEFT.format("Failed to remove KRaft voter 4")),
        ((ErrorCode.UNSUPPORTED_VERSION, 0), 1, "", LEFT.format("Failed to remove KRaft voter 4")),
        ((ErrorCode.INVALID_REQUEST, 0), 1, "", "error 42: INVALID_REQUEST: no\n"),
    ],
    ids=["both", "not registered", "no voter", "fixed voters", "another refusal"],
)  # fmt: skip
def test_a_controller_is_unregistered_once_it_is_removed(
    capsys: pytest.CaptureFixture[str],
    kind: str,
    refusals: tuple[int, int],
    code: int,
    out: str,
    err: str,
) -> None:
    """What is left to do after a failure is named, as by Kafka's tool."""
    with FakeNode() as node:
        node.answers[METADATA] = lambda _: metadata({1: node})
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({1: node}, 1)
        node.answers[REMOVE_RAFT_VOTER] = lambda _: RemoveRaftVoterResponse(
            error_code=refusals[0], error_message="no" if refusals[0] else None
        )
        node.answers[UNREGISTER_CONTROLLER] = lambda _: UnregisterControllerResponse(
            error_code=refusals[1], error_message="no" if refusals[1] else None
        )
        words = [
            "remove-controller", "-i", "4", "-d", DIRECTORY_ID, "--unregister",
            f"--bootstrap-{kind}", node.address,
        ]
        dry = "DRY RUN of removing" + REMOVED.removeprefix("Removed")
        dry += "DRY RUN of unregistering" + UNREGISTERED.removeprefix("Unregistered")
        assert say(capsys, *words, "--dry-run") == (0, dry, "")
        assert node.requests == []
        found = say(capsys, *words)
        changes = [each for each in node.requests if each.API_KEY in CHANGES]
    assert (found[0], found[1], found[2].partition(": ")[2]) == (code, out, err)
    assert [each.API_KEY for each in changes] == [*CHANGES[: 1 if refusals[0] else 2]]
    id = uuid_from_text(DIRECTORY_ID)
    sent = [RemoveRaftVoterRequest(cluster_id=None, voter_id=4, voter_directory_id=id)]
    assert changes == [*sent, UnregisterControllerRequest(controller_id=4)][: len(changes)]
