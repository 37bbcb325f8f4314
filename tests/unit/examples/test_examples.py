"""The examples do what they say; people copy them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.log_to_pandas import table
from examples.votes import votes
from examples.watch_quorum import leaders
from kraftwire.testing import Cluster, kafka_cluster, quorum
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A controller and two brokers, with a proxy that counts before that of an example."""
    pytest.importorskip("confluent_kafka")
    kafka_classpath()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", " ".join(archive_options()))
        with kafka_cluster(1, 2, kafka=directory_of(KAFKA), proxied=True) as found:
            yield found


@pytest.mark.slow
def test_a_record_whose_answer_is_lost_is_sent_twice_and_kept_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The printed command tells that, out of the capture."""
    capture = str(tmp_path / "out.pcapng")
    with cluster.proxy.observe("Produce") as came:
        printed = _run("-m", "examples.lost_answer", cluster.bootstrap_servers, capture)
        assert came.count == 2
    first, second, command = printed.splitlines()
    assert first == "1 answer was lost; the producer was told the offset 0"
    assert second == "records in the log: 1"
    assert command == f"kraftwire story clients {capture}"
    # A story may be wrapped.
    story = " ".join(_run("-m", *command.split()).split())
    assert re.search(
        r" Produce of lost-answer-\d+-0 \(sequence 0\) to broker 10[12]: no answer, the proxy ends "
        r"the connection after [\d.]+ m?s \(the node had appended it at offset 0\); sent again "
        r"after [\d.]+ m?s on a new connection: a duplicate that the node recognises \(offset 0\)",
        story,
    ), story


@pytest.mark.slow
def test_a_consumer_goes_on_at_the_next_coordinator(cluster: Cluster) -> None:
    """It reads everything once, and its commits arrive."""
    assert _run("-m", "examples.coordinator_moves", cluster.bootstrap_servers).splitlines() == [
        "not the coordinator: 1; no coordinator: 3",
        "read: 0 1 2 3 4 5 6 7 8 9; committed: 10",
    ]


@pytest.mark.slow
def test_a_broker_that_hangs_keeps_its_own_records_back(cluster: Cluster) -> None:
    """As long as it hangs; those of the other broker do not wait."""
    first, *rest = _run("-m", "examples.broker_hangs", cluster.bootstrap_servers, "4").splitlines()
    found = re.fullmatch(r"broker (10[12]) was silent for 4 s", first)
    assert found is not None
    took = [re.fullmatch(r"partition \d, broker (\d+): (\d+\.\d) s", line) for line in rest]
    waited = {(one[1] == found[1], float(one[2]) >= 4) for one in took if one is not None}
    assert len(took) == 4
    assert waited == {(True, True), (False, False)}


_NAMES = (
    "votes",
    "log_to_pandas",
    "watch_quorum",
    "test_failover",
    "test_brokers",
    "kv",
    "lost_answer",
    "coordinator_moves",
    "broker_hangs",
)


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
