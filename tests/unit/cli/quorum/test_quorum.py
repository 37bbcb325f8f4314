"""`kraftwire quorum`: columns, options, errors; with nodes that answer as the test prescribes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.cli.quorum.output import quorum_json, replication_lines, status_lines
from kraftwire.client import Endpoint, QuorumInfo, ReplicaInfo
from kraftwire.messages.describe_cluster_response import DescribeClusterResponse
from kraftwire.messages.describe_quorum_response import ReplicaState
from kraftwire.wire.json_form import uuid_from_text
from kraftwire.wire.message import Message
from tests.support.nodes.fake_node import (
    CLUSTER_ID,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    FakeNode,
    controllers,
    quorum_state,
)

NOW_MS = 1_795_206_449_466
IDS = {
    1: "KVuZ__Hj7jwsEI188Nn3Lw",
    2: "19mdzJLxQF6VDK8YbnezaA",
    3: "fJNYdgEkUVLkhIqjjDA3hg",
    4: "l6CpXS7PU8WM8TMz3NcI7w",
    10: "M_cvjdIflU02FlMpFLqDHA",
}


def replica(number: int, end: int, fetched_ago: int, caught_up_ago: int) -> ReplicaInfo:
    """A replica with these times before now."""
    return ReplicaInfo(number, IDS[number], end, NOW_MS - fetched_ago, NOW_MS - caught_up_ago)


# The quorum of a real cluster's output, with a dead voter.
QUORUM = QuorumInfo(
    leader_id=2,
    leader_epoch=1,
    high_watermark=465,
    voters=(replica(1, 465, 479, 479), replica(2, 465, 0, 0), replica(3, 438, 13538, 14051)),
    observers=(replica(10, 465, 480, 480), replica(4, 438, 13538, 14057)),
    endpoints={n: (Endpoint("CONTROLLER", "127.0.0.1", 22292 + n),) for n in (1, 2, 3)},
)

REPLICATION = """\
NodeId	DirectoryId           	LogEndOffset	Lag	LastFetchTimestamp	LastCaughtUpTimestamp	Status  	
2     	19mdzJLxQF6VDK8YbnezaA	465         	0  	1795206449466     	1795206449466        	Leader  	
1     	KVuZ__Hj7jwsEI188Nn3Lw	465         	0  	1795206448987     	1795206448987        	Follower	
3     	fJNYdgEkUVLkhIqjjDA3hg	438         	27 	1795206435928     	1795206435415        	Follower	
10    	M_cvjdIflU02FlMpFLqDHA	465         	0  	1795206448986     	1795206448986        	Observer	
4     	l6CpXS7PU8WM8TMz3NcI7w	438         	27 	1795206435928     	1795206435409        	Observer	
"""  # noqa: E501, W291

STATUS = """\
ClusterId:              CCCCCCCCQACAAAAAAAAAAg
LeaderId:               2
LeaderEpoch:            1
HighWatermark:          465
MaxFollowerLag:         27
MaxFollowerLagTimeMs:   14051
CurrentVoters:          [\
{"id": 1, "directoryId": "KVuZ__Hj7jwsEI188Nn3Lw", "endpoints": ["CONTROLLER://127.0.0.1:22293"]}, \
{"id": 2, "directoryId": "19mdzJLxQF6VDK8YbnezaA", "endpoints": ["CONTROLLER://127.0.0.1:22294"]}, \
{"id": 3, "directoryId": "fJNYdgEkUVLkhIqjjDA3hg", "endpoints": ["CONTROLLER://127.0.0.1:22295"]}]
CurrentObservers:       [{"id": 10, "directoryId": "M_cvjdIflU02FlMpFLqDHA"}, \
{"id": 4, "directoryId": "l6CpXS7PU8WM8TMz3NcI7w"}]
"""


@pytest.fixture
def controller() -> Iterator[FakeNode]:
    """A controller that leads its own quorum."""
    with FakeNode() as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({2: node}, 2)
        voter = ReplicaState(
            replica_id=2,
            replica_directory_id=uuid_from_text(IDS[2]),
            log_end_offset=10,
            last_fetch_timestamp=NOW_MS,
            last_caught_up_timestamp=NOW_MS,
        )
        observer = ReplicaState(replica_id=10, log_end_offset=7)
        state = quorum_state(2, 3, voters=[voter], observers=[observer])
        node.answers[DESCRIBE_QUORUM] = lambda _: state
        yield node


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command; exit code, standard output, standard error."""
    code = main(["quorum", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_replication_is_the_table_of_a_real_cluster() -> None:
    """Every column is padded, and a tab follows the last one too."""
    assert "\n".join(replication_lines(QUORUM)) + "\n" == REPLICATION


def test_status_is_that_of_a_real_cluster() -> None:
    """The lag is that of the voter whose log is shortest; observers do not count."""
    assert "\n".join(status_lines(QUORUM, "CCCCCCCCQACAAAAAAAAAAg")) + "\n" == STATUS


def test_times_are_shown_as_ages_on_request() -> None:
    """People cannot subtract timestamps of 13 digits in their heads."""
    lines = replication_lines(QUORUM, NOW_MS + 29)
    assert "\t29 ms ago         \t29 ms ago            \tLeader" in lines[1]
    assert "\t13567 ms ago      \t14080 ms ago         \t" in lines[3]


def test_a_time_in_the_future_is_a_clock_that_is_wrong(
    capsys: pytest.CaptureFixture[str], controller: FakeNode
) -> None:
    """As in Kafka's tool: negative ages would hide it."""
    far = ReplicaState(replica_id=2, last_fetch_timestamp=1 << 50, last_caught_up_timestamp=1)
    controller.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(2, voters=[far])
    code, out, err = say(
        capsys, "describe", "--replication", "--human-readable",
        "--bootstrap-controller", controller.address,
    )
    assert (code, out) == (1, "")
    assert "possible drift in system clock" in err
    assert err.count("\n") == 1


def test_unknown_times_and_directories_look_as_in_kafka() -> None:
    """An old leader reports neither; -1 stands for a time, nothing for a directory."""
    voters = (ReplicaInfo(1, log_end_offset=5), ReplicaInfo(2, log_end_offset=3))
    old = QuorumInfo(1, 1, 5, voters, ())
    status = status_lines(old, "c")
    assert status[5] == "MaxFollowerLagTimeMs:   -1"
    assert status[6] == 'CurrentVoters:          [{"id": 1}, {"id": 2}]'
    assert replication_lines(old)[1].split("\t")[4:6] == ["-1".ljust(18), "-1".ljust(21)]


def test_ipv6_endpoints_are_in_brackets() -> None:
    """Otherwise the port would be ambiguous."""
    info = QuorumInfo(
        1, 1, 0, (ReplicaInfo(1, log_end_offset=0),), (), {1: (Endpoint("C", "::1", 9093),)}
    )
    assert '"endpoints": ["C://[::1]:9093"]' in status_lines(info, "c")[6]


def test_the_id_of_a_new_cluster_is_waited_for(
    capsys: pytest.CaptureFixture[str], controller: FakeNode
) -> None:
    """Its first leader writes it after the election; without it, no answer is better."""
    answers: list[str] = []

    def describe(_: Message) -> DescribeClusterResponse:
        response = controllers({2: controller}, 2)
        response.cluster_id = CLUSTER_ID if len(answers) >= 3 else ""
        answers.append(response.cluster_id)
        return response

    controller.answers[DESCRIBE_CLUSTER] = describe
    options = ["--bootstrap-controller", controller.address, "--timeout", "20"]
    code, out, err = say(capsys, "describe", "--status", *options)
    assert (code, err) == (0, "")
    assert answers[-1] == CLUSTER_ID
    assert CLUSTER_ID in out.splitlines()[0]


def test_json_has_lag_and_lag_in_time_per_replica(
    capsys: pytest.CaptureFixture[str], controller: FakeNode
) -> None:
    """The form for programs; -1 stands for unknown values."""
    code, out, err = say(
        capsys, "--bootstrap-controller", controller.address, "describe", "--status", "--json"
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["leaderId"], found["leaderEpoch"], found["highWatermark"]) == (2, 3, 10)
    (voter,), (observer,) = found["voters"], found["observers"]
    assert (voter["lag"], voter["lagTimeMs"], voter["directoryId"]) == (0, 0, IDS[2])
    assert (observer["lag"], observer["lagTimeMs"], observer["status"]) == (3, -1, "Observer")


@pytest.mark.parametrize(
    "arguments",
    [
        ["describe", "--replication", "--bootstrap-controller", "{}"],
        ["--bootstrap-controller", "{}", "describe", "--replication"],
        ["--bootstrap-controller", "127.0.0.1:1,{}", "describe", "--describe", "replication"],
        ["--bootstrap-controller", "x:1", "describe", "--replication", "--bootstrap-controller",
         "{}"],
    ],
)
def test_connection_options_may_precede_or_follow_the_subcommand(
    capsys: pytest.CaptureFixture[str], controller: FakeNode, arguments: list[str]
) -> None:
    """Those after it win."""
    code, out, _ = say(capsys, *(each.format(controller.address) for each in arguments))
    assert code == 0
    assert out.splitlines()[1].startswith("2     \t19mdzJLxQF6VDK8YbnezaA\t10 ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["describe", "--status"], "one of the arguments --bootstrap-server"),
        (
            ["describe", "--status", "--bootstrap-server", "a:1", "--bootstrap-controller", "b:1"],
            "argument --bootstrap-server: not allowed with argument --bootstrap-controller",
        ),
        (["describe", "--status", "--replication"], "Only one of --status or --replication"),
        (["describe"], "One of --status or --replication must be specified"),
        (["describe", "--status", "--human-readable"], "only supported along with --replication"),
        (["add-controller", "--bootstrap-server", "a:1"], "You must supply the configuration"),
        (
            ["remove-controller", "-i", "-1", "-d", IDS[4], "--bootstrap-server", "a:1"],
            "Invalid negative --controller-id: -1",
        ),
        (
            ["remove-controller", "-i", "1", "-d", "xyz", "--bootstrap-server", "a:1"],
            "Failed to parse --controller-directory-id: xyz",
        ),
        (
            ["describe", "--status", "--bootstrap-server", "a:1", "--command-config", "nowhere"],
            "Properties file nowhere does not exist",
        ),
    ],
)
def test_what_kafkas_tool_refuses_is_refused_with_exit_code_1(
    capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    """It is refused in one line, and before anything is sent."""
    code, out, err = say(capsys, *arguments)
    assert (code, out) == (1, "")
    assert text in err
    assert err.count("\n") == 1


def test_without_a_leader_it_ends_with_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 0 promises a leader."""
    with FakeNode() as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({2: node}, -1)
        node.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(0, 0, error=6)
        code, out, err = say(
            capsys, "describe", "--status", "--timeout", "0.3",
            "--bootstrap-controller", node.address,
        )
    assert (code, out) == (1, "")
    assert "NOT_LEADER_OR_FOLLOWER" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("security.protocol=TLS", "properties:1: security.protocol: expected PLAINTEXT, SSL"),
        ("ssl.truststore.type=PEM", "client.properties:1: ssl.truststore.type: security.protocol"),
        ("request.timeout.ms=soon", "request.timeout.ms: expected milliseconds above 0"),
    ],
)
def test_a_configuration_that_cannot_be_followed_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, text: str
) -> None:
    """Above all, nothing that should be encrypted is sent in plain text."""
    config = tmp_path / "client.properties"
    config.write_text(line + "\n")
    code, _, err = say(
        capsys, "describe", "--status", "--bootstrap-server", "127.0.0.1:1",
        "--command-config", str(config),
    )
    assert code == 2
    assert text in err


def test_the_time_limit_can_come_from_the_configuration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The key is that of Kafka's client."""
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms = 100\nclient.id = me\nother.key = 1\n")
    code, _, err = say(
        capsys, "describe", "--replication", "--bootstrap-server", "127.0.0.1:1",
        "--command-config", str(config),
    )
    assert code == 1
    assert re.search(r"took more than 0\.(1|0\d+) s", err)


def test_a_retry_is_reported_on_a_terminal_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each problem is printed once; a script sees only the last line."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with FakeNode() as node:
        node.answers[DESCRIBE_CLUSTER] = lambda _: controllers({2: node}, -1)
        node.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(0, 0, error=6)
        code, out, err = say(
            capsys, "describe", "--status", "--timeout", "0.5",
            "--bootstrap-controller", node.address,
        )
    assert (code, out, err.count("\n")) == (1, "", 2)
    first = err.splitlines()[0]
    assert first.startswith("kraftwire quorum: NOT_LEADER_OR_FOLLOWER")
    assert first.endswith("; retrying for at most 0.5 s")


def test_a_leader_that_was_removed_from_the_voters_is_shown() -> None:
    """It leads until the change is committed: the moment in which an operator looks."""
    leader = ReplicaInfo(1, log_end_offset=120, last_caught_up_ms=5000)
    voters = (ReplicaInfo(2, log_end_offset=100, last_caught_up_ms=4000),)
    quorum = QuorumInfo(1, 7, 100, voters, (leader,))
    status = dict(line.split(":", 1) for line in status_lines(quorum, "c"))
    assert (status["LeaderId"].strip(), status["MaxFollowerLag"].strip()) == ("1", "20")
    rows = [line.split() for line in replication_lines(quorum)]
    assert [(row[0], row[3], row[-1]) for row in rows[1:]] == [
        ("1", "0", "Leader"), ("2", "20", "Follower"),
    ]  # fmt: skip
    shown = quorum_json(quorum, "c")
    assert [row["id"] for row in shown["voters"]] == [2]
    assert [(row["id"], row["status"]) for row in shown["observers"]] == [(1, "Leader")]


def test_a_leader_that_is_nowhere_leaves_lags_unknown() -> None:
    """-1, as the other unknown values."""
    quorum = QuorumInfo(1, 7, 100, (ReplicaInfo(2, log_end_offset=100),), ())
    status = dict(line.split(":", 1) for line in status_lines(quorum, "c"))
    assert status["MaxFollowerLag"].strip() == "-1"
    assert replication_lines(quorum)[1].split()[3] == "-1"
    assert quorum_json(quorum, "c")["voters"][0]["lag"] == -1
