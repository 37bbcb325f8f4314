"""Reads frames without packets: one per line as hex, or a stream with length prefixes.

Nothing but the bytes is known, so there is no time and no connection; what a response
answers has to be said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from kraftwire.capture.bounded_lines import read_lines
from kraftwire.capture.framing.frames import Frame, Request
from kraftwire.decode.body.bodies import decode_payload
from kraftwire.errors import StorageError, WireError
from kraftwire.limits import FILE_WINDOW_BYTES, FRAME_SIZE_MAX
from kraftwire.wire.frame import LENGTH_SIZE, frame_size

__all__ = ["RawFrames"]

# A longer line of `kraftwire decode --input hex` is skipped. The largest frame has this size with
# colons between its bytes, and leaves room for a comment.
HEX_LINE_BYTES_MAX = 3 * FRAME_SIZE_MAX + 64 * 1024

_COMMENT = "#"
_RPC = "rpc"
_CUT = "cut-by-capture-end"


@dataclass(slots=True)
class RawFrames:
    """Makes frames from bytes without packets.

    `on_error` is called for what is not a frame. `api` are key and version of the requests that the
    frames answer; None if the frames are requests, whose headers have them.
    """

    file: str
    on_error: Callable[[StorageError], None]
    api: tuple[int, int] | None = None

    def of_hex(self, stream: BinaryIO) -> Iterator[Frame]:
        """Frames in hex, with or without their length prefix; blank lines and comments are skipped.

        Of the lines that are not hex the first is reported, and how many more there are.
        """
        bad = 0
        for number, line in enumerate(read_lines(stream, HEX_LINE_BYTES_MAX), 1):
            problem = f"is longer than {HEX_LINE_BYTES_MAX} bytes"
            if line is not None:
                text = line.decode("ascii", errors="replace")
                text = text.partition(_COMMENT)[0].replace(":", " ").strip()
                if not text:
                    continue
                try:
                    data = bytes.fromhex(text.removeprefix("0x"))
                except ValueError:
                    problem = f"is not hexadecimal: {text[:40]!r}"
                else:
                    yield self._frame(_without_prefix(data))
                    continue
            if not bad:
                self._fail(f"line {number} {problem}")
            bad += 1
        if bad > 1:
            self._fail(f"{bad - 1:,} more lines are not hexadecimal")

    def of_stream(self, stream: BinaryIO) -> Iterator[Frame]:
        """Frames with their length prefixes, one after the other; the last one may be cut off.

        Ends at an impossible length, after which no frame can be found.
        """
        buffer = bytearray()
        position = 0
        try:
            while data := stream.read(FILE_WINDOW_BYTES):
                buffer += data
                while (size := _whole_size(buffer)) is not None:
                    whole = bytes(buffer[LENGTH_SIZE : LENGTH_SIZE + size])
                    yield self._frame(whole, position=position)
                    del buffer[: LENGTH_SIZE + size]
                    position += LENGTH_SIZE + size
            if buffer:
                yield self._cut(bytes(buffer), position)
        except WireError as error:
            self._fail(f"nothing is decoded from here on: {error}", position)

    def _fail(self, problem: str, position: int | None = None) -> None:
        self.on_error(StorageError(problem, file=self.file, position=position))

    def _cut(self, rest: bytes, position: int) -> Frame:
        data = rest[LENGTH_SIZE:]
        size = frame_size(rest) if len(rest) >= LENGTH_SIZE else len(data) + 1
        frame = self._frame(data, size, position=position)
        frame.missing = ((len(data), size - len(data)),)
        frame.end_position = position + len(rest)
        frame.findings = [(_CUT, len(data), "", "the input ends before the frame does")]
        return frame

    def _frame(self, data: bytes, size: int | None = None, *, position: int = -1) -> Frame:
        is_request = self.api is None
        payload = decode_payload(data, is_request=is_request, api=self.api, size=size)
        frame = Frame()
        frame.file = frame.end_file = self.file
        frame.position = position
        frame.end_position = position if position < 0 else position + LENGTH_SIZE + len(data)
        frame.kind = _RPC
        frame.data = data
        frame.size = payload.size
        frame.direction = "request" if is_request else "response"
        frame.api_key, frame.api_version = payload.api_key, payload.api_version
        frame.correlation_id = payload.header.correlation_id if payload.header else None
        frame.connection = ""
        frame.time_ns = -1
        frame.latency_ms = None
        frame.findings = ()
        frame.missing = ()
        frame.request = _request(frame, getattr(payload.header, "client_id", None))
        return frame


def _request(frame: Frame, client_id: str | None) -> Request | None:
    if frame.api_key is None or frame.api_version is None or frame.correlation_id is None:
        return None
    return Request(frame.api_key, frame.api_version, frame.correlation_id, client_id)


def _without_prefix(data: bytes) -> bytes:
    """The payload; a prefix is recognised by its value."""
    is_prefixed = int.from_bytes(data[:LENGTH_SIZE], "big") == len(data) - LENGTH_SIZE
    return data[LENGTH_SIZE:] if is_prefixed and len(data) > LENGTH_SIZE else data


def _whole_size(buffer: bytearray) -> int | None:
    """Size of the first frame's payload if all of it is there."""
    if len(buffer) < LENGTH_SIZE:
        return None
    size = frame_size(bytes(buffer[:LENGTH_SIZE]), limit=FRAME_SIZE_MAX)
    return size if len(buffer) >= LENGTH_SIZE + size else None
