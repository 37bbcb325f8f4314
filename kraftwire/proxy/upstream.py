"""The cluster behind a proxy: connecting to its nodes, and which nodes there are at the start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from kraftwire.errors import ApiError, SecurityError, check
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.node.listener import probe_peer
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.endpoint import ENDPOINT_CONTROLLER, Address, address_text
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.proxy.addresses import BROKER, CONTROLLER
from kraftwire.transport.client_connection import ClientConnection, opened
from kraftwire.transport.client_security import ClientSecurity
from kraftwire.transport.streams import Stream
from kraftwire.wire.message import Message

T = TypeVar("T")

TIMEOUT_S = 10.0
_CLIENT_ID = "kraftwire-proxy"


class Upstream:
    """Connects to the nodes of a cluster, with TLS and a login if the settings say so."""

    def __init__(self, addresses: Sequence[Address], security: ClientSecurity | None) -> None:
        check(bool(addresses), "a proxy has something behind it")
        self._addresses = tuple(addresses)
        self._security = security
        self.role = BROKER

    @property
    def has_login(self) -> bool:
        """Whether the proxy itself logs in."""
        return self._security is not None and self._security.login is not None

    async def connect(self, address: Address | None) -> tuple[trio.SocketStream, Stream]:
        """Connect to a node, to the first one given that answers without an address.

        Returns the socket, and the stream to use. Raises: ApiError, SecurityError; OSError.
        """
        return await (self._first(self._connect) if address is None else self._connect(address))

    async def nodes(self) -> Message | None:
        """Return what the cluster answers about its nodes; None if it wants a login first.

        Raises: ApiError, SecurityError, WireError if no address given answers in time.
        """
        return await self._first(self._nodes)

    async def _first(self, attempt: Callable[[Address], Awaitable[T]]) -> T:
        """Return what the first address given that answers leads to. Raises: as the last one."""
        for each in self._addresses[:-1]:
            try:
                return await attempt(each)
            except ApiError:
                continue
        return await attempt(self._addresses[-1])

    async def _connect(self, address: Address) -> tuple[trio.SocketStream, Stream]:
        with trio.move_on_after(TIMEOUT_S):
            stream = await opened(address)
            assert isinstance(stream, trio.SocketStream)
            probe_peer(stream.socket)
            if self._security is None:
                return stream, stream
            from kraftwire.transport.secured_stream import secure

            return stream, await secure(self._security, stream, *address, client_id=_CLIENT_ID)
        text = f"{address_text(address)}: no connection in {TIMEOUT_S:.0f} s"
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, text)

    async def _nodes(self, address: Address) -> Message | None:
        connection = await ClientConnection.connect(
            address, client_id=_CLIENT_ID, timeout_s=TIMEOUT_S, security=self._security,
            explains=True,
        )  # fmt: skip
        try:
            offered = {each.api_key for each in connection.api_versions.api_keys}
            request: Message = MetadataRequest(topics=[])
            if ApiKey.METADATA not in offered:
                self.role = CONTROLLER
                request = DescribeClusterRequest(endpoint_type=ENDPOINT_CONTROLLER)
            return await connection.request(request, timeout_s=TIMEOUT_S)
        except (ApiError, SecurityError) as error:
            is_timeout = isinstance(error, ApiError) and error.code != ErrorCode.NETWORK_EXCEPTION
            if self.has_login or is_timeout:
                raise
            # A listener with logins answers ApiVersions, and closes after anything else.
            return None
        finally:
            connection.close()
