"""Snapshots that leaders name to replicas, and the downloads of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.text import count_text, duration_text, size_text, with_remarks
from kraftwire.limits import RAFT_EVENT_COUNT_MAX, RAFT_PENDING_COUNT_MAX
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.protocol.error_codes import error_name
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.story.raft.model import NodeId, RaftEvent, partitions
from kraftwire.story.raft.nodes import Nodes
from kraftwire.wire.message import Message

# A replica that continues requests the next slice at once. After this pause it has given up.
_GIVEN_UP_S = 3.0


@dataclass(slots=True)
class _Instruction:
    """A leader's answer to Fetch that names a snapshot; it was sent `count` times in a row."""

    time: float
    replica: NodeId
    snapshot: OffsetAndEpoch
    epoch: int
    offset: int
    log_start: int
    count: int = 0


@dataclass(slots=True)
class _Download:
    """An uninterrupted download of a snapshot by a replica.

    `first_position` is where it began; `size` is -1 until an answer gives it.
    """

    replica: NodeId
    snapshot: OffsetAndEpoch
    source: NodeId
    start: float
    end: float
    first_position: int
    size: int = -1
    received: int = 0
    slices: int = 0
    error: int = 0
    is_given_up: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the whole snapshot has arrived."""
        return 0 <= self.size <= self.received

    @property
    def is_over(self) -> bool:
        """Whether the download has ended, so that another request begins a new one."""
        return self.is_complete or self.error != 0 or self.is_given_up


class Downloads:
    """Gathers the snapshots that leaders name, and those that replicas fetch."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._instructions: list[_Instruction] = []
        self._latest_instructions: dict[NodeId, _Instruction] = {}
        self._downloads: list[_Download] = []
        self._current: dict[tuple[NodeId, OffsetAndEpoch], _Download] = {}
        self._log_starts: dict[NodeId, int] = {}
        self._events: list[RaftEvent] = []

    # -- answers to Fetch ----------------------------------------------------------------------

    def on_instruction(
        self,
        replica: NodeId,
        snapshot: OffsetAndEpoch,
        *,
        time: float,
        epoch: int,
        offset: int,
        log_start: int,
    ) -> None:
        """Note that a replica which fetches from an offset is told to load a snapshot."""
        known = self._latest_instructions.get(replica)
        if known is None or (known.snapshot, known.epoch, known.offset) != (
            snapshot,
            epoch,
            offset,
        ):
            known = _Instruction(time, replica, snapshot, epoch, offset, log_start)
            if len(self._latest_instructions) < RAFT_PENDING_COUNT_MAX:
                self._latest_instructions[replica] = known
            if len(self._instructions) < RAFT_EVENT_COUNT_MAX:
                self._instructions.append(known)
        known.count += 1

    def on_records(self, replica: NodeId) -> None:
        """Note that a replica got an answer to Fetch that names no snapshot."""
        self._latest_instructions.pop(replica, None)

    def on_log_start(self, leader: NodeId, offset: int, *, time: float, epoch: int) -> None:
        """Note the log start offset in a leader's answer."""
        known = self._log_starts.get(leader)
        if known is None and len(self._log_starts) >= RAFT_PENDING_COUNT_MAX:
            return
        self._log_starts[leader] = offset
        if offset <= (known or 0) or len(self._events) >= RAFT_EVENT_COUNT_MAX:
            return
        text, remarks = f"drops its log before offset {offset}", [f"it began at {known}"]
        if known is None:
            text, remarks = f"has dropped its log before offset {offset}", []
        remarks.append("what was before is in a snapshot")
        details = {"logStart": offset, "before": known}
        event = RaftEvent(time, "log-start", with_remarks(text, remarks), epoch, leader, details)
        self._events.append(event)

    # -- FetchSnapshot -------------------------------------------------------------------------

    def on_request(self, frame: RawFrame, body: FetchSnapshotRequest) -> None:
        """Add a replica's request for a slice of a snapshot."""
        self._nodes.learn_client(frame, body.replica_id)
        source = self._nodes.server(frame)
        for partition in partitions(body):
            id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            known = self._current.get((body.replica_id, id))
            if known is not None and not _goes_on(known, source, partition.position, frame.time):
                is_recorded = not self._nodes.recordings.pauses(known.end, frame.time)
                known.is_given_up = is_recorded and not known.is_complete
                known = None
            if known is None:
                known = _Download(
                    body.replica_id, id, source, frame.time, frame.time, partition.position
                )
                if len(self._current) < RAFT_PENDING_COUNT_MAX:
                    self._current[body.replica_id, id] = known
                if len(self._downloads) < RAFT_EVENT_COUNT_MAX:
                    self._downloads.append(known)
            known.end = frame.time

    def on_response(
        self, frame: RawFrame, body: FetchSnapshotResponse, request: Message | None
    ) -> None:
        """Add a leader's answer: a slice, or an error."""
        if not isinstance(request, FetchSnapshotRequest):
            return
        requested = partitions(request)
        answered = partitions(body)
        for index, partition in enumerate(requested):
            id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            known = self._current.get((request.replica_id, id))
            if known is None:
                continue
            known.end = frame.time
            # A top-level error comes without partitions.
            answer = answered[index] if index < len(answered) else None
            known.error = body.error_code or (answer.error_code if answer else 0)
            if answer is None or known.error:
                continue
            data = answer.unaligned_records
            known.size = answer.size
            known.slices += 1
            known.received = max(known.received, answer.position + len(data or b""))

    # -- the end -------------------------------------------------------------------------------

    def events(self, end: float) -> Iterator[RaftEvent]:
        """Yield the events of instructions, downloads and raised log start offsets.

        `end` is the end of the story, in seconds since the epoch.
        """
        yield from self._events
        for instruction in self._instructions:
            yield _instruction_event(instruction)
        for download in self._downloads:
            until = self._nodes.recordings.until(download.end, end)
            is_given_up = download.is_given_up or until - download.end > _GIVEN_UP_S
            yield _download_event(download, is_given_up=is_given_up)


def _goes_on(known: _Download, source: NodeId, position: int, time: float) -> bool:
    """Return whether a request continues a download."""
    starts_again = position == 0 and known.received > 0
    is_late = time - known.end > _GIVEN_UP_S
    return not (known.is_over or source != known.source or starts_again or is_late)


def _instruction_event(each: _Instruction) -> RaftEvent:
    remarks = [f"asked for offset {each.offset}"]
    if each.log_start > 0:
        remarks.append(f"the leader's log begins at {each.log_start}")
    if each.count > 1:
        remarks.append(count_text(each.count, "time"))
    text = with_remarks(f"is told to load snapshot {each.snapshot} first", remarks)
    details = {
        "endOffset": each.snapshot.offset,
        "snapshotEpoch": each.snapshot.epoch,
        "offset": each.offset,
        "logStart": each.log_start,
        "count": each.count,
    }
    return RaftEvent(each.time, "snapshot-needed", text, each.epoch, each.replica, details)


def _download_event(each: _Download, *, is_given_up: bool) -> RaftEvent:
    head = f"fetches snapshot {each.snapshot} from {each.source}"
    if each.first_position:
        begun = size_text(each.first_position)
        head = f"goes on to fetch snapshot {each.snapshot} from {each.source} at {begun}"
    parts = [_amount(each)]
    if each.error:
        parts.append(error_name(each.error))
    elif not each.is_complete:
        parts.append("broken off" if is_given_up else "the rest is not recorded")
    parts.append(duration_text(each.end - each.start))
    details = {
        "endOffset": each.snapshot.offset,
        "snapshotEpoch": each.snapshot.epoch,
        "from": each.source,
        "position": each.first_position,
        "size": each.size if each.size >= 0 else None,
        "received": each.received,
        "slices": each.slices,
        "isComplete": each.is_complete,
        "seconds": each.end - each.start,
        "error": error_name(each.error),
    }
    return RaftEvent(each.start, "snapshot", with_remarks(head, parts), None, each.replica, details)


def _amount(each: _Download) -> str:
    if not each.slices:
        return "nothing came"
    text = size_text(each.received)
    if not each.is_complete:
        text += f" of {size_text(each.size)}"
    if each.slices > 1:
        return f"{text} in {each.slices} slices"
    return f"{text} at once" if each.is_complete else f"{text} in 1 slice"
