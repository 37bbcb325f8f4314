"""Writers that show a request together with its response: what the tree and the byte view share.

Owns the block that stands for an exchange; what is shown of a frame is up to subclasses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TextIO

from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.exchange.paired import WholePaired
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.render.text import BOLD, RED, YELLOW, paint, utc_text
from kraftwire.printable import printable, printable_lines
from kraftwire.protocol.error_codes import error_name

__all__ = ["ExchangeWriter"]

_NS_PER_MS = 1_000_000
# So many lines are written together; a frame may have millions.
_LINES_TOGETHER = 256


class ExchangeWriter(WholePaired):
    """Writes a block per exchange; what stands below the block's head is up to subclasses."""

    def __init__(
        self, stream: TextIO, *, topics: TopicNames, is_coloured: bool = False,
        is_full: bool = False, is_live: bool = False, **_options: object,
    ) -> None:
        """Write to a stream. Shape: `is_full` cuts nothing off, `is_live` flushes each block."""
        super().__init__()
        self._stream = stream
        self._topics = topics
        self._is_coloured = is_coloured
        self._is_full = is_full
        self._is_live = is_live

    def exchange(
        self, asked: DecodedFrame | None, answered: DecodedFrame | None, _is_awaited: bool, /
    ) -> None:
        """Write a block."""
        self._write(asked, answered)

    def file_line(self, line: FileLine) -> None:
        """Write a line of a file."""
        self._put(self.file_lines(line))
        if self._is_live:
            self._stream.flush()

    def finish(self) -> None:
        """Write the requests that never got an answer."""
        super().finish()
        self._stream.flush()

    def frame_lines(self, decoded: DecodedFrame) -> list[str] | Iterator[str]:
        """What a subclass shows of a frame; a list only if it is short."""
        raise NotImplementedError

    def file_lines(self, line: FileLine) -> Iterator[str]:
        """What a subclass shows of a line of a file."""
        raise NotImplementedError

    def _write(self, request: DecodedFrame | None, response: DecodedFrame | None) -> None:
        first = request or response
        if first is None:
            return
        ready = [self._head(first, response)]
        for decoded in (request, response):
            if decoded is not None:
                ready.append(self._side(decoded))
                lines = self.frame_lines(decoded)
                if isinstance(lines, list):
                    ready += lines
                else:
                    self._put(iter(ready))
                    self._put(lines)
                    ready = []
                if decoded.findings:
                    ready += self._findings(decoded)
        ready.append("")
        self._put(iter(ready))
        if self._is_live:
            self._stream.flush()

    def _head(self, first: DecodedFrame, response: DecodedFrame | None) -> str:
        frame = first.frame
        parts = []
        if frame.connection:
            parts = [utc_text(frame.time_ns // _NS_PER_MS), frame.connection]
        name = first.api_name or f"API {frame.api_key}"
        parts.append("SASL token" if first.is_token else f"{name} v{frame.api_version}")
        if frame.correlation_id is not None:
            parts.append(f"correlation {frame.correlation_id}")
        if response is not None and response.frame.latency_ms is not None:
            parts.append(f"{response.frame.latency_ms:.3f} ms")
        if response is None and frame.connection and not first.is_token:
            wants = frame.request is not None and frame.request.has_response
            parts.append("no response" if wants else "wants no response")
        return paint("  ".join(parts), BOLD, is_wanted=self._is_coloured)

    def _side(self, decoded: DecodedFrame) -> str:
        frame = decoded.frame
        parts = [f"{frame.direction}: {frame.size:,} bytes, frame {decoded.number}"]
        if decoded.client_id is not None and frame.is_request:
            parts.append(f"client id {printable(decoded.client_id)}")
        if decoded.is_assumed:
            parts.append(f"read as v{decoded.body_version}")
        text = "  " + ", ".join(parts)
        if codes := decoded.error_codes:
            names = ", ".join(map(error_name, codes))
            text += "  " + paint(names, RED, is_wanted=self._is_coloured)
        return text

    def _findings(self, decoded: DecodedFrame) -> Iterator[str]:
        show = not decoded.is_token and not decoded.view.hides_bytes
        for finding in decoded.findings:
            at = "" if finding.offset is None else f" at byte {finding.offset}"
            path = f" {finding.path}" if finding.path else ""
            detail = f"    finding {finding.id}{at}{path}: {finding.text(show_bytes=show)}"
            yield paint(detail, YELLOW, is_wanted=self._is_coloured)

    def _put(self, lines: Iterator[str]) -> None:
        while shown := list(islice(lines, _LINES_TOGETHER)):
            self._stream.write(printable_lines(shown, is_painted=self._is_coloured))
