"""The base class of the tree and the byte view: a block for each request with its response.

Owns the block of an exchange; subclasses make the text of each frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TextIO

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.body.records import RecordsForm
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.sinks import DecodedExchangeSink, no_response_text
from kraftwire.decode.text import BOLD, RED, YELLOW, paint, utc_text
from kraftwire.printable import printable, printable_lines, printable_text

_NS_PER_MS = 1_000_000
# Lines are made printable in groups of this size; a frame may have millions.
_LINES_TOGETHER = 256
# Blocks are written together up to this many characters, unless the output is live.
_TEXT_TOGETHER = 64 * 1024


class ExchangeWriter(DecodedExchangeSink):
    """Writes a block per exchange; subclasses make what comes below the heads of the block."""

    def __init__(
        self, stream: TextIO, *, topics: TopicNames, is_coloured: bool = False,
        is_full: bool = False, is_live: bool = False, records: RecordsForm | None = None,
    ) -> None:
        """Write to a stream.

        `is_full` cuts nothing off, `is_live` flushes each block, `records` says how records are
        decoded and whether secrets are shown.
        """
        super().__init__()
        self._stream = stream
        self._topics = topics
        self._is_coloured = is_coloured
        self._is_full = is_full
        self._is_live = is_live
        self._form = records or RecordsForm()
        self._texts: list[str] = []
        self._size = 0

    def exchange(
        self, request: Frame | None, response: Frame | None, _is_awaited: bool, /
    ) -> None:
        """Write the block of a request, a response or both."""
        first = request or response
        if first is None:
            return
        self._add(self._head(first, response))
        for shown in (request, response):
            if shown is not None:
                self._write_frame(shown)
        self._add("\n")
        self.left -= 1
        if self._is_live:
            self._flush()

    def file_line(self, line: FileLine) -> None:
        """Write a line of a file."""
        self._put(self.file_lines(line))
        self.left -= 1
        if self._is_live:
            self._flush()

    def finish(self) -> None:
        """Write the requests that never got an answer."""
        super().finish()
        self._flush()

    def frame_lines(self, frame: Frame) -> Iterator[str]:
        """Return the lines of a frame that a subclass shows."""
        raise NotImplementedError

    def file_lines(self, line: FileLine) -> Iterator[str]:
        """Return the lines that a subclass shows for a line of a file."""
        raise NotImplementedError

    # -- blocks --------------------------------------------------------------------------------

    def _write_frame(self, frame: Frame) -> None:
        self._put(chain((self._side(frame),), self.frame_lines(frame)))
        if frame.findings:
            self._put(self._findings(frame))

    def _head(self, first: Frame, response: Frame | None) -> str:
        parts = []
        if first.connection:
            parts = [utc_text(first.time_ns // _NS_PER_MS), first.connection]
        api = first.api_name or f"API {first.api_key}"
        parts.append("SASL token" if first.is_token else f"{api} v{first.api_version}")
        if first.correlation_id is not None:
            parts.append(f"correlation {first.correlation_id}")
        if response is not None and response.latency_ms is not None:
            parts.append(f"{response.latency_ms:.3f} ms")
        if response is None and first.connection and not first.is_token:
            parts.append(no_response_text(first.request))
        text = paint("  ".join(parts), BOLD, is_wanted=self._is_coloured)
        return printable_lines([text], is_painted=self._is_coloured)

    def _side(self, frame: Frame) -> str:
        """Return the head of a frame: direction, size, number, client id, version and errors."""
        text = f"  {frame.direction}: {frame.size:,} bytes, frame {frame.frame}"
        if frame.is_request and frame.client_id is not None:
            text += f", client id {printable(frame.client_id)}"
        if frame.is_assumed:
            text += f", read as v{frame.body_version}"
        if names := ", ".join(frame.error_names):
            text += "  " + paint(names, RED, is_wanted=self._is_coloured)
        return text

    def _findings(self, frame: Frame) -> Iterator[str]:
        show = not frame.hides_bytes
        for finding in frame.findings:
            at = "" if finding.offset is None else f" at byte {finding.offset}"
            path = f" {finding.path}" if finding.path else ""
            detail = f"    finding {finding.id}{at}{path}: {finding.text(show_bytes=show)}"
            yield paint(detail, YELLOW, is_wanted=self._is_coloured)

    # -- output --------------------------------------------------------------------------------

    def _put(self, lines: Iterator[str]) -> None:
        while shown := list(islice(lines, _LINES_TOGETHER)):
            self._add(printable_lines(shown, is_painted=self._is_coloured))

    def _add(self, text: str) -> None:
        """Add printable lines with their ends to the output."""
        self._texts.append(text)
        self._size += len(text)
        if self._size >= _TEXT_TOGETHER:
            self._send()

    def _send(self) -> None:
        texts, self._texts, self._size = self._texts, [], 0
        self._stream.write(printable_text("".join(texts), is_painted=self._is_coloured))

    def _flush(self) -> None:
        if self._texts:
            self._send()
        self._stream.flush()
