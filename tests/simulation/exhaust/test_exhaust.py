"""The exhaustive search: small bounds to their end, broken rules found, nothing merged wrongly."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from kraftwire.cli.main import main
from kraftwire.sim.exhaust.bounds import Bounds
from kraftwire.sim.exhaust.failure_report import describe_path, replay
from kraftwire.sim.exhaust.replica import Replica
from kraftwire.sim.exhaust.search import Found, search
from kraftwire.sim.exhaust.steps import Step, Steps, freeze, thaw
from kraftwire.sim.exhaust.world import State, StateSpace
from kraftwire.sim.failure_lines import LINES_MAX
from tests.history.putting_back import put_back
from tests.simulation.exhaust.rules import RULES, Rule

_ONE_EPOCH = Bounds(elections=1, restarts=0, values=0, changes=0)
_STATES_MAX = 60_000


def _search(bounds: Bounds, steps: Steps | None = None) -> Found:
    found = search(bounds, _STATES_MAX, steps=steps)
    print(f"{found.states} states, {found.seconds:.2f} s of the processor, {found.depth} deep")
    return found


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        (_ONE_EPOCH, 1_251),
        (Bounds(elections=1, restarts=0, values=1, changes=0), 6_389),
        (Bounds(elections=1, restarts=1, values=0, changes=0), 19_080),
        (Bounds(elections=1, restarts=0, values=0, changes=1), 13_465),
        (replace(_ONE_EPOCH, losses=1), 7_847),
        (replace(_ONE_EPOCH, copies=1), 5_316),
        (replace(_ONE_EPOCH, asking=3), 2_538),
        (Bounds(voters=2, elections=2, restarts=0, values=1, changes=0), 130),
    ],
    ids=[
        "an election",
        "a value",
        "a restart",
        "a change of the voters",
        "a request that fails",
        "a request that comes twice",
        "pre-votes at the same time",
        "two voters",
    ],
)
def test_small_bounds_are_exhausted(bounds: Bounds, states: int) -> None:
    """Always the same number of states, and none violates anything."""
    found = _search(bounds)
    assert found.violation is None
    assert found.is_exhausted
    assert found.states == states


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_a_broken_rule_is_found(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a path that breaks it again where no replicas are merged."""
    put_back(rule.bug, monkeypatch)
    found = _search(rule.bounds)
    assert found.violation is not None
    assert (found.violation.invariant, rule.shown in str(found.violation)) == (rule.invariant, True)
    again = replay(rule.bounds, found.path)
    assert str(again) == str(found.violation)
    lines = describe_path(rule.bounds, found.path)
    print("\n".join(lines))
    title = f"3 voters: fails after {len(found.path)} steps"
    assert lines.index(title) <= LINES_MAX
    assert any(line.startswith(f"{rule.invariant}: ") for line in lines)
    assert lines[0].startswith("  1 1 < timer expired > ")


def _outcome(step: Step) -> tuple[object, ...]:
    after = step.local.form if step.local is not None else None
    messages = step.sends, step.replies, step.opened, step.moved
    return after, *messages, step.claims, str(step.violation)


def test_replicas_of_one_form_behave_alike() -> None:
    """Every event leads them to the same state and the same messages."""
    bounds = Bounds(elections=2, restarts=1, values=1, changes=1)
    steps = Steps(bounds)
    others: list[tuple[int, bytes]] = []
    steps.merged = lambda number, replica: others.append((number, freeze(replica)))
    search(bounds, 12_000, steps=steps)
    steps.merged = None
    compared = 0
    for number, frozen in others[:: max(len(others) // 300, 1)]:
        for event, step in list(steps.locals[number].steps.items()):
            assert _outcome(steps.take(thaw(frozen), event)) == _outcome(step)
            compared += 1
    print(f"{compared} steps of {len(others)} merged replicas")
    assert compared > 500


def test_late_requests_that_are_forgotten_would_change_nothing() -> None:
    """Whatever happens to their addressee before they arrive."""
    random = Random(7)
    bounds = Bounds(elections=2, restarts=1, values=1, changes=0)
    steps = Steps(bounds)
    world = StateSpace(bounds, steps)
    tried = 0
    for _ in range(60):
        state, gone = world.first(), set[int]()
        for _ in range(60):
            actions = list(world.actions(state))
            after = world.after(state, random.choice(actions)) if actions else None
            if after is None:
                continue
            state = after
            gone |= {one for one in world.packets.late if _is_dead(world, one, state)}
            for packet in gone:
                assert _is_dead(world, packet, state), world.packets.values[packet]
                tried += 1
    print(f"{tried} late requests")
    assert tried > 500


def _is_dead(world: StateSpace, packet: int, state: State) -> bool:
    to = world.packets.values[packet].target - 1
    return world.packets.is_dead(packet, world.steps.locals[state.replicas[to]])


def test_what_a_core_remembers_is_in_its_form() -> None:
    """A field unknown to the search makes two forms; an unknown type is an error."""
    replica, _ = Replica.first(_ONE_EPOCH, 1)
    other = thaw(freeze(replica))
    assert other.canonical() == replica.canonical()
    other.node.core._state.new_field = 7  # type: ignore[attr-defined]
    assert other.canonical() != replica.canonical()
    other.node.core._state.new_field = object()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="canonical form of object"):
        other.canonical()


def test_a_search_reports_where_it_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last line is what other programs read."""
    assert main(["sim", "exhaust", "--states", "500", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["states"] >= 500
    assert (figures["exhausted"], figures["violations"]) == (False, 0)


def test_the_command_replays_a_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line of a report is for a shell."""
    rule = RULES[1]
    put_back(rule.bug, monkeypatch)
    options = ["--elections", "1", "--restarts", "0", "--values", "0", "--changes", "0"]
    assert main(["sim", "exhaust", *options]) == 1
    report = capsys.readouterr().err.splitlines()
    assert main(report[-1].split()[1:]) == 1
    assert capsys.readouterr().out.splitlines() == report


def test_an_invalid_path_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Like a path of other bounds."""
    assert main(["sim", "exhaust", "--path", "0.99"]) == 2
    assert "not a path within these bounds" in capsys.readouterr().err
