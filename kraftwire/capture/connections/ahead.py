"""A stretch of a capture, read before it is known what the connections are in the middle of.

Owns how the reader finds its way. It follows a client from the first packet that begins with a
request, and the server from the first packet that begins with the response to that request. What
comes before is left for the reader of the stretches before, and so are connections of all other
kinds; see `adoption`, which finds out whether that was right.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from kraftwire.capture.connections.connection import Connection, Direction, reverse_key
from kraftwire.capture.connections.frame_queue import Outbox
from kraftwire.capture.connections.share import NotShared, Share
from kraftwire.capture.framing.headers import parse_header
from kraftwire.capture.packets.links import FIN, MISSING, RST, SYN, Segment
from kraftwire.limits import CONNECTIONS_MAX, FRAME_SIZE_MAX

__all__ = ["Ahead", "Times", "Trail"]

_ACK = 16
_UNUSUAL = FIN | SYN | RST | MISSING
_MASK = 0xFFFFFFFF
_HALF = 0x80000000
_RESPONSE = struct.Struct(">ii")
# So many bytes may be left for another reader: some of each connection, and what it cannot follow.
_LEFT_BYTES_MIN = 1024 * 1024
_LEFT_PART = 8
_NEVER = 1 << 62


@dataclass(slots=True, eq=False)
class Trail:
    """What was seen of a connection that was there before the stretch; picklable.

    `key` is that of one direction, the client's if that is known. `segments` were left for another
    reader. The `connection` was followed from the sequence numbers `client_from` and `server_from`
    on, -1 if never. Nothing was followed any more from the packet that ends at `until` on.
    """

    key: bytes
    segments: list[Segment] = field(default_factory=list)
    connection: Connection | None = None
    client_from: int = -1
    server_from: int = -1
    until: int = _NEVER

    @property
    def is_left(self) -> bool:
        """Whether all that comes now is left for another reader."""
        return self.until != _NEVER


@dataclass(slots=True)
class Times:
    """The first and last times of what was not in the fast lane, and whether any is earlier than
    the one before it. Units: nanoseconds.
    """

    first: int = _NEVER
    last: int = 0
    go_back: bool = False

    def see(self, time_ns: int) -> None:
        """Take note of a time."""
        self.go_back |= time_ns < self.last
        self.first, self.last = min(self.first, time_ns), max(self.last, time_ns)


class Ahead(Share):
    """Reads a stretch of `size` bytes ahead of those before it, as one of `count` processes.

    The connections that it follows pass their frames to `outbox`, and are added to the open
    `connections`. Raises: NotShared where this reader cannot know what one of the whole capture
    would find.
    """

    def __init__(
        self, count: int, outbox: Outbox, connections: dict[Connection, None], size: int
    ) -> None:
        super().__init__(count)
        self._open = connections
        self.times = Times()
        self.trails: dict[bytes, Trail] = {}
        self.reviews: list[tuple[int, int]] = []
        self.opened: list[tuple[int, Connection]] = []
        self.closed: list[tuple[int, Connection]] = []
        self._outbox = outbox
        self._left = max(_LEFT_BYTES_MIN, size // _LEFT_PART)

    def takes(self, segment: Segment, flows: dict[bytes, Direction], /) -> bool:
        """Whether a segment is decoded here; if not, it is left for another reader."""
        (time_ns, _, self.place), key, _, _, flags = segment[:5]
        self.times.see(time_ns)
        trail = self.trails.get(key)
        if trail is None:
            if key in flows or (flags & SYN and not flags & _ACK):
                return True
            trail = self.trails[key] = self.trails[reverse_key(key)] = Trail(key)
        if key in flows:
            if flows[key].connection is not trail.connection:
                return True  # a later connection of the same ends
            if _is_from_before(trail, flows[key], segment):
                self._leave(trail, segment)
                return False
            if self._may_follow(trail, flows[key], segment):
                return trail.server_from >= 0 or segment[6] < segment[7]
            self._leave_rest(trail, flows)
        elif not trail.is_left:
            if flags & _UNUSUAL:
                self._leave_rest(trail, flows)
            elif segment[6] == segment[7]:
                if trail.connection is not None:
                    return False
            elif self._begins(trail, segment, flows):
                return True
        self._leave(trail, segment)
        return False

    def note_open(self, connection: Connection, open_count: int) -> None:
        """Note where a connection begins, and how many are open."""
        if open_count == CONNECTIONS_MAX:
            raise NotShared("there are too many connections")
        super().note_open(connection, open_count)
        self.opened.append((self.place, connection))

    def note_closed(self, connection: Connection) -> None:
        """Note where a connection is over."""
        super().note_closed(connection)
        self.closed.append((self.place, connection))

    def note_review(self, place: int, time_ns: int) -> None:
        """Note where connections in trouble are looked at."""
        self.times.see(time_ns)
        self.reviews.append((place, time_ns))

    def _may_follow(self, trail: Trail, flow: Direction, segment: Segment) -> bool:
        """Whether a connection can be followed further, by a packet of a followed direction."""
        _, _, seq, _, flags, _, start, end, _ = segment
        # Anything unusual is about both directions.
        is_usual = not flags & _UNUSUAL and (start == end or seq == flow.fast_seq)
        return is_usual or trail.server_from >= 0

    def _leave_rest(self, trail: Trail, flows: dict[bytes, Direction]) -> None:
        """Leave all that comes of a connection for another reader."""
        trail.until = self.place
        if trail.connection is not None:
            self._open.pop(trail.connection, None)
            for key in (trail.key, reverse_key(trail.key)):
                flows.pop(key, None)

    def _begins(self, trail: Trail, segment: Segment, flows: dict[bytes, Direction]) -> bool:
        """Follow a direction if the packet begins with a frame that shows where it is."""
        _, key, seq, _, _, data, start, end, _ = segment
        connection, payload = trail.connection, data[start:end]
        if connection is None:
            if not _is_request(payload):
                return False
            connection = trail.connection = Connection(key, self._outbox)
            connection.assume_kafka(connection.direction(key))
            self._open[connection] = None
            trail.key, trail.client_from = key, seq
        elif _is_next_response(connection, payload):
            trail.server_from = seq
        else:
            return False
        flow = flows[key] = connection.direction(key)
        flow.fast_seq = seq
        return True

    def _leave(self, trail: Trail, segment: Segment) -> None:
        stamp, key, seq, ack, flags, data, start, end, missing = segment
        self._left -= end - start + len(key)
        if self._left < 0:
            raise NotShared("there is much that cannot be followed")
        piece = bytes(data[start:end])
        trail.segments.append((stamp, key, seq, ack, flags, piece, 0, len(piece), missing))


def _is_from_before(trail: Trail, flow: Direction, segment: Segment) -> bool:
    """Whether bytes were sent before a direction was followed. Raises: NotShared."""
    _, key, seq, _, _, _, start, end, _ = segment
    connection = flow.connection
    before = ((trail.client_from if key == trail.key else trail.server_from) - seq) & _MASK
    size = end - start
    if not size or not 0 < before < _HALF:
        return False
    if (before, size) == (1, 1):
        # If the next byte is the first one, this one keeps the connection alive.
        if seq + 1 & _MASK == flow.fast_seq:
            return False
        raise NotShared("bytes from before the stretch come again")
    if size > before or not connection.is_ordinary:
        raise NotShared("bytes from before the stretch come again")
    return True


def _is_request(data: bytes) -> bool:
    """Whether bytes begin with a request, as far as one can tell.

    They would also do as the first ones of a connection, see `recognise`.
    """
    header = parse_header(data, 0, strict=True)
    client = None if header is None else header[5]
    return client is not None and client != b"" and client.decode().isprintable()


def _is_next_response(connection: Connection, data: bytes) -> bool:
    """Whether bytes begin with the response to the first request that is known."""
    conversation = connection.conversation
    if conversation is None or not conversation.pending or len(data) < _RESPONSE.size:
        return False
    size, correlation_id = _RESPONSE.unpack_from(data, 0)
    is_next: bool = correlation_id == conversation.pending[0].correlation_id
    return is_next and 4 <= size <= FRAME_SIZE_MAX
