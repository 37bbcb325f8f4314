"""Admin calls for programs that run trio.

Each call sends a request and reads its response. `attempts` selects the node and repeats the
request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from typing import Self

from kraftwire import __version__
from kraftwire.client.addresses import parse_addresses
from kraftwire.client.attempts import Attempts, RetrySettings
from kraftwire.client.cluster import ClusterSettings, cluster_info
from kraftwire.client.requests import (
    add_request,
    check_controllers_changed,
    check_features_updated,
    describe_request,
    feature_info,
    features_request,
    log_info,
    log_request,
    quorum_info,
    remove_request,
    topic_infos,
    topics_request,
    update_request,
)
from kraftwire.client.results import ClusterInfo, FeatureInfo, LogInfo, QuorumInfo, TopicInfo
from kraftwire.client.security import Given, client_security
from kraftwire.errors import ApiError, UsageError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.unregister_controller_request import UnregisterControllerRequest
from kraftwire.protocol.endpoint import ENDPOINT_BROKER, Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.wire.message import Message

# A node that is up answers the first request in milliseconds; one that is paused never does, and
# there should be time left for the others.
CONNECT_TIMEOUT_S = 4.0
# An answer normally takes milliseconds. A broker that waits for a dead leader keeps its client
# waiting too, and another broker may know the new one.
REQUEST_TIMEOUT_S = 5.0


class AsyncAdmin:
    """A client of one cluster.

    Exactly one of `bootstrap_servers` and `bootstrap_controllers`, comma-separated or several
    texts. `on_retry` is called with the error before each retry. Units: seconds; `timeout_s` is for
    a whole call with all its attempts, `connect_timeout_s` for connecting and negotiating with one
    node, and `request_timeout_s` for one answer; a voter change is waited for as long as the call
    may take. `security` has Kafka's client properties, as a mapping or as the path of a file;
    without it connections are in clear. Order: ``async with``, or `aclose` at the end. Raises:
    UsageError for invalid addresses or properties. All calls raise ApiError, with
    REQUEST_TIMED_OUT if time runs out, SecurityError if a port, a certificate or a login does not
    pass, and WireError if a node does not speak Kafka's protocol.
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
        if (bootstrap_servers is None) == (bootstrap_controllers is None):
            raise UsageError("expected one of bootstrap_servers and bootstrap_controllers")
        if bootstrap_servers is not None:
            bootstrap = parse_addresses(bootstrap_servers, "bootstrap_servers")
        else:
            bootstrap = parse_addresses(bootstrap_controllers or "", "bootstrap_controllers")
        self._attempts = Attempts(
            ClusterSettings(
                bootstrap=bootstrap,
                is_controllers=bootstrap_servers is None,
                client_id=client_id,
                connect_timeout_s=min(connect_timeout_s, timeout_s / len(bootstrap)),
                request_timeout_s=request_timeout_s,
                security=client_security(security, to_controllers=bootstrap_servers is None),
            ),
            RetrySettings(
                timeout_s=timeout_s,
                backoff_s=retry_backoff_s,
                backoff_max_s=retry_backoff_max_s,
                on_retry=on_retry,
            ),
        )

    def unconnected(self) -> Self:
        """Return a client with the same parameters and without connections."""
        other = copy(self)
        other._attempts = self._attempts.unconnected()
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        self._attempts.close()

    async def describe_quorum(self) -> QuorumInfo:
        """The metadata quorum as its leader sees it; waits for a leader if there is none."""
        return await self._attempts.until_done(
            "describing the quorum",
            lambda: self._attempts.request_leader(describe_request(), quorum_info),
        )

    async def describe_log(self, quorum: QuorumInfo) -> LogInfo:
        """Return the leader's metadata log and its newest snapshot, with one request.

        Raises: UsageError through brokers, which do not serve the topic; ApiError if the node no
        longer leads that epoch, among others.
        """
        if not self._attempts.is_controllers:
            raise UsageError("the metadata log is served by controllers, not brokers")
        request = log_request(quorum.leader_epoch)
        return log_info(await self.request(request, quorum.leader_id))

    async def describe_cluster(self) -> ClusterInfo:
        """Return the cluster id and the nodes: brokers, including fenced ones, or controllers."""
        return await self._attempts.until_done("describing the cluster", self._describe_cluster)

    async def describe_features(self) -> FeatureInfo:
        """Return the finalized feature levels, and those that the node supports."""
        message = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )
        return await self._attempts.until_done(
            "describing features", lambda: self._attempts.request_any(message, feature_info)
        )

    async def list_topics(
        self, names: Iterable[str] | None = None, *, include_internal: bool = False
    ) -> list[TopicInfo]:
        """Return topics with their partitions, by default all of them, sorted by name.

        Topics given by name are included even if they are internal. Raises: UsageError through
        controllers, which do not serve topics.
        """
        if self._attempts.is_controllers:
            raise UsageError("topics are listed through brokers, not controllers")
        wanted = None if names is None else list(names)

        read = partial(topic_infos, include_internal=include_internal or wanted is not None)
        request = topics_request(wanted)
        return await self._attempts.until_done(
            "listing topics", lambda: self._attempts.request_any(request, read)
        )

    async def add_raft_voter(
        self,
        voter_id: int,
        directory_id: str,
        endpoints: Iterable[Endpoint],
        *,
        cluster_id: str | None = None,
        ack_when_committed: bool = True,
    ) -> None:
        """Make a controller a voter; it must be running and caught up.

        `cluster_id`, if given, must be the cluster's own. Without `ack_when_committed` the leader
        answers as soon as the new set is in its log, which requires AddRaftVoter v1. Raises:
        ApiError DUPLICATE_VOTER among others. If the connection breaks after the request was sent,
        the voter may or may not have been added; it is not sent again.
        """
        message = add_request(
            voter_id,
            directory_id,
            endpoints,
            cluster_id=cluster_id,
            timeout_ms=round(self._attempts.timeout_s * 1000),
            ack_when_committed=ack_when_committed,
        )
        await self._change_voters("adding a voter", message)

    async def remove_raft_voter(
        self, voter_id: int, directory_id: str, *, cluster_id: str | None = None
    ) -> None:
        """Make a voter an observer.

        Raises: ApiError VOTER_NOT_FOUND among others. If the connection breaks, the voter may or
        may not have been removed, as for `add_raft_voter`.
        """
        message = remove_request(voter_id, directory_id, cluster_id)
        await self._change_voters("removing a voter", message)

    async def unregister_controller(self, controller_id: int) -> None:
        """Remove the registration of a controller that is no voter and does not run (KIP-1312).

        It is sent again if the connection breaks, as Kafka's client does. Raises: ApiError
        CONTROLLER_ID_NOT_REGISTERED, or UNSUPPORTED_VERSION below metadata.version 33, or others.
        """
        message = UnregisterControllerRequest(controller_id=controller_id)
        await self._attempts.until_done(
            "unregistering a controller",
            lambda: self._attempts.request_leader(message, check_controllers_changed),
        )

    async def update_raft_voter(
        self,
        voter_id: int,
        directory_id: str,
        endpoints: Iterable[Endpoint],
        *,
        kraft_versions: tuple[int, int] = (0, 1),
        cluster_id: str | None = None,
    ) -> None:
        """Send the leader a voter's endpoints and the range of kraft.version that it supports.

        Voters do this by themselves. The answer does not wait for the commit. Raises: UsageError
        through brokers, which do not forward it; ApiError VOTER_NOT_FOUND among others. If the
        connection breaks, the outcome is unknown, as for `add_raft_voter`.
        """
        if not self._attempts.is_controllers:
            raise UsageError("voters are updated through controllers, not brokers")
        epoch = (await self.describe_quorum()).leader_epoch
        message = update_request(
            voter_id,
            directory_id,
            endpoints,
            kraft_versions=kraft_versions,
            leader_epoch=epoch,
            cluster_id=cluster_id,
        )
        await self._change_voters("updating a voter", message)

    async def update_features(
        self, levels: Mapping[str, int], *, validate_only: bool = False
    ) -> None:
        """Raise the levels of features such as kraft.version, as `kafka-features upgrade` does.

        Raises: ApiError INVALID_UPDATE_VERSION, or another code, with the controller's message.
        """
        message = features_request(
            levels, validate_only, timeout_ms=round(self._attempts.timeout_s * 1000)
        )
        await self._attempts.until_done(
            "updating features",
            lambda: self._attempts.request_leader(message, check_features_updated),
        )

    async def request(self, message: Message, node_id: int | None = None) -> Message:
        """Send any request to a node, or to any node that answers, with one attempt per node.

        The answer is returned as it is, with any error codes in it. Raises: UsageError for a node
        id that the cluster does not have.
        """
        return await self._attempts.until_done(
            "the request", lambda: self._attempts.request_once(message, node_id)
        )

    async def _change_voters(self, what: str, message: Message) -> None:
        await self._attempts.until_done(
            what,
            lambda: self._attempts.request_leader(
                message, check_controllers_changed, is_repeatable=False
            ),
        )

    async def _describe_cluster(self) -> ClusterInfo:
        if self._attempts.is_controllers:
            return await self._attempts.discovered(fresh=True)

        message = DescribeClusterRequest(
            endpoint_type=ENDPOINT_BROKER, include_fenced_brokers=True
        )
        try:
            return await self._attempts.request_any(message, cluster_info)
        except ApiError as error:
            if error.code != ErrorCode.UNSUPPORTED_VERSION:
                raise
        # Brokers before 2.8 lack the API, and those before 4.0 its field; Metadata has the same
        # facts.
        return await self._attempts.discovered(fresh=True)
