"""Dispatches requests, responses and records to the parts of the story of groups."""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.capture.recorded import Recordings, TimeSpan
from kraftwire.decode.body.context import TopicNames
from kraftwire.records.messages import Decoded
from kraftwire.story.events import Events
from kraftwire.story.groups.classic import ClassicGroups
from kraftwire.story.groups.coordinator_log import CoordinatorLog
from kraftwire.story.groups.epochs import HEARTBEATS, HeartbeatGroups
from kraftwire.story.groups.members import Groups
from kraftwire.story.groups.offsets import Lag, ShareProgress
from kraftwire.story.observed_exchange import ObservedExchange

# APIs that show where partitions end, and name no group.
ENDS = frozenset({"Fetch", "ListOffsets", "Produce"})
_OFFSETS = (*ENDS, "OffsetCommit", "OffsetFetch", "TxnOffsetCommit", "WriteShareGroupState")
_CLASSIC = ("Heartbeat", "JoinGroup", "LeaveGroup", "SyncGroup")
_SHARES = ("ShareAcknowledge", "ShareFetch")

APIS = frozenset({*_OFFSETS, *_CLASSIC, *_SHARES, *HEARTBEATS})


class GroupStory:
    """Gathers the story of all groups.

    Order: requests and responses as they come, then `finish` once.
    """

    def __init__(self, names: TopicNames, recordings: Recordings | None = None) -> None:
        """Begin a story. `recordings` are those of the exchanges, and grow while these come."""
        self.events = Events()
        self.groups = Groups(self.events, recordings or Recordings())
        self.lag = Lag(self.groups, names)
        self._classic = ClassicGroups(self.groups)
        self._epochs = HeartbeatGroups(self.groups, names)
        self._shares = ShareProgress(self.groups)
        self._log = CoordinatorLog(self.groups, self.lag, names)

    def on_request(self, exchange: ObservedExchange) -> None:
        """Add a request; most are used only with their responses."""
        if exchange.api == "JoinGroup":
            self._classic.on_join_request(exchange)
        elif exchange.api == "LeaveGroup":
            self._classic.on_leave_request(exchange)

    def on_response(self, exchange: ObservedExchange) -> None:
        """Add a response."""
        match exchange.api:
            case "JoinGroup":
                self._classic.on_join_response(exchange)
            case "SyncGroup":
                self._classic.on_sync_response(exchange)
            case "Heartbeat":
                self._classic.on_heartbeat_response(exchange)
            case "ShareAcknowledge" | "ShareFetch":
                self._shares.on_response(exchange)
            case api if api in HEARTBEATS:
                self._epochs.on_response(exchange)
            case api if api in _OFFSETS:
                self.lag.on_response(exchange)

    def on_ending(self, connection: str, time: float) -> None:
        """Add the end of a connection."""
        self.groups.on_ending(connection, time)

    def on_record(self, record: Decoded, time: float) -> None:
        """Add a record of a coordinator's log."""
        self.groups.note_logged(time)
        self._log.on_record(record, time)

    def finish(self, holes: Sequence[TimeSpan]) -> None:
        """Report the generations, which are complete only at the end, and the times of which
        nothing was recorded.
        """
        self.events.note_holes(holes)
        self.groups.leave_unrecorded(holes)
        self._classic.finish()
        self._epochs.finish()
