"""Long connections, cut into parts that are decoded independently.

Owns the state reader: one pass over the frames of a connection that collects, for each cut, the
state that the next part needs. It reassembles and pairs as the decoder does, so nothing is guessed,
but it skips what takes most time: the bodies that carry records of users.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.collector import rare_collection
from kraftwire.decode.body.ordinary import needs_learning, ordinary_body
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.spark.captures.bodies import TableFrame
from kraftwire.spark.captures.exchange import TableExchange
from kraftwire.spark.captures.recording import Recording, Span
from kraftwire.spark.captures.selection import ALL, Selection
from kraftwire.spark.captures.tables import (
    CAPTURE_TABLES,
    CaptureTables,
    ConnectionDecoder,
    ConnectionState,
)

_METADATA_NAME = METADATA_TOPIC.encode()


@dataclass(frozen=True, slots=True)
class ConnectionPart:
    """A part of a connection: the packets in a span, and the state before them.

    `state` is empty for the first part.
    """

    number: int
    span: Span
    is_last: bool
    state: bytes = b""


def parts(
    recording: Recording,
    number: int,
    size_max: int,
    tables: Collection[str] = CAPTURE_TABLES,
    selection: Selection = ALL,
) -> Iterator[ConnectionPart]:
    """Cut a connection; the tables and the selection are those that its parts are decoded for."""
    reader = _StateReader(tables, selection, recording, number)
    spans = recording.spans(number, size_max)
    state = b""
    for at, span in enumerate(spans, 1):
        is_last = at == len(spans)
        yield ConnectionPart(number, span, is_last, state)
        if not is_last:
            state = reader.advance(span)


def decode_part(
    tables: CaptureTables, recording: Recording, part: ConnectionPart
) -> Iterator[tuple[str, Any]]:
    """Decode a part; yields as `CaptureTables.decode` does."""
    state = ConnectionState.start(recording, part.number)
    if part.state:
        state = pickle.loads(part.state)
    return tables.decode_part(recording, state, part.span, is_last=part.is_last)


class _StateReader(ConnectionDecoder):
    """Reads a connection for the state between its parts, without rows.

    It reads all frames that may affect later ones. Produce, and Fetch of users' topics, never do;
    of these it reads only the requests that are open at a cut.
    """

    def __init__(
        self, tables: Collection[str], selection: Selection, recording: Recording, number: int
    ) -> None:
        wanted = CaptureTables(tables, selection)
        super().__init__(wanted, ConnectionState.start(recording, number), recording)
        self._add = _discard

    def _steps_of_frames(self) -> Iterator[Callable[[TableFrame], None]]:
        if self._wants_exchanges:
            yield self._pair

    def _steps_of_exchanges(self) -> Iterator[Callable[[TableExchange], None]]:
        if self._wants_raft:
            yield self._add_of_quorums

    def advance(self, span: Span) -> bytes:
        """Read the frames of a span; return the state for the next one."""
        passes = self._selection.passes
        with rare_collection():
            for frame in self._capture(span, is_last=False):
                is_learned_from = needs_learning(frame.api_key)
                if is_learned_from:
                    self._read_pending()
                if passes(frame):
                    self._move_positions([frame])
                    if is_learned_from or not self._skip(frame):
                        self._add_frame(self._read(frame))
                elif is_learned_from:
                    self._read(frame)
        self._read_pending()
        return _pickled(self._state)

    def _skip(self, frame: RawFrame) -> bool:
        """Count a frame of users' records without reading it; returns whether it is one."""
        request = frame.request
        if request is None or not isinstance(frame, TableFrame):
            return False
        if frame.is_request:
            if not _is_of_users(frame):
                return False
            if request.has_response and self._wants_exchanges:
                self._keep_request(frame, request)
        elif (kept := self._pending.get(request)) is not None and not kept.is_read:
            self._pending.take(request)
            self._add_skipped()
        else:
            return False
        self._about.frames += 1
        self._about.name = frame.connection
        return True

    def _add_skipped(self) -> None:
        for each in self._pending.take_dropped():
            if each.is_read:
                self._add_exchange(self._exchange_of(each, None))

    def _read(self, frame: RawFrame) -> TableFrame:
        return self._bodies.read(frame, ordinary_body(frame))

    def _read_pending(self) -> None:
        """Read the requests that wait and were skipped, with the present state.

        Order: before the state changes from what it was when they arrived.
        """
        self._pending.replace(lambda kept: kept if kept.is_read else self._read(kept))


def _is_of_users(frame: RawFrame) -> bool:
    """Whether a request moves records of users, as most of those that fill a connection do."""
    if frame.api_key == ApiKey.FETCH:
        return METADATA_TOPIC_ID not in frame.data and _METADATA_NAME not in frame.data
    return frame.api_key == ApiKey.PRODUCE


def _discard(_table: str, _about: object) -> None:
    """Discard a row."""


class _Pickler(pickle.Pickler):
    """Pickles messages, whose fields of bytes are views of frames."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, memoryview):
            return memoryview, (bytes(obj),)
        return NotImplemented


def _pickled(state: ConnectionState) -> bytes:
    out = io.BytesIO()
    _Pickler(out, pickle.HIGHEST_PROTOCOL).dump(state)
    return out.getvalue()
