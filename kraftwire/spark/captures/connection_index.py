"""The index of a capture: its connections, and where their packets are."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from kraftwire.capture.recorded import Recorded
from kraftwire.spark.captures.shared_names import SharedNames
from kraftwire.spark.paths import readable

# Numbers of connections, starts and sizes of runs.
Runs = tuple["array[int]", "array[int]", "array[int]"]

# The number of data that belongs to all connections: file headers, blocks other than packets.
SHARED = 0


@dataclass(slots=True)
class IndexedConnection:
    """A connection in an index.

    `key` is addresses and ports of the first packet and its direction; `payload` counts
    the captured bytes of that direction and the other, copies included; `is_first_client` is None
    if no SYN was captured. With `is_copy`, its packets are those of another connection, before or
    after address translation. Units: times in nanoseconds, `size` bytes in the file.
    """

    key: bytes
    position: int
    packets: int = 0
    size: int = 0
    payload: tuple[int, int] = (0, 0)
    first_ns: int = -1
    last_ns: int = -1
    is_first_client: bool | None = None
    round_trip_ns: int | None = None
    is_copy: bool = False


@dataclass(slots=True)
class FileIndex:
    """The packets of one file.

    Run i of bytes belongs to connection `numbers[i]`, begins at `starts[i]` and has `sizes[i]`
    bytes; number n > 0 is that of `connections[n - 1]`, 0 marks data that all of them need. `size`
    counts all bytes of the file, unpacked, `end` those up to the last packet, and the latest one
    came at `end_ns`; packets come up to `disorder_ns` after younger ones. `payload` counts the
    bytes that TCP carries; `recorded` are the times of all packets; `head` is the header of a pcap
    file; `unopened` says which packets could not be opened. With `has_fragments`, packets cannot be
    assigned to connections; with `is_packed`, the file has to be read from its start.
    """

    path: str
    size: int = 0
    end: int = 0
    end_ns: int | None = None
    disorder_ns: int = 0
    payload: int = 0
    packets: int = 0
    problem: str = ""
    is_damaged: bool = False
    has_fragments: bool = False
    is_packed: bool = False
    unopened: tuple[str, ...] = ()
    head: bytes = b""
    numbers: array[int] = field(default_factory=lambda: array("I"))
    starts: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("I"))
    connections: list[IndexedConnection] = field(default_factory=list)
    shared_names: SharedNames = field(default_factory=SharedNames)
    recorded: Recorded = field(default_factory=Recorded)

    @property
    def name(self) -> str:
        """The path as tables show it."""
        return readable(self.path)
