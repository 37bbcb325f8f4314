"""The events of silences: of nodes in captures, and of leaders in a log."""

from __future__ import annotations

from collections.abc import Iterable

from kraftwire.decode.text import duration_text, with_remarks
from kraftwire.story.raft.coverage import LogSilence
from kraftwire.story.raft.model import LeaderOfEpoch, NodeId, RaftEvent, Silence

# A controller that shuts down resigns and then waits at most 5 s for a successor.
_SHUTDOWN_S = 6.0


def silence_event(silence: Silence, leaders: Iterable[LeaderOfEpoch]) -> RaftEvent:
    """Return the event of a node that sent nothing, by the epochs that it led."""
    own = [each for each in leaders if each.leader == silence.node]
    led = [each.epoch for each in own if each.end == silence.start]
    epoch = led[0] if led else None
    remarks = []
    resigned = [
        each.epoch
        for each in own
        if each.resigned is not None and 0 <= silence.start - each.resigned < _SHUTDOWN_S
    ]
    if resigned:
        remarks.append(f"after it resigned in epoch {resigned[0]}")
    if silence.unanswered:
        remarks.append(f"{silence.unanswered} requests to it without an answer")
    if silence.without_packets:
        paused = duration_text(silence.without_packets)
        remarks.append(f"no packet of anyone is recorded for {paused} of it")
    span = f"for {duration_text(silence.until - silence.start)}"
    if silence.end is None:
        span = f"for at least {duration_text(silence.until - silence.start)}"
        remarks.append("not recorded after that")
    text = with_remarks(f"{'leader ' if led else ''}falls silent {span}", remarks)
    seconds = None if silence.end is None else silence.end - silence.start
    details = {
        "seconds": seconds,
        "until": silence.until,
        "recordedSeconds": silence.until - silence.start - silence.without_packets,
        "unanswered": silence.unanswered,
        "wasLeader": bool(led),
    }
    return RaftEvent(silence.start, "silence", text, epoch, silence.node, details)


def log_silence_event(silence: LogSilence, leader: NodeId | None) -> RaftEvent:
    """Return the event of a leader that wrote nothing."""
    seconds = silence.end - silence.start
    remark = f"the log has no record between offsets {silence.offset - 1} and {silence.offset}"
    if silence.is_replaced:
        remark = f"no replica has a record until that at offset {silence.offset}"
    text = with_remarks(f"leader falls silent for {duration_text(seconds)}", [remark])
    details = {"seconds": seconds, "unanswered": 0, "wasLeader": True, "seenIn": "log"}
    return RaftEvent(silence.start, "silence", text, silence.epoch, leader, details)
