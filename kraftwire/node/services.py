"""The node as its handlers and its controller see it: `context.Context`, put together.

Owns the way to the leader for what only the leader can answer, and the knowledge of which peers
are of another make.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio

from kraftwire import messages
from kraftwire.errors import ApiError
from kraftwire.limits import FORWARDS_AT_ONCE_MAX
from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.node.config import NodeConfig
from kraftwire.node.context import Request
from kraftwire.node.controller import Controller
from kraftwire.node.driver import Driver
from kraftwire.node.handlers.versions import SUPPORTED_FEATURES
from kraftwire.node.image import MetadataImage
from kraftwire.node.link import Link, LinkDown
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.raft.core import RaftCore
from kraftwire.raft.events import ResignRequested
from kraftwire.raft.voters import Endpoint, ReplicaKey, VoterSet
from kraftwire.wire.message import Message

__all__ = ["Forwarder", "NodeContext", "View", "replica_of"]

Answer = Callable[[Request], Awaitable[Message | None]]


class View:
    """The Raft core, and what the node knows of its peers besides."""

    def __init__(self, core: RaftCore) -> None:
        self._core = core
        self._software: dict[int, str] = {}

    def note_software(self, replica_id: int, software: str) -> None:
        """A replica's connection named its software."""
        if replica_id >= 0 and software:
            self._software[replica_id] = software

    def note_features(self, replica_id: int, features: frozenset[str]) -> None:
        """A connection to a replica told its features: Kafka has others than we have.

        What the replica said of itself counts more; a node that only answers never does.
        """
        make = SOFTWARE_NAME if features == SUPPORTED_FEATURES.keys() else "unknown"
        self._software.setdefault(replica_id, make)

    @property
    def foreign_voters(self) -> frozenset[int]:
        """The voters whose requests named another ClientSoftwareName than ours."""
        software = self._software
        return frozenset(
            voter.key.id
            for voter in self._core.voters
            if software.get(voter.key.id, SOFTWARE_NAME) != SOFTWARE_NAME
        )

    @property
    def role(self) -> str:
        """Name of the role."""
        return self._core.role

    @property
    def epoch(self) -> int:
        """The leader epoch."""
        return self._core.epoch

    @property
    def leader_id(self) -> int:
        """Who leads."""
        return self._core.leader_id

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """Where the leader's first controller listener is."""
        return self._core.leader_endpoint

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""
        return self._core.high_watermark

    @property
    def start_offset(self) -> int:
        """The log start offset."""
        return self._core.start_offset

    @property
    def end_offset(self) -> int:
        """The log end offset."""
        return self._core.end_offset

    @property
    def epoch_start_offset(self) -> int:
        """Where a leader's epoch begins."""
        return self._core.epoch_start_offset

    @property
    def voters(self) -> VoterSet:
        """The voters in force."""
        return self._core.voters

    @property
    def is_voter(self) -> bool:
        """Whether this node is one of them."""
        return self._core.is_voter

    @property
    def kraft_version(self) -> int:
        """The finalized kraft.version."""
        return self._core.kraft_version

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, None while it is unknown."""
        return self._core.cluster_id


def replica_of(message: Message) -> int:
    """The replica that sends a raft request of its own accord, -1 if it is none."""
    match message:
        case FetchRequest():
            state = message.replica_state
            tagged = state.replica_id if state is not None else -1
            return tagged if tagged >= 0 else message.replica_id
        case VoteRequest() if message.topics and message.topics[0].partitions:
            return message.topics[0].partitions[0].replica_id
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest() if (
            message.topics and message.topics[0].partitions
        ):
            return message.topics[0].partitions[0].leader_id
        case UpdateRaftVoterRequest():
            return message.voter_id
    return -1


class Forwarder:
    """Sends requests to the leader's controller endpoint, a bounded number at a time."""

    def __init__(self, make_link: Callable[[], Link], timeout_ms: int) -> None:
        self._make_link = make_link
        self._timeout = timeout_ms / 1000
        self._idle: list[Link] = []
        self._slots = trio.CapacityLimiter(FORWARDS_AT_ONCE_MAX)

    async def send(self, endpoint: Endpoint, message: Message, version: int | None) -> Message:
        """The answer of the node at an endpoint.

        Raises: ApiError NOT_CONTROLLER if it cannot be reached, REQUEST_TIMED_OUT,
        UNSUPPORTED_VERSION.
        """
        with trio.move_on_after(self._timeout):
            async with self._slots:
                link = self._idle.pop() if self._idle else self._make_link()
                try:
                    link.retarget(endpoint.host, endpoint.port)
                    return await link.exchange(message, version=version)
                except LinkDown as error:
                    raise ApiError(ErrorCode.NOT_CONTROLLER, f"no leader: {error}") from error
                finally:
                    self._idle.append(link)
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "the leader did not answer in time")

    def close(self) -> None:
        """Give all connections up."""
        for link in self._idle:
            link.close()


class NodeContext:
    """What `context.Context` promises. Order: `answer` and `controller` are set by `app`."""

    def __init__(
        self,
        config: NodeConfig,
        key: ReplicaKey,
        core: RaftCore,
        driver: Driver,
        forwarder: Forwarder,
    ) -> None:
        self.config = config
        self.key = key
        self.raft = View(core)
        self.image = MetadataImage()
        self.endpoints: tuple[Endpoint, ...] = config.advertised
        self.answer: Answer
        self.controller: Controller
        self._driver = driver
        self._forwarder = forwarder

    def now_ms(self) -> int:
        """The clock of all timers: milliseconds that never go back, from no particular moment."""
        return self._driver.now_ms()

    async def raft_request(self, request: Request) -> Message:
        """Let the core answer a raft request."""
        return await self._driver.request(
            request.message,
            request.version,
            listener=request.listener,
            software=request.software,
        )

    async def forward(self, message: Message, version: int | None = None) -> Message:
        """Let the quorum leader answer, wherever it is. Raises: ApiError."""
        if self.raft.leader_id == self.key.id:
            return await self._answer_here(message, version)
        endpoint = self.raft.leader_endpoint
        if endpoint is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "no leader is known")
        return await self._forwarder.send(endpoint, message, version)

    def read_committed(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches below the high watermark."""
        return self._driver.read_committed(offset, max_bytes)

    async def append(
        self, values: Sequence[bytes], *, epoch: int, expected_end_offset: int | None = None
    ) -> int:
        """Append records as the leader of `epoch`; returns the last one's offset."""
        return await self._driver.append(
            values, epoch=epoch, expected_end_offset=expected_end_offset
        )

    async def committed(self, offset: int, *, epoch: int) -> None:
        """Wait until the record at `offset`, appended in `epoch`, is committed."""
        if self.raft.epoch != epoch or self.raft.leader_id != self.key.id:
            raise ApiError(ErrorCode.NOT_CONTROLLER, f"this node does not lead epoch {epoch}")
        await self._driver.waiters.committed(offset)

    async def wait_high_watermark(self, above: int, timeout_ms: int) -> int:
        """The high watermark, as soon as it is greater than `above` or the time is over."""
        return await self._driver.waiters.above(above, timeout_ms)

    def resign(self, epoch: int) -> None:
        """Give up the leadership of this epoch."""
        self._driver.submit(ResignRequested(epoch))

    async def _answer_here(self, message: Message, version: int | None) -> Message:
        if version is None:
            version = messages.API_VERSIONS[message.API_KEY][1]
        request = Request(
            message.API_KEY,
            version,
            message,
            listener=self.config.listener_name,
            software=SOFTWARE_NAME,
            from_controller_listener=True,
            from_client_listener=False,
        )
        reply = await self.answer(request)
        if reply is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the request was not answered")
        return reply
