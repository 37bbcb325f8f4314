"""Replacing a controller as the node's README describes, with Kafka's tool and with ours."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from kraftwire.client.results import ReplicaInfo
from kraftwire.testing import Quorum, quorum
from tests.support.kafka.quorum_tools import ours, theirs

FAST: dict[str, object] = {"controller.quorum.fetch.timeout.ms": 1000}
SECONDS_MAX = 30

Tool = Callable[..., object]


@pytest.fixture(params=[ours, theirs], ids=["kraftwire", "Kafka"])
def tool(request: pytest.FixtureRequest) -> Tool:
    """Each of the two tools."""
    chosen: Tool = request.param
    return chosen


def run(tool: Tool, q: Quorum, *arguments: object, config: int | None = None) -> str:
    """Run a voter change to its end through the running nodes."""
    awake = [
        address
        for node, address in zip(q.node_ids, q.bootstrap_controllers.split(","), strict=True)
        if q.is_running(node)
    ]
    front = ["--bootstrap-controller", ",".join(awake)]
    if config is not None:
        front += ["--command-config", str(q.config_file(config))]
    result = tool(*front, *map(str, arguments))
    assert result.returncode == 0, result.stderr  # type: ignore[attr-defined]
    return str(result.stdout)  # type: ignore[attr-defined]


def wait_caught_up(q: Quorum, node: int) -> None:
    """Return once an observer has everything that is committed."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        info = q.admin().describe_quorum()
        if any(
            one.id == node and one.log_end_offset >= info.high_watermark > 0
            for one in info.observers
        ):
            return
    raise AssertionError(f"node {node} does not catch up:\n{q.log(node)}")


def voter(q: Quorum, node: int) -> ReplicaInfo:
    """A voter as the leader describes it."""
    return next(one for one in q.admin().describe_quorum().voters if one.id == node)


def voter_ids(q: Quorum) -> list[int]:
    """Who votes."""
    return sorted(one.id for one in q.admin().describe_quorum().voters)


@pytest.mark.parametrize("is_leader", [True, False], ids=["the leader", "a follower"])
def test_a_dead_controller_is_replaced_by_a_new_one(tool: Tool, is_leader: bool) -> None:
    """Format, add, wait until caught up, remove the old one."""
    with quorum(3, dynamic=True, properties=FAST) as q:
        leader = q.leader()
        dead = leader if is_leader else next(one for one in q.node_ids if one != leader)
        old = voter(q, dead)
        q.kill(dead)
        new = q.add_node()
        wait_caught_up(q, new)
        assert "Added" in run(tool, q, "add-controller", config=new)
        key = ("--controller-id", dead, "--controller-directory-id", old.directory_id)
        assert "Removed" in run(tool, q, "remove-controller", *key)
        assert voter_ids(q) == sorted({*q.node_ids} - {dead})
        assert "this node is now a voter" in q.log(new)


def test_a_living_leader_is_replaced(tool: Tool) -> None:
    """It keeps leading until its own removal is committed, then hands over."""
    with quorum(3, dynamic=True, properties=FAST) as q:
        leader = q.leader()
        old = voter(q, leader)
        key = ("--controller-id", leader, "--controller-directory-id", old.directory_id)
        assert "Removed" in run(tool, q, "remove-controller", *key)
        assert voter_ids(q) == [one for one in q.node_ids if one != leader]
        assert q.leader() != leader
        assert "this node is no longer a voter" in q.log(leader)


def test_a_controller_whose_disk_is_gone_comes_back_under_its_id(tool: Tool) -> None:
    """Its new directory is another replica: the old one is removed, the new one added."""
    with quorum(3, dynamic=True, properties=FAST) as q:
        gone = next(one for one in q.node_ids if one != q.leader())
        old = voter(q, gone)
        q.kill(gone)
        q.wipe(gone)
        q.start(gone)
        wait_caught_up(q, gone)
        key = ("--controller-id", gone, "--controller-directory-id", old.directory_id)
        run(tool, q, "remove-controller", *key)
        run(tool, q, "add-controller", config=gone)
        assert voter_ids(q) == list(q.node_ids)
        assert voter(q, gone).directory_id != old.directory_id
