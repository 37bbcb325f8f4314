"""The story of groups: passes requests, responses and records to the parts that gather them."""

from __future__ import annotations

from kraftwire.decode.body.topics import TopicNames
from kraftwire.records.decoded import Decoded
from kraftwire.story.events import Events
from kraftwire.story.groups.classic import Classic
from kraftwire.story.groups.coordinator_log import CoordinatorLog
from kraftwire.story.groups.epochs import HEARTBEATS, Epochs
from kraftwire.story.groups.members import Groups
from kraftwire.story.groups.offsets import Lag, Shares
from kraftwire.story.observed_exchange import Talk

__all__ = ["APIS", "ENDS", "GroupStory"]

# These show where partitions end, and name no group.
ENDS = frozenset({"Fetch", "ListOffsets", "Produce"})
_OFFSETS = (*ENDS, "OffsetCommit", "OffsetFetch", "TxnOffsetCommit", "WriteShareGroupState")
_CLASSIC = ("Heartbeat", "JoinGroup", "LeaveGroup", "SyncGroup")
_SHARES = ("ShareAcknowledge", "ShareFetch")

APIS = frozenset({*_OFFSETS, *_CLASSIC, *_SHARES, *HEARTBEATS})


class GroupStory:
    """Gathers the story of all groups.

    Order: requests and responses as they come, then `finish` once.
    """

    def __init__(self, names: TopicNames) -> None:
        self.events = Events()
        self.groups = Groups(self.events)
        self.lag = Lag(self.groups, names)
        self._classic = Classic(self.groups)
        self._epochs = Epochs(self.groups, names)
        self._shares = Shares(self.groups)
        self._log = CoordinatorLog(self.groups, self.lag, names)

    def see_request(self, talk: Talk) -> None:
        """Add a request; most are used only with their responses."""
        if talk.api == "JoinGroup":
            self._classic.see_join_request(talk)
        elif talk.api == "LeaveGroup":
            self._classic.see_leave_request(talk)

    def see_response(self, talk: Talk) -> None:
        """Add a response."""
        match talk.api:
            case "JoinGroup":
                self._classic.see_join_response(talk)
            case "SyncGroup":
                self._classic.see_sync_response(talk)
            case "Heartbeat":
                self._classic.see_heartbeat_response(talk)
            case "ShareAcknowledge" | "ShareFetch":
                self._shares.see_response(talk)
            case api if api in HEARTBEATS:
                self._epochs.see_response(talk)
            case api if api in _OFFSETS:
                self.lag.see_response(talk)

    def see_ending(self, connection: str, time: float) -> None:
        """Add the end of a connection."""
        self.groups.see_ending(connection, time)

    def see_record(self, record: Decoded, time: float) -> None:
        """Add a record of a coordinator's log."""
        self._log.see(record, time)

    def finish(self) -> None:
        """Report the generations, which are complete only at the end."""
        self._classic.finish()
        self._epochs.finish()
