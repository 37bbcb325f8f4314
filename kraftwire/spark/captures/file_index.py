"""The index of a capture: its connections, and which bytes of the file each of them needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kraftwire.capture.recorded import Recorded
from kraftwire.spark.captures.shared_names import SharedNames
from kraftwire.spark.paths import readable

Ints: TypeAlias = "npt.NDArray[np.int64]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"

# The number of data that belongs to all connections: file headers, blocks other than packets.
SHARED = 0

# How much of a connection, or of several, is read at once.
_GROUP_BYTES = 4 * 1024 * 1024

# The memory of a connection while it is decoded, besides its packets.
_CONNECTION_BYTES = 4 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class PacketRuns:
    """Runs of bytes in a file, in its order: adjacent packets of one connection, or other data.

    Run i belongs to connection `numbers[i]`, begins at `starts[i]` and has `sizes[i]` bytes; number
    0 marks data that all connections need. A capture may have very many: 16 bytes each.
    """

    numbers: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    starts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    sizes: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))

    @classmethod
    def joined(cls, chunks: Iterable[PacketRuns]) -> PacketRuns:
        """Return the runs of chunks that follow each other."""
        columns = ((each.numbers, each.starts, each.sizes) for each in (cls(), *chunks))
        return cls(*map(np.concatenate, zip(*columns, strict=True)))

    @property
    def size(self) -> int:
        """The bytes of all runs."""
        return int(self.sizes.sum(dtype=np.int64))

    def at(self, places: Flags | Ints | slice) -> PacketRuns:
        """Return the runs at some places."""
        return PacketRuns(self.numbers[places], self.starts[places], self.sizes[places])

    def of_connections(self, is_wanted: Flags, within: range) -> PacketRuns:
        """Return the runs of wanted connections that begin in a range of positions, and the data of
        all connections before its end.
        """
        chosen = is_wanted[self.numbers] & (self.starts >= within.start)
        chosen |= self.numbers == SHARED
        return self.at(chosen & (self.starts < within.stop))

    def groups(self) -> Iterator[PacketRuns]:
        """Yield runs of about 4 MiB together; data of all connections is a group of its own."""
        if not len(self.starts):
            return
        block = np.cumsum(self.sizes, dtype=np.int64) // _GROUP_BYTES
        is_shared = self.numbers == SHARED
        is_new = (block[1:] != block[:-1]) | is_shared[1:] | is_shared[:-1]
        borders = [0, *(np.flatnonzero(is_new) + 1).tolist(), len(block)]
        yield from (self.at(slice(begin, end)) for begin, end in pairwise(borders))

    @property
    def places(self) -> Ints:
        """Where each run begins if they follow each other."""
        places: Ints = np.cumsum(self.sizes, dtype=np.int64) - self.sizes
        return places

    def by_number(self) -> Iterator[tuple[int, Ints]]:
        """Yield each number with the places of its runs among these."""
        order: Any = np.argsort(self.numbers, kind="stable")
        numbers = self.numbers[order]
        for mine in np.split(order, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1):
            yield int(self.numbers[mine[0]]), mine


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

    @property
    def weight(self) -> int:
        """The bytes of memory that it takes while it is decoded, its packets included."""
        return self.size + _CONNECTION_BYTES


@dataclass(slots=True)
class FileIndex:
    """The packets of one file.

    `runs` come in chunks and have number n > 0 for `connections[n - 1]`. `size` counts all bytes of
    the file, unpacked, `end` those up to the last packet, and the latest one came at `end_ns`;
    packets come up to `disorder_ns` after younger ones. `payload` counts the bytes that TCP
    carries; `recorded` are the times of all packets; `head` is the header of a pcap file;
    `unopened` says which packets could not be opened. With `has_fragments`, packets cannot be
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
    runs: Iterable[PacketRuns] = ()
    connections: list[IndexedConnection] = field(default_factory=list)
    shared_names: SharedNames = field(default_factory=SharedNames)
    recorded: Recorded = field(default_factory=Recorded)

    @property
    def name(self) -> str:
        """The path as tables show it."""
        return readable(self.path)
