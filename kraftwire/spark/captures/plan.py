"""How captures are divided among tasks: recordings, and the connections of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kraftwire.capture.connections.connection import reverse_key
from kraftwire.capture.packets.series import Span, chains
from kraftwire.spark.captures.file_index import FileIndex, IndexedConnection
from kraftwire.spark.captures.recording import Recording

# A longer connection is cut if there are other cores to decode its parts. As a whole it takes
# seconds, and ten where frames are small.
CUT_BYTES = 256 * 1024 * 1024


def recordings(indexes: Sequence[FileIndex]) -> list[Recording]:
    """Return the captures of a family as recordings; those without packets are separate."""
    spans = {
        each.path: _span(each) for each in indexes if each.connections and not each.has_fragments
    }
    by_path = {each.path: each for each in indexes}
    alone = [[each] for each in indexes if each.path not in spans]
    chained = [[by_path[span.path] for span in chain] for chain in chains(spans.values())]
    return [Recording(files) for files in alone + chained]


def _span(index: FileIndex) -> Span:
    return Span(
        index.path,
        min(indexed.first_ns for indexed in index.connections),
        max(indexed.last_ns for indexed in index.connections),
        index.head,
        frozenset(
            key
            for indexed in index.connections
            for key in (indexed.key, reverse_key(indexed.key))
        ),
    )


@dataclass(frozen=True, slots=True)
class Share:
    """Connections that one task decodes, of about `size` bytes; with `is_long`, a single one that
    is cut into parts for several tasks.
    """

    connections: tuple[int, ...]
    size: int
    is_long: bool = False


def divide(
    recording: Recording, wanted: Iterable[int], size_max: int, long: float
) -> Iterator[Share]:
    """Divide connections of a recording into shares of about `size_max` bytes.

    Those of more than `long` bytes are to be cut. Where packets cannot be assigned to connections,
    all are one share. In a packed file none is cut: each part would have to unpack all before it.
    """
    of_number = {number: recording.connections[number - 1] for number in wanted}
    cut = list(_to_cut(recording, of_number, long))
    rest = {number: each for number, each in of_number.items() if number not in set(cut)}
    for numbers in [list(rest)] if rest and recording.has_fragments else bins(rest, size_max):
        yield Share(tuple(numbers), sum(rest[number].size for number in numbers))
    for number in cut:
        yield Share((number,), of_number[number].size, is_long=True)


def _to_cut(
    recording: Recording, connections: Mapping[int, IndexedConnection], long: float
) -> Iterator[int]:
    """Yield the numbers of connections that are to be cut."""
    if not any(file.has_fragments or file.is_packed for file in recording.files):
        for number, indexed in connections.items():
            if indexed.size > long and not indexed.is_copy:
                yield number


def bins(connections: Mapping[int, IndexedConnection], size_max: int) -> list[list[int]]:
    """Return numbers of connections in bins of at most `size_max` bytes, unless one is longer.

    Each connection counts for some KiB besides its packets. The longest come first, each into the
    bin with the fewest bytes; the number of bins is that of full bins.
    """
    total = sum(indexed.weight for indexed in connections.values())
    count = max(1, min(len(connections), -(-total // size_max)))
    chosen: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for number in sorted(connections, key=lambda number: -connections[number].size):
        at = loads.index(min(loads))
        loads[at] += connections[number].weight
        chosen[at].append(number)
    return [sorted(each) for each in chosen if each]
