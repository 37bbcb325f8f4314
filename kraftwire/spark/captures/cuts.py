"""Long connections, cut into parts that are decoded independently.

Owns the scout: one pass over the frames of a connection that collects, for each cut, the state that
the next part needs. It reassembles and pairs as the decoder does, so nothing is guessed, but it
skips what takes most time: the bodies that carry records of users.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.capture.framing.frames import Frame, Request
from kraftwire.collector import rare_collection
from kraftwire.decode.body.response_context import needs_learning
from kraftwire.decode.body.topics import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.spark.captures.pieces import Series, Span
from kraftwire.spark.captures.selection import ALL, Selection
from kraftwire.spark.captures.tables import CAPTURE_TABLES, Carried, Pass, Tables

__all__ = ["CUT_BYTES", "Part", "decode_part", "parts", "to_cut"]

# A longer connection is cut if there are other cores to decode its parts. Steady traffic of
# that size takes a second as a whole, and the scout hardly less; traffic without a lane takes ten.
CUT_BYTES = 256 * 1024 * 1024

_PRODUCE, _FETCH = 0, 1
_METADATA_NAME = METADATA_TOPIC.encode()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a connection: the packets in a span, and the state before them.

    `carried` is empty for the first part.
    """

    number: int
    span: Span
    is_last: bool
    carried: bytes = b""


def to_cut(series: Series, size_max: float) -> list[int]:
    """Return the connections that are longer than `size_max` bytes and can be cut.

    None where packets cannot be told apart by connection. Of a packed file every part would
    have to unpack all before it, so its connections stay whole as well.
    """
    if any(file.has_fragments or file.is_packed for file in series.files):
        return []
    return [number for number, talk in enumerate(series.talks, 1) if talk.size > size_max]


def parts(
    series: Series,
    number: int,
    size_max: int,
    tables: Collection[str] = CAPTURE_TABLES,
    selection: Selection = ALL,
) -> Iterator[Part]:
    """Cut a connection; the tables and the selection are those that its parts are decoded for."""
    scout = _Scout(tables, selection, series, number)
    spans = series.spans(number, size_max)
    carried = b""
    for at, span in enumerate(spans, 1):
        is_last = at == len(spans)
        yield Part(number, span, is_last, carried)
        if not is_last:
            carried = scout.pass_over(span)


def decode_part(tables: Tables, series: Series, part: Part) -> Iterator[tuple[str, Any]]:
    """Decode a part; yields as `Tables.bin` does."""
    carried = Carried.start(series, part.number)
    if part.carried:
        carried = pickle.loads(part.carried)
    return tables.part(series, carried, part.span, is_last=part.is_last)


class _Scout(Pass):
    """Passes over a connection without writing rows.

    It reads all frames that may affect later ones. Produce, and Fetch of users' topics, never do;
    of these it reads only the requests that are open at a cut.
    """

    def __init__(
        self, tables: Collection[str], selection: Selection, series: Series, number: int
    ) -> None:
        wanted = Tables(tables, selection)
        super().__init__(wanted, Carried.start(series, number), series)
        self._add = _nowhere
        self._rows = {}
        self._typed = {}
        self._wants_records = False
        # Requests that were not read yet, in order.
        self._unread: dict[Request, Frame] = {}

    def pass_over(self, span: Span) -> bytes:
        """Pass over a span; return the state for the next one."""
        selection = self._selection
        about = self._about
        with rare_collection():
            for frame in self._capture(span, is_last=False):
                is_telling = needs_learning(frame.api_key)
                if selection.is_all or selection.passes(frame):
                    placed = self._placed(frame)
                    if is_telling:
                        self._read_all()
                        self._frame(self._bodies.read(placed))
                    elif self._matters(frame):
                        self._frame(self._bodies.read(placed))
                    else:
                        about.frames += 1
                        about.name = frame.connection
                elif is_telling:
                    self._read_all()
                    self._bodies.read(frame)
        self._read_all()
        return _pickled(self._carried)

    def _matters(self, frame: Frame) -> bool:
        """Whether a frame has to be read now; a request that need not be is kept.
        """
        request = frame.request
        if not frame.is_request:
            # A request that was read is completed, one that was not is dropped.
            return request is None or self._unread.pop(request, None) is None
        if not _is_of_users(frame):
            return True
        if request is not None and request.has_response:
            self._unread[request] = frame
        return False

    def _read_all(self) -> None:
        """Read the requests that are open, with the present state.

        Order: before the state changes from what it was when they arrived.
        """
        about, name = self._about, self._about.name
        unread, self._unread = self._unread, {}
        about.frames -= len(unread)
        for frame in unread.values():
            self._frame(self._bodies.read(frame))
        about.name = name


def _is_of_users(frame: Frame) -> bool:
    """Whether a request moves records of users, as most of those that fill a connection do."""
    if frame.api_key == _FETCH:
        return METADATA_TOPIC_ID not in frame.data and _METADATA_NAME not in frame.data
    return frame.api_key == _PRODUCE


def _nowhere(_table: str, _cells: tuple[Any, ...]) -> None:
    """Discard a row."""


class _Pickler(pickle.Pickler):
    """Pickles messages, whose fields of bytes are views of frames."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, memoryview):
            return memoryview, (bytes(obj),)
        return NotImplemented


def _pickled(carried: Carried) -> bytes:
    out = io.BytesIO()
    _Pickler(out, pickle.HIGHEST_PROTOCOL).dump(carried)
    return out.getvalue()
