"""Brokers under the active controller: no invariant is violated, and much happens."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kraftwire.cli.main import main
from kraftwire.controller.batches import Batch
from kraftwire.sim.controlled.world import draw
from kraftwire.sim.failure_lines import LINES_MAX
from kraftwire.sim.invariants import MEANINGS
from kraftwire.sim.untimed.run import WalkOutcome, describe_path, explore, play, run_seeds, shrink
from tests.history.putting_back import Edit, put_back

_CLUSTERS = 60


@pytest.fixture(scope="module")
def outcomes() -> list[WalkOutcome]:
    """The results of the sample; `make proof` runs these and many more."""
    print(f"kraftwire sim controller --seeds 0-{_CLUSTERS - 1}")
    return list(run_seeds(range(_CLUSTERS), draw_plan=draw))


def test_a_sample_of_clusters_keeps_all_invariants(outcomes: list[WalkOutcome]) -> None:
    """After every batch of records, and at every failover."""
    assert [f"{o.seed}: {o.violation}" for o in outcomes if o.violation] == []


def test_a_sample_of_clusters_reaches_what_matters(outcomes: list[WalkOutcome]) -> None:
    """What no longer happens is no longer tested."""
    coverage = sum((outcome.coverage for outcome in outcomes), Counter[str]())
    assert min(coverage.values()) > _CLUSTERS
    assert sum(outcome.elections for outcome in outcomes) > 2 * _CLUSTERS
    assert sum(outcome.commits for outcome in outcomes) > 25 * _CLUSTERS


def test_a_seed_determines_everything() -> None:
    """A failing seed fails again, and so does its path, without the choices of the seed."""
    found = explore(draw(3))
    assert len(found.path) == draw(3).steps
    assert explore(draw(3)) == found
    assert play(draw(3), list(found.path)) == found


def test_the_command_prints_totals_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last line is what other programs read."""
    assert main(["sim", "controller", "--seeds", "8-9", "--json"]) == 0
    totals = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (totals["clusters"], totals["steps"], totals["violations"]) == (2, 400, 0)


def _broken(where: str, old: str, new: str) -> Edit:
    return Edit(f"kraftwire.controller.{where}", old, new)


_PARTITION = "partition_changes:_PartitionChange"
_TOPICS = "image.topics"
_BLOCKS = "producer_ids:allocate_producer_ids"

# Invariant -> a rule that is broken so that its check objects.
_BROKEN = {
    "M1": _broken(f"{_PARTITION}._elect", "self._isr = [leader]", "pass"),
    "M2": _broken(f"{_PARTITION}._elected", "self._target.election is Election.UNCLEAN", "True"),
    "M3": _broken(f"{_PARTITION}._eligible", "*self._isr,", ""),
    "M4": _broken(f"{_TOPICS}:changed_partition", "record.leader_epoch += 1", "pass"),
    "M5": _broken("brokers:_state_records", "return [*moved, (change, 0)]", "return [(change, 0)]"),
    "M6": _broken("isr:_update_error", "if epochs[1] < partition.partition_epoch:", "if False:"),
    "M7": _broken("sessions:Sessions.expired", "item[1] <= before", "item[1] < before"),
    "M8": _broken(_BLOCKS, "producer_id_len=BLOCK", "producer_id_len=2 * BLOCK"),
    "M9": _broken("topics:create_topics", "[] if request.validate_only else records", "[]"),
    "M10": _broken(_BLOCKS, "start + BLOCK", "start"),
    "M11": _broken(f"{_TOPICS}:TopicsImage._unlist", "[partition.leader] -= 1", "[NO_LEADER] -= 1"),
    "M12": _broken("brokers:heartbeat", "is_fenced=is_fenced", "is_fenced=state is _State.FENCED"),
    "M13": _broken(f"{_PARTITION}._elected", "if self._is_valid(replica):", "if False:"),
}


@pytest.mark.parametrize("invariant", _BROKEN)
def test_each_check_objects(invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never objects checks nothing."""
    put_back((_BROKEN[invariant],), monkeypatch)
    found = (explore(draw(seed)) for seed in range(3))
    assert invariant in [outcome.invariant for outcome in found]


def test_every_invariant_of_the_metadata_has_a_broken_rule() -> None:
    """A new one comes with its own."""
    assert [*_BROKEN] == [name for name in MEANINGS if name.startswith("M")]


def test_a_broken_rule_is_reported_with_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command names the invariant, what happened before, and how to run it again."""
    put_back((_BROKEN["M6"],), monkeypatch)
    assert main(["sim", "controller", "--seeds", "0-9", "--json"]) == 1
    out, err = capsys.readouterr()
    first = json.loads(out.splitlines()[0])
    assert first["invariant"] == "M6"
    assert first["meaning"]
    assert f"kraftwire sim controller --seeds {first['seed']}-{first['seed']}" in err


@pytest.mark.parametrize(("seed", "invariant"), [(9, "M5"), (14, "M1"), (135, "M5")])
def test_changes_that_see_each_other_in_one_batch_are_found(
    seed: int, invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats come together; all are decided on the state before their batch."""
    plan = draw(seed)
    assert not explore(plan).invariant
    monkeypatch.setattr(Batch, "_conflicts", lambda *_: False)
    found = explore(plan)
    assert found.invariant == invariant
    least = shrink(plan, found.path, invariant)
    lines = describe_path(*least)
    print("\n".join(lines))
    assert len(least[1]) < 15
    assert any(line.startswith(f"{invariant}: ") for line in lines)
    assert sum(" after " in line for line in lines) - 1 == len(least[1]) <= LINES_MAX
