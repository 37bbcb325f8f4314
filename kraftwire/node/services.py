"""Implements the interfaces of `context` on top of the driver, and forwards requests to the leader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from kraftwire import messages
from kraftwire.controller.image import MetadataImage
from kraftwire.errors import ApiError
from kraftwire.node import handlers
from kraftwire.node.authorization import Authorization
from kraftwire.node.config import NodeConfig
from kraftwire.node.context import Middleware, Quorum, Request
from kraftwire.node.controller import Controller
from kraftwire.node.driver import Driver
from kraftwire.node.link import Link, LinkDown
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.raft.events import LeadershipForbidden, ResignRequested
from kraftwire.raft.view import RaftView
from kraftwire.raft.voters import ReplicaKey
from kraftwire.wire.message import Message

# Requests of clients that are forwarded to the quorum's leader at a time; each has a connection.
FORWARDS_AT_ONCE_MAX = 16


class Forwarder:
    """Sends requests to the leader's controller endpoint, a bounded number at a time."""

    def __init__(self, make_link: Callable[[], Link], timeout_ms: int) -> None:
        self._make_link = make_link
        self._timeout = timeout_ms / 1000
        self._idle: list[Link] = []
        self._slots = trio.CapacityLimiter(FORWARDS_AT_ONCE_MAX)

    async def send(self, endpoint: Endpoint, message: Message, version: int | None) -> Message:
        """Send a request to an endpoint and return the answer.

        Raises: ApiError NOT_CONTROLLER if it cannot be reached, REQUEST_TIMED_OUT,
        UNSUPPORTED_VERSION.
        """
        with trio.move_on_after(self._timeout):
            async with self._slots:
                link = self._idle.pop() if self._idle else self._make_link()
                try:
                    link.retarget(endpoint.host, endpoint.port)
                    return await link.exchange(message, version_max=version)
                except LinkDown as error:
                    raise ApiError(ErrorCode.NOT_CONTROLLER, f"no leader: {error}") from error
                finally:
                    self._idle.append(link)
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "the leader did not answer in time")

    def close(self) -> None:
        """Close all connections."""
        for link in self._idle:
            link.close()


class DriverQuorum:
    """Implements `context.Quorum` on top of the driver."""

    def __init__(self, key: ReplicaKey, raft: RaftView, driver: Driver) -> None:
        self.key = key
        self.raft = raft
        self._driver = driver

    def now_ms(self) -> int:
        return self._driver.now_ms()

    def wall_ms(self) -> int:
        return self._driver.wall_ms()

    async def append(
        self, values: Sequence[bytes], *, epoch: int, expected_end_offset: int | None = None
    ) -> int:
        return await self._driver.append(
            values, epoch=epoch, expected_end_offset=expected_end_offset
        )

    async def committed(self, offset: int, *, epoch: int) -> None:
        if self.raft.epoch != epoch or self.raft.role != "leader":
            raise ApiError(ErrorCode.NOT_CONTROLLER, f"this node does not lead epoch {epoch}")
        await self._driver.waiters.committed(offset)

    def resign(self, epoch: int) -> None:
        self._driver.submit(ResignRequested(epoch))

    def forbid_leadership(self, reason: str) -> None:
        self._driver.submit(LeadershipForbidden(reason))


class NodeContext:
    """Implements `context.Context`, and dispatches requests to their handlers."""

    def __init__(
        self,
        config: NodeConfig,
        endpoints: tuple[Endpoint, ...],
        quorum: Quorum,
        controller: Controller,
        *,
        driver: Driver,
        forwarder: Forwarder,
        authorization: Authorization | None = None,
        middleware: Middleware | None = None,
    ) -> None:
        """`middleware` stands before the answers to all requests; for tests."""
        self.config = config
        self._middleware = middleware
        self._authorization = authorization
        self.key = quorum.key
        self.raft = quorum.raft
        self.endpoints = endpoints
        self.controller = controller
        self._driver = driver
        self._forwarder = forwarder

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def now_ms(self) -> int:
        return self._driver.now_ms()

    async def answer(self, request: Request) -> Message | None:
        if self._middleware is None:
            return await self._handled(request)
        return await self._middleware(request, self._handled)

    async def _handled(self, request: Request) -> Message | None:
        handler = handlers.route(request)
        if handler is None:
            return None
        if self._authorization is None or request.is_own:
            return await handler(request, self)
        return await self._authorization.answer(request, self, handler)

    def close(self) -> None:
        """Close the connections to leaders."""
        self._forwarder.close()

    async def raft_request(self, request: Request) -> Message | None:
        return await self._driver.request(request)

    async def forward(self, message: Message, version: int | None = None) -> Message:
        if self.raft.leader_id == self.key.id:
            return await self._answer_here(message, version)
        endpoint = self.raft.leader_endpoint
        if endpoint is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "no leader is known")
        return await self._forwarder.send(endpoint, message, version)

    def read_committed(self, offset: int, max_bytes: int) -> bytes:
        return self._driver.read_committed(offset, max_bytes)

    def committed_size(self, offset: int, max_bytes: int) -> int:
        return self._driver.committed_size(offset, max_bytes)

    async def wait_high_watermark(self, above: int, timeout_ms: int) -> int:
        return await self._driver.waiters.above(above, timeout_ms)

    async def upgrade_kraft_version(self, version: int, *, validate_only: bool) -> None:
        epoch = self.raft.epoch
        await self._driver.upgrade(version, epoch=epoch, validate_only=validate_only)

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
            is_own=True,
        )
        reply = await self.answer(request)
        if reply is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the request was not answered")
        return reply
