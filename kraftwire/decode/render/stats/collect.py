"""Takes frames and lines of files and counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraftwire import messages
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.render.line_quick import quick_body, quick_errors
from kraftwire.decode.render.pending import Pending
from kraftwire.decode.render.stats.exchanges import Exchanges, Row
from kraftwire.decode.render.stats.fetch_wait import FETCH_APIS, wait_ms
from kraftwire.decode.render.stats.logs import Logs
from kraftwire.protocol.error_codes import error_name
from kraftwire.protocol.versions import API_VERSIONS_KEY
from kraftwire.wire.message import Message

__all__ = ["Collector"]

_NO_CLIENT = "(no client id)"
_UNKNOWN = "(unknown)"
_TOKEN = "SaslToken"
_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class _Asked:
    """What is kept of a request: its row, and of a Fetch its body."""

    row: Row
    time_ns: int
    fetch: Message | None


class Collector:
    """Counts; the first and last time tell what span that was."""

    shows_exchanges = True

    def __init__(self) -> None:
        self.exchanges = Exchanges()
        self.logs = Logs()
        self.first_ns: int | None = None
        self.last_ns = 0
        self._pending: Pending[_Asked] = Pending()

    def quick(self, frame: Frame) -> bool:
        """Count a frame before anybody has decoded it; returns whether that was possible."""
        body = quick_body(frame)
        if body is None:
            return False
        codes = [] if frame.is_request else quick_errors(body, frame.api_version or 0)
        self._add(frame, body, codes)
        return True

    def frame(self, decoded: DecodedFrame) -> None:
        """Count a frame."""
        self._add(decoded.frame, decoded.body, decoded.error_codes)

    def file_line(self, line: FileLine) -> None:
        """Count a line of a file."""
        self.logs.add(line)

    def finish(self) -> None:
        """Count the requests that never got an answer."""
        for each in self._pending.rest():
            each.row.without_response += 1

    def _add(self, frame: Frame, body: Message | None, codes: list[int]) -> None:
        if self.first_ns is None or frame.time_ns < self.first_ns:
            self.first_ns = frame.time_ns
        self.last_ns = max(self.last_ns, frame.time_ns)
        if frame.is_request:
            self._add_request(frame, body)
        else:
            self._add_response(frame, body, codes)

    def _row(self, frame: Frame) -> Row:
        client_id = frame.request.client_id if frame.request is not None else _UNKNOWN
        key = frame.api_key
        if frame.kind != "rpc":
            name = _TOKEN
        else:
            name = _UNKNOWN if key is None else messages.API_NAMES.get(key, f"API {key}")
        version = -1 if frame.api_version is None else frame.api_version
        return self.exchanges.row(name, version, _NO_CLIENT if client_id is None else client_id)

    def _add_request(self, frame: Frame, body: Message | None) -> None:
        row = self._row(frame)
        row.requests += 1
        row.request_bytes += frame.size
        if frame.request is None:
            return
        client_id = frame.request.client_id
        client = self.exchanges.client(_NO_CLIENT if client_id is None else client_id)
        client.add(frame.connection)
        if frame.api_key == API_VERSIONS_KEY and body is not None:
            client.note_software(body)
        if not frame.request.has_response:
            row.without_response += 1
            return
        asked = _Asked(row, frame.time_ns, body if frame.api_key in FETCH_APIS else None)
        for each in self._pending.add(frame.connection, frame.request, asked):
            each.row.without_response += 1

    def _add_response(self, frame: Frame, body: Message | None, codes: list[int]) -> None:
        asked = None
        if frame.request is not None:
            asked = self._pending.take(frame.connection, frame.request)
            for each in self._pending.skipped():
                each.row.without_response += 1
        row = asked.row if asked is not None else self._row(frame)
        row.responses += 1
        row.response_bytes += frame.size
        for code in codes:
            row.errors[error_name(code)] += 1
        latency = frame.latency_ms
        if latency is not None:
            row.latency.add(max(latency, 0.0))
            self._add_service(row, asked, body, max(latency, 0.0))

    def _add_service(
        self, row: Row, asked: _Asked | None, body: Any, latency: float
    ) -> None:
        if asked is None or asked.fetch is None or body is None:
            row.service.add(latency)
            return
        asked_ms = asked.time_ns / _NS_PER_MS
        wait, is_known = wait_ms(asked.fetch, body, asked_ms=asked_ms, latency_ms=latency)
        if wait > 0:
            row.wait.add(wait)
        if is_known:
            row.service.add(latency - wait)
