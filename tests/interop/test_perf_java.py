"""The raft test server in one quorum with Kafka's own: either may lead, and all logs agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.records.reader import read_batches
from tests.support.kafka.maven import kafka_classpath
from tests.support.kafka.perf_quorum import JAVA, OURS, PerfLoad, PerfQuorum

_OURS_ID = 3
_RECORDS = 300

# Two JVMs have to fit next to a test run.
_SMALL_JAVA = (JAVA[0], "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *JAVA[2:])

_PATIENT = {"controller.quorum.election.timeout.ms": 60_000}


@pytest.mark.parametrize("leads", ["java", "ours"])
def test_a_mixed_quorum_of_test_servers_elects_and_commits(tmp_path: Path, leads: str) -> None:
    """With any leader, all three hold the same bytes up to the end of the shortest log."""
    kafka_classpath()
    patient = [1, 2] if leads == "ours" else [_OURS_ID]
    load = PerfLoad(200, 100, dict.fromkeys(patient, _PATIENT))
    with PerfQuorum(tmp_path, [_SMALL_JAVA, _SMALL_JAVA, OURS], load) as quorum:
        quorum.wait_for(_RECORDS)
        assert (quorum.leader_id == _OURS_ID) == (leads == "ours"), quorum.last_lines()
        quorum.wait_for(2 * _RECORDS)
        logs = [quorum.log_file(node_id).read_bytes() for node_id in quorum.ports]
        quorum.ensure_running()
    common = min(map(len, logs))
    batches = list(read_batches(logs[0][:common]))
    assert batches, quorum.last_lines()
    assert batches[-1].last_offset >= _RECORDS, quorum.last_lines()
    assert all(log[:common] == logs[0][:common] for log in logs)
