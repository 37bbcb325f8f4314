"""A Kafka frame as it was found in a capture, what is remembered of a request, and their queue.

Owns the two objects that capture passes to decode, the order of frames, which is that of
completion, and the budget for incomplete ones. Nothing here knows how a body is laid out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sized
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import Stamp
from kraftwire.capture.tls import KeyLog
from kraftwire.limits import BUFFERED_BYTES_MAX

# The id of a response to a request from before the capture, in place of `unmatched-response`.
BEFORE_CAPTURE = "request-before-capture"

# Of an exchange, not of a frame: there is none that could have it.
RESPONSE_LOST = "response-not-captured"

# Id, offset in the frame's data (None if no byte can be named), path, detail.
CaptureFinding = tuple[str, int | None, str, str]

# Id -> meaning, for the findings that packets give rise to. Those of a frame itself have an
# offset; those of the stream before it have none.
CAPTURE_FINDINGS = {
    "conflict": "bytes of this frame, or of one before it in the same direction, came twice and "
    "differ; the first are shown",
    "gap": "bytes are missing, because the capture lost a packet; with an offset: of this frame, "
    "else: before this frame in the same direction",
    "truncated-packet": "bytes are missing, because the capture kept only the start of a packet; "
    "offset as for gap",
    "resync": "bytes before this frame were skipped, because no frame could be recognised in them",
    "proxy-header": "a header of the PROXY protocol, such as load balancers send, came before this "
    "frame",
    "midstream-start": "the connection was open when the capture began; this is the first frame "
    "that could be recognised in its direction",
    "memory-limit": "bytes that waited for packets were given up, because all connections together "
    "held too many, or a frame is too long for a small compressed capture; with an offset: those "
    "of this frame, else: before this frame",
    "cut-by-capture-start": "bytes before this frame belong to frames that began, or were asked "
    "for, before the capture",
    "cut-by-capture-end": "the capture ends before the frame does",
    "cut-by-close": "the connection was closed before the frame was complete",
    "unmatched-response": "no request with this correlation id is in the capture, so API and "
    "version are unknown",
    BEFORE_CAPTURE: "the connection was open when the capture began, and the request was sent "
    "before that; API and version are unknown",
    RESPONSE_LOST: "the server sent the response, as the client acknowledged its bytes or later "
    "ones follow, but they are not in the capture; of an exchange, as no frame can have it",
    "responses-lost": "requests before this one in order have no response in the capture",
}

# Findings that mean that bytes of Kafka's stay undecoded.
_UNDECODED = frozenset(
    {
        "conflict", "gap", "truncated-packet", "resync", "cut-by-close", "memory-limit",
        RESPONSE_LOST,
    }
)

# The length before each frame.
_PREFIX_SIZE = 4

# A frame in a compressed capture may have PACKED_FRAME_FREE bytes and PACKED_FRAME_RATIO more for
# each byte of the compressed file, or of what a pipe has delivered so far. Of a longer frame only
# the first packet is kept.
PACKED_FRAME_FREE = 3 * 1024 * 1024
PACKED_FRAME_RATIO = 1


# Findings that one frame may have; of later ones only the first of each id is kept. A packed
# capture may have millions that no frame ever shows.
FINDINGS_MAX = 256


def add_finding(notes: list[CaptureFinding], id: str, offset: int | None, detail: str) -> None:
    """Add a finding to those of the next frame, unless it has very many like it."""
    if len(notes) < FINDINGS_MAX or all(other[0] != id for other in notes):
        notes.append((id, offset, "", detail))


def note_conflict(notes: list[CaptureFinding], count: int) -> None:
    """Add the finding for bytes that came twice and differ."""
    detail = f"{count} bytes came twice and differ; which of them the receiver took is not known"
    add_finding(notes, "conflict", None, detail)


class Request:
    """The facts about a request that are kept until its response comes.

    `api_key`, `api_version` and `correlation_id` are -1 for a bare SASL token;
    `time_ns` is that of the request's last packet, and `position` that of its frame; both are -1
    while packets are missing. If the capture lost the response, `lost` is how many it lost at once,
    and how long they were together, 0 if that is unknown; else None. `skipped` are earlier requests
    that stay without a response, as this one's response came in their turn. A request and its
    response have the same object.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "client_id",
        "correlation_id",
        "has_response",
        "lost",
        "position",
        "skipped",
        "time_ns",
    )

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    has_response: bool
    lost: tuple[int, int] | None
    position: int
    skipped: tuple[Request, ...]
    time_ns: int

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.has_response = True
        self.lost = None
        self.position = -1
        self.skipped = ()
        self.time_ns = -1


class RawFrame:
    """One frame: a request, a response or a bare SASL token.

    `data` are the bytes after the length prefix. If some are `missing` (ranges of start
    and length, in order), zeros stand in their place inside `data`, which ends with the last byte
    that was captured; `size` is the declared length all the same. `api_key` and `api_version` are
    None for a token and for a response whose request is not in the capture; `correlation_id` is
    None for a token only. `request` is the frame's own on a request, and None where there is none.
    `kind` is ``"rpc"`` or ``"sasl-token"``. `file` and `position` say where the record of the
    packet begins that holds the frame's first byte, `end_file` and `end_position` where that of the
    packet ends that completed it, counted in the unpacked files; the files differ only in a series
    of several. A frame is known by its file, connection, direction, position and correlation id.
    Without packets positions are those of the frame itself, or -1. `input_bytes` is how many bytes
    of the input account for the frame: its own, or all of a compressed capture that is shorter.
    `packet_findings` are those of its packets.
    Units: `time_ns` nanoseconds since the epoch, of the frame's last packet; `latency_ms`
    milliseconds between the last packets of request and response, None on requests.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "connection",
        "correlation_id",
        "data",
        "direction",
        "end_file",
        "end_position",
        "file",
        "input_bytes",
        "kind",
        "latency_ms",
        "missing",
        "packet_findings",
        "position",
        "request",
        "size",
        "time_ns",
    )

    api_key: int | None
    api_version: int | None
    connection: str
    correlation_id: int | None
    data: bytes
    direction: str
    end_file: str
    end_position: int
    file: str
    input_bytes: int
    kind: str
    latency_ms: float | None
    missing: tuple[tuple[int, int], ...]
    packet_findings: list[CaptureFinding] | tuple[()]
    position: int
    request: Request | None
    size: int
    time_ns: int

    @property
    def time(self) -> float:
        """Seconds since the epoch: the double that is nearest to the capture's time stamp."""
        return self.time_ns / 1_000_000_000

    @property
    def is_request(self) -> bool:
        """Whether the client sent it."""
        return self.direction == "request"

    @property
    def server(self) -> str:
        """Host and port of the server."""
        return self.connection.rpartition("-")[2]

    @property
    def is_undecoded(self) -> bool:
        """Whether bytes of Kafka's were lost in this frame or just before it.

        A frame that the end of the capture cuts does not count: its bytes were not lost.
        """
        return any(finding[0] in _UNDECODED for finding in self.packet_findings)

    def __repr__(self) -> str:
        return (
            f"RawFrame({self.file} at {self.position}, {self.connection}, {self.direction}, "
            f"api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, size={self.size})"
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """The first packet that ends a connection of Kafka: a FIN, or a reset."""

    connection: str
    time_ns: int
    is_by_client: bool
    is_reset: bool


class UnfinishedBudget:
    """Bounds the bytes of unfinished frames, by the sizes that they declare.

    `packed` is the size of a compressed capture, None where it is not compressed.
    """

    __slots__ = ("_used", "packed")

    def __init__(self) -> None:
        self._used = 0
        self.packed: int | None = None

    def may_have(self, size: int) -> bool:
        """Return whether a frame may have this size."""
        packed = self.packed
        return packed is None or size <= PACKED_FRAME_FREE + PACKED_FRAME_RATIO * packed

    def take(self, size: int) -> bool:
        """Reserve memory for a frame of this size; returns whether there is enough."""
        if not self.may_have(size) or self._used + size > BUFFERED_BYTES_MAX:
            return False
        self._used += size
        return True

    def release(self, size: int) -> None:
        """Release the size of a frame that is complete."""
        self._used -= size


class FrameQueue:
    """Collects frames until the capture's iterator returns them.

    Frames are of the `frame_class`. `offset` is where the present file begins, counted over all
    files of a series. `keys` are the secrets of encrypted connections, if any are known.
    """

    __slots__ = (
        "_files",
        "budget",
        "file",
        "frame_class",
        "frames",
        "health",
        "keys",
        "offset",
        "on_ending",
    )

    def __init__(self, health: Health, frame_class: type[RawFrame] = RawFrame) -> None:
        self.frame_class = frame_class
        self.file = ""
        self.offset = 0
        self.health = health
        self.frames: list[RawFrame] = []
        self.budget = UnfinishedBudget()
        self.keys: KeyLog | None = None
        self.on_ending: Callable[[Ending], None] | None = None
        self._files: list[tuple[int, str]] = []

    def begin_file(self, file: str, offset: int) -> None:
        """Learn that the packets of the next file follow, whose positions begin with an offset."""
        self.file = file
        self.offset = offset
        self._files.append((offset, file))

    def take(self) -> list[RawFrame]:
        """Count the frames so far, and forget and return them; `frames` stays the same list."""
        taken = self.frames[:]
        self.frames.clear()
        health = self.health
        health.frames += len(taken)
        health.bytes.frames += sum([_PREFIX_SIZE + each.size for each in taken])
        for each in taken:
            if each.missing:
                health.bytes.frames -= sum(size for _, size in each.missing)
        return taken

    def place(self, frame: RawFrame, stamp: Stamp) -> None:
        """Name the files in which a frame that began in an earlier file begins and ends."""
        _, begin, end = stamp
        frame.file, frame.position = self._locate(begin)
        frame.end_file, frame.end_position = self._locate(end - 1, 1)

    def _locate(self, at: int, beyond: int = 0) -> tuple[str, int]:
        """Return file and position of a byte that may be in an earlier file."""
        offset, file = self._files[bisect_right(self._files, at, key=itemgetter(0)) - 1]
        return file, at - offset + beyond


class Pairing(Protocol):
    """Pairs the requests and responses of one connection."""

    name: str
    frame_queue: FrameQueue
    health: Health
    budget: UnfinishedBudget
    pending: deque[Request]

    @property
    def parked(self) -> Sized:
        """The responses that wait for their request."""

    def register(self, request: Request) -> None:
        """Remember a request that will be answered."""

    def is_parked(self, correlation_id: int) -> bool:
        """Whether a response with this id waits for its request."""

    def respond(
        self, data: bytes, size: int, stamp: Stamp, missing: tuple[tuple[int, int], ...]
    ) -> None:
        """Take a response that was not matched at once."""

    def match_parked(self) -> None:
        """Pass on every response whose request is known by now, and those before it."""
