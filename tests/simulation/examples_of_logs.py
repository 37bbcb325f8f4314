"""LogChecks of logs: some break an invariant, some nearly do."""

from __future__ import annotations

import struct
from collections.abc import Callable

from kraftwire.sim.check_logs import LogChecks
from kraftwire.sim.replica_log import ReplicaLog
from kraftwire.sim.voters import InForce

VOTERS = InForce(((1, b""), (2, b""), (3, b"")))


def batch(base: int, count: int, epoch: int, payload: bytes = b"x") -> bytes:
    """The bytes of a batch, as far as checkers look at them."""
    body = struct.pack(">iBIhi", epoch, 2, 0, 0, count - 1) + bytes(34) + payload
    return struct.pack(">qi", base, len(body)) + body


def log_checks() -> LogChecks:
    """Three voters and an observer, all empty."""
    return LogChecks(VOTERS, {node: ReplicaLog((node, b""), VOTERS) for node in (1, 2, 3, 4)})


def replicate(logs: LogChecks, nodes: tuple[int, ...], data: bytes, epoch: int) -> None:
    """Let nodes append a batch and make it durable."""
    for node in nodes:
        logs.appended(node, data, epoch)
        logs.flushed(node, len(logs.logs[node].batches))


def a_leader_without_what_is_committed() -> None:
    """S5."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)
    logs.elected(3, 2)


def a_late_leader_of_an_older_epoch() -> None:
    """It was elected before the commit, although it learns of its election later."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 4), 4)
    logs.advanced(1, 5, 4)
    logs.elected(3, 3)


def two_logs_that_agree_above_a_difference() -> None:
    """S6."""
    logs = log_checks()
    logs.appended(1, batch(0, 5, 1), 3)
    logs.appended(1, batch(5, 5, 3), 3)
    logs.appended(2, batch(0, 5, 2), 3)
    logs.appended(2, batch(5, 5, 3), 3)


def two_logs_that_agree_throughout() -> None:
    logs = log_checks()
    for node in (1, 2):
        logs.appended(node, batch(0, 5, 1) + batch(5, 5, 3), 3)


def a_commit_of_other_bytes() -> None:
    """S7."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)
    replicate(logs, (3,), batch(0, 5, 2), 2)
    logs.advanced(3, 5, None)


def a_later_commit_of_the_same_bytes() -> None:
    logs = log_checks()
    replicate(logs, (1, 2, 3), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)
    logs.advanced(3, 5, None)


def a_listener_that_reads_other_bytes() -> None:
    """S7."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)
    logs.delivered(0, 5, batch(0, 5, 1, b"y"))


def a_listener_that_reads_what_is_committed() -> None:
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)
    assert logs.delivered(0, 5, batch(0, 5, 1)) == 5


def a_high_watermark_that_goes_back() -> None:
    """S8."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1) + batch(5, 5, 1), 1)
    logs.advanced(1, 10, 1)
    logs.advanced(1, 5, 1)


def a_high_watermark_that_a_restart_forgets() -> None:
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1) + batch(5, 5, 1), 1)
    logs.advanced(1, 10, 1)
    logs.restarted(1, [batch(0, 5, 1), batch(5, 5, 1)], is_durable=True)
    logs.advanced(1, 5, None)


def a_high_watermark_beyond_the_log() -> None:
    """S8."""
    logs = log_checks()
    logs.advanced(1, 5, None)


def a_follower_that_commits_alone() -> None:
    """S8."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(2, 5, None)


def a_follower_that_follows() -> None:
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)
    logs.advanced(2, 5, None)


def a_commit_that_half_have() -> None:
    """S9."""
    logs = log_checks()
    replicate(logs, (1, 4), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)


def a_commit_that_is_not_durable() -> None:
    """S9."""
    logs = log_checks()
    replicate(logs, (1,), batch(0, 5, 1), 1)
    logs.appended(2, batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)


def a_commit_that_the_leader_lacks_durably() -> None:
    """The two others make a majority."""
    logs = log_checks()
    replicate(logs, (2, 3), batch(0, 5, 1), 1)
    logs.appended(1, batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)


def a_start_with_what_is_not_durable() -> None:
    """S9."""
    logs = log_checks()
    logs.appended(1, batch(0, 5, 1), 1)
    logs.restarted(1, [batch(0, 5, 1)], is_durable=False)


def a_commit_of_an_older_epoch_by_counting() -> None:
    """S10."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 2)


def a_commit_of_an_older_epoch_through_the_leaders_own() -> None:
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1) + batch(5, 1, 2), 2)
    logs.advanced(1, 6, 2)


def a_cut_below_the_high_watermark() -> None:
    """S11."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)
    logs.advanced(2, 5, None)
    logs.truncating(2, 0, 2, 2)


def a_cut_of_what_it_does_not_know_to_be_committed() -> None:
    """S11."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 1), 1)
    logs.advanced(1, 5, 1)
    logs.truncating(2, 0, 2, 2)


def a_cut_that_nobody_ordered() -> None:
    """S11."""
    logs = log_checks()
    logs.appended(2, batch(0, 5, 1), 1)
    logs.truncating(2, 0, 2, None)


def a_cut_by_order_of_an_old_leader() -> None:
    """S11."""
    logs = log_checks()
    logs.appended(2, batch(0, 5, 1), 1)
    logs.truncating(2, 0, 3, 2)


def a_cut_that_a_power_loss_would_undo() -> None:
    """S11."""
    logs = log_checks()
    logs.appended(2, batch(0, 5, 1), 1)
    logs.truncating(2, 0, 2, 2)
    logs.truncated(2, 0, is_durable=False)


def a_cut_of_what_is_not_committed() -> None:
    logs = log_checks()
    logs.appended(2, batch(0, 5, 1), 1)
    logs.truncating(2, 0, 2, 2)
    logs.truncated(2, 0, is_durable=True)
    logs.appended(2, batch(0, 5, 2), 2)


def an_acknowledged_record_that_is_not_committed() -> None:
    """S12."""
    log_checks().acked(3, 1)


def an_acknowledged_record_that_moved() -> None:
    """S12."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 2), 2)
    logs.advanced(1, 5, 2)
    logs.acked(3, 1)


def an_acknowledged_record() -> None:
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 2), 2)
    logs.advanced(1, 5, 2)
    logs.acked(3, 2)


def an_acknowledged_record_below_an_older_one() -> None:
    """S21: its client asked after the other one had been acknowledged."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 2) + batch(5, 5, 2), 2)
    logs.advanced(1, 10, 2)
    logs.acked(7, 2)
    logs.acked(3, 2, after=logs.acknowledged)


def an_acknowledged_record_below_one_that_came_later() -> None:
    """Both were asked for at the same time."""
    logs = log_checks()
    replicate(logs, (1, 2), batch(0, 5, 2) + batch(5, 5, 2), 2)
    logs.advanced(1, 10, 2)
    after = logs.acknowledged
    logs.acked(7, 2, count=3, after=after)
    logs.acked(3, 2, count=2, after=after)
    assert logs.acknowledged == 10


def a_restart_that_lost_durable_batches() -> None:
    """S12."""
    logs = log_checks()
    replicate(logs, (1,), batch(0, 5, 1), 1)
    logs.restarted(1, [], is_durable=True)


def a_restart_that_lost_batches_never_flushed() -> None:
    logs = log_checks()
    logs.appended(1, batch(0, 5, 1), 1)
    logs.restarted(1, [], is_durable=True)


def a_gap_in_a_log() -> None:
    """S13."""
    logs = log_checks()
    logs.appended(1, batch(0, 5, 1), 1)
    logs.appended(1, batch(6, 5, 1), 1)


def an_epoch_that_falls_in_a_log() -> None:
    """S13."""
    logs = log_checks()
    logs.appended(1, batch(0, 5, 2), 2)
    logs.appended(1, batch(5, 5, 1), 2)


def a_batch_of_a_future_epoch() -> None:
    """S13."""
    log_checks().appended(1, batch(0, 5, 3), 2)


def other_bytes_at_the_same_place() -> None:
    """S13."""
    logs = log_checks()
    logs.appended(1, batch(0, 5, 1), 1)
    logs.appended(2, batch(0, 5, 1, b"y"), 1)


def an_offset_that_is_written_twice() -> None:
    """S13: the epoch has one writer, whose next batch begins where its last one ended."""
    logs = log_checks()
    logs.appended(1, batch(0, 5, 1), 1)
    logs.appended(2, batch(0, 3, 0) + batch(3, 2, 1), 1)


def a_log_that_grows() -> None:
    logs = log_checks()
    logs.appended(1, batch(0, 5, 1) + batch(5, 5, 1) + batch(10, 5, 3), 3)


BAD: list[tuple[str, Callable[[], None]]] = [
    ("S5", a_leader_without_what_is_committed),
    ("S6", two_logs_that_agree_above_a_difference),
    ("S7", a_commit_of_other_bytes),
    ("S7", a_listener_that_reads_other_bytes),
    ("S8", a_high_watermark_that_goes_back),
    ("S8", a_high_watermark_beyond_the_log),
    ("S8", a_follower_that_commits_alone),
    ("S9", a_commit_that_half_have),
    ("S9", a_commit_that_is_not_durable),
    ("S9", a_start_with_what_is_not_durable),
    ("S10", a_commit_of_an_older_epoch_by_counting),
    ("S11", a_cut_below_the_high_watermark),
    ("S11", a_cut_of_what_it_does_not_know_to_be_committed),
    ("S11", a_cut_that_nobody_ordered),
    ("S11", a_cut_by_order_of_an_old_leader),
    ("S11", a_cut_that_a_power_loss_would_undo),
    ("S12", an_acknowledged_record_that_is_not_committed),
    ("S12", an_acknowledged_record_that_moved),
    ("S12", a_restart_that_lost_durable_batches),
    ("S13", a_gap_in_a_log),
    ("S13", an_epoch_that_falls_in_a_log),
    ("S13", a_batch_of_a_future_epoch),
    ("S13", other_bytes_at_the_same_place),
    ("S13", an_offset_that_is_written_twice),
    ("S21", an_acknowledged_record_below_an_older_one),
]

NEAR: list[Callable[[], None]] = [
    a_late_leader_of_an_older_epoch,
    two_logs_that_agree_throughout,
    a_later_commit_of_the_same_bytes,
    a_listener_that_reads_what_is_committed,
    a_high_watermark_that_a_restart_forgets,
    a_follower_that_follows,
    a_commit_that_the_leader_lacks_durably,
    a_commit_of_an_older_epoch_through_the_leaders_own,
    a_cut_of_what_is_not_committed,
    an_acknowledged_record,
    an_acknowledged_record_below_one_that_came_later,
    a_restart_that_lost_batches_never_flushed,
    a_log_that_grows,
]
