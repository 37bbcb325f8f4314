"""The examples do what they say; people copy them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from examples.log_to_pandas import table
from examples.votes import votes
from examples.watch_quorum import leaders
from kraftwire.testing import quorum
from tests.support.kafka.class_archive import archive_options
from tests.support.kafka.maven import KAFKA, directory_of, kafka_classpath
from tests.tidy.sources import ROOT

_GOLDEN = ROOT / "tests" / "golden"

_STORY = r"""node (\d) leads
nodes 1, 2, 3 have shape = round
the leader is killed: green is still there
nodes (\d), (\d) have colour = blue
nodes 1, 2, 3 have shape = round
the killed node is back with an empty disk, by snapshot \d+-\d+
"""


def _run(*arguments: str) -> str:
    """Standard output of a program of Python, run from the root."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_votes_of_a_capture_are_typed_messages() -> None:
    """Two elections of a real quorum, each with a pre-vote."""
    lines = list(votes(str(_GOLDEN / "captures" / "quorum.pcap.xz")))
    assert [line.rpartition("epoch ")[2] for line in lines] == [
        "0: node 2 asks node 1 for a pre-vote, with its log at 0: granted",
        "1: node 2 asks node 1 for a vote, with its log at 0: granted",
        "1: node 3 asks node 1 for a pre-vote, with its log at 810: granted",
        "2: node 3 asks node 1 for a vote, with its log at 810: granted",
    ]


def test_a_log_directory_becomes_a_table() -> None:
    """Every record of the recorded broker, whatever its compression; no marker of a transaction."""
    records = table(_GOLDEN / "logs" / "broker")
    count = records.groupby("topic")["offset"].count()
    assert count["headers"] == 200
    assert count["txn-out"] == 324
    assert str(records["time"].dtype).endswith("UTC]")
    assert set(records["compression"]) == {"none", "gzip", "lz4", "snappy", "zstd"}


@pytest.mark.slow
def test_the_watcher_sees_each_leader() -> None:
    """It goes on while nobody leads, and names the one that was elected."""
    with quorum() as nodes:
        seen = leaders(nodes.admin())
        first = next(seen)
        nodes.kill(first.leader_id)
        second = next(seen)
    assert second.leader_epoch > first.leader_epoch
    assert second.leader_id != first.leader_id


@pytest.mark.slow
def test_the_test_with_a_quorum_passes() -> None:
    """It runs in a pytest of its own, with the plugin of an installed kraftwire alone."""
    options = ["--noconftest", "--override-ini=addopts=", "-p", "no:cacheprovider"]
    assert "1 passed" in _run("-m", "pytest", *options, "examples/test_failover.py")


@pytest.mark.slow
def test_the_test_with_brokers_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On real brokers, whose control plane obeys it."""
    pytest.importorskip("confluent_kafka")
    kafka_classpath()
    monkeypatch.setenv("KRAFTWIRE_KAFKA", str(directory_of(KAFKA)))
    monkeypatch.setenv("KAFKA_OPTS", " ".join(archive_options()))
    options = ["--noconftest", "--override-ini=addopts=", "-p", "no:cacheprovider"]
    assert "1 passed" in _run("-m", "pytest", *options, "examples/test_brokers.py")


@pytest.mark.slow
def test_without_java_the_test_with_brokers_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says what is missing."""
    pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("PATH", "")
    options = ["--noconftest", "--override-ini=addopts=", "-p", "no:cacheprovider", "-rs"]
    printed = _run("-m", "pytest", *options, "examples/test_brokers.py")
    assert "need Java 17 or later: there is no program java on the PATH" in printed


@pytest.mark.slow
def test_the_replicated_map_survives_its_leader_and_the_loss_of_a_disk() -> None:
    """Election, commit, snapshot and recovery have to work on the public port."""
    printed = _run("-m", "examples.kv")
    story = re.fullmatch(_STORY, printed)
    assert story is not None, printed
    first, *survivors = story.groups()
    assert first not in survivors
    shown = (ROOT / "examples" / "kv" / "README.md").read_text()
    assert re.search(_STORY, shown), "the README shows another story"


_NAMES = ("votes", "log_to_pandas", "watch_quorum", "test_failover", "test_brokers", "kv")


@pytest.mark.parametrize("name", _NAMES)
def test_each_example_is_listed(name: str) -> None:
    """The page is where people look for them."""
    assert name in (ROOT / "examples" / "README.md").read_text()


@pytest.mark.slow
def test_a_secured_quorum_starts_and_is_described() -> None:
    """With keys that its script has just made."""
    assert re.fullmatch(
        r"node [123] leads the voters 1, 2, 3 over mutual TLS\n", _run("-m", "examples.secured")
    )
