"""Mistakes in fetching, appending and cutting."""

from __future__ import annotations

from tests.history.putting_back import Edit
from tests.mutants.mutant import Mutant

_FOLLOWS = "kraftwire.raft.following"
_SERVES = "kraftwire.raft.serving"
_PICTURE = "kraftwire.raft.log_view:LogView"

MUTANTS = (
    Mutant(
        "a fetch acknowledges what is not flushed",
        "D2, S9",
        Edit(
            f"{_FOLLOWS}:_may_fetch",
            "return not state.config.can_be_voter or log.flushed_offset >= log.end_offset",
            "return True",
        ),
    ),
    Mutant(
        "a follower takes a high watermark beyond its log",
        "R-FET-22, S8",
        Edit(
            f"{_FOLLOWS}:_follow_high_watermark",
            "mark = min(offered, state.log.end_offset)",
            "mark = offered",
        ),
    ),
    Mutant(
        "a follower lowers its high watermark",
        "R-FET-22, S8",
        Edit(
            f"{_FOLLOWS}:_follow_high_watermark",
            "if state.high_watermark < mark >= state.log.start_offset:",
            "if state.high_watermark != mark >= state.log.start_offset:",
        ),
        "tests/unit/raft/test_appends.py",
    ),
    Mutant(
        "what is committed is cut",
        "R-FET-20, S11",
        Edit(
            f"{_FOLLOWS}:_truncate",
            "if end < max(state.committed, state.log.start_offset):",
            "if end < state.log.start_offset:",
        ),
        "tests/history/test_divergence.py",
    ),
    Mutant(
        "a truncation leaves an earlier flush valid",
        "D5, S9",
        Edit(
            f"{_FOLLOWS}:_truncate",
            "state.flush_generation += 1",
            "pass",
        ),
        "tests/unit/raft/test_flushes.py",
    ),
    Mutant(
        "a diverging follower asks again at once",
        "L9",
        Edit(
            f"{_FOLLOWS}:_truncate",
            "if end >= state.log.end_offset:",
            "if end >= state.log.end_offset:\n    return True\nif end >= state.log.end_offset:",
        ),
        "tests/history/test_divergence.py",
    ),
    Mutant(
        "the largest common epoch is not looked for",
        "R-FET-20, S6",
        Edit(
            f"{_PICTURE}.truncation_offset",
            "elif own.epoch == diverging.epoch:",
            "elif own.epoch >= 0:",
        ),
        "tests/unit/raft/test_log_view.py",
    ),
    Mutant(
        "a position is not checked for its epoch",
        "R-FET-7, S6",
        Edit(
            f"{_PICTURE}.check_position",
            "if own.epoch != epoch or own.offset < offset:",
            "if own.offset < offset:",
        ),
    ),
    Mutant(
        "a position is not checked for its offset",
        "R-FET-7, S6",
        Edit(
            f"{_PICTURE}.check_position",
            "if own.epoch != epoch or own.offset < offset:",
            "if own.epoch != epoch:",
        ),
    ),
    Mutant(
        "an epoch without records outlives a cut",
        "R-FET-9, KAFKA-10706",
        Edit(
            f"{_PICTURE}.truncate",
            "keep = bisect_left(starts, end)",
            "keep = bisect_right(starts, end)",
        ),
        "tests/unit/raft/test_log_view.py",
    ),
    Mutant(
        "a new epoch does not replace those after its start",
        "R-FET-9",
        Edit(
            f"{_PICTURE}.register_epoch",
            "while epochs and (epochs[-1] >= epoch or starts[-1] >= offset):",
            "while epochs and epochs[-1] >= epoch:",
        ),
        "tests/unit/raft/test_log_view.py",
    ),
    Mutant(
        "an epoch ends one record too late",
        "R-FET-8, S6",
        Edit(
            f"{_PICTURE}.end_of_epoch",
            "return OffsetAndEpoch(self._starts[index], epochs[index - 1])",
            "return OffsetAndEpoch(self._starts[index] + 1, epochs[index - 1])",
        ),
    ),
    Mutant(
        "fetched batches may leave a gap",
        "R-FET-23, S13",
        Edit(
            "kraftwire.raft.batches:_header_problem",
            "if base != next_offset:",
            "if base < next_offset:",
        ),
        "tests/unit/raft/test_batches.py",
    ),
    Mutant(
        "fetched batches may overlap the log",
        "R-FET-23, S13",
        Edit(
            "kraftwire.raft.batches:_header_problem",
            "if base != next_offset:",
            "if base > next_offset:",
        ),
        "tests/unit/raft/test_batches.py",
    ),
    Mutant(
        "a batch of a later epoch is accepted",
        "KAFKA-18723, S13",
        Edit(
            "kraftwire.raft.batches:_header_problem",
            "if not last_epoch <= batch_epoch <= epoch:",
            "if not last_epoch <= batch_epoch:",
        ),
        "tests/unit/raft/test_batches.py",
    ),
    Mutant(
        "a wrong checksum is accepted",
        "R-FET-23, S7",
        Edit(
            "kraftwire.raft.batches:read_fetched",
            "if problem is None and crc32c(view[position + CRC_START : end]) != crc:",
            "if problem is None and crc32c(view[position + CRC_START : end]) == -1:",
        ),
        "tests/unit/raft/test_batches.py",
    ),
    Mutant(
        "an answer of an old epoch is believed",
        "R-RESP-1, S11",
        Edit(
            "kraftwire.raft.responses:settle",
            "if epoch < role.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:",
            "if error == ErrorCode.UNKNOWN_LEADER_EPOCH:",
        ),
        "tests/unit/raft/test_late_answers.py",
    ),
    Mutant(
        "an answer without error from another node is believed",
        "R-FET-19, S8",
        Edit(
            f"{_FOLLOWS}:handle_fetch_response",
            "if type(role) is not Follower or leader_id != role.leader_id:",
            "if type(role) is not Follower:",
        ),
        "tests/unit/raft/test_late_answers.py",
    ),
    Mutant(
        "a failed peer is asked again at once",
        "R-RESP-9, L9",
        Edit(
            "kraftwire.raft.peers:Peers.failed",
            "self._backing_off[key] = now_ms + wait",
            "self._backing_off[key] = now_ms",
        ),
        "tests/unit/raft/test_peers.py",
    ),
    Mutant(
        "a waiting fetch is not answered when records come",
        "R-FET-14",
        Edit(
            "kraftwire.raft.parked:ParkedFetches.wake_at_or_below",
            "one.offset <= end_offset",
            "one.offset > end_offset",
        ),
        "tests/unit/raft/test_parked.py",
    ),
    Mutant(
        "a leader that steps down leaves fetches waiting",
        "KAFKA-10677",
        Edit(
            "kraftwire.raft.transitions:to_resigned",
            "fail_parked(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)",
            "pass",
        ),
        "tests/history/test_leaders.py",
    ),
    Mutant(
        "a fetch of another cluster is served",
        "R-FET-6",
        Edit(
            "kraftwire.raft.answers:cluster_id_differs",
            "return None not in (cluster_id, state.cluster_id) and cluster_id != state.cluster_id",
            "return False",
        ),
        "tests/history/test_elections.py",
    ),
    Mutant(
        "a fetch in the leader's own name counts",
        "R-CQ-3",
        Edit(
            f"{_SERVES}:_fetch_answer",
            "if error == ErrorCode.NONE and replica.id == state.config.key.id:",
            "if replica.id == -2:",
        ),
        "tests/unit/raft/test_fetches_served.py",
    ),
    Mutant(
        "a fetch inside a batch acknowledges a part of it",
        "R-FET-11, S9",
        Edit(
            f"{_SERVES}:_fetch_answer",
            "_record_progress(state, role, replica, log.batch_base(offset))",
            "_record_progress(state, role, replica, offset)",
        ),
        "tests/unit/raft/test_fetches_served.py",
    ),
    Mutant(
        "a follower that does not know the high watermark waits for it",
        "KIP-1166",
        Edit(
            f"{_SERVES}:_reply_with_records",
            "partition.high_watermark >= mark",
            "mark >= 0",
        ),
        "tests/unit/raft/test_fetches_served.py",
    ),
)
