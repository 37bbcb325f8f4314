"""What a node reserves for itself: file descriptors and its files (SEC-DESCRIPTORS, SEC-FILES)."""

from __future__ import annotations

import resource
import socket
import stat
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from kraftwire.limits import CONNECTION_BYTES_MAX, DESCRIPTORS_RESERVED
from kraftwire.log.files import LocalFiles
from kraftwire.node import listener
from kraftwire.node.admission import OPEN_CONNECTION_BYTES
from kraftwire.node.capture import CaptureFile
from tests.support.nodes.process import NodeQuorum, describe

# Descriptors of a node that idle connections exhaust quickly.
_FEW = 300
_UNLIMITED = resource.RLIM_INFINITY
# Idle connections take half of the memory that all may take.
_MOST = CONNECTION_BYTES_MAX // OPEN_CONNECTION_BYTES // 2


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1024, 1024 - DESCRIPTORS_RESERVED), (100, 50), (1 << 20, _MOST), (_UNLIMITED, _MOST)],
)
def test_connections_leave_descriptors_alone(most: int, expected: int) -> None:
    """With 1,060 idle connections and a limit of 1,024, one Vote ended a voter."""
    assert listener.connections_max(most) == expected


def test_the_soft_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is 1,024 on most systems, and the hard limit is far higher."""
    now = [1024, 4096]

    def put(_: int, limits: tuple[int, int]) -> None:
        now[:] = limits

    monkeypatch.setattr(listener.resource, "getrlimit", lambda _: tuple(now))
    monkeypatch.setattr(listener.resource, "setrlimit", put)
    assert listener.raise_descriptor_limit() == 4096
    assert now == [4096, 4096]


def test_a_limit_that_cannot_be_raised_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS reports no limit, and refuses."""

    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(listener.resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(listener.resource, "setrlimit", refuse)
    assert listener.raise_descriptor_limit() == 256


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_a_nodes_files(tmp_path: Path) -> None:
    """They hold what clients sent, and the cluster's SCRAM credentials."""
    log, capture = tmp_path / "0.log", tmp_path / "node.pcapng"
    LocalFiles().open(str(log), create=True).close()
    CaptureFile(str(capture)).close()
    assert (_mode(log), _mode(capture)) == (0o600, 0o600)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets limits of other processes")
def test_an_election_succeeds_while_descriptors_leak(tmp_path: Path) -> None:
    """With all descriptors taken by idle connections, a node could not store its vote."""
    with NodeQuorum(tmp_path) as quorum, ExitStack() as leaks:
        for node_id in quorum.ports:
            node = quorum.start(node_id)
            # The check takes longer than that: an interpreter has to start.
            resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (_FEW, _FEW))
        for node in quorum.nodes.values():
            node.wait_for("^ready ")
        while (leader := describe(quorum.ports[1]).topics[0].partitions[0].leader_id) < 1:
            pass
        survivors = [one for one in quorum.ports if one != leader]
        for node_id in survivors:
            for _ in range(_FEW):
                address = "127.0.0.1", quorum.ports[node_id]
                leaks.enter_context(socket.create_connection(address))
        seen = {one: len(quorum.nodes[one].lines) for one in survivors}
        quorum.nodes[leader].kill()
        first = quorum.nodes[survivors[0]]
        first.wait_for(r"event=leader-change leader=[1-9]", since=seen[survivors[0]])
        assert not any(quorum.nodes[one].has_ended for one in survivors)
