"""Rotated captures: several files of one recording, in the order in which they were written.

Owns which files are one recording: their names differ in numbers alone, they are in one folder, and
each begins after the one before has ended.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.pcapng import SECTION_MAGIC
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.errors import StorageError

_DIGITS = re.compile(r"\d+")
_PCAP_HEADER_SIZE = 24

F = TypeVar("F")


def in_time_order(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The paths of captures, ordered by the time of their first packet; empty ones are the last.

    Raises: StorageError if a file cannot be opened or is not a capture.
    """
    return sorted((os.fspath(each) for each in paths), key=lambda path: (*_first_time(path), path))


def _first_time(path: str) -> tuple[bool, int]:
    with CaptureSource(path) as source:
        for packet in read_packets(source, Health()):
            return False, packet.time_ns
    return True, 0


@dataclass(frozen=True, slots=True)
class Span:
    """A capture with the times of its first and last packet, and what shows which file it follows.

    `head` is the header of a pcap file, the same in all files of a recording; `connections`
    are names for the connections in the file. Units: nanoseconds since the epoch.
    """

    path: str
    first_ns: int
    last_ns: int
    head: bytes = b""
    connections: frozenset[bytes] = frozenset()

    @property
    def numbers(self) -> list[str]:
        """The numbers in its name."""
        return _DIGITS.findall(Path(self.path).name)


def families(files: Iterable[F], path_of: Callable[[F], str]) -> list[list[F]]:
    """Group files in one folder whose names differ only in numbers: perhaps one recording."""
    found: dict[tuple[Path, str], list[F]] = {}
    for file in files:
        path = Path(path_of(file))
        found.setdefault((path.parent, _DIGITS.sub("#", path.name)), []).append(file)
    return list(found.values())


def chains(spans: Iterable[Span]) -> list[list[Span]]:
    """The files of a family as recordings: each file begins after the one before has ended.

    Files that overlap in time are of different recordings, as are those with another
    header. Where a file can follow several, the names decide: the first numbers in them that
    differ, as in `host1-07` and `host2-07`; then the connections.
    """
    made: list[list[Span]] = []
    for span in sorted(spans, key=lambda each: (each.first_ns, each.path)):
        found = [chain for chain in made if _may_follow(chain[-1], span)]
        if found:
            max(found, key=lambda chain: _likeness(chain[-1], span)).append(span)
        else:
            made.append([span])
    return made


def _may_follow(before: Span, after: Span) -> bool:
    return after.first_ns >= before.last_ns and after.head == before.head


def _likeness(before: Span, after: Span) -> tuple[int, int, int]:
    """Return how well a file matches one that may follow it; larger is better."""
    pairs = zip(before.numbers, after.numbers, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return same, len(before.connections & after.connections), before.last_ns


def recordings(paths: Iterable[str]) -> Iterator[list[str]]:
    """Find the recordings of several files among some captures; each is in the order of time.

    Reads the times of all packets in files with similar names. A capture that cannot be read,
    or has no packets, is in none.
    """
    for family in families(paths, str):
        if len(family) > 1:
            for chain in chains(filter(None, map(span_of, family))):
                if len(chain) > 1:
                    yield [span.path for span in chain]


def span_of(path: str) -> Span | None:
    """Return the times of a capture's packets; None if it cannot be read, or has none."""
    first = last = None
    try:
        with CaptureSource(path) as source:
            head = source.read_exactly(_PCAP_HEADER_SIZE)
        with CaptureSource(path) as source:
            for packet in read_packets(source, Health()):
                last = packet.time_ns if last is None else max(last, packet.time_ns)
                first = last if first is None else min(first, packet.time_ns)
    except StorageError:
        return None
    if first is None or last is None:
        return None
    return Span(path, first, last, b"" if head.startswith(SECTION_MAGIC) else head)
