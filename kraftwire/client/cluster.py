"""The nodes of a cluster: discovery through bootstrap addresses, one connection to each.

Discovery is that of Kafka's admin client: Metadata through brokers, DescribeCluster with
endpoint type 2 through controllers, then connections to the advertised addresses. A node that is
not the one that was found at its address sends the client back to the bootstrap addresses
(KIP-1242).
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from kraftwire.client.results import ClusterInfo, NodeInfo
from kraftwire.errors import ApiError, SecurityError, UsageError, WireError
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_cluster_response import DescribeClusterResponse
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.protocol.endpoint import ENDPOINT_CONTROLLER, Address, address_text
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.protocol.session import Aim
from kraftwire.transport.client_connection import ClientConnection, UnknownHostError
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from kraftwire.transport.client_security import ClientSecurity

# Once one address has shown that the settings are wrong, how long the others are tried.
_OTHERS_S = 1.5


# The known nodes are those of another cluster: the client is to bootstrap again.
_REBOOTSTRAP = ErrorCode.REBOOTSTRAP_REQUIRED

# Names that have had an address: whoever watches for long outlasts a moment without.
_known_hosts = set[str]()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The settings of connections. Units: seconds."""

    bootstrap: tuple[Address, ...]
    is_controllers: bool
    client_id: str
    connect_timeout_s: float
    request_timeout_s: float
    security: ClientSecurity | None = None


class ClusterConnections:
    """The known nodes of a cluster. Order: close it with `close`."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self._info: ClusterInfo | None = None
        self._is_outdated = False
        self._connections: dict[Address, ClientConnection] = {}
        self._next_seed = 0

    async def info(self) -> ClusterInfo:
        """Return the nodes, discovering them if they are unknown or were forgotten.

        Raises: as `refresh`.
        """
        if self._info is None or self._is_outdated:
            return await self.refresh()
        return self._info

    def forget(self) -> None:
        """Discard the nodes: the next call discovers them again."""
        self._is_outdated = True

    async def refresh(self) -> ClusterInfo:
        """Discover the nodes from the first address that answers; the next call starts with
        another.

        Raises: if no address answers, the error of one of them: preferably a SecurityError, as
        trying again does not help against it, else a temporary one; UsageError if none of the
        given addresses has a host that is known, as Kafka's client; ApiError at once if a node is
        of the wrong kind, broker or controller.
        """
        seeds = list(self.known_ids())
        errors: list[ApiError | WireError] = []
        refused: SecurityError | None = None
        with trio.CancelScope() as others:
            for step in range(len(seeds)):
                seed = seeds[(self._next_seed + step) % len(seeds)]
                try:
                    self._info = await self._discover(seed)
                except SecurityError as error:
                    refused = refused or error
                    others.deadline = min(others.deadline, trio.current_time() + _OTHERS_S)
                    continue
                except (ApiError, WireError) as error:
                    if _is_wrong_kind(error):
                        raise
                    if isinstance(error, ApiError) and error.code == _REBOOTSTRAP:
                        self._rebootstrap()
                    errors.append(error)
                    continue
                self._next_seed += step + 1
                self._is_outdated = False
                return self._info
        if refused is not None:
            raise refused
        unknown = [
            error
            for error in errors
            if isinstance(error, UnknownHostError) and error.host not in _known_hosts
        ]
        if self._info is None and len(unknown) == len(errors):
            problems = ", ".join(error_detail(error) for error in unknown)
            raise UsageError(f"no host of the given addresses is known: {problems}")
        raise next((error for error in errors if is_temporary(error)), errors[0])

    async def request(
        self, node: NodeInfo, message: Message, timeout_s: float | None = None
    ) -> Message:
        """Send a request to a node and return its answer. Raises: as `ClientConnection`."""
        connection = await self._connected((node.host, node.port), self._aim(node))
        limit_s = self.settings.request_timeout_s if timeout_s is None else timeout_s
        return await connection.request(message, timeout_s=limit_s)

    async def connect(self, node: NodeInfo) -> None:
        """Connect to a node unless already connected. Raises: as `ClientConnection`."""
        await self._connected((node.host, node.port), self._aim(node))

    def _aim(self, node: NodeInfo) -> Aim | None:
        cluster_id = self._info.cluster_id if self._info is not None else ""
        return (cluster_id, node.id) if cluster_id and node.id >= 0 else None

    async def _connected(self, address: Address, aim: Aim | None = None) -> ClientConnection:
        connection = self._connections.get(address)
        if connection is None or connection.is_closed:
            try:
                connection = await ClientConnection.connect(
                    address,
                    client_id=self.settings.client_id,
                    timeout_s=self.settings.connect_timeout_s,
                    security=self.settings.security,
                    aim=aim,
                    open_stream=_open_stream,
                    explains=True,
                )
            except ApiError as error:
                if error.code == _REBOOTSTRAP:
                    self._rebootstrap()
                raise
            self._connections[address] = connection
        return connection

    def _rebootstrap(self) -> None:
        """Discard all but the bootstrap addresses."""
        self.close()
        self._info = None

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def known_ids(self) -> dict[Address, int | None]:
        """Return the ids of the nodes at all known addresses, None where it is not known."""
        ids: dict[Address, int | None] = dict.fromkeys(self.settings.bootstrap)
        for node in self._info.nodes if self._info else ():
            ids[node.host, node.port] = node.id
        return ids

    async def _discover(self, seed: Address) -> ClusterInfo:
        connection = await self._connected(seed)
        timeout_s = self.settings.request_timeout_s
        try:
            if not self.settings.is_controllers:
                metadata = await connection.request(MetadataRequest(topics=[]), timeout_s=timeout_s)
                assert isinstance(metadata, MetadataResponse)
                return _from_metadata(metadata, seed)
            message = DescribeClusterRequest(endpoint_type=ENDPOINT_CONTROLLER)
            described = await connection.request(message, timeout_s=timeout_s)
        except ApiError as error:
            if error.code != ErrorCode.UNSUPPORTED_VERSION:
                raise
            api = "DESCRIBE_CLUSTER" if self.settings.is_controllers else "METADATA"
            raise ApiError(error.code, f"The node does not support {api}") from error
        return _ensure_nodes(cluster_info(described), seed)


async def _open_stream(host: str, port: int) -> trio.SocketStream:
    """Connect, and remember a host that has an address. Raises: OSError, UnicodeError."""
    try:
        stream = await trio.open_tcp_stream(host, port)
    except OSError as error:
        if not isinstance(error, socket.gaierror):
            _known_hosts.add(host)
        raise
    _known_hosts.add(host)
    return stream


def cluster_info(response: Message) -> ClusterInfo:
    """Read the answer to DescribeCluster. Raises: ApiError if it is an error."""
    assert isinstance(response, DescribeClusterResponse)
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, response.error_message)
    nodes = [
        NodeInfo(node.broker_id, node.host, node.port, node.rack, node.is_fenced)
        for node in response.brokers
    ]
    return ClusterInfo(response.cluster_id, _id_or_none(response.controller_id), tuple(nodes))


def is_temporary(error: ApiError | WireError) -> bool:
    """Return whether the same request may succeed later."""
    # This includes local errors: no connection, no answer in time.
    return isinstance(error, ApiError) and _is_retriable(error.code)


def error_detail(error: ApiError) -> str:
    """Return an error's text without its number."""
    return str(error).removeprefix(f"error {error.code}: ")


def refusal(code: int, message: str | None) -> ApiError:
    """Return the error in an answer, with the node's message or a default one."""
    name = error_name(code)
    about = message or (ErrorCode(code).about if not name.startswith("UNKNOWN(") else "")
    return ApiError(code, f"{name}: {about}" if about else name)


def _is_retriable(code: int) -> bool:
    is_known = not error_name(code).startswith("UNKNOWN(")
    return is_known and (ErrorCode(code).is_retriable or code == _REBOOTSTRAP)


def _is_wrong_kind(error: ApiError | WireError) -> bool:
    wrong = (
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
    )
    return isinstance(error, ApiError) and error.code in wrong


def _from_metadata(response: MetadataResponse, seed: Address) -> ClusterInfo:
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, None)
    nodes = [NodeInfo(node.node_id, node.host, node.port, node.rack) for node in response.brokers]
    controller_id = _id_or_none(response.controller_id)
    return _ensure_nodes(ClusterInfo(response.cluster_id or "", controller_id, tuple(nodes)), seed)


def _ensure_nodes(info: ClusterInfo, seed: Address) -> ClusterInfo:
    if not info.nodes:
        text = f"{address_text(seed)} knows of no nodes yet"
        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, text)
    return info


def _id_or_none(node_id: int) -> int | None:
    return None if node_id < 0 else node_id
