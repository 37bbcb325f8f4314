"""`kraftwire.testing`: a quorum of processes that starts, fails, recovers and cleans up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire.client import Admin
from kraftwire.errors import UsageError
from kraftwire.testing import Quorum, QuorumError, quorum


def test_a_quorum_survives_its_leaders(kraftwire_quorum: Quorum) -> None:
    """Killed, halted and stopped: each time the others elect a leader, and the victim returns."""
    nodes = kraftwire_quorum
    assert nodes.node_ids == (1, 2, 3)
    for addresses in ("bootstrap_servers", "bootstrap_controllers"):
        cluster = Admin(**{addresses: getattr(nodes, addresses)}).describe_cluster()
        assert cluster.cluster_id == nodes.cluster_id
        assert {node.id for node in cluster.nodes} == {1, 2, 3}

    killed = nodes.leader()
    nodes.kill(killed)
    assert not nodes.is_running(killed)
    halted = nodes.leader()
    assert halted != killed
    nodes.start(killed)

    nodes.pause(halted)
    stopped = nodes.leader()
    assert stopped != halted
    with pytest.raises(QuorumError, match="is paused: resume it instead"):
        nodes.start(halted)
    nodes.resume(halted)

    nodes.stop(stopped)
    assert nodes.leader() != stopped
    starts = 2 if stopped == killed else 1
    # A line for each of the two listeners.
    assert nodes.log(stopped).count("ready node=") == 2 * starts
    assert (nodes.data_folder(stopped) / "__cluster_metadata-0").is_dir()


def test_what_cannot_be_done_is_reported(tmp_path: Path) -> None:
    """A test that kills the wrong node should not look like a bug in what it tests."""
    with quorum(1, folder=tmp_path) as nodes:
        with pytest.raises(UsageError, match="there is no node 7, only 1"):
            nodes.kill(7)
        with pytest.raises(QuorumError, match="node 1 is already running"):
            nodes.start(1)
        nodes.kill(1)
        with pytest.raises(QuorumError, match="node 1 is not running"):
            nodes.kill(1)
        with pytest.raises(QuorumError, match=r"no node is running\nnode 1 has ended with .* -9"):
            nodes.leader()


def test_a_node_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    """The reason is in the log, and users should not have to look for it."""
    wrong = {"controller.quorum.fetch.timeout.ms": "soon"}
    with pytest.raises(QuorumError, match=r"ended with exit code [12]") as raised:
        quorum(1, folder=tmp_path, properties=wrong).__enter__()
    assert "controller.quorum.fetch.timeout.ms" in str(raised.value)
    assert str(tmp_path / "node-1.log") in str(raised.value)


def test_a_temporary_folder_is_removed_unless_the_block_fails() -> None:
    """Logs of a failure are needed; those of a success fill the disk."""
    with quorum(1) as nodes:
        folder = nodes.folder
        pid = nodes.pid(1)
    assert not folder.exists()
    assert pid is not None


def test_the_plugin_costs_a_pytest_run_nothing() -> None:
    """It is loaded in every pytest run wherever kraftwire is installed."""
    code = "import pytest, sys, kraftwire.testing.plugin; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"trio", "click", "kraftwire.client", "kraftwire.testing.nodes"} & set(loaded)
