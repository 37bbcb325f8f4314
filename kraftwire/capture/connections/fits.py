"""Whether a stretch that was read ahead fits to the state of the capture before it.

Owns the comparison of what the reader assumed with what is known now; nothing is changed. Where a
connection was followed from some place on, the bytes that were left must end there, and a frame
must end with them. Where responses were followed, all earlier requests must have been answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kraftwire.capture.connections.ahead import Trail
from kraftwire.capture.connections.connection import Connection, Direction, reverse_key
from kraftwire.capture.connections.kafka_connection import Conversation
from kraftwire.capture.packets.links import SYN, Segment

__all__ = ["Fit"]

_ACK = 16
_MASK = 0xFFFFFFFF
_HALF = 0x80000000

_STALE = "requests have no response"

# The next sequence number of a direction of which nothing is known, or into which nothing fits.
_ANY, _NONE = -1, -2


@dataclass(frozen=True, slots=True)
class Fit:
    """Compares trails with the connections of a capture.

    `flows` are the directions by their keys, and `waiting` is how many requests of a connection
    have no response yet where they are shown. A segment that comes again `is_as_before` if it does
    not differ from the last packets that were read. If it `has_unmatched`, responses without a
    request were found in the stretch.
    """

    flows: Mapping[bytes, Direction]
    waiting: Callable[[str], int]
    is_as_before: Callable[[Segment], bool]
    has_unmatched: bool

    def misfit(self, trail: Trail) -> str:
        """Return what does not fit; empty if everything does."""
        flow = self.flows.get(trail.key)
        connection = None if flow is None else flow.connection
        walk = _Walk(connection, self.is_as_before)
        before = [each for each in trail.segments if each[0][2] < trail.until]
        if not all(map(walk.goes_on, before)):
            return "packets are not in order"
        found, misfit = trail.connection, ""
        if found is not None:
            misfit = self._misfit_of_followed(trail, connection, walk)
            walk.way(trail.key).next_seq = found.direction(trail.key).fast_seq
        if not misfit and not all(map(walk.goes_on, trail.segments[len(before) :])):
            return "packets are not in order"
        return misfit

    def _misfit_of_followed(
        self, trail: Trail, connection: Connection | None, walk: _Walk
    ) -> str:
        """Return what does not fit of a connection that was followed."""
        client, server = walk.way(trail.key), walk.way(reverse_key(trail.key))
        assert trail.connection is not None
        waiting = self.waiting(trail.connection.name)
        if connection is not None and connection.is_fresh:
            return _STALE if waiting else _misfit_of_fresh(trail, client, server)
        conversation = None if connection is None else connection.conversation
        if connection is None or conversation is None or not connection.is_ordinary:
            return "a connection is not an ordinary one"
        if not conversation.is_client(connection.direction(trail.key)):
            return "a server was taken for a client"
        # Those that are not complete are not shown yet.
        if waiting > sum(request.time_ns >= 0 for request in conversation.pending):
            return _STALE
        if self.has_unmatched and not conversation.is_sure:
            return "it is not sure what a response without a request is"
        return _misfit_of_start(trail, conversation, client, server)


def _misfit_of_fresh(trail: Trail, client: _Way, server: _Way) -> str:
    """Return what does not fit of a connection whose first request is in the stretch."""
    is_first = client.next_seq == trail.client_from and not client.data and not server.data
    if not is_first or trail.server_from not in (-1, server.next_seq):
        return "a connection begins with something else than a request"
    return ""


def _misfit_of_start(
    trail: Trail, conversation: Conversation, client: _Way, server: _Way
) -> str:
    """Return what does not fit of where a connection was followed from."""
    requests, responses = conversation.requests, conversation.responses
    is_known = requests.is_clear or requests.flow.need
    if client.next_seq != trail.client_from or not is_known:
        return "requests were not followed from where they begin"
    if sum(map(len, client.data)) != requests.flow.need:
        return "requests were not followed from the first one on"
    ids, is_whole = responses.ids_in(b"".join(server.data))
    asked = [request.correlation_id for request in conversation.pending]
    if ids != asked[: len(ids)]:
        return "responses are not those to the requests before"
    is_exact = server.next_seq == trail.server_from and is_whole and len(ids) == len(asked)
    if trail.server_from >= 0 and not is_exact:
        return "responses were not followed from where they begin"
    return ""


class _Way:
    """One direction of a connection, as far as its packets were looked at."""

    def __init__(self, next_seq: int) -> None:
        self.next_seq = next_seq
        self.data: list[bytes] = []
        self._first = next_seq
        self._pieces: set[tuple[int, bytes]] = set()

    def goes_on(self, seq: int, data: bytes, size: int) -> bool:
        """Whether bytes are the next ones, or came in the same stretch as they are."""
        if self.next_seq == _ANY:
            self.next_seq = seq
        is_probe = (seq + 1) & _MASK == self.next_seq and size == 1
        if is_probe or (seq, data) in self._pieces:
            return True
        if seq != self.next_seq:
            return False
        self.next_seq = (seq + size) & _MASK
        self.data.append(data)
        self._pieces.add((seq, data))
        return True

    def is_before(self, seq: int, size: int) -> bool:
        """Whether bytes were due before the stretch."""
        return self._first >= 0 and size <= (self._first - seq) & _MASK < _HALF


class _Walk:
    """Follows segments that were left, without changing anything."""

    def __init__(
        self, connection: Connection | None, is_as_before: Callable[[Segment], bool]
    ) -> None:
        self._is_as_before = is_as_before
        self._ways: dict[bytes, _Way] = {}
        for flow in () if connection is None else connection.flows:
            place = flow.fast_seq if flow.fast_seq >= 0 else flow.next_seq
            key = flow.connection.key_of(flow)
            self._ways[key] = _Way(_NONE if flow.has_hole else place)

    def way(self, key: bytes) -> _Way:
        """Return how far the direction with a key was followed."""
        return self._ways.setdefault(key, _Way(_ANY))

    def goes_on(self, segment: Segment) -> bool:
        """Whether a segment has the next bytes of its direction, none, or some that were read."""
        _, key, seq, _, flags, data, start, end, missing = segment
        if flags & SYN:
            if not flags & _ACK:
                self._ways.clear()
            self._ways[key] = _Way((seq + 1 + end - start + missing) & _MASK)
            return True
        size = end - start + missing
        way = self.way(key)
        if not size or way.goes_on(seq, data[start:end], size):
            return True
        return way.is_before(seq, size) and self._is_as_before(segment)
