"""Blocking admin calls: each runs its own trio event loop.

Every call discovers the cluster again, so there is nothing to close, and a `fork`, a thread or an
idle hour between two calls does no harm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Self, TypeVar

import trio

from kraftwire.client.admin import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S, AsyncAdmin
from kraftwire.client.results import ClusterInfo, FeatureInfo, LogInfo, QuorumInfo, TopicInfo
from kraftwire.client.security import Given, client_security
from kraftwire.protocol.endpoint import Address, Endpoint
from kraftwire.transport.client_connection import ClientConnection
from kraftwire.wire.message import Message

_Result = TypeVar("_Result")


class Admin:
    """A client of one cluster for programs without an event loop.

    Parameters, results and errors are those of `AsyncAdmin`. Not for use inside trio.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: str | Iterable[str] | None = None,
        bootstrap_controllers: str | Iterable[str] | None = None,
        client_id: str = "kraftwire-admin",
        timeout_s: float = 60.0,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        retry_backoff_s: float = 0.1,
        retry_backoff_max_s: float = 1.0,
        on_retry: Callable[[str], None] | None = None,
        security: Given = None,
    ) -> None:
        # Read once: each call makes a client of its own.
        secured = client_security(security, to_controllers=bootstrap_servers is None)
        servers = _listed(bootstrap_servers)
        controllers = _listed(bootstrap_controllers)

        def connect() -> AsyncAdmin:
            return AsyncAdmin(
                bootstrap_servers=servers,
                bootstrap_controllers=controllers,
                client_id=client_id,
                timeout_s=timeout_s,
                connect_timeout_s=connect_timeout_s,
                request_timeout_s=request_timeout_s,
                retry_backoff_s=retry_backoff_s,
                retry_backoff_max_s=retry_backoff_max_s,
                on_retry=on_retry,
                security=secured,
            )

        connect()  # report invalid addresses here, not at the first call
        self._connect = connect

    def describe_quorum(self) -> QuorumInfo:
        """As `AsyncAdmin.describe_quorum`."""
        return self._run(lambda admin: admin.describe_quorum())

    def describe_log(self, quorum: QuorumInfo) -> LogInfo:
        """As `AsyncAdmin.describe_log`."""
        return self._run(lambda admin: admin.describe_log(quorum))

    def describe_cluster(self) -> ClusterInfo:
        """As `AsyncAdmin.describe_cluster`."""
        return self._run(lambda admin: admin.describe_cluster())

    def describe_features(self) -> FeatureInfo:
        """As `AsyncAdmin.describe_features`."""
        return self._run(lambda admin: admin.describe_features())

    def list_topics(
        self, names: Iterable[str] | None = None, *, include_internal: bool = False
    ) -> list[TopicInfo]:
        """As `AsyncAdmin.list_topics`."""
        return self._run(lambda admin: admin.list_topics(names, include_internal=include_internal))

    def add_raft_voter(
        self,
        voter_id: int,
        directory_id: str,
        endpoints: Iterable[Endpoint],
        *,
        cluster_id: str | None = None,
        ack_when_committed: bool = True,
    ) -> None:
        """As `AsyncAdmin.add_raft_voter`."""
        self._run(
            lambda admin: admin.add_raft_voter(
                voter_id,
                directory_id,
                endpoints,
                cluster_id=cluster_id,
                ack_when_committed=ack_when_committed,
            )
        )

    def remove_raft_voter(
        self, voter_id: int, directory_id: str, *, cluster_id: str | None = None
    ) -> None:
        """As `AsyncAdmin.remove_raft_voter`."""
        self._run(
            lambda admin: admin.remove_raft_voter(voter_id, directory_id, cluster_id=cluster_id)
        )

    def unregister_controller(self, controller_id: int) -> None:
        """As `AsyncAdmin.unregister_controller`."""
        self._run(lambda admin: admin.unregister_controller(controller_id))

    def update_raft_voter(
        self,
        voter_id: int,
        directory_id: str,
        endpoints: Iterable[Endpoint],
        *,
        kraft_versions: tuple[int, int] = (0, 1),
        cluster_id: str | None = None,
    ) -> None:
        """As `AsyncAdmin.update_raft_voter`."""
        self._run(
            lambda admin: admin.update_raft_voter(
                voter_id,
                directory_id,
                endpoints,
                kraft_versions=kraft_versions,
                cluster_id=cluster_id,
            )
        )

    def update_features(self, levels: Mapping[str, int], *, validate_only: bool = False) -> None:
        """As `AsyncAdmin.update_features`."""
        self._run(lambda admin: admin.update_features(levels, validate_only=validate_only))

    def request(self, message: Message, node_id: int | None = None) -> Message:
        """As `AsyncAdmin.request`."""
        return self._run(lambda admin: admin.request(message, node_id))

    def _run(self, call: Callable[[AsyncAdmin], Awaitable[_Result]]) -> _Result:
        async def run() -> _Result:
            async with self._connect() as admin:
                return await call(admin)

        return _finish(run)


class Connection:
    """A connection to one node for programs without an event loop.

    Each call runs an event loop of its own; the socket stays open between them. Parameters, order
    and errors are those of `ClientConnection`.
    """

    def __init__(
        self, address: Address, *, client_id: str, timeout_s: float, security: Given = None
    ) -> None:
        secured = client_security(security)
        self._timeout_s = timeout_s
        self._connection = _finish(
            lambda: ClientConnection.connect(
                address,
                client_id=client_id,
                timeout_s=timeout_s,
                security=secured,
                explains=True,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, message: Message) -> Message:
        """Send a request and wait for its answer; error codes in it are left to the caller."""
        return _finish(lambda: self._connection.request(message, timeout_s=self._timeout_s))

    def close(self) -> None:
        """Close the connection."""

        async def close() -> None:
            self._connection.close()

        _finish(close)


def _finish(call: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run a call to its end in an event loop of its own."""
    try:
        return trio.run(call)
    except BaseExceptionGroup as group:
        # trio wraps Ctrl-C during a connection attempt in an exception group.
        if group.subgroup(KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def _listed(texts: str | Iterable[str] | None) -> str | list[str] | None:
    return texts if texts is None or isinstance(texts, str) else list(texts)
