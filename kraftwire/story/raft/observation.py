"""The input of the timeline: one request or response, as a packet capture shows it."""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.messages import API_NAMES
from kraftwire.wire.message import Message

__all__ = ["QUORUM_APIS", "NodeId", "Sighting"]

_NAMES = frozenset(
    {
        "AddRaftVoter",
        "BeginQuorumEpoch",
        "BrokerHeartbeat",
        "BrokerRegistration",
        "ControllerRegistration",
        "DescribeQuorum",
        "EndQuorumEpoch",
        "Envelope",
        "Fetch",
        "FetchSnapshot",
        "RemoveRaftVoter",
        "UpdateFeatures",
        "UpdateRaftVoter",
        "Vote",
    }
)

# The bodies that the timeline reads. Of all other frames it needs only time and connection.
QUORUM_APIS = frozenset(key for key, name in API_NAMES.items() if name in _NAMES)

# A node's id, or its host and port where no frame has shown the id.
NodeId = int | str


@dataclass(slots=True)
class Sighting:
    """A frame as the timeline sees it.

    `time` is in seconds since the epoch, `connection` "client:port-server:port". `body` is None
    where it was not decoded. A response has the body of its `request`, if known, and the time of
    that request in `asked`. For an envelope, the bodies are those inside, and `is_forwarded` is
    set.
    """

    time: float
    connection: str
    api_key: int
    is_request: bool
    body: Message | None = None
    correlation_id: int = 0
    request: Message | None = None
    asked: float | None = None
    is_forwarded: bool = False

    @property
    def server(self) -> str:
        """Host and port of the server."""
        return self.connection.rpartition("-")[2]

    @property
    def client(self) -> str:
        """Host and port of the client."""
        return self.connection.rpartition("-")[0]
