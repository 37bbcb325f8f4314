"""The process that joins the lines of the readers of a capture, in the order of one reader.

Owns the order, the headings of days, and what each reader is told about the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from heapq import merge
from itertools import chain
from operator import itemgetter
from typing import IO, Any, Protocol

from kraftwire.decode.divided.reports import BLOCKS_AHEAD, KEY_BITS, Block, End, Event, Lines
from kraftwire.decode.framing.health import Health
from kraftwire.decode.pairing.share import NotShared
from kraftwire.decode.render.line import CONNECTION_WIDTH, date_heading, head_text
from kraftwire.decode.render.text import BOLD, paint
from kraftwire.decode.run.run import Totals

__all__ = ["Joiner", "Peer"]

_KEY = itemgetter(0)

# What every reader counts for all connections.
_COMMON = frozenset(
    {
        *("packets", "skipped_packets", "truncated_packets", "fragments"),
        *("problem", "is_damaged", "tls", "unsupported_links", "bytes"),
    }
)


class Peer(Protocol):
    """A reader, as the joiner sees it."""

    def hear(self) -> Any:
        """Wait for the next report. Raises: the error that the reader has ended with."""

    def tell(self, events: Sequence[Event]) -> None:
        """Report what the other readers have found in a block, without waiting."""


class Joiner:
    """Joins the lines of readers and their counts.

    `written` counts the characters that were written so far. Raises: NotShared, and whatever else
    the readers report.
    """

    def __init__(self, peers: Sequence[Peer], out: IO[str], *, is_coloured: bool) -> None:
        self.written = 0
        self._peers = peers
        self._out = out
        self._is_coloured = is_coloured
        self._day = -1
        self._widths: list[Event] = []

    def join(self, totals: Totals, name: str) -> None:
        """Write everything, and add what was counted."""
        announced, is_last = 0, False
        while not is_last:
            blocks: list[Block] = [peer.hear() for peer in self._peers]
            totals.frames += sum(block.frame_count for block in blocks)
            is_last = blocks[0].is_last
            self._tell(blocks)
            announced += 1
            if announced > BLOCKS_AHEAD:
                self._write_block()
        for _ in range(min(announced, BLOCKS_AHEAD)):
            self._write_block()
        ends: list[End] = [peer.hear() for peer in self._peers]
        self._write_all(end.lines for end in ends)
        totals.shown += totals.frames
        for end in ends:
            totals.findings.update(end.findings)
        totals.captures[name] = _sum([end.health for end in ends])

    def _write_block(self) -> None:
        self._write_all(peer.hear() for peer in self._peers)

    def _tell(self, blocks: Sequence[Block]) -> None:
        """Tell each reader about the others."""
        for each in blocks:
            self._widths += (event for event in each.events if isinstance(event[1], int))
        for number, peer in enumerate(self._peers):
            others = (block.events for at, block in enumerate(blocks) if at != number)
            peer.tell(list(merge(*others, key=_KEY)))

    def _write_all(self, parts: Iterable[Lines]) -> None:
        """Write the lines of all readers by their keys; those of one frame come from one reader."""
        rows: list[tuple[int, int, str]] = []
        marks: set[int] = set()
        for part in parts:
            own = {key >> KEY_BITS for key in part.keys}
            if not marks.isdisjoint(own):
                raise NotShared("frames of several readers are complete at once")
            marks |= own
            rows += zip(part.keys, part.days, part.text.split("\n"), strict=False)
        if rows:
            rows.sort(key=_KEY)
            text = "\n".join(chain.from_iterable(map(self._with_headings, rows))) + "\n"
            self.written += len(text)
            self._out.write(text)
        self._out.flush()

    def _with_headings(self, row: tuple[int, int, str]) -> Iterable[str]:
        key, day, line = row
        if day < 0 or day == self._day:
            return (line,)
        is_first, self._day = self._day < 0, day
        above = (self._head(key),) if is_first else ()
        return (*above, date_heading(day, is_coloured=self._is_coloured), line)

    def _head(self, key: int) -> str:
        """Return the names of the columns, as wide as they are at the frame with a key."""
        wide = (size for at, size in self._widths if at <= key and isinstance(size, int))
        text = head_text(max((CONNECTION_WIDTH, *wide)))
        return paint(text, BOLD, is_wanted=self._is_coloured)


def _sum(parts: Sequence[Health]) -> Health:
    """Add up what the readers have counted, each for its own connections."""
    first, *others = parts
    for other in others:
        for each in fields(Health):
            if each.name not in _COMMON:
                value = getattr(first, each.name) + getattr(other, each.name)
                setattr(first, each.name, value)
        other.bytes.file = 0
        first.bytes.add(other.bytes)
    return first
