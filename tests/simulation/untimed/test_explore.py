"""Clusters without time: no invariant is violated, much is reached, reports are brief."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from kraftwire.cli.main import main
from kraftwire.log.quorum_state import QuorumState, QuorumStateFile
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.sim.disk import SimFiles
from kraftwire.sim.failure_lines import LINES_MAX
from kraftwire.sim.untimed.disk import Disk
from kraftwire.sim.untimed.plan import UntimedPlan, draw
from kraftwire.sim.untimed.run import WalkOutcome, describe_path, explore, play, run_seeds, shrink
from tests.simulation.broken_rules import (
    Break,
    cuts_committed,
    half_elects,
    older_epoch_counted,
    second_vote,
)
from tests.simulation.checks.examples import directory

_CLUSTERS = 160

# Happenings without which the sample would prove little.
_REACHED = (
    "deliver",
    "again",
    "fail",
    "timer",
    "oversleep",
    "work",
    "append",
    "crash",
    "died between two effects",
    "start",
    "part",
    "resign",
    "stop",
    "snapshot",
    "retain",
    "add",
    "remove",
    "wipe",
    "upgrade",
    "stabilized",
    "isolated leader resigned",
    "follower came back",
    "link to the leader restored",
    "disk replaced in peace",
    "snapshot up to a change of the voters",
    "the others changed after a removal",
    "a log ends where another begins, in another epoch",
    "read",
    "a voter reported its versions",
    "a vote without its directory id",
)


@pytest.fixture(scope="module")
def outcomes() -> list[WalkOutcome]:
    """The results of the sample; `make proof` runs many more."""
    print(f"kraftwire sim explore --seeds 0-{_CLUSTERS - 1}")
    return list(run_seeds(range(_CLUSTERS)))


def test_a_sample_keeps_all_invariants(outcomes: list[WalkOutcome]) -> None:
    """After every step, and when the trouble is over."""
    assert [f"{o.seed}: {o.violation}" for o in outcomes if o.violation] == []


def test_a_sample_reaches_what_matters(outcomes: list[WalkOutcome]) -> None:
    """What no longer happens is no longer tested."""
    coverage = sum((outcome.coverage for outcome in outcomes), Counter[str]())
    assert [name for name in _REACHED if not coverage[name]] == []
    assert sum(outcome.elections for outcome in outcomes) > 2 * _CLUSTERS
    assert sum(outcome.commits for outcome in outcomes) > 10 * _CLUSTERS


@pytest.mark.parametrize("version", [0, 1])
def test_a_disk_keeps_of_a_vote_what_the_file_has(version: int) -> None:
    """R-ID-9: the directory id from kraft.version 1 on, as in the shipped file."""
    state = ElectionState(5, -1, ReplicaKey(2, directory(2)))
    untimed = Disk(directory(1))
    untimed.persist(state, version)
    files = SimFiles()
    files.mkdir("/log")
    file = QuorumStateFile(files, "/log/quorum-state")
    file.write(QuorumState(5, -1, 2, directory(2)), version, [1, 2, 3])
    stored = file.read()
    untimed.crash(0)
    election = untimed.open().election
    assert stored is not None
    assert election.voted == ReplicaKey(stored.voted_id, stored.voted_directory_id)
    assert (election.epoch, election.leader_id) == (stored.epoch, stored.leader_id)
    assert election.voted.has_directory_id == bool(version)


def test_a_seed_always_takes_the_same_path() -> None:
    """Otherwise a failure could not be examined again."""
    paths = [explore(draw(5)).path for _ in range(2)]
    assert len(paths[0]) > 100
    assert paths[0] == paths[1]


def test_a_path_can_be_played_again() -> None:
    """Every seed does the same once more: what is not in its path does not happen.

    Every other one ends with its stabilization, often with crashes that are still to come.
    """
    for seed in range(40):
        plan = replace(draw(seed), steps=200)
        found = explore(plan)
        path = list(found.path)
        again = play(plan, path)
        result = (again.path, again.steps, again.elections, again.commits, again.violation)
        assert result == (path, found.steps, found.elections, found.commits, None), seed
        # Situations are counted by who chooses the actions; deaths by the world.
        assert again.coverage <= found.coverage, seed


def test_a_crash_that_is_cancelled_does_not_happen() -> None:
    """In a replayed path neither."""
    plan = replace(draw(9), steps=0)
    path = [("cut", 1, 0, 0), ("oversleep", 1)]
    assert play(plan, path).coverage["died between two effects"] == 1
    path.insert(1, ("cancel_cut", 1))
    found = play(plan, path)
    assert found.coverage["died between two effects"] == 0
    assert found.path == path


def test_parts_of_a_path_can_be_played() -> None:
    """What no longer applies is skipped."""
    plan = replace(draw(9), steps=200)
    found = explore(plan)
    half = play(plan, found.path[::2])
    assert not half.invariant
    assert 0 < half.steps < found.steps


def test_shrinking_ends_after_so_many_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after so much time: the report of a failure is always the same."""
    plan = _failing(older_epoch_counted, "S10", monkeypatch)
    path = explore(plan).path
    assert shrink(plan, path, "S10", actions_max=0) == (plan, path)
    partly = [shrink(plan, path, "S10", actions_max=16 * len(path)) for _ in range(2)]
    assert partly[0] == partly[1]
    assert len(shrink(plan, path, "S10")[1]) < len(partly[0][1]) < len(path)


def _failing(break_rule: Break, invariant: str, patch: pytest.MonkeyPatch) -> UntimedPlan:
    break_rule(patch)
    for seed in range(500):
        plan = draw(seed)
        if explore(plan).invariant == invariant:
            return plan
    raise AssertionError("a broken rule is not found")


@pytest.mark.parametrize(
    ("rule", "first", "invariant", "shown"),
    [
        (older_epoch_counted, 0, "S10", "last committed batch:"),
        (second_vote, 0, "S3", "vote for"),
        # The path of an earlier seed takes long to shrink.
        (cuts_committed, 11, "S11", "must hold:"),
        (half_elects, 0, "S17", "among"),
    ],
    ids=["older epoch counted", "second vote", "cuts committed", "half elects"],
)
def test_a_broken_rule_is_reported_in_few_lines(
    rule: Break, first: int, invariant: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report is short enough to read and shows the evidence."""
    rule(monkeypatch)
    found = (explore(draw(seed)) for seed in range(first, 500))
    failed = next(outcome for outcome in found if outcome.invariant == invariant)
    plan, path = shrink(draw(failed.seed), failed.path, invariant)
    lines = describe_path(plan, path)
    print("\n".join(lines))
    assert len(path) <= len(failed.path)
    assert len(path) <= 56
    assert next(at for at, line in enumerate(lines) if line.startswith("seed ")) <= LINES_MAX
    assert any(shown in line for line in lines)
    assert any(line.startswith(f"{invariant}: ") for line in lines)
    assert any(line.startswith("        committed: ") for line in lines)
    assert not any(re.search(r"Data\(|b'|<\w+[. ]|\b[A-Z]\w+\(\w+=", line) for line in lines)


def test_the_command_prints_how_to_repeat_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report is for people, the last line for their shell."""
    plan = _failing(older_epoch_counted, "S10", monkeypatch)
    seed = plan.seed
    assert main(["sim", "explore", "--seeds", f"{seed}-{seed}", "--json"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out.splitlines()[0])["invariant"] == "S10"
    assert json.loads(shown.out.splitlines()[-1])["violations"] == 1
    assert shown.err.splitlines()[-1] == f"kraftwire sim explore --seeds {seed}-{seed}"


def test_the_command_prints_its_figures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last line is what other programs read."""
    assert main(["sim", "explore", "--seeds", "0-9", "--json"]) == 0
    totals = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert totals["clusters"] == 10
    assert totals["violations"] == 0
    assert totals["steps"] > 1000


# Rare clusters, as they were drawn once.
_HAS_ITS_REMOVAL = UntimedPlan(
    23477,
    4,
    2,
    steps=300,
    is_dynamic=True,
    chunk_bytes=200,
    timers={
        "append_linger_ms": 0,
        "election_backoff_max_ms": 100,
        "retry_backoff_ms": 3000,
        "retry_backoff_max_ms": 3000,
        "fetch_max_wait_ms": 1500,
    },
    weights={
        "deliver": 60.0, "again": 4.5, "timer": 10.0, "work": 30.0, "fail_work": 1.0, "append": 8.0,
        "cut": 0.5, "start": 1.7999999999999998, "stop": 0.2, "retain": 2.0,
        "remove": 2.4000000000000004, "wipe": 0.4,
    },
)  # fmt: skip
_LOSES_WHAT_IT_HAD_NOT_FLUSHED = UntimedPlan(
    55964,
    3,
    steps=300,
    with_state=True,
    timers={
        "append_linger_ms": 0,
        "election_backoff_max_ms": 1000,
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 20,
        "fetch_max_wait_ms": 1500,
    },
    weights={
        "deliver": 60.0, "again": 0.44999999999999996, "fail": 3.0, "timer": 10.0, "oversleep": 0.3,
        "work": 9.0, "fail_work": 1.0, "append": 8.0, "crash": 1.5, "start": 1.7999999999999998,
        "part": 0.4, "heal": 2.0, "stop": 0.06, "snapshot": 6.0, "retain": 6.0, "add": 3.0,
        "remove": 2.4000000000000004, "wipe": 0.4, "upgrade": 0.5,
    },
)  # fmt: skip


def test_a_voter_that_stood_after_its_removal_may_stay_apart() -> None:
    """Its epoch is later than that of the leader, which does not follow it.

    It stood because it does not know that its removal is committed.
    """
    outcome = explore(_HAS_ITS_REMOVAL)
    assert outcome.violation is None
    assert outcome.coverage["a removed voter cuts itself off"] == 1


def test_a_replica_may_start_at_its_snapshot_without_what_it_had_not_flushed() -> None:
    """Others have committed that: it did not count on this one, and is fetched again."""
    assert explore(_LOSES_WHAT_IT_HAD_NOT_FLUSHED).violation is None
