"""What a handler of requests sees of the node that it runs in.

Owns no behaviour: the shell (`app`, `driver`) provides it, handlers and tests rely on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kraftwire.node.config import NodeConfig
from kraftwire.raft.voters import Endpoint, ReplicaKey, VoterSet
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.node.controller import Controller
    from kraftwire.node.image import MetadataImage

__all__ = ["Context", "Handler", "RaftView", "Request"]


@dataclass(slots=True)
class Request:
    """One request as it came in.

    Shape: `listener` is the listener's name in upper case; `software` the ClientSoftwareName of
    the connection's ApiVersions request, empty without one. A request that came through an
    Envelope or from inside the node has the values of the outer one.
    """

    api_key: int
    version: int
    message: Message
    client_id: str | None = None
    listener: str = ""
    software: str = ""
    from_controller_listener: bool = False
    from_client_listener: bool = True


class RaftView(Protocol):
    """What may be looked at of the Raft core, as it is at this moment.

    Shape: as the properties of the same names of `RaftCore`; -1 stands for an unknown id or
    offset.
    """

    @property
    def role(self) -> str:
        """Name of the role, as in the metric `current-state` without `observer`."""

    @property
    def epoch(self) -> int:
        """The leader epoch."""

    @property
    def leader_id(self) -> int:
        """Who leads."""

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """Where the leader's first controller listener is."""

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""

    @property
    def start_offset(self) -> int:
        """The log start offset."""

    @property
    def end_offset(self) -> int:
        """The log end offset."""

    @property
    def epoch_start_offset(self) -> int:
        """Where a leader's epoch begins."""

    @property
    def voters(self) -> VoterSet:
        """The voters in force."""

    @property
    def is_voter(self) -> bool:
        """Whether this node is one of them."""

    @property
    def kraft_version(self) -> int:
        """The finalized kraft.version."""

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, None while it is unknown."""

    @property
    def foreign_voters(self) -> frozenset[int]:
        """The voters whose requests named another ClientSoftwareName than ours."""


class Context(Protocol):
    """The node, for handlers and the controller."""

    @property
    def config(self) -> NodeConfig:
        """The node's configuration."""

    @property
    def key(self) -> ReplicaKey:
        """This node's id and directory id."""

    @property
    def raft(self) -> RaftView:
        """The Raft core, to look at."""

    @property
    def image(self) -> MetadataImage:
        """What the committed records say."""

    @property
    def controller(self) -> Controller:
        """What the leader of the quorum does beyond replication; inactive on other nodes."""

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The advertised endpoints of all own listeners, with the ports really bound."""

    def now_ms(self) -> int:
        """The clock of all timers: milliseconds that never go back, from no particular moment."""

    async def raft_request(self, request: Request) -> Message:
        """Let the core answer a raft request; its own answer comes back, errors included."""

    async def forward(self, message: Message, version: int | None = None) -> Message:
        """Let the quorum leader answer: by its controller endpoint, or here if this node leads.

        Shape: without a version, the highest one that both sides speak.
        Raises: ApiError NOT_CONTROLLER (41) if no leader is known or it cannot be reached,
        REQUEST_TIMED_OUT (7), UNSUPPORTED_VERSION (35).
        """

    def read_committed(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that contains `offset` on, below the high watermark.

        Shape: at least one batch if there is one, whatever its size; empty at the high watermark.
        """

    async def append(
        self, values: Sequence[bytes], *, epoch: int, expected_end_offset: int | None = None
    ) -> int:
        """Append records as the leader of `epoch`; returns the last one's offset.

        Raises: ApiError NOT_CONTROLLER if this node does not lead that epoch or the end offset
        differs, MESSAGE_TOO_LARGE or THROTTLING_QUOTA_EXCEEDED as the core refuses.
        """

    async def committed(self, offset: int, *, epoch: int) -> None:
        """Wait until the record at `offset`, appended in `epoch`, is committed.

        Raises: ApiError NOT_CONTROLLER if the leadership ends before.
        """

    async def wait_high_watermark(self, above: int, timeout_ms: int) -> int:
        """The high watermark, as soon as it is greater than `above` or the time is over."""

    def resign(self, epoch: int) -> None:
        """Give up the leadership of this epoch."""


Handler = Callable[[Request, Context], Awaitable[Message | None]]
"""Answers one request. None means that the connection is to be closed without an answer."""
