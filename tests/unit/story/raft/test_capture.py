"""The story of a real quorum, captured while its nodes were stopped on purpose.

Three Kafka 4.3.1 controllers were started; their leader was killed at 1795206424.83 (+362.9), the
next one stopped with SIGTERM at 1795206440.06 (+378.2), the one after that halted for 8 s at
1795206455.14 (+393.3); then a fourth one joined by a snapshot, became a voter and was removed.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stories.raft import RaftWriter, write_story
from kraftwire.records.reader import read_batches
from kraftwire.story.raft.model import RaftEvent, Story
from kraftwire.story.raft.timeline import Timeline

ROOT = Path(__file__).resolve().parents[4]
SHIPPED = ROOT / "tests" / "golden" / "captures" / "kraft_quorum.pcapng.xz"
SHARED = ROOT.parent / "shared" / "captures" / "a_kraft_quorum.pcapng.xz"
EPOCHS = (
    ROOT / "tests/golden/logs/controller/__cluster_metadata-0/leader-epoch-checkpoint"
)
LOGS = ROOT.parent / "shared" / "logs" / "kafka-4.3.1-logs.tar.xz"

KILLED, TERMINATED, HALTED = 1795206424.83, 1795206440.06, 1795206455.14


@pytest.fixture(scope="module")
def story() -> Story:
    """The story of the capture."""
    path = SHIPPED if SHIPPED.exists() else SHARED
    if not path.exists():
        pytest.skip("the capture of a real quorum is missing")
    decoder, writer = FrameDecoder(Settings()), RaftWriter(io.StringIO())
    for frame in Capture(str(path)):
        writer.frame(decoder.decode(frame))
    return writer.timeline.story()


@pytest.fixture(scope="module")
def judge() -> Story:
    """The story that the log of controller 1 tells."""
    if not LOGS.exists():
        pytest.skip("the controllers' whole logs are missing")
    timeline = Timeline()
    with tarfile.open(LOGS) as archive:
        names = sorted(n for n in archive.getnames() if n.startswith("metadata/c1/"))
        for name in (n for n in names if n.endswith(".log")):
            file = archive.extractfile(name)
            assert file is not None
            for batch in read_batches(file.read()):
                timeline.on_batch(name, batch)
    return timeline.story()


def _after(events: list[RaftEvent], time: float) -> Iterator[tuple[str, int | None, object]]:
    return ((e.kind, e.epoch, e.node) for e in events if e.time >= time)


def test_epochs_start_where_the_controllers_own_checkpoint_says(story: Story) -> None:
    """Kafka itself recorded the start of every epoch."""
    _, _, *rows = EPOCHS.read_text().split("\n")
    written = [tuple(map(int, row.split())) for row in rows if row]
    assert [(each.epoch, each.start_offset) for each in story.leaders] == written


def test_leaders_and_voters_are_those_of_the_log(story: Story, judge: Story) -> None:
    """What packets show must agree with the LeaderChange records on disk."""
    assert [each.leader for each in story.leaders] == [2, 3, 1, 3]
    found = [(e.epoch, e.leader, e.start_offset, e.granting, e.voters) for e in story.leaders]
    assert found == [
        (e.epoch, e.leader, e.start_offset, e.granting, e.voters) for e in judge.leaders
    ]
    assert [(e.offset, e.voters) for e in story.voters] == [
        (e.offset, e.voters) for e in judge.voters
    ]


def test_every_leader_took_office_when_its_record_says(story: Story, judge: Story) -> None:
    """Packets and records have clocks of one machine: within half a second."""
    for seen, written in zip(story.leaders, judge.leaders, strict=True):
        assert 0 <= seen.time - written.time < 0.5


def test_the_first_election_needs_one_round_of_each_kind(story: Story) -> None:
    """No node leads, node 2 asks first, and both others agree twice."""
    end = next(i for i, e in enumerate(story.events) if e.kind == "voters") + 1
    assert [(e.kind, e.epoch, e.node) for e in story.events[:end] if e.kind != "fetch"] == [
        ("pre-vote", 0, 2),
        ("vote", 1, 2),
        ("leader", 1, 2),
        ("kraft-version", None, None),
        ("voters", None, None),
    ]
    assert [sorted(each.granted, key=str) for each in story.rounds[:2]] == [[1, 3], [1, 3]]
    assert story.rounds[0].reason == "no leader known"


def test_the_killed_leader_falls_silent_and_two_pre_votes_collide(story: Story) -> None:
    """Fetch timeouts of 2 s, then both survivors ask at once; the slower one is fenced."""
    order = list(_after(story.events, KILLED - 0.2))
    assert order[:7] == [
        ("silence", 1, 2),
        ("pre-vote", 1, 3),
        ("pre-vote", 1, 1),
        ("vote", 2, 3),
        ("leader", 2, 3),
        ("fenced", 1, 2),
        ("resign", 2, 3),
    ]
    silence = next(e for e in story.events if e.kind == "silence" and e.node == 2)
    assert KILLED - 0.2 < silence.time < KILLED
    assert silence.text.startswith("leader falls silent for 11 s")
    lost = next(e for e in story.events if e.kind == "pre-vote" and e.node == 1)
    assert lost.text.endswith(
        "2.0 s after the last answer of leader 2: refused by 3 (FENCED_LEADER_EPOCH, epoch 2)"
    )


def test_the_terminated_leader_hands_over_within_a_quarter_of_a_second(story: Story) -> None:
    """EndQuorumEpoch sets the preferred successor going at once."""
    order = list(_after(story.events, TERMINATED))
    assert order[:4] == [
        ("resign", 2, 3),
        ("pre-vote", 2, 1),
        ("vote", 3, 1),
        ("leader", 3, 1),
    ]
    resigned, pre_vote = (
        next(e for e in story.events if e.kind == kind and e.time >= TERMINATED)
        for kind in ("resign", "pre-vote")
    )
    assert resigned.details["preferred"] == [1, 2]
    assert pre_vote.details["reason"] == "leader 3 ended its epoch"
    assert "granted by 3; refused by 2 (leader 3)" in pre_vote.text
    assert story.leaders[1].ending == "resigned"
    assert story.leaders[2].time - resigned.time < 0.25


def test_a_paused_leader_is_replaced_and_fenced_when_it_resumes(story: Story) -> None:
    """Eight seconds of silence; the node comes back as a leader that nobody follows."""
    silence = next(e for e in story.events if e.kind == "silence" and e.node == 1)
    assert HALTED - 0.2 < silence.time < HALTED
    assert 7.9 < silence.details["seconds"] < 8.2
    order = [each for each in _after(story.events, HALTED - 0.2) if each[0] != "silence"]
    assert order[:5] == [
        ("pre-vote", 3, 3),
        ("vote", 4, 3),
        ("pre-vote", 3, 2),
        ("leader", 4, 3),
        ("fenced", 3, 1),
    ]
    assert story.leaders[2].ending == "fell silent"


def test_the_fourth_node_joins_by_a_snapshot_and_leaves_again(story: Story) -> None:
    """An observer, then a voter, then removed: requests and records in this order."""
    joined = [e for e in story.events if e.node == 4 or e.kind == "voters"]
    kinds = [e.kind for e in joined if e.time > HALTED + 20]
    assert kinds == [
        "fetch",
        "snapshot-needed",
        "snapshot",
        "add-voter",
        "voters",
        "remove-voter",
        "voters",
        "silence",
    ]
    assert [(e.offset, sorted(e.voters)) for e in story.voters] == [
        (2, [1, 2, 3]),
        (942, [1, 2, 3, 4]),
        (956, [1, 2, 3]),
    ]
    texts = [e.text for e in joined if e.time > HALTED + 20]
    assert texts[1:7] == [
        "is told to load snapshot 810-1 first (asked for offset 0)",
        "fetches snapshot 810-1 from 3 (5.1 KiB at once, 45 ms)",
        "AddRaftVoter at 127.0.0.1:23004, asked of 3: done after 126 ms",
        "voters are 1, 2, 3, 4 (4 joined, VotersRecord at offset 942, committed after 26.7 ms)",
        "RemoveRaftVoter, asked of 3: done after 23 ms",
        "voters are 1, 2, 3 (4 left, VotersRecord at offset 956, committed after 15.3 ms)",
    ]


def test_connections_break_where_nodes_stopped() -> None:
    """The killed and the stopped leader close all of theirs, the halted one's are given up."""
    path = SHIPPED if SHIPPED.exists() else SHARED
    if not path.exists():
        pytest.skip("the capture of a real quorum is missing")
    decoder, writer = FrameDecoder(Settings()), RaftWriter(io.StringIO())
    for frame in Capture(str(path), on_ending=writer.ending):
        writer.frame(decoder.decode(frame))
    events = [e for e in writer.timeline.story().events if e.kind == "disconnect"]
    assert [(e.node, e.details["peers"]) for e in events] == [
        (2, [1, 3, 10]),
        (3, [1, 2, 10]),
        *[(node, [1]) for node in (10, 3, 2, 10, 10)],
        (4, [2, 3]),
    ]
    killed, stopped, *given_up, _ = events
    assert 0 < killed.time - KILLED < 0.5
    assert 0 < stopped.time - TERMINATED < 0.5
    assert all(1.5 < each.time - HALTED < 10 for each in given_up)


def test_no_other_node_is_called_silent(story: Story) -> None:
    """The killed, the stopped, the halted and the removed node, and no waiting observer."""
    assert [each.node for each in story.silences] == [2, 3, 1, 4]


def test_the_log_is_read_without_gap_or_repetition(story: Story, judge: Story) -> None:
    """Every record that the log on disk holds up to the capture's end, once."""
    log = story.log
    assert log.problems == []
    assert (log.first_offset, log.end_offset) == (0, 1121)
    # These are also written when the cluster shuts down, after the end of the capture.
    later = {"NoOpRecord", "BrokerRegistrationChangeRecord", "PartitionChangeRecord"}
    for name in judge.log.counts.keys() - later:
        assert log.counts[name] == judge.log.counts[name], name
    assert sum(log.counts.values()) == 1121


def test_the_text_names_every_failure(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a newcomer reads first."""
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    write_story(story, stream)
    text = stream.getvalue()
    assert "Raft timeline: 8 min 3" in text
    assert "voters 1, 2, 3; former voter 4; broker 10" in " ".join(text.split())
    for part in (
        "node 2   is elected leader (votes of 2, 3",
        "topic comp-none (2 partitions)",
        "controller 4 registers (CONTROLLER://127.0.0.1:23004)",
        "leads to the end",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80
