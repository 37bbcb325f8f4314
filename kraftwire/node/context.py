"""The interfaces between the parts of a node: its handlers, its controller, the quorum.

`services` implements them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

from kraftwire.controller.batches import DecideStep
from kraftwire.controller.image import MetadataImage
from kraftwire.errors import ApiError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.update_features_request import FeatureUpdateKey
from kraftwire.node.config import NodeConfig
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.view import RaftView
from kraftwire.raft.voters import ReplicaKey
from kraftwire.security.principal import ANONYMOUS, Principal
from kraftwire.wire.message import Message


async def _admit_at_once(_: int) -> None:
    """Admit the answer of a request that has no connection: there is nothing to wait for."""
    await trio.lowlevel.checkpoint()


@dataclass(slots=True)
class Request:
    """One request as received.

    `listener` is the listener's name in upper case; `software` the ClientSoftwareName of the
    connection's ApiVersions request, empty without one. A request from an Envelope or from the node
    itself has the values of the outer one, but an Envelope names its own `principal` and `host`.
    `host` is the peer's address as ACLs have it. `is_own` marks requests of the node itself, which
    are always allowed; `is_forwarded` those from an Envelope. Await `admit` before reading that
    many bytes for the answer.
    """

    api_key: int
    version: int
    message: Message
    client_id: str | None = None
    listener: str = ""
    software: str = ""
    from_controller_listener: bool = False
    from_client_listener: bool = True
    from_read_only_listener: bool = False
    admit: Callable[[int], Awaitable[None]] = _admit_at_once
    principal: Principal = ANONYMOUS
    host: str = ""
    is_own: bool = False
    is_forwarded: bool = False


Answer = Callable[[Request], Awaitable[Message | None]]
"""Answers a request; None closes its connection."""

Middleware = Callable[[Request, Answer], Awaitable[Message | None]]
"""Answers a request in place of the node, whose own `Answer` it may call."""


class ActiveController(Protocol):
    """The work of the quorum's leader besides replication.

    Each call waits until its records are committed. Raises: ApiError NOT_CONTROLLER (41) if this
    node is not the active controller, or ceases to be while the call waits.
    """

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller."""

    async def register_controller(self, request: ControllerRegistrationRequest) -> Message:
        """Register a controller."""

    async def register_broker(self, request: BrokerRegistrationRequest, version: int) -> Message:
        """Register a broker; `version` is the request's."""

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> Message:
        """Handle a broker's heartbeat."""

    async def submit(
        self,
        decide: DecideStep,
        *conflict_keys: Hashable,
        timeout_ms: int | None = None,
        records_max: int | None = None,
    ) -> Message:
        """Change the cluster, as `decide` does once its turn comes; returns the answer.

        `decide` gets the cluster and the offset of the next record. Changes with a common conflict
        key, or without any, are decided one after the other. Raises: ApiError, those of `decide`
        too; REQUEST_TIMED_OUT if its turn does not come in time, POLICY_VIOLATION for more than
        `records_max` records.
        """

    async def update_features(
        self, updates: Sequence[FeatureUpdateKey], check: Callable[[MetadataImage], None]
    ) -> None:
        """Finalize levels of features other than kraft.version, unless `check` raises an ApiError
        when their turn comes."""


class Quorum(Protocol):
    """The quorum as seen by a state machine that writes while its node leads."""

    @property
    def key(self) -> ReplicaKey:
        """This node's id and directory id."""

    @property
    def raft(self) -> RaftView:
        """A read-only view of the Raft core."""

    def now_ms(self) -> int:
        """The clock of all timers: milliseconds that never go back, from no particular moment."""

    def wall_ms(self) -> int:
        """The time of day: milliseconds since the epoch, which may jump at any time."""

    async def append(
        self, values: Sequence[bytes], *, epoch: int, expected_end_offset: int | None = None
    ) -> int:
        """Append records as the leader of `epoch`; returns the last one's offset.

        Raises: ApiError NOT_CONTROLLER if this node does not lead that epoch;
        OPERATION_NOT_ATTEMPTED if the end offset differs; MESSAGE_TOO_LARGE or
        THROTTLING_QUOTA_EXCEEDED if the core refuses.
        """

    async def committed(self, offset: int, *, epoch: int) -> None:
        """Wait until the record at `offset`, appended in `epoch`, is committed.

        Raises: ApiError NOT_CONTROLLER if the leadership ends first.
        """

    def resign(self, epoch: int) -> None:
        """Give up the leadership of this epoch."""

    def forbid_leadership(self, reason: str) -> None:
        """Keep this node from leading until it is restarted."""


class Context(Protocol):
    """The node as seen by handlers and by its registration."""

    @property
    def config(self) -> NodeConfig:
        """The node's configuration."""

    @property
    def key(self) -> ReplicaKey:
        """This node's id and directory id."""

    @property
    def raft(self) -> RaftView:
        """A read-only view of the Raft core."""

    @property
    def image(self) -> MetadataImage:
        """The state of the committed records."""

    @property
    def controller(self) -> ActiveController:
        """The controller; its calls fail unless this node is the active one."""

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The advertised endpoints of this node's listeners, with the actual ports."""

    def now_ms(self) -> int:
        """The clock of all timers: milliseconds that never go back, from no particular moment."""

    async def answer(self, request: Request) -> Message | None:
        """Answer a request by the handler of its API, if its principal is authorized.

        Returns None for an API that its listener does not offer.
        """

    async def raft_request(self, request: Request) -> Message | None:
        """Pass a raft request to the core; returns its response, errors included.

        Returns None if the records for the response are no longer there.
        """

    async def forward(self, message: Message, version: int | None = None) -> Message:
        """Return the answer of the quorum leader: from its controller endpoint, or from this node.

        The version is the highest one that both sides speak, at most `version`.
        Raises: ApiError NOT_CONTROLLER (41) if no leader is known or it cannot be reached,
        REQUEST_TIMED_OUT (7), UNSUPPORTED_VERSION (35).
        """

    def read_committed(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches below the high watermark, starting with the one that contains
        `offset`.

        At least one batch of any size if there is one; nothing at the high watermark.
        """

    def committed_size(self, offset: int, max_bytes: int) -> int:
        """Return how many bytes `read_committed` would return; 0 for an offset out of range."""

    async def wait_high_watermark(self, above: int, timeout_ms: int) -> int:
        """Return the high watermark once it is greater than `above`, or at the time-out."""

    async def upgrade_kraft_version(self, version: int, *, validate_only: bool) -> None:
        """Raise kraft.version as the leader, and wait until that is committed.

        With `validate_only` nothing is written. Raises: ApiError NOT_CONTROLLER, or the core's
        refusal (R-UPG-1).
        """


def not_active() -> ApiError:
    """Return the error of a request for the active controller that reached another node."""
    return ApiError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")


def has_caught_up(context: Context) -> bool:
    """Return whether the image holds all that a leader has reported as committed."""
    high_watermark = context.raft.high_watermark
    return high_watermark > 0 and context.image.next_offset >= high_watermark


Handler = Callable[[Request, Context], Awaitable[Message | None]]
"""Answers one request. None closes the connection without an answer."""
