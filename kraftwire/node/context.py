"""What the parts of a node see of each other: handlers of the node, the controller of the quorum.

Owns no behaviour: `services` provides it, handlers, the controller and tests rely on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.messages.update_features_request import FeatureUpdateKey
from kraftwire.node.config import NodeConfig
from kraftwire.node.image import MetadataImage
from kraftwire.raft.view import RaftView
from kraftwire.raft.voters import Endpoint, ReplicaKey
from kraftwire.wire.message import Message

__all__ = ["ActiveController", "Context", "Handler", "Quorum", "Request"]


async def at_once(_: int) -> None:
    """The turn of what has no connection that others wait next to."""
    await trio.lowlevel.checkpoint()


@dataclass(slots=True)
class Request:
    """One request as it came in.

    Shape: `listener` is the listener's name in upper case; `software` the ClientSoftwareName of
    the connection's ApiVersions request, empty without one. A request that came through an
    Envelope or from inside the node has the values of the outer one. `turn` is to be waited for
    before so many bytes are read for the answer.
    """

    api_key: int
    version: int
    message: Message
    client_id: str | None = None
    listener: str = ""
    software: str = ""
    from_controller_listener: bool = False
    from_client_listener: bool = True
    turn: Callable[[int], Awaitable[None]] = at_once


class ActiveController(Protocol):
    """What the leader of the quorum does beyond replication.

    Each call waits until what it decides is committed. Raises: ApiError NOT_CONTROLLER (41) on
    every node that is not the active controller, or ceases to be it meanwhile.
    """

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller."""

    async def register_controller(self, request: ControllerRegistrationRequest) -> Message:
        """Register a controller."""

    async def register_broker(self, request: BrokerRegistrationRequest) -> Message:
        """Register a broker."""

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> Message:
        """Take a broker's heartbeat."""

    async def unregister_broker(self, request: UnregisterBrokerRequest) -> Message:
        """Forget a broker."""

    async def update_features(self, updates: Sequence[FeatureUpdateKey]) -> None:
        """Finalize levels of features other than kraft.version. Shape: checked before."""


class Quorum(Protocol):
    """The quorum, to a state machine that writes where it leads."""

    @property
    def key(self) -> ReplicaKey:
        """This node's id and directory id."""

    @property
    def raft(self) -> RaftView:
        """The Raft core, to look at."""

    def now_ms(self) -> int:
        """The clock of all timers: milliseconds that never go back, from no particular moment."""

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

    def resign(self, epoch: int) -> None:
        """Give up the leadership of this epoch."""


class Context(Protocol):
    """The node, for handlers and for its registration."""

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
    def controller(self) -> ActiveController:
        """The active controller, where this node is it."""

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The advertised endpoints of all own listeners, with the ports really bound."""

    def now_ms(self) -> int:
        """The clock of all timers: milliseconds that never go back, from no particular moment."""

    async def raft_request(self, request: Request) -> Message | None:
        """Let the core answer a raft request; its own answer comes back, errors included.

        None if what the answer was to carry is gone meanwhile.
        """

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

    def committed_size(self, offset: int, max_bytes: int) -> int:
        """How many bytes `read_committed` would return; 0 for an offset that is not there."""

    async def wait_high_watermark(self, above: int, timeout_ms: int) -> int:
        """The high watermark, as soon as it is greater than `above` or the time is over."""

    async def upgrade_kraft_version(self, version: int, *, validate_only: bool) -> None:
        """Raise kraft.version as the leader, and wait until that is committed.

        With `validate_only` nothing is written. Raises: ApiError NOT_CONTROLLER, or as the core
        refuses (R-UPG-1).
        """


Handler = Callable[[Request, Context], Awaitable[Message | None]]
"""Answers one request. None means that the connection is to be closed without an answer."""
