"""Admin calls for programs that run trio.

Owns what is tried again: a connection that fails, a leader that moved, a node that does not know.
A node that answers "not leader" is believed about who leads; if it does not know either, or what
it says fails, the nodes are asked for again after a pause.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Self, TypeVar

import trio

from kraftwire import __version__
from kraftwire.client.addresses import parse_addresses
from kraftwire.client.cluster import (
    ENDPOINT_BROKER,
    Cluster,
    ClusterSettings,
    cluster_info,
    error_detail,
    is_temporary,
    refusal,
)
from kraftwire.client.quorum import (
    NotLeaderError,
    add_request,
    describe_request,
    quorum_info,
    remove_request,
)
from kraftwire.client.results import (
    ClusterInfo,
    FeatureInfo,
    NodeInfo,
    QuorumInfo,
    TopicInfo,
)
from kraftwire.client.topics import feature_info, topic_infos, topics_request
from kraftwire.errors import ApiError, UsageError
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_cluster_response import DescribeClusterResponse
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.metadata_response import MetadataResponse
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.raft.voters import Endpoint
from kraftwire.wire.message import Message

__all__ = ["CONNECT_TIMEOUT_S", "REQUEST_TIMEOUT_S", "AsyncAdmin"]

_Result = TypeVar("_Result")

# A node that is up answers the first request in milliseconds; one that is paused never does, and
# the others should be asked while there is time.
CONNECT_TIMEOUT_S = 4.0
# An answer takes milliseconds where nothing is wrong. A broker that waits for a leader that will
# not answer any more keeps its client waiting too, and another one may know better.
REQUEST_TIMEOUT_S = 5.0


class _AgainError(Exception):
    """This attempt failed with an error that may pass."""

    def __init__(self, error: ApiError) -> None:
        self.error = error


class AsyncAdmin:
    """A client of one cluster.

    Shape: exactly one of `bootstrap_servers` and `bootstrap_controllers`, comma-separated or
    several texts. `on_retry` hears what went wrong each time something is tried again.
    Units: seconds; `timeout_s` is for a whole call with all its attempts, `connect_timeout_s` for
    connecting and negotiating with one node, and `request_timeout_s` for one answer; a voter
    change is waited for as long as the call may take.
    Order: ``async with``, or `aclose` at the end.
    Raises: UsageError for addresses that are none. All calls raise ApiError, with
    REQUEST_TIMED_OUT if time runs out, and WireError if a node does not speak Kafka's protocol.
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
    ) -> None:
        if (bootstrap_servers is None) == (bootstrap_controllers is None):
            raise UsageError("expected one of bootstrap_servers and bootstrap_controllers")
        if bootstrap_servers is not None:
            bootstrap = parse_addresses(bootstrap_servers, "bootstrap_servers")
        else:
            bootstrap = parse_addresses(bootstrap_controllers or "", "bootstrap_controllers")
        self._timeout_s = timeout_s
        self._backoff_s = (retry_backoff_s, retry_backoff_max_s)
        self._on_retry = on_retry
        self._attempts = 0
        # The node that failed last: it is not asked again while there are others.
        self._suspect_id: int | None = None
        self._cluster = Cluster(
            ClusterSettings(
                bootstrap=bootstrap,
                is_controllers=bootstrap_servers is None,
                client_id=client_id,
                connect_timeout_s=min(connect_timeout_s, timeout_s / len(bootstrap)),
                request_timeout_s=request_timeout_s,
            )
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._cluster.aclose()

    async def describe_quorum(self) -> QuorumInfo:
        """The metadata quorum as its leader sees it; waits for a leader if there is none."""

        def read(response: Message) -> QuorumInfo:
            assert isinstance(response, DescribeQuorumResponse)
            return quorum_info(response)

        return await self._until_done(
            "describing the quorum", lambda: self._ask_leader(describe_request(), read)
        )

    async def describe_cluster(self) -> ClusterInfo:
        """The cluster's id and its nodes: brokers, fenced ones too, or controllers."""
        return await self._until_done("describing the cluster", self._describe_cluster)

    async def describe_features(self) -> FeatureInfo:
        """Levels of features in force, and those that the asked node supports."""

        def read(response: Message) -> FeatureInfo:
            assert isinstance(response, ApiVersionsResponse)
            return feature_info(response)

        message = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )
        return await self._until_done(
            "describing features", lambda: self._ask_any(message, read)
        )

    async def list_topics(
        self, names: Iterable[str] | None = None, *, include_internal: bool = False
    ) -> list[TopicInfo]:
        """Topics with their partitions, all of them by default, sorted by name.

        Shape: topics that are asked for by name are told even if they are internal.
        Raises: UsageError through controllers, which do not serve topics.
        """
        if self._cluster.settings.is_controllers:
            raise UsageError("topics are listed through brokers, not controllers")
        wanted = None if names is None else list(names)

        def read(response: Message) -> list[TopicInfo]:
            assert isinstance(response, MetadataResponse)
            return topic_infos(response, include_internal or wanted is not None)

        request = topics_request(wanted)
        return await self._until_done("listing topics", lambda: self._ask_any(request, read))

    async def add_raft_voter(
        self,
        voter_id: int,
        directory_id: str,
        endpoints: Iterable[Endpoint],
        *,
        cluster_id: str | None = None,
    ) -> None:
        """Make a controller, which has to run already, a voter.

        Shape: `cluster_id`, if given, must be the cluster's own.
        Raises: ApiError DUPLICATE_VOTER among others. If the connection breaks after the request
        was sent, the voter may or may not have been added; it is not sent again.
        """
        message = add_request(
            voter_id, directory_id, endpoints, cluster_id, round(self._timeout_s * 1000)
        )
        await self._change_voters("adding a voter", message)

    async def remove_raft_voter(
        self, voter_id: int, directory_id: str, *, cluster_id: str | None = None
    ) -> None:
        """Make a voter an observer.

        Raises: ApiError VOTER_NOT_FOUND among others. A broken connection leaves it open whether
        the voter was removed, as for `add_raft_voter`.
        """
        message = remove_request(voter_id, directory_id, cluster_id)
        await self._change_voters("removing a voter", message)

    async def request(self, message: Message, node_id: int | None = None) -> Message:
        """Send any request to a node, or to whichever answers; tried once per node.

        Shape: the answer is as it came, whatever error codes it holds.
        Raises: UsageError for a node id that the cluster does not have.
        """
        if node_id is None:
            try:
                return await self._ask_any(message, lambda response: response)
            except _AgainError as failed:
                raise failed.error from None
        node = (await self._cluster.info()).node(node_id)
        if node is None:
            raise UsageError(f"the cluster has no node {node_id}")
        return await self._cluster.request(node, message)

    async def _change_voters(self, what: str, message: Message) -> None:
        def read(response: Message) -> None:
            assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse)
            if response.error_code != ErrorCode.NONE:
                raise _voter_refusal(response.error_code, response.error_message)

        await self._until_done(what, lambda: self._ask_leader(message, read, is_repeatable=False))

    async def _describe_cluster(self) -> ClusterInfo:
        if self._cluster.settings.is_controllers:
            return await self._discovered(fresh=True)

        def read(response: Message) -> ClusterInfo:
            assert isinstance(response, DescribeClusterResponse)
            return cluster_info(response)

        message = DescribeClusterRequest(
            endpoint_type=ENDPOINT_BROKER, include_fenced_brokers=True
        )
        try:
            return await self._ask_any(message, read)
        except ApiError as error:
            if error.code != ErrorCode.UNSUPPORTED_VERSION:
                raise
        # Brokers older than 2.8 lack the API, and older than 4.0 its field; Metadata tells as much.
        return await self._discovered(fresh=True)

    async def _discovered(self, *, fresh: bool = False) -> ClusterInfo:
        try:
            return await (self._cluster.refresh() if fresh else self._cluster.info())
        except ApiError as error:
            raise _again_or_final(error) from None

    async def _ask_any(
        self, message: Message, read: Callable[[Message], _Result]
    ) -> _Result:
        """Ask the nodes in turn until one answers. Raises: _AgainError if none does."""
        failure: ApiError | None = None
        for node in (await self._discovered()).nodes:
            try:
                return read(await self._cluster.request(node, message))
            except ApiError as error:
                if not is_temporary(error):
                    raise
                failure = error
        assert failure is not None
        raise _AgainError(failure)

    async def _ask_leader(
        self,
        message: Message,
        read: Callable[[Message], _Result],
        *,
        is_repeatable: bool = True,
    ) -> _Result:
        """Ask the leader: of controllers the active one, of brokers any, which passes it on.

        Raises: _AgainError if the leader is not found or not reached; errors of a request that
        was sent and must not be repeated are final.
        """
        info = await self._discovered()
        node = self._first_choice(info)
        asked: set[int] = set()
        while True:
            asked.add(node.id)
            try:
                return await self._ask_once(node, message, read, is_repeatable)
            except NotLeaderError as told:
                hint = None if told.leader_id is None else info.node(told.leader_id)
                if hint is None or hint.id in asked:
                    raise _AgainError(told) from None
                node = hint

    def _first_choice(self, info: ClusterInfo) -> NodeInfo:
        """The active controller unless it failed the last time; otherwise each node in turn."""
        if self._cluster.settings.is_controllers and info.controller_id is not None:
            active = info.node(info.controller_id)
            if active is not None and active.id != self._suspect_id:
                return active
        others = [node for node in info.nodes if node.id != self._suspect_id] or info.nodes
        return others[self._attempts % len(others)]

    async def _ask_once(
        self,
        node: NodeInfo,
        message: Message,
        read: Callable[[Message], _Result],
        is_repeatable: bool,
    ) -> _Result:
        try:
            await self._cluster.connect(node)
        except ApiError as error:
            self._suspect_id = node.id
            raise _again_or_final(error) from None
        try:
            timeout_s = None if is_repeatable else self._timeout_s
            answer = read(await self._cluster.request(node, message, timeout_s))
        except NotLeaderError:
            raise
        except ApiError as error:
            self._suspect_id = node.id
            raise _again_or_final(error) if is_repeatable else error from None
        self._suspect_id = None
        return answer

    async def _until_done(
        self, what: str, attempt: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        """Make attempts, with growing pauses, until one succeeds, fails for good, or time is up."""
        last: ApiError | None = None
        pause_s, pause_max_s = self._backoff_s
        with trio.move_on_after(self._timeout_s):
            while True:
                try:
                    return await attempt()
                except _AgainError as failed:
                    last = failed.error
                self._attempts += 1
                self._cluster.forget()
                if self._on_retry is not None:
                    self._on_retry(error_detail(last))
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, pause_max_s)
        detail = f"{what} took more than {self._timeout_s:.3g} s"
        if last is not None:
            detail += f"; the last problem: {error_detail(last)}"
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, detail)


def _again_or_final(error: ApiError) -> _AgainError | ApiError:
    return _AgainError(error) if is_temporary(error) else error


def _voter_refusal(code: int, message: str | None) -> ApiError:
    error = refusal(code, message)
    if code in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        return NotLeaderError(error_detail(error), None)
    return error
