"""The active controller and Kafka's, on the same scripts.

Both answer and write the same, but for the differences on purpose that `tests/oracle` names; and a
standby of Kafka replays what ours wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.records.metadata import decode_metadata, encode_metadata
from kraftwire.records.reader import read_batches
from tests.oracle import descriptions, snapshots
from tests.oracle.java_controllers import JavaControllers
from tests.oracle.running import KINDS, Runner
from tests.oracle.shared_scripts import Tools
from tests.support.nodes.stub import raw_batch

SEED, OPERATIONS = 12, 150


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    """The scripts, with Kafka's own schemas."""
    return Tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def java(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaControllers]:
    """One JVM for all scripts."""
    with JavaControllers(tools, tmp_path_factory.mktemp("java")) as java:
        yield java


@pytest.fixture
def runner(tools: Tools, java: JavaControllers) -> Runner:
    """Runs scripts at both controllers."""
    return Runner(tools, java)


@pytest.mark.parametrize("kind", ["brokers", "administrators"])
def test_a_script_has_the_same_answers_and_records(runner: Runner, kind: str) -> None:
    """Brokers and clients of Kafka rely on what its controller does: with topics and replicas, and
    with ACLs, users, quotas, configurations and tokens (C-ACL, C-SCR, C-CQ, C-CFG, C-TOK)."""
    script = runner.script(kind, SEED, OPERATIONS)
    outcome = runner.run(kind, SEED, script)
    done = outcome.comparison
    print(f"seed {SEED}: {done.requests} requests, {done.records} records, {done.known}")
    assert not outcome.is_failed, outcome.text
    assert done.operations == len(script), done.known
    assert done.requests > OPERATIONS / 2
    assert done.records > OPERATIONS / 3


def test_a_standby_names_the_fault_of_a_log(runner: Runner) -> None:
    """Otherwise a script whose log has none would say nothing."""
    log = runner.run("brokers", SEED, runner.script("brokers", SEED, 1)).comparison.log
    *_, last = read_batches(log)
    change = PartitionChangeRecord(topic_id=bytes(range(16)), partition_id=0, leader=1)
    batch = raw_batch([encode_metadata(change, 2)], last.last_offset + 1, epoch=2)
    faults = " ".join(runner.faults("brokers", log + bytes(batch.raw)))
    assert "fatal fault" in faults
    assert f"offset {batch.base_offset}" in faults


def test_a_controller_starts_from_a_snapshot(runner: Runner, java: JavaControllers) -> None:
    """Of a whole one, or it names what is missing in it."""
    log = runner.run("brokers", SEED, runner.script("brokers", SEED, 60)).comparison.log
    cut = snapshots.cut(log)
    assert cut is not None
    properties = KINDS["brokers"].PROPERTIES
    assert not java.faults(log, properties, cut)
    is_topic = [decode_metadata(value).type == "TopicRecord" for value in cut.snapshot]
    assert any(is_topic)
    rest = [value for value, is_one in zip(cut.snapshot, is_topic, strict=True) if not is_one]
    assert java.faults(log, properties, replace(cut, snapshot=rest))


def test_configurations_are_described_as_by_kafka(tools: Tools, java: JavaControllers) -> None:
    """Administrators see what counts, and where it is set (C-CFG-16)."""
    with java.fresh(descriptions.FILE) as (connection, _):
        theirs = descriptions.java_answers(tools, connection)
    for answer, own in zip(theirs, descriptions.our_answers(tools), strict=True):
        assert own == answer
