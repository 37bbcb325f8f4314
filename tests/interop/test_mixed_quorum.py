"""Two Java controllers and one kraftwire node, which hands over to them, as static voters.

The three are shared by all tests of this module, each of which leaves them running, under any
leader.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftwire.client import Admin
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.testing.ports import free_ports
from tests.support.captures.decoded import decode
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.mixed_quorum.elections import leaders_of_epochs
from tests.support.kafka.process import KafkaNode
from tests.support.kafka.quorum_tools import masked, ours, theirs

NODE = 3
JAVAS = (1, 2)
CAPTURE = "capture.pcapng"

# Many small commits instead of few.
BUSY = {"metadata.max.idle.interval.ms": 100}

# The requests of a second to a peer that is asked again after 20 ms, and some more.
REQUESTS_PER_SECOND_MAX = 120


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedQuorum]:
    """The quorum, running and with its first commits."""
    folder = tmp_path_factory.mktemp("mixed")
    kinds = {1: JAVA, 2: JAVA, NODE: OURS}
    special = {
        NODE: {
            "kraftwire.capture.file": folder / CAPTURE,
            "kraftwire.leader.handover": "auto",
        }
    }
    with MixedQuorum(folder, kinds, BUSY, special) as quorum:
        quorum.start()
        quorum.wait_commit(0)
        yield quorum


def capture(quorum: MixedQuorum) -> list[dict[str, Any]]:
    """Everything that our node sent and received so far, as `kraftwire decode` shows it."""
    path = Path(str(quorum.members[NODE].java.properties["kraftwire.capture.file"]))
    return decode(path, detail="none").lines


def stopped_leading(quorum: MixedQuorum) -> int:
    """Let a Java controller lead; returns its id."""
    node = quorum.members[NODE]
    if quorum.leader() == NODE:
        node.stop()
        node.start()
        node.wait_ready()
    return quorum.leader(among=JAVAS)


def test_the_logs_agree_byte_for_byte(quorum: MixedQuorum) -> None:
    """Replication copies bytes, so one wrong bit in a header of ours would be in its log."""
    quorum.wait_commit(30)
    assert quorum.check_logs_agree() > 10
    quorum.check_health()


def test_our_node_comes_back_after_a_kill(quorum: MixedQuorum) -> None:
    """What it had acknowledged is on its disk; the Java controllers continue without it."""
    stopped_leading(quorum)
    node = quorum.members[NODE]
    node.kill()
    mark = quorum.wait_commit(quorum.status().high_watermark)
    node.start()
    node.wait_ready()
    quorum.wait_commit(mark)
    quorum.check_logs_agree()
    quorum.check_health()


def test_a_java_follower_comes_back_after_a_kill(quorum: MixedQuorum) -> None:
    """Meanwhile nothing is committed without our node's fetches."""
    leader = stopped_leading(quorum)
    (follower,) = set(JAVAS) - {leader}
    quorum.members[follower].kill()
    mark = quorum.wait_commit(quorum.status().high_watermark + 5)
    quorum.start(follower)
    quorum.wait_commit(mark)
    quorum.check_logs_agree()
    quorum.check_health()


def test_elected_in_place_of_a_killed_leader_we_hand_over(quorum: MixedQuorum) -> None:
    """With `kraftwire.leader.handover=auto`, ours leads no longer than needed.

    Its LeaderChange record is committed, and the next leader writes after it.
    """
    stopped_leading(quorum)
    node = quorum.members[NODE]
    seen = len(node.lines)
    former = quorum.depose(NODE)
    (other,) = set(JAVAS) - {former}
    assert quorum.leader(among=JAVAS) == other
    told = "\n".join(node.lines[seen:])
    assert re.search(r"old=candidate new=leader epoch=\d+", told), told
    assert f"hands over to {other}, which can be the active controller" in told
    quorum.start(former)
    quorum.wait_commit(quorum.status().high_watermark)
    quorum.check_logs_agree()
    assert NODE in leaders_of_epochs(quorum.members[1]).values()
    quorum.check_health()


def test_the_tools_agree_while_java_leads(quorum: MixedQuorum) -> None:
    """Whichever tool, and whichever kind of voter it is pointed at."""
    stopped_leading(quorum)
    expected = theirs("--bootstrap-controller", quorum.bootstrap_controllers, *STATUS)
    found = ours("--bootstrap-controller", quorum.address(NODE), *STATUS)
    assert (expected.returncode, found.returncode) == (0, 0), expected.stderr + found.stderr
    assert moving(found.stdout) == moving(expected.stdout)


STATUS = ("describe", "--status")


def moving(output: str) -> str:
    """A status without what idle records advance."""
    return re.sub(r"((?:HighWatermark|MaxFollowerLag): +)\d+", r"\1<n>", masked(output))


def test_ours_keeps_leading_if_configured_never_to_hand_over(
    quorum: MixedQuorum, tmp_path: Path
) -> None:
    """Java controllers follow it as they would a Java leader; it serves a Java broker, and so does
    the Java controller that leads after it.
    """
    stopped_leading(quorum)
    node = quorum.members[NODE]
    node.stop()
    node.start(None, "kraftwire.leader.handover=never")
    node.wait_ready()
    quorum.wait_commit(quorum.status().high_watermark)
    former = quorum.depose(NODE)
    assert quorum.leader() == NODE
    broker = java_broker(quorum, tmp_path)
    broker.start()
    try:
        quorum.start(former)
        epoch = quorum.status().leader_epoch
        wait_until(lambda: is_caught_up(quorum, 1, 2, broker.node_id), "followers that have all")
        check_tools(quorum)
        broker.wait_ready()
        # A voter reports itself to a leader that it has followed for a fetch timeout.
        wait_until(
            lambda: reporting_voters(capture(quorum)) & set(JAVAS), "a report of a Java voter"
        )
        assert (quorum.leader(), quorum.status().leader_epoch) == (NODE, epoch)
        quorum.check_health()

        node.stop()
        quorum.leader(among=JAVAS)
        node.start()
        admin = Admin(bootstrap_servers=f"127.0.0.1:{broker.listeners['PLAINTEXT']}", timeout_s=30)
        assert [each.id for each in admin.describe_cluster().nodes] == [broker.node_id]
    finally:
        broker.kill()
    node.wait_ready()
    quorum.wait_commit(quorum.status().high_watermark)
    quorum.check_logs_agree()
    quorum.check_health()


def java_broker(quorum: MixedQuorum, folder: Path) -> KafkaNode:
    """A Java broker of this quorum, formatted."""
    voters = {key: quorum.members[1].java.properties[key] for key in ("controller.quorum.voters",)}
    broker = KafkaNode(4, folder, {"PLAINTEXT": free_ports(1)[0]}, voters)
    broker.format(quorum.cluster_id)
    return broker


def is_caught_up(quorum: MixedQuorum, *node_ids: int) -> bool:
    """Whether replicas have the leader's whole log and its high watermark has reached the end."""
    told = quorum.status()
    ends = {one.replica_id: one.log_end_offset for one in told.current_voters + told.observers}
    wanted = {ends.get(node_id) for node_id in (*node_ids, NODE)}
    return wanted == {told.high_watermark}


def check_tools(quorum: MixedQuorum) -> None:
    """Both tools print the same about a quorum that ours leads, but for what moves meanwhile."""
    for view in ("--status", "--replication"):
        expected = theirs("--bootstrap-controller", quorum.bootstrap_controllers, "describe", view)
        assert expected.returncode == 0, expected.stderr
        for address in (quorum.bootstrap_controllers, quorum.address(1)):
            found = ours("--bootstrap-controller", address, "describe", view)
            assert steady(view, found.stdout) == steady(view, expected.stdout)


def steady(view: str, output: str) -> list[str]:
    """A status without moving offsets; of the replication, each replica's id and state."""
    if view == "--status":
        return moving(output).splitlines()
    return [f"{words[0]} {words[-1]}" for line in output.splitlines() if (words := line.split())]


def test_the_recorded_traffic_is_that_of_a_well_behaved_peer(quorum: MixedQuorum) -> None:
    """This runs last, over everything that our node sent in the other tests."""
    if sum("new=leader" in line for line in quorum.members[NODE].lines) < 2:
        pytest.skip("the tests before this one, in which our node leads, were not run")
    lines = capture(quorum)
    cut = {"cut-by-close", "incomplete"}
    odd = [line for line in lines if line["findings"]]
    # What a peer was sending when it was killed is incomplete.
    assert [one for one in odd if sent_by_ours(quorum, one) or not found_in(one) <= cut] == []
    # The end of a response that a killed peer was sending, with the leader in it, is missing.
    check_high_watermarks([line for line in lines if sent_by_ours(quorum, line)])
    check_no_hurry([line for line in lines if not sent_by_ours(quorum, line)])
    registrations = [line for line in lines if line["apiName"] == "BrokerRegistration"]
    answers = {line["body"]["errorCode"] for line in registrations if is_response(line)}
    assert ErrorCode.NONE in answers
    assert answers <= {ErrorCode.NONE, ErrorCode.NOT_CONTROLLER}
    reports = [line for line in lines if line["apiName"] == "UpdateRaftVoter"]
    errors = {line["body"]["errorCode"] for line in reports if is_response(line)}
    # A report can reach a leader that has just lost its leadership.
    assert errors - {ErrorCode.NOT_LEADER_OR_FOLLOWER} == {ErrorCode.NONE}
    assert NODE in reporting_voters(lines)
    assert reporting_voters(lines) & set(JAVAS)


def reporting_voters(lines: list[dict[str, Any]]) -> set[int]:
    """The voters that have sent UpdateRaftVoter to our node, and ours if it has sent one."""
    requests = [line for line in lines if line["apiName"] == "UpdateRaftVoter"]
    return {line["body"]["voterId"] for line in requests if not is_response(line)}


def sent_by_ours(quorum: MixedQuorum, line: dict[str, Any]) -> bool:
    """Whether our node sent it: as the server of a response, or as the client of a request."""
    serves = str(line["connection"]).endswith(f":{quorum.members[NODE].port}")
    return serves is is_response(line)


def found_in(line: dict[str, Any]) -> set[str]:
    """The ids of its findings."""
    return {finding["id"] for finding in line["findings"]}


def is_response(line: dict[str, Any]) -> bool:
    """Whether it is the answer."""
    return bool(line["direction"] == "response")


def check_high_watermarks(lines: list[dict[str, Any]]) -> None:
    """As a leader, ours names none before its own epoch's record is committed, then never a lower
    one: anything else ends a Java peer."""
    marks: dict[int, dict[str, list[int]]] = {}
    for connection, partition in fetched(lines):
        leader = partition["currentLeader"]
        if leader["leaderId"] == NODE and partition["errorCode"] == 0:
            to_each = marks.setdefault(leader["leaderEpoch"], {})
            to_each.setdefault(connection, []).append(partition["highWatermark"])
    assert len(marks) >= 2, "ours has led twice"
    ends = [-1]
    for epoch in sorted(marks):
        # A response may be on its way longer than a later one to another peer.
        for each in marks[epoch].values():
            assert each == sorted(each)
        every = sorted(mark for each in marks[epoch].values() for mark in each)
        known = [mark for mark in every if mark >= 0]
        assert every[0] == -1
        assert known[0] > ends[-1]
        ends.append(known[-1])


def fetched(lines: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The answers to Fetch with their connections, without their records."""
    for line in lines:
        if line["apiName"] == "Fetch" and is_response(line):
            for topic in line["body"]["responses"]:
                for partition in topic["partitions"]:
                    yield line["connection"], partition


def check_no_hurry(lines: list[dict[str, Any]]) -> None:
    """Our node's requests: without news it asks again after a pause, unlike Java's voters when
    their leader resigns."""
    errors: Counter[tuple[str, int]] = Counter()
    for line in lines:
        if line["apiName"] == "Fetch" and is_response(line):
            (topic,) = line["body"]["responses"]
            client = line["connection"].partition("-")[0]
            if topic["partitions"][0]["errorCode"] != 0:
                errors[client, int(line["time"])] += 1
    assert max(errors.values(), default=0) <= REQUESTS_PER_SECOND_MAX
