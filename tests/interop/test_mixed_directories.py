"""One Java controller and two kraftwire nodes: a cluster that ours form, and directories that
change hands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum

FIRST, SECOND, LATE = 1, 2, 3
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"

# What dump-log prints when something is wrong.
COMPLAINTS = ("Found ", "isvalid: false", "Exception", "WARNING", "rror")


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedQuorum]:
    """The quorum after its first commits: two nodes of ours run, the Java controller does not."""
    kinds = {FIRST: OURS, SECOND: OURS, LATE: JAVA}
    properties = {"metadata.max.idle.interval.ms": 100, "kraftwire.leader.handover": "auto"}
    with MixedQuorum(tmp_path_factory.mktemp("directories"), kinds, properties) as quorum:
        quorum.start(FIRST, SECOND)
        quorum.wait_commit(20)
        yield quorum


@pytest.fixture
def joined(quorum: MixedQuorum) -> MixedQuorum:
    """The same with the Java controller."""
    if not quorum.members[LATE].is_running:
        quorum.start(LATE)
    return quorum


def commit_more(quorum: MixedQuorum) -> None:
    """More is committed, every member has it, and no member has anything else."""
    quorum.wait_commit(quorum.status().high_watermark)
    quorum.check_logs_agree()
    quorum.check_health()


def test_java_continues_a_log_that_ours_has_begun(joined: MixedQuorum) -> None:
    """It takes over leadership, our bootstrap records and our registrations."""
    begun = joined.members[FIRST].log()
    assert joined.leader(among=[LATE]) == LATE
    commit_more(joined)
    assert joined.members[LATE].log().startswith(begun[: len(begun) // 2])
    console = joined.members[LATE].java.console.read_text()
    assert "Replayed a FeatureLevelRecord setting metadata.version" in console
    assert "The metadata log appears to be empty" not in console


def test_a_directory_changes_hands_at_a_stop_and_at_kills(joined: MixedQuorum) -> None:
    """Ours to Java after a graceful stop, back after a kill, and to Java again after a kill."""
    member = joined.members[FIRST]
    member.stop()
    for kind in (JAVA, OURS, JAVA):
        member.start(kind)
        member.wait_ready()
        commit_more(joined)
        before = member.log()
        member.kill()
        assert before[:1000] == member.log()[:1000]
    member.start(OURS)
    member.wait_ready()
    commit_more(joined)


def test_a_java_leaders_directory_becomes_ours_and_is_dumped(joined: MixedQuorum) -> None:
    """Both read its epochs, indexes and producer snapshot."""
    leader = joined.leader(among=[LATE])
    member = joined.members[leader]
    member.stop()
    member.start(OURS)
    member.wait_ready()
    commit_more(joined)
    for node_id in (FIRST, LATE):
        joined.members[node_id].stop()
    joined.members[SECOND].kill()
    check_dump(joined)


def check_dump(quorum: MixedQuorum) -> None:
    """Let Kafka's tool read every file of the logs, indexes against segments included."""
    paths = [path for member in quorum.members.values() for path in log_files(member.java.log_dir)]
    result = run_kafka_tool(DUMP_LOG, "--files", ",".join(map(str, paths)))
    assert result.stdout.count("Dumping ") == len(paths) >= 9
    lines = (result.stdout + result.stderr).splitlines()
    assert [line for line in lines if any(word in line for word in COMPLAINTS)] == []


def log_files(log_dir: Path) -> list[Path]:
    """The files of one directory that dump-log reads."""
    suffixes = (".log", ".index", ".timeindex", ".snapshot")
    folder = log_dir / "__cluster_metadata-0"
    return sorted(path for path in folder.iterdir() if path.suffix in suffixes)
