"""Mistakes in what a leader counts, and in how long it leads."""

from __future__ import annotations

from tests.history.putting_back import Edit
from tests.mutants.mutant import UNTIMED, Mutant

_COUNTS = "kraftwire.raft.progress:LeaderProgress"
_ENDS = "kraftwire.raft.resignation"

MUTANTS = (
    Mutant(
        "a leader commits what older epochs wrote",
        "R-HW-2, S10",
        Edit(
            f"{_COUNTS}.high_watermark",
            "return mark if mark > current and mark > self._start_offset else current",
            "return mark if mark > current else current",
        ),
    ),
    Mutant(
        "a leader commits before its first record",
        "R-HW-2, S10",
        Edit(
            f"{_COUNTS}.high_watermark",
            "mark > self._start_offset",
            "mark >= self._start_offset",
        ),
    ),
    Mutant(
        "half of the voters commit",
        "R-HW-1, S9",
        Edit(
            f"{_COUNTS}.high_watermark",
            "mark = ends[len(ends) // 2]",
            "mark = ends[(len(ends) - 1) // 2]",
        ),
    ),
    Mutant(
        "progress is not sorted",
        "R-HW-1, S9",
        Edit(
            f"{_COUNTS}.high_watermark",
            "ends = sorted([state.end_offset for state in voters.values()], reverse=True)",
            "ends = [state.end_offset for state in voters.values()]",
        ),
    ),
    Mutant(
        "the high watermark falls when voters change",
        "R-HW-2, S8",
        Edit(
            "kraftwire.raft.serving:advance_high_watermark",
            "if mark <= state.high_watermark:",
            "if mark == state.high_watermark:",
        ),
        UNTIMED,
        Edit(f"{_COUNTS}.high_watermark", "mark > current and", "mark >= 0 and"),
    ),
    Mutant(
        "the leader counts what it has not flushed",
        "D3, S9",
        Edit(
            "kraftwire.raft.appending:drain",
            "leader.progress.note_log_end(state.log.end_offset)",
            "leader.progress.note_log_end(state.log.end_offset)\n"
            "leader.progress.note_durable_end(state.log.end_offset)",
        ),
    ),
    Mutant(
        "a flush from before a cut counts",
        "D5, S9",
        Edit(
            "kraftwire.raft.appending:handle_flushed",
            "if event.generation != state.flush_generation:",
            "if event.generation > state.flush_generation:",
        ),
        "tests/unit/raft/test_flushes.py",
    ),
    Mutant(
        "a diverging fetch counts as progress",
        "R-FET-12, S9",
        Edit(
            "kraftwire.raft.serving:_fetch_answer",
            "if position.kind is not PositionKind.VALID:",
            "if position.kind is not PositionKind.VALID:\n"
            "    _record_progress(state, role, replica, offset)",
        ),
    ),
    Mutant(
        "an observer counts for the high watermark",
        "R-HW-3, S18",
        Edit(
            f"{_COUNTS}.record_fetch",
            "is_voter = state is not None and _matches(state.key, key)",
            "state = state or next(iter(self.voters.values()))\n"
            "is_voter = state is not None",
        ),
    ),
    Mutant(
        "another directory of a voter counts",
        "R-ID-2, S17",
        Edit(
            "kraftwire.raft.progress:_matches",
            "return directory_id == ZERO_UUID or directory_id == key.directory_id",
            "return True",
        ),
        "tests/unit/raft/test_progress.py",
    ),
    Mutant(
        "a leader that nobody fetches from keeps leading",
        "R-CQ-1, L7",
        Edit(
            f"{_ENDS}:reason_to_resign",
            "if deadline is not None and state.now >= deadline:",
            "if deadline is not None and state.now < 0:",
        ),
    ),
    Mutant(
        "one follower too few keeps a leader",
        "R-CQ-2, L7",
        Edit(
            f"{_COUNTS}.voters_changed",
            "self._needed = len(voters) // 2 + (0 if leads_as_voter else 1)",
            "self._needed = max(0, len(voters) // 2 - 1)",
        ),
        "tests/unit/raft/test_progress.py",
    ),
    Mutant(
        "a follower that fetched once counts for ever",
        "R-CQ-2, L7",
        Edit(
            f"{_COUNTS}._restart_quorum_timer",
            "self._heard.clear()",
            "pass",
        ),
        "tests/unit/raft/test_progress.py",
    ),
    Mutant(
        "the end of a follower's wait keeps a leader",
        "R-CQ-2, L7",
        Edit(
            "kraftwire.raft.serving:answer_expired",
            "_fetch_answer(state, parked.event, counts=False)",
            "_fetch_answer(state, parked.event)",
        ),
        "tests/unit/raft/test_parked.py",
    ),
    Mutant(
        "the only voter resigns when nobody fetches",
        "R-CQ-1",
        Edit(
            f"{_COUNTS}.voters_changed",
            "if leads_as_voter and len(voters) == 1:",
            "if leads_as_voter and len(voters) == 0:",
        ),
        "tests/unit/raft/test_progress.py",
    ),
    Mutant(
        "nobody is told who leads",
        "R-BEG-1, L1",
        Edit(
            "kraftwire.raft.epoch_announcements:poll_announcements",
            "if destination is not None and state.is_ready(destination):",
            "if destination is None:",
        ),
        "tests/unit/raft/test_epoch_announcements.py",
    ),
    Mutant(
        "those who fetch are told again and again",
        "R-BEG-1, L9",
        Edit(
            f"{_COUNTS}.silent_voters",
            "and (state.last_fetch_ms < 0 or now_ms - state.last_fetch_ms >= self._silence_ms)",
            "and (state.last_fetch_ms < 0 or now_ms >= self._silence_ms)",
        ),
        "tests/unit/raft/test_epoch_announcements.py",
    ),
    Mutant(
        "a leader of an older epoch is believed",
        "R-BEG-2, S2",
        Edit(
            "kraftwire.raft.epoch_announcements:_accept",
            "if epoch < state.role.epoch:",
            "if epoch < 0:",
        ),
        "tests/unit/raft/test_epoch_announcements.py",
    ),
    Mutant(
        "successors are told furthest last",
        "R-END-2",
        Edit(
            f"{_COUNTS}.preferred_successors",
            "others.sort(key=lambda state: (-state.end_offset, state.key))",
            "others.sort(key=lambda state: (state.end_offset, state.key))",
        ),
        "tests/unit/raft/test_progress.py",
    ),
    Mutant(
        "the first successor waits like the others",
        "R-END-4",
        Edit(
            "kraftwire.raft.epoch_announcements:_backoff",
            "return 0",
            "return longest",
        ),
        "tests/unit/raft/test_successors.py",
    ),
    Mutant(
        "a resigned leader's followers still refuse pre-votes",
        "R-END-3, L1",
        Edit(
            "kraftwire.raft.epoch_announcements:handle_end_request",
            "role.has_fetched = False",
            "pass",
        ),
        "tests/unit/raft/test_successors.py",
    ),
    Mutant(
        "a state machine is told too early that it leads",
        "R-LIS-6, S15",
        Edit(
            "kraftwire.raft.listeners:_leader_change",
            "if listener.next_offset < max(end_offset, listener.leads_from):",
            "if listener.next_offset < 0:",
        ),
    ),
    Mutant(
        "what is not committed is delivered",
        "R-LIS-3, S15",
        Edit(
            "kraftwire.raft.listeners:_next_delivery",
            "listener.promised = high_watermark",
            "listener.promised = log.end_offset",
        ),
        also=Edit(
            "kraftwire.raft.listeners:_next_delivery",
            "DeliverCommitted(listener.id, listener.next_offset, high_watermark)",
            "DeliverCommitted(listener.id, listener.next_offset, log.end_offset)",
        ),
    ),
    Mutant(
        "a delivery is made twice",
        "R-LIS-3, S15",
        Edit(
            "kraftwire.raft.listeners:Listeners.consumed",
            "listener.next_offset = max(listener.next_offset, end)",
            "listener.next_offset = max(listener.next_offset, end - 1)",
        ),
    ),
    Mutant(
        "an append of an older leadership is taken",
        "R-ACC-1",
        Edit(
            "kraftwire.raft.appending:_refusal",
            "if leader is None or event.epoch < role.epoch:",
            "if leader is None:",
        ),
        "tests/unit/raft/test_appends.py",
    ),
)
