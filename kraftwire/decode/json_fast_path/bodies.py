"""Bodies as JSON, straight from their bytes; batches of users' records too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crc32c import crc32c

from kraftwire import engine
from kraftwire.capture.framing.frames import Frame
from kraftwire.capture.limits import JSON_ROW_BYTES_MIN, JSON_ROWS_FREE
from kraftwire.decode.body.records import FieldBatches, Settings, read_into
from kraftwire.decode.body.scan import RecordsField
from kraftwire.limits import ELEMENT_FREE_COUNT
from kraftwire.records.decoded import family_of_topic
from kraftwire.wire.json_plans import json_plan
from kraftwire.wire.message import Message

__all__ = ["Bodies"]

# Where in the text records belong, where they begin and end, name and id of their topic.
_Gap = tuple[int, int, int, str | None, bytes | None]


class Bodies:
    """Writes bodies by the engine; `encode` is that of `OrdinaryLines`."""

    def __init__(self, settings: Settings, encode: Callable[[object], str]) -> None:
        self._settings = settings
        self._encode = encode
        # The capture that batches come from, and how they begin.
        self._file: str | None = None
        self._head = b""

    def way(self, message: type[Message], version: int) -> Any:
        """Return what writes a message, None if nothing does: without the engine, for one."""
        return json_plan(message.facts(), version)

    def text(self, frame: Frame, plan: Any, position: int) -> bytes | None:
        """Return the JSON of the body at a position; None if there is any finding in it."""
        written = plan.write(frame.data, position, ELEMENT_FREE_COUNT)
        if written is None or written[1] != frame.size:
            return None
        body: bytes = written[0]
        return body if written[2] is None else self._filled(frame, body, written[2])

    def _filled(self, frame: Frame, body: bytes, gaps: list[_Gap]) -> bytes | None:
        """Return a body with its batches filled in."""
        pieces: list[bytes] = []
        last = 0
        rows_left = JSON_ROWS_FREE + sum(gap[2] - gap[1] for gap in gaps) // JSON_ROW_BYTES_MIN
        for at, start, end, name, topic_id in gaps:
            topic = self._settings.topics.name(name, topic_id)
            text = self._heads(frame, start, end, topic)
            if text is None:
                text, rows_left = self._batches(frame, (start, end), topic, rows_left)
            if text is None:
                return None
            pieces += (body[last:at], text)
            last = at
        return b"".join((*pieces, body[last:]))

    def _heads(self, frame: Frame, start: int, end: int, topic: str | None) -> bytes | None:
        """Return batches whose records are not shown, from their headers; None to read them."""
        detail = self._settings.records.detail
        if detail == "full" or (detail == "summary" and topic and family_of_topic(topic)):
            return None
        if frame.file != self._file:
            self._file = frame.file
            self._head = f'{{"file":{self._encode(frame.file)},"position":'.encode("ascii")
        written = engine.core.json_batches(frame.data, start, end, self._head)
        if written is None:
            return None
        view = memoryview(frame.data)
        text: bytes = written[0]
        is_sound = all(crc32c(view[begin:stop]) == crc for crc, begin, stop in written[1])
        return text if is_sound else None

    def _batches(
        self, frame: Frame, place: tuple[int, int], topic: str | None, rows_left: int
    ) -> tuple[bytes | None, int]:
        """Return batches as Python reads them, and how many rows of records may still follow."""
        where = RecordsField((), "records", None, "", topic, None)
        result = FieldBatches(where, topic, frame.file, [])
        data = memoryview(frame.data)[slice(*place)]
        rows_left = read_into(result, data, self._settings.records, rows_left)
        if result.findings:
            return None, 0
        try:
            return self._encode(result.batches).encode("ascii"), rows_left
        except TypeError:
            return None, 0  # a long list of records, which is written piece by piece
