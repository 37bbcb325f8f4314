"""No message of a peer ends a Raft core, makes it spin, or makes it break an invariant."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraftwire.errors import WireError
from kraftwire.raft import effects, events
from kraftwire.raft.config import Handover
from kraftwire.raft.effects import ElectionState
from tests.fuzz.hostile_peers import Hostile
from tests.fuzz.outcome import seed
from tests.history.putting_back import Edit, put_back
from tests.support.raft.disk import snapshot_bytes
from tests.support.raft.downloads import EPOCH, LEADER, behind, sent_to
from tests.support.raft.lone import Lone, caught_up, leading, stored_log
from tests.support.raft.messages import add_voter, begin, fetched

_STEPS = 120
_RUNS = 10
_MANY_RUNS = 160


def _leader(number: int) -> Lone:
    lone = Lone(log=stored_log((1, 4), (3, 3)), election=ElectionState(3), seed=number)
    lone.lead()
    return lone


def _follower(number: int) -> Lone:
    lone = Lone(log=stored_log((1, 4), (3, 3)), election=ElectionState(3), seed=number)
    lone.follow(2, 4)
    return lone


def _unattached(number: int) -> Lone:
    return Lone(log=stored_log((1, 4)), election=ElectionState(3), seed=number)


def _prospective(number: int) -> Lone:
    lone = _unattached(number)
    lone.now = lone.core.deadline_ms or lone.now
    lone.handle(events.TimerExpired())
    assert lone.core.role == "prospective"
    return lone


def _candidate(number: int) -> Lone:
    stored = ElectionState(3, voted=_unattached(number).config.key)
    return Lone(log=stored_log((1, 4)), election=stored, seed=number)


def _resigned(number: int) -> Lone:
    lone = _leader(number)
    lone.handle(events.ResignRequested(lone.core.epoch))
    return lone


def _observer(number: int) -> Lone:
    lone = Lone(4, log=stored_log((1, 4)), seed=number, can_be_voter=False)
    lone.request(begin(2, 3))
    return lone


def _leaving(number: int) -> Lone:
    lone = _leader(number)
    lone.handle(events.ShutdownRequested())
    return lone


def _behind_a_snapshot(number: int) -> Lone:
    log = stored_log((1, 12))
    return Lone(log=log, election=ElectionState(2), log_start=10, seed=number)


def _only_voter(number: int) -> Lone:
    return Lone(voters=(1,), log=stored_log((1, 4)), election=ElectionState(1), seed=number)


def _dynamic_leader(number: int) -> Lone:
    return leading((1, 2, 3), seed=number)


def _adding_leader(number: int) -> Lone:
    lone = leading((1, 2, 3), seed=number, handover=Handover.AUTO)
    caught_up(lone, 4)
    lone.request(add_voter(4))
    return lone


def _downloading(number: int) -> Lone:
    lone = behind(seed=number)
    sent_to(lone)
    return lone


def _up_to_date(number: int) -> Lone:
    lone = behind(seed=number)
    lone.fetch_gets(fetched(LEADER, EPOCH, high_watermark=4))
    return lone


def _joining(number: int) -> Lone:
    lone = Lone(4, is_dynamic=True, auto_join=True, seed=number)
    lone.request(begin(2, 3))
    return lone


def _snapshotting(number: int) -> Lone:
    lone = leading(is_dynamic=False, seed=number)
    lone.handle(events.ListenerRegistered(0))
    end = lone.core.end_offset
    lone.handle(events.ListenerConsumed(0, end))
    lone.handle(events.SnapshotWanted(0, end, 0))
    snapshot = lone.all_of(effects.WriteSnapshot)[-1].id
    lone.handle(lone.disk.keep(snapshot, snapshot_bytes(snapshot)))
    return lone


_ROLES = {
    "leader with a snapshot": _snapshotting,
    "leader of a dynamic quorum": _dynamic_leader,
    "leader that adds a voter": _adding_leader,
    "downloading follower": _downloading,
    "follower that is up to date": _up_to_date,
    "joining observer": _joining,
    "leader": _leader,
    "follower": _follower,
    "unattached": _unattached,
    "prospective": _prospective,
    "candidate": _candidate,
    "resigned": _resigned,
    "observer": _observer,
    "leaving": _leaving,
    "behind a snapshot": _behind_a_snapshot,
    "only voter": _only_voter,
}


def _hunt(role: str, run: int) -> None:
    """One core in a role among hostile peers."""
    number = seed() + run
    hostile = Hostile(_ROLES[role](number), Random(f"{role} {number}"))
    try:
        for _ in range(_STEPS):
            hostile.step()
    except Exception as error:
        error.add_note(f"role {role}, seed {number}; last: " + "\n".join(hostile.said[-4:]))
        raise


def _hunt_often(role: str, runs: int) -> None:
    for run in range(runs):
        _hunt(role, run)


@pytest.mark.parametrize("role", _ROLES)
def test_hostile_peers_cannot_harm_a_core(role: str) -> None:
    """R-FATAL-1 lists what ends a Java node; a faulty peer must not end others."""
    _hunt_often(role, _RUNS)


@pytest.mark.parametrize("role", _ROLES)
def test_hostile_peers_cannot_harm_a_core_in_the_long_run(role: str) -> None:
    """As many of them as it may take to find a rule that is broken."""
    _hunt_often(role, _MANY_RUNS)


_BROKEN: dict[str, Any] = {
    "an impossible port": (
        "unattached",
        "port",
        Edit("kraftwire.raft.voters:Endpoint.is_usable", "0 < self.port < 65536", "True"),
    ),
    "a vote for an older log": (
        "unattached",
        "S4",
        Edit(
            "kraftwire.raft.elections:_decide_vote",
            "is_up_to_date = _candidate_end(partition).is_newer_or_equal(state.log.end)",
            "is_up_to_date = True",
        ),
    ),
    "a second vote in an epoch": (
        "unattached",
        "S3",
        Edit(
            "kraftwire.raft.elections:_decide_standard",
            "return voted.id == candidate.id and",
            "return True or",
        ),
    ),
    "a second leader in an epoch": (
        "follower",
        "S1",
        Edit(
            "kraftwire.raft.transitions:is_consistent",
            "role.leader_id in (-1, leader_id)",
            "True",
        ),
        Edit(
            "kraftwire.raft.transitions:maybe_transition",
            "if not is_new and not set(addresses) > set(role.leader_endpoints):",
            "if not is_new and leader_id == role.leader_id:",
        ),
    ),
    "a cut below what is committed": (
        "follower",
        "S11",
        Edit(
            "kraftwire.raft.following:_truncate",
            "if end < max(state.committed, state.log.start_offset):",
            "if end < 0:",
        ),
    ),
    "a snapshot of what is committed": (
        "follower that is up to date",
        "S11: fetches",
        Edit(
            "kraftwire.raft.downloading:begin_download",
            "known = max(state.committed, state.log.start_offset)",
            "known = state.log.start_offset",
        ),
    ),
    "a snapshot that a leader takes": (
        "downloading follower",
        "S15",
        Edit(
            "kraftwire.raft.downloading:handle_finished",
            "is_needless = type(state.role) is Leader or",
            "is_needless =",
        ),
    ),
    "a log without its beginning": (
        "leader with a snapshot",
        "S14",
        Edit(
            "kraftwire.raft.snapshots:handle_log_start",
            "older = tuple(one for one in log.snapshots if one < start)",
            "older = tuple(log.snapshots)",
        ),
    ),
    "a part at another place": (
        "downloading follower",
        "a part is missing",
        Edit(
            "kraftwire.raft.downloading:_append_chunk",
            "AppendToSnapshot(current.id, current.position, data)",
            "AppendToSnapshot(current.id, part.position, data)",
        ),
        Edit(
            "kraftwire.raft.downloading:_append_chunk",
            "part.position != current.position",
            "False",
        ),
    ),
    "a change before the last one is committed": (
        "leader that adds a voter",
        "S16",
        Edit(
            "kraftwire.raft.changes:change_refusal",
            "if leader is not None and leader.change is not None:",
            "if False:",
        ),
        Edit(
            "kraftwire.raft.changes:change_refusal",
            "if where is None or where >= state.high_watermark:",
            "if False:",
        ),
    ),
    "a commit by counting": (
        "leader",
        "S10",
        Edit(
            "kraftwire.raft.progress:LeaderProgress.high_watermark",
            "mark > current and mark > self._start_offset",
            "mark > current",
        ),
    ),
    "a pre-vote that is remembered": (
        "prospective",
        "S19|S4",
        Edit(
            "kraftwire.raft.elections:_decide_vote",
            "return is_up_to_date and hears_no_leader(state)",
            "return _decide_standard(state, ReplicaKey("
            "partition.replica_id, partition.replica_directory_id), is_up_to_date)",
        ),
    ),
    "a mark beyond the log": (
        "follower",
        "S8: beyond",
        Edit(
            "kraftwire.raft.following:_follow_high_watermark",
            "mark = min(offered, state.log.end_offset)",
            "mark = offered",
        ),
    ),
    "a mark that falls": (
        "follower",
        "S8: [0-9]+ after",
        Edit(
            "kraftwire.raft.following:_follow_high_watermark",
            "if state.high_watermark < mark >= state.log.start_offset:",
            "if mark >= state.log.start_offset:",
        ),
        Edit(
            "kraftwire.raft.following:_follow_high_watermark",
            "if mark > state.announced:",
            "if mark != state.announced:",
        ),
    ),
    "an epoch that is not stored": (
        "unattached",
        "S2: the epoch",
        Edit("kraftwire.raft.state:RaftState.persist", "if self._persist is None:", "if False:"),
        Edit("kraftwire.raft.state:RaftState.persist", "self._persist.state = wanted", "pass"),
    ),
    "an end that is not the log's": (
        "follower",
        "S13",
        Edit(
            "kraftwire.raft.following:_append",
            "log.append(fetched.batches, fetched.end_offset)",
            "log.append(fetched.batches, fetched.end_offset + 1)",
        ),
    ),
    "an offset that no field can hold": (
        "joining observer",
        "fetchOffset",
        Edit(
            "kraftwire.raft.batches:_header_problem",
            "if base + last_delta >= OFFSET_MAX:",
            "if False:",
        ),
        Edit(
            "kraftwire.raft.downloading:begin_download",
            "0 <= snapshot.offset <= OFFSET_MAX",
            "0 <= snapshot.offset",
        ),
    ),
    "a request without an answer": (
        "follower",
        "no answer",
        Edit(
            "kraftwire.raft.describe:handle_describe_quorum",
            "state.emit(SendReply(event.token, _unknown(request)))",
            "pass",
        ),
    ),
    "a timer that is never postponed": (
        "leader",
        "busy loop",
        Edit(
            "kraftwire.raft.epoch_announcements:poll_announcements",
            "leader.begin_due_ms = state.now + state.config.timers.fetch_timeout_ms // 2",
            "pass",
        ),
    ),
}


@pytest.mark.parametrize("broken", _BROKEN)
def test_hostile_peers_find_a_rule_that_is_broken(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hunt that finds nothing in a broken core proves nothing about a correct one."""
    role, sign, *edits = _BROKEN[broken]
    put_back(tuple(edits), monkeypatch)
    with pytest.raises((AssertionError, WireError), match=sign):
        _hunt_often(role, _MANY_RUNS)
