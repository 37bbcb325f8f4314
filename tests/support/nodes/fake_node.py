"""A node that answers as a test prescribes, over real sockets; for clients that are tested alone.

Owns accepting, framing and the answer to ApiVersions. Every connection has a separate thread.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Self

from kraftwire import messages
from kraftwire.errors import WireError
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kraftwire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import decode_request, encode_response
from kraftwire.wire.frame import FrameBuffer, frame
from kraftwire.wire.message import Message

FETCH, METADATA, API_VERSIONS = 1, 3, 18
DESCRIBE_QUORUM, UPDATE_FEATURES, DESCRIBE_CLUSTER = 55, 57, 60
ADD_RAFT_VOTER, REMOVE_RAFT_VOTER, UPDATE_RAFT_VOTER = 80, 81, 82
UNREGISTER_CONTROLLER = 94
CLUSTER_ID = "CCCCCCCCQACAAAAAAAAAAg"

Answer = Callable[[Message], Message | None]


class HangUpError(Exception):
    """Raised by an answer: close the connection instead."""


class FakeNode:
    """A node on a free loopback port.

    `answers` maps API keys to functions from request to response; None leaves a request
    unanswered, and any other API ends the connection. `versions` narrows the offered versions; the
    default is all that the schemas know.
    `requests` are the requests so far, without ApiVersions unless it is in `answers`. With a
    context for `tls` connections are encrypted.
    Order: use it as a context manager.
    """

    def __init__(
        self,
        answers: Mapping[int, Answer] | None = None,
        versions: Mapping[int, tuple[int, int]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answers: dict[int, Answer] = dict(answers or {})
        self.requests: list[Message] = []
        self.connection_count = 0
        self._versions = dict(versions or {})
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._connections: list[socket.socket] = []

    @property
    def address(self) -> str:
        """The address in the form that clients take."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone would not wake the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for connection in self._connections:
            _shut(connection)
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connection_count += 1
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        frames = FrameBuffer()
        is_greeted = False
        with connection:
            stream = connection
            try:
                if self._tls is not None:
                    stream = self._secured(connection, self._tls)
                    self._connections.append(stream)
                while data := stream.recv(65536):
                    for payload in frames.feed(data):
                        self._answer(stream, payload, is_greeted)
                        is_greeted = True
            except (HangUpError, OSError, WireError):
                _shut(stream)
            finally:
                stream.close()

    def _secured(self, connection: socket.socket, tls: ssl.SSLContext) -> ssl.SSLSocket:
        """Shake hands. After a refusal the client closes first: else the alert could be lost."""
        with connection.dup() as kept:
            self._connections.append(kept)
            try:
                return tls.wrap_socket(connection, server_side=True)
            except ssl.SSLError:
                kept.shutdown(socket.SHUT_WR)
                while kept.recv(65536):
                    pass
                raise

    def _answer(self, connection: socket.socket, payload: bytes, is_greeted: bool) -> None:
        header, request, _ = decode_request(payload)
        response: Message | None
        if request.API_KEY == API_VERSIONS and API_VERSIONS not in self.answers:
            response = self._offer()
        else:
            if is_greeted:
                self.requests.append(request)
            if request.API_KEY not in self.answers:
                raise HangUpError
            response = self.answers[request.API_KEY](request)
        if response is not None:
            reply = ResponseHeader(correlation_id=header.correlation_id)
            version = header.request_api_version
            connection.sendall(frame(encode_response(reply, response, version)))

    def _offer(self) -> ApiVersionsResponse:
        keys = sorted({API_VERSIONS, *self.answers})
        offered = {key: self._versions.get(key, messages.API_VERSIONS[key]) for key in keys}
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in offered.items()
            ]
        )


def controllers(
    nodes: Mapping[int, FakeNode], active: int, error: int = 0, text: str | None = None
) -> DescribeClusterResponse:
    """The answer of a controller to DescribeCluster with endpoint type 2."""
    listed = [
        DescribeClusterBroker(broker_id=number, host="127.0.0.1", port=node.port)
        for number, node in nodes.items()
    ]
    return DescribeClusterResponse(
        error_code=error,
        error_message=text,
        endpoint_type=2,
        cluster_id=CLUSTER_ID,
        controller_id=active,
        brokers=listed,
    )


def metadata(nodes: Mapping[int, FakeNode], controller: int = -1) -> MetadataResponse:
    """The answer of a broker to Metadata without topics."""
    brokers = [
        MetadataResponseBroker(node_id=number, host="127.0.0.1", port=node.port)
        for number, node in nodes.items()
    ]
    return MetadataResponse(cluster_id=CLUSTER_ID, controller_id=controller, brokers=brokers)


def quorum_state(
    leader: int,
    epoch: int = 1,
    *,
    voters: list[ReplicaState] | None = None,
    observers: list[ReplicaState] | None = None,
    error: int = 0,
) -> DescribeQuorumResponse:
    """An answer to DescribeQuorum; with an error, leader and epoch are those known to the node."""
    if voters is None:
        voters = [ReplicaState(replica_id=leader, log_end_offset=10)]
    partition = PartitionData(
        error_code=error,
        leader_id=leader,
        leader_epoch=epoch,
        high_watermark=10,
        current_voters=[] if error else voters,
        observers=observers or [],
    )
    endpoints = [
        Node(
            node_id=voter.replica_id,
            listeners=[Listener(name="CONTROLLER", host="127.0.0.1", port=9000 + voter.replica_id)],
        )
        for voter in voters
    ]
    topic = TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumResponse(topics=[topic], nodes=[] if error else endpoints)


def unknown_leader() -> DescribeQuorumResponse:
    """The answer of Kafka's controllers while they do not lead: fields at their default."""
    return quorum_state(0, 0, error=6)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # closed already
