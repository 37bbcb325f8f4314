"""Quorums of real node processes: they elect, survive a kill, and stop cleanly."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.cli.main import main
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.kafka.mixed_quorum import wait_until
from tests.support.nodes.process import NodeProcess, NodeQuorum, describe


def elected(quorum: NodeQuorum, *survivors: int, since: dict[int, int] | None = None) -> int:
    """The node that is first to report the first record of its leadership as committed."""
    marks = since or {}
    for node_id in survivors:
        node = quorum.nodes[node_id]
        node.wait_for(r"event=leader-change leader=[1-9]", marks.get(node_id, 0))
    for node_id in survivors:
        lines = quorum.nodes[node_id].lines[marks.get(node_id, 0) :]
        if any("event=controller-active" in line for line in lines):
            return node_id
    line = quorum.nodes[survivors[0]].wait_for(
        r"event=leader-change leader=[1-9]", marks.get(survivors[0], 0)
    )
    match = re.search(r"leader=(\d+)", line)
    assert match is not None
    leader = int(match[1])
    quorum.nodes[leader].wait_for("event=controller-active", marks.get(leader, 0))
    return leader


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeQuorum]:
    """Three nodes for the tests that leave all of them running, under any leader."""
    with NodeQuorum(tmp_path_factory.mktemp("three")) as running:
        running.start_all()
        yield running


def leader_of(quorum: NodeQuorum) -> int:
    """The leader that all nodes name, as soon as they do and it is the active controller."""

    def look() -> int:
        named = {last_named(node) for node in quorum.nodes.values()}
        return max(*named, 0) if len(named) == 1 else 0

    leader = wait_until(look, "one leader for all")
    quorum.nodes[leader].wait_for("event=controller-active")
    return leader


def last_named(node: NodeProcess) -> int:
    """The leader that a node was the last to name; -1 for none."""
    named = re.findall(r"event=leader-change leader=(\S+)", "\n".join(node.lines))
    return int(named[-1]) if named else -1


def marks(quorum: NodeQuorum) -> dict[int, int]:
    return {node_id: len(node.lines) for node_id, node in quorum.nodes.items()}


def test_three_nodes_elect_and_survive_a_kill_and_a_stop_of_the_leader(quorum: NodeQuorum) -> None:
    """The purpose of a quorum: two of three continue, and a node that returns follows."""
    first = leader_of(quorum)
    cluster_ids = {
        quorum.nodes[i].wait_for("event=cluster-id").rpartition("=")[2] for i in (1, 2, 3)
    }
    assert len(cluster_ids) == 1

    before = marks(quorum)
    quorum.nodes[first].kill()
    survivors = [i for i in (1, 2, 3) if i != first]
    second = elected(quorum, *survivors, since=before)
    assert second in survivors

    returned = quorum.start(first)
    returned.wait_for(rf"event=leader-change leader={second}")
    before = marks(quorum)
    assert quorum.nodes[second].stop() == 0
    quorum.nodes[second].wait_for("event=stopped graceful=True")
    third = elected(quorum, *(i for i in (1, 2, 3) if i != second), since=before)
    assert third != second

    partition = describe(quorum.ports[third]).topics[0].partitions[0]
    assert partition.error_code == ErrorCode.NONE
    assert partition.leader_id == third
    assert [voter.replica_id for voter in partition.current_voters] == [1, 2, 3]
    epochs = [int(x) for x in re.findall(r" epoch=(\d+)", "\n".join(quorum.nodes[third].lines))]
    assert partition.leader_epoch == max(epochs)
    for node_id in (first, third):
        assert not any("Traceback" in line for line in quorum.nodes[node_id].lines)
    quorum.start(second).wait_for("^ready ")


def test_a_single_node_leads_at_once_and_keeps_its_log(tmp_path: Path) -> None:
    """The smallest quorum, in which no majority hides a mistake."""
    with NodeQuorum(tmp_path, 1) as quorum:
        node = quorum.start(1)
        node.wait_for("event=controller-active")
        first = describe(quorum.ports[1]).topics[0].partitions[0]
        assert node.stop() == 0
        node = quorum.start(1)
        node.wait_for("event=controller-active")
        second = describe(quorum.ports[1]).topics[0].partitions[0]
        assert second.leader_epoch == first.leader_epoch + 1
        assert second.high_watermark > first.high_watermark
        assert node.stop() == 0


def test_a_node_killed_in_the_middle_of_its_work_starts_again(tmp_path: Path) -> None:
    """D11: what a kill leaves behind is a log that can be read."""
    with NodeQuorum(tmp_path, 1, "metadata.max.idle.interval.ms=1") as quorum:
        for _ in range(3):
            node = quorum.start(1)
            node.wait_for("event=controller-active")
            node.kill()
        node = quorum.start(1)
        node.wait_for("event=controller-active")
        assert node.stop() == 0


def test_a_second_process_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    """D10: two processes with one identity would vote twice."""
    with NodeQuorum(tmp_path, 1) as quorum:
        node = quorum.start(1)
        node.wait_for("^ready ")
        second = NodeProcess(quorum.config(1))
        assert second.wait() == 1
        assert any(".lock" in line for line in second.lines)
        second.close()
        assert node.stop() == 0


def test_a_port_in_use_is_one_clean_line(tmp_path: Path) -> None:
    """The usual mistake of a second start with a copied file."""
    with NodeQuorum(tmp_path, 1) as quorum, socket.create_server(("localhost", 0)) as busy:
        port = busy.getsockname()[1]
        node = quorum.start(1, f"listeners=PLAINTEXT://localhost:{port}")
        assert node.wait() == 2
        last = node.lines[-1]
        assert "cannot listen" in last
        assert str(port) in last
        assert not any("Traceback" in line for line in node.lines)


def test_an_unformatted_directory_is_refused_in_kafka_mode(tmp_path: Path) -> None:
    """As in Kafka: an empty disk in place of a full one must not look like a new node."""
    with NodeQuorum(tmp_path, 1) as quorum:
        node = quorum.start(1, "process.roles=controller", "controller.listener.names=PLAINTEXT")
        assert node.wait() == 2
        assert "kraftwire storage format" in node.lines[-1]


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    """Two nodes that swap their disks would vote twice."""
    with NodeQuorum(tmp_path, 1) as quorum:
        node = quorum.start(1)
        node.wait_for("event=controller-active")
        assert node.stop() == 0
        port = quorum.ports[1]
        node = quorum.start(1, "node.id=2", f"controller.quorum.voters=2@localhost:{port}")
        assert node.wait() == 2
        assert "belongs to node 1" in node.lines[-1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    """One clear line instead of a node that forgets its votes."""
    with NodeQuorum(tmp_path, 1) as quorum:
        tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
        node = quorum.start(1)
        try:
            assert node.wait() == 1
        finally:
            tmp_path.chmod(stat.S_IRWXU)


def test_sigint_stops_a_node_as_sigterm_does(tmp_path: Path) -> None:
    """Ctrl-C in a terminal is the usual way to stop a node in the foreground."""
    with NodeQuorum(tmp_path, 1) as quorum:
        node = quorum.start(1)
        node.wait_for("event=controller-active")
        node.send(signal.SIGINT)
        assert node.wait() == 0


def seconds(line: str) -> float:
    """When a line was written, in seconds of that day."""
    hours, minutes, rest = line.split("T")[1].split("Z")[0].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(rest)


def test_ctrl_c_on_a_node_without_a_leader_ends_it_at_once(tmp_path: Path) -> None:
    """The first node of a quorum that is being set up has no other to wait for."""
    with NodeQuorum(tmp_path) as quorum:
        node = quorum.start(1)
        node.wait_for("event=role old=unattached new=prospective")
        node.send(signal.SIGINT)
        assert node.wait() == 0
        took = seconds(node.wait_for("event=stopped")) - seconds(node.wait_for("event=stopping"))
        assert took % 86_400 < 2.5, "half the time that leaving may take"


def test_timers_of_no_time_do_not_end_a_node(tmp_path: Path) -> None:
    """Kafka allows 0 for both; a round still takes a moment."""
    timers = ("controller.quorum.election.timeout.ms=0", "controller.quorum.retry.backoff.ms=0")
    with NodeQuorum(tmp_path, 3, *timers) as quorum:
        quorum.start_all()
        first = elected(quorum, 1, 2, 3)
        before = marks(quorum)
        quorum.nodes[first].kill()
        survivors = [i for i in (1, 2, 3) if i != first]
        elected(quorum, *survivors, since=before)
        assert [quorum.nodes[i].stop() for i in survivors] == [0, 0]


def test_garbage_on_a_port_ends_that_connection_only(tmp_path: Path) -> None:
    """Scanners and misdirected clients reach every port sooner or later."""
    with NodeQuorum(tmp_path, 1) as quorum:
        node = quorum.start(1)
        node.wait_for("event=controller-active")
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\4\x7f\xff\0\0", b"\0\0\0\0"):
            with socket.create_connection(("localhost", quorum.ports[1])) as connection:
                connection.sendall(data)
                assert connection.recv(100) == b""
        assert describe(quorum.ports[1]).topics[0].partitions[0].leader_id == 1
        assert not any("Traceback" in line for line in node.lines)
        assert node.stop() == 0


def test_a_paused_leader_is_replaced_and_follows_when_it_wakes(quorum: NodeQuorum) -> None:
    """A process that sleeps keeps its sockets open; only time shows that it is gone."""
    first = leader_of(quorum)
    before = marks(quorum)
    quorum.nodes[first].send(signal.SIGSTOP)
    others = [i for i in (1, 2, 3) if i != first]
    second = elected(quorum, *others, since=before)
    assert second in others
    quorum.nodes[first].send(signal.SIGCONT)
    pattern = rf"event=leader-change leader={second} epoch="
    line = quorum.nodes[first].wait_for(pattern, before[first])
    epoch = describe(quorum.ports[second]).topics[0].partitions[0].leader_epoch
    assert line.endswith(f"epoch={epoch} end_offset={line.rpartition('=')[2]}")


def test_a_leader_hands_over_when_it_is_asked_to(quorum: NodeQuorum) -> None:
    """An operator moves the leadership before maintenance; a follower ignores the signal."""
    first = leader_of(quorum)
    before = marks(quorum)
    others = [i for i in (1, 2, 3) if i != first]
    quorum.nodes[others[0]].send(signal.SIGUSR1)
    quorum.nodes[others[0]].wait_for("event=does-not-lead signal=SIGUSR1")
    quorum.nodes[first].send(signal.SIGUSR1)
    assert elected(quorum, *others, since=before) in others
    node = quorum.nodes[first]
    node.wait_for("old=leader new=resigned .*asked to resign", before[first])
    node.wait_for("new=follower", before[first])
    assert node.stop() == 0
    quorum.start(first).wait_for("^ready ")


def test_the_capture_of_a_node_shows_its_election(
    quorum: NodeQuorum, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What happened between nodes can be shown afterwards, without privileges."""
    capture = tmp_path / "node.pcapng"
    leader = leader_of(quorum)
    quorum.nodes[leader].stop()
    node = quorum.start(leader, f"kraftwire.capture.file={capture}")
    node.wait_for("event=controller-registered")
    assert node.stop() == 0
    quorum.start(leader).wait_for("^ready ")
    assert main(["decode", str(capture), "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    names = {line["apiName"] for line in lines}
    assert {"ApiVersions", "Fetch"} <= names
    assert not any(line["findings"] for line in lines)
