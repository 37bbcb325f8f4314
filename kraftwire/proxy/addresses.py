"""Addresses of nodes in messages: where they stand, and rewriting them to the proxy's listeners.

Every answer, and every request from node to node, that tells its reader where a node is reached has
its places here. Not among them are addresses that are not a node's (the endpoint of a streams
application, the host of a client or of an ACL), and those that the receiver stores and gives on as
they are: registrations of brokers and controllers, changes of voters. A cluster must not remember a
proxy.

Source: the schemas; KIP-853, KIP-951.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.endpoint import ENDPOINT_CONTROLLER, Address
from kraftwire.wire.message import Message

BROKER, CONTROLLER = "broker", "controller"


class Node(NamedTuple):
    """A node that a message names; `listener` counts the addresses that it has there."""

    role: str
    id: int
    listener: int = 0


FindHere = Callable[[Node, Address], Address]
"""Returns the address here of a node, whose own address is the second argument."""


class Place(NamedTuple):
    """Where a message has addresses: an array or a struct of it, and the field with the node's id.

    An empty array is the message itself. With `inner` the addresses are in that array of each
    element. Without `role` the nodes are of the kind that the connection leads to.
    """

    array: str
    id: str
    role: str | None = None
    inner: str = ""


_HINTS = Place("node_endpoints", "node_id")
_VOTERS = Place("node_endpoints", "node_id", CONTROLLER)
_LEADER = Place("leader_endpoints", "", CONTROLLER)

RESPONSES: dict[int, tuple[Place, ...]] = {
    ApiKey.PRODUCE: (_HINTS,),
    ApiKey.FETCH: (_HINTS,),
    ApiKey.METADATA: (Place("brokers", "node_id"),),
    ApiKey.FIND_COORDINATOR: (Place("", "node_id"), Place("coordinators", "node_id")),
    ApiKey.VOTE: (_VOTERS,),
    ApiKey.BEGIN_QUORUM_EPOCH: (_VOTERS,),
    ApiKey.END_QUORUM_EPOCH: (_VOTERS,),
    ApiKey.DESCRIBE_QUORUM: (Place("nodes", "node_id", CONTROLLER, "listeners"),),
    ApiKey.FETCH_SNAPSHOT: (_VOTERS,),
    ApiKey.DESCRIBE_CLUSTER: (Place("brokers", "broker_id"),),
    ApiKey.SHARE_FETCH: (_HINTS,),
    ApiKey.SHARE_ACKNOWLEDGE: (_HINTS,),
    ApiKey.UPDATE_RAFT_VOTER: (Place("current_leader", "leader_id", CONTROLLER),),
}
# A leader tells its followers where it is; its id stands elsewhere in the request.
REQUESTS: dict[int, tuple[Place, ...]] = {
    ApiKey.BEGIN_QUORUM_EPOCH: (_LEADER,),
    ApiKey.END_QUORUM_EPOCH: (_LEADER,),
}
# Where addresses are looked for; an Envelope carries the answer to another request.
LOOKED_THROUGH = frozenset({ApiKey.ENVELOPE, *RESPONSES, *REQUESTS})
# Their hints stand behind the records, which may be long.
STREAMED = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})


@lru_cache(1024)
def answers_with_addresses(api_key: int, api_version: int) -> bool:
    """Return whether the response to a request may hold addresses; False if no schema knows it."""
    return _has(RESPONSES, messages.response_class, api_key, api_version)


@lru_cache(1024)
def asks_with_addresses(api_key: int, api_version: int) -> bool:
    """Return whether a request may hold addresses; False if no schema knows it."""
    return _has(REQUESTS, messages.request_class, api_key, api_version)


def _has(
    places: dict[int, tuple[Place, ...]],
    class_of: Callable[[int], type[Message]],
    api_key: int,
    api_version: int,
) -> bool:
    low, high = messages.API_VERSIONS.get(api_key, (0, -1))
    if api_key not in places or not low <= api_version <= high:
        return False
    root = class_of(api_key).facts().root
    carried = {one.attribute for one in root.fields if api_version in one.versions}
    return any((place.array or place.id) in carried for place in places[api_key])


def rewrite_response(message: Message, role: str, find_here: FindHere) -> bool:
    """Put the proxy's addresses into a response; returns whether there were any.

    `role` is that of the node that answers.
    """
    if getattr(message, "endpoint_type", None) == ENDPOINT_CONTROLLER:
        role = CONTROLLER
    return _rewrite(message, RESPONSES.get(message.API_KEY, ()), role, find_here)


def rewrite_request(message: Message, role: str, find_here: FindHere) -> bool:
    """Put the proxy's addresses into a request; returns whether there were any."""
    return _rewrite(message, REQUESTS.get(message.API_KEY, ()), role, find_here)


def _rewrite(
    message: Message, places: tuple[Place, ...], role: str, find_here: FindHere
) -> bool:
    is_changed = False
    for place in places:
        for node, holder in _holders(message, place, role):
            if node.id >= 0 and holder.host and holder.port > 0:
                holder.host, holder.port = find_here(node, (holder.host, holder.port))
                is_changed = True
    return is_changed


def _holders(message: Any, place: Place, role: str) -> Iterator[tuple[Node, Any]]:
    """Yield each node of a place with the struct that holds its address."""
    role = place.role or role
    found = getattr(message, place.array) if place.array else message
    for element in found if isinstance(found, list) else [found]:
        if element is None:
            continue
        if place.inner:
            for number, holder in enumerate(getattr(element, place.inner)):
                yield Node(role, getattr(element, place.id), number), holder
        elif place.id:
            yield Node(role, getattr(element, place.id)), element
    if not place.id:
        for number, holder in enumerate(found):
            yield Node(role, _leader(message), number), holder


def _leader(message: Any) -> int:
    """Return the leader that a request of a quorum names; -1 if it names none."""
    partitions = [one for topic in message.topics for one in topic.partitions]
    return partitions[0].leader_id if partitions else -1
