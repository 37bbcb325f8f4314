"""Bodies as JSON by Python, without the annotations and findings that ordinary ones lack."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.decode.body.records import Settings, batches_in, json_with_batches
from kraftwire.decode.body.scan import unknown_tags
from kraftwire.decode.body.weight import is_message_bomb
from kraftwire.decode.framing.frames import Frame
from kraftwire.errors import WireError
from kraftwire.wire.message import Message

__all__ = ["PlainBodies"]

_Way = tuple[type[Message], int]


class PlainBodies:
    """Writes bodies in Python; `encode` is that of `ShortLines`."""

    def __init__(self, settings: Settings, encode: Callable[[object], str]) -> None:
        self._settings = settings
        self._encode = encode

    def way(self, message: type[Message], version: int) -> _Way:
        """Return how to decode a message."""
        return message, version

    def text(self, frame: Frame, way: _Way, position: int) -> bytes | None:
        """Return the JSON of the body at a position; None if there is any finding in it."""
        message, version = way
        data = frame.data
        if is_message_bomb(message, data, version, position):
            return None
        try:
            body, end = message.decode(data, version, position)
            if end != frame.size or body.encode(version) != data[position:]:
                return None
        except WireError:
            return None
        shown = self._settings.shown
        if unknown_tags(body, version) or (shown and shown.is_too_much(body, end, end)):
            return None
        batches = batches_in(body, version, self._settings, frame.file)
        if any(each.findings for each in batches):
            return None
        try:
            return self._encode(json_with_batches(body, version, batches)).encode("ascii")
        except TypeError:
            return None  # a long list of records, which is written piece by piece
