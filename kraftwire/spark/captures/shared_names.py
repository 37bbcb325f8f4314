"""What connections learn from each other: names of topics, protocol types of groups, clusters.

Owns the search for these among packets before anything is decoded, so that connections can be
decoded independently, in any order, with the same knowledge. Informative requests mostly start a
packet; the others are still used by their own connection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kraftwire import messages
from kraftwire.decode.body import context as decoding
from kraftwire.decode.body.bodies import decode_payload
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.scan import topics
from kraftwire.protocol.api_keys import ApiKey

# APIs whose responses carry the names of topics or the brokers of a cluster.
_ANSWER_APIS = (
    ApiKey.METADATA,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)
_HEAD_SIZE = 14
_AWAITED_MAX = 64
_RESPONSE_BYTES_MAX = 16 * 1024 * 1024
_MASK = 0xFFFFFFFF


@dataclass(slots=True)
class SharedNames:
    """What was learned; can be pickled and merged.

    Names of topics by id, protocol types by group, ids of clusters by "host:port".
    """

    topics: dict[bytes, str] = field(default_factory=dict)
    protocols: dict[str, str] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)

    def merge(self, other: SharedNames) -> None:
        """Add what another one knows; known entries stay."""
        self.topics = other.topics | self.topics
        self.protocols = other.protocols | self.protocols
        self.clusters = other.clusters | self.clusters

    def start(self) -> decoding.Memory:
        """Return the initial state for decoding one connection, which adds to it."""
        return decoding.Memory(_Names(self.topics), dict(self.protocols))


class _Names(TopicNames):
    """Names that a connection learned itself, then those that all connections share."""

    def __init__(self, known: dict[bytes, str]) -> None:
        super().__init__()
        self._known = known

    def name(self, name: str | None, topic_id: bytes | None) -> str | None:
        """Return the name itself, or the one of the id; None if it is unknown."""
        if name or topic_id is None:
            return name
        return self._names.get(topic_id) or self._known.get(topic_id)


# The containers of all directions that have none of their own; nothing is added to them.
_NOTHING_AWAITED: dict[bytes, tuple[int, int]] = {}
_NO_PARTS: list[bytes] = []


class PacketDirection:
    """One direction of a connection, as seen in packets.

    `at` counts the directions of a file; `awaited` are correlation ids of requests in the
    other direction whose responses are wanted, with key and version, and `parts` the packets of
    the response that has begun. Both are shared while they are empty: a capture may have very many
    connections.
    """

    __slots__ = (
        "at", "awaited", "last_ns", "number", "other", "packets", "parts", "payload", "seq",
        "size", "syn_ns", "wanted",
    )  # fmt: skip

    def __init__(self, at: int) -> None:
        self.at = at
        self.number = at // 2 + 1
        self.packets = self.payload = self.size = 0
        self.last_ns = self.syn_ns = -1
        self.awaited = _NOTHING_AWAITED
        self.parts = _NO_PARTS
        self.seq = self.wanted = 0
        self.other = self


class NameGatherer:
    """Reads the payloads of packets; `names` are what it learned."""

    def __init__(self) -> None:
        self.names = SharedNames()
        apis = (*_ANSWER_APIS, ApiKey.JOIN_GROUP)
        # API key and version as encoded in a request.
        self.informative = frozenset(
            key.to_bytes(2, "big") + version.to_bytes(2, "big")
            for key in apis
            for version in range(messages.API_VERSIONS[key][0], messages.API_VERSIONS[key][1] + 1)
        )

    def read_packet(
        self, direction: PacketDirection, seq: int, data: bytes, start: int, end: int
    ) -> None:
        """Read a packet with payload, in either direction."""
        if data[start + 4 : start + 8] in self.informative:
            self._read_request(direction, data, start, end)
        if direction.awaited:
            self._read_response(direction, seq, data, start, end)

    def _read_request(
        self, direction: PacketDirection, data: bytes, start: int, end: int
    ) -> None:
        """Read a packet that begins like an informative request."""
        size = int.from_bytes(data[start : start + 4], "big")
        if size < _HEAD_SIZE - 4:
            return
        key = int.from_bytes(data[start + 4 : start + 6], "big")
        if key == ApiKey.JOIN_GROUP:
            if start + 4 + size <= end:
                body = _body(data[start + 4 : start + 4 + size], None)
                if body is not None:
                    self.names.protocols.setdefault(body.group_id, body.protocol_type)
            return
        awaited = direction.other.awaited or {}
        if len(awaited) >= _AWAITED_MAX:
            del awaited[next(iter(awaited))]
        version = int.from_bytes(data[start + 6 : start + 8], "big")
        awaited[data[start + 8 : start + 12]] = key, version
        direction.other.awaited = awaited

    def _read_response(
        self, direction: PacketDirection, seq: int, data: bytes, start: int, end: int
    ) -> None:
        """Read a packet of a direction in which the response to such a request is due."""
        if direction.parts:
            if seq != direction.seq:
                direction.parts = _NO_PARTS
                return
        elif data[start + 4 : start + 8] in direction.awaited:
            size = int.from_bytes(data[start : start + 4], "big")
            if not 4 <= size <= _RESPONSE_BYTES_MAX:
                return
            direction.wanted = size + 4
        else:
            return
        direction.parts = direction.parts or []
        direction.parts.append(data[start:end])
        direction.seq = (seq + end - start) & _MASK
        if sum(map(len, direction.parts)) >= direction.wanted:
            payload = b"".join(direction.parts)[4 : direction.wanted]
            direction.parts = _NO_PARTS
            # Later requests may have taken its place while its packets came.
            api = direction.awaited.pop(payload[:4], None)
            direction.awaited = direction.awaited or _NOTHING_AWAITED
            if api is not None:
                self._learn(payload, api)

    def _learn(self, payload: bytes, api: tuple[int, int]) -> None:
        found = decode_payload(payload, is_request=False, api=api)
        body: Any = found.body
        if body is not None:
            cluster: str | None = getattr(body, "cluster_id", None)
            for broker in body.brokers if cluster else ():
                host = f"[{broker.host}]" if ":" in broker.host else broker.host
                self.names.clusters[f"{host}:{broker.port}"] = cluster or ""
            for topic in topics(body, found.body_version):
                if topic.name and topic.id:
                    self.names.topics[topic.id] = topic.name


def _body(data: bytes, api: tuple[int, int] | None) -> Any:
    return decode_payload(data, is_request=api is None, api=api).body
