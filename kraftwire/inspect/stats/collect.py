"""Collects statistics from frames and from lines of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kraftwire import messages
from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.body.scan import error_codes
from kraftwire.decode.exchange.exchanges import FETCH_APIS, is_held_for_members, wait_ms
from kraftwire.decode.exchange.paired import QuickPaired
from kraftwire.decode.files.report import FileLine
from kraftwire.inspect.stats.exchanges import ExchangeCounts, ExchangeTable
from kraftwire.inspect.stats.logs import PartitionTable
from kraftwire.limits import STATS_ROWS_MAX
from kraftwire.protocol.error_codes import error_name
from kraftwire.protocol.versions import API_VERSIONS_KEY
from kraftwire.wire.message import Message

__all__ = ["StatsCollector"]

_NO_CLIENT = "(no client id)"
_UNKNOWN = "(unknown)"
_TOKEN = "SaslToken"
_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class _KeptRequest:
    """The part of a request that is kept until its response: counts, body of a Fetch, times."""

    row: ExchangeCounts
    time_ns: int
    fetch: Message | None
    is_held: bool


class StatsCollector(QuickPaired[_KeptRequest]):
    """Collects all statistics, and the times of the first and the last frame."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanges = ExchangeTable()
        self.logs = PartitionTable()
        # Connection -> time of its last response.
        self._last_response_ns: dict[str, int] = {}
        self.first_ns: int | None = None
        self.last_ns = 0

    def file_line(self, line: FileLine) -> None:
        """Count a line of a file."""
        self.logs.add(line)

    def _note_time(self, frame: Frame) -> None:
        if self.first_ns is None or frame.time_ns < self.first_ns:
            self.first_ns = frame.time_ns
        self.last_ns = max(self.last_ns, frame.time_ns)

    def _row(self, frame: Frame) -> ExchangeCounts:
        client_id = frame.request.client_id if frame.request is not None else _UNKNOWN
        key = frame.api_key
        if frame.kind != "rpc":
            name = _TOKEN
        else:
            name = _UNKNOWN if key is None else messages.API_NAMES.get(key, f"API {key}")
        version = -1 if frame.api_version is None else frame.api_version
        return self.exchanges.row(name, version, _NO_CLIENT if client_id is None else client_id)

    def keep_request(
        self, frame: Frame, body: Message | None, _decoded: DecodedFrame | None, /
    ) -> _KeptRequest | None:
        """Count a request; return what its response needs of it."""
        self._note_time(frame)
        row = self._row(frame)
        row.requests += 1
        row.request_sizes.add(frame.size)
        if frame.request is None:
            return None
        client_id = frame.request.client_id
        client = self.exchanges.client(_NO_CLIENT if client_id is None else client_id)
        client.add(frame.connection)
        if frame.api_key == API_VERSIONS_KEY and body is not None:
            client.note_software(body)
        fetch = body if frame.api_key in FETCH_APIS else None
        is_held = body is not None and is_held_for_members(frame.api_key, body)
        return _KeptRequest(row, frame.time_ns, fetch, is_held)

    def take_unanswered(self, request: _KeptRequest, _is_awaited: bool, /) -> None:
        """Count a request that gets no response."""
        request.row.without_response += 1

    def take_response(
        self,
        request: _KeptRequest | None,
        frame: Frame,
        body: Message | None,
        decoded: DecodedFrame | None,
        /,
    ) -> None:
        """Count a response."""
        self._note_time(frame)
        if decoded is None:
            codes = error_codes(body, frame.api_version or 0) if body else []
        else:
            codes = decoded.error_codes
        row = request.row if request is not None else self._row(frame)
        row.responses += 1
        row.response_sizes.add(frame.size)
        for code in codes:
            row.errors[error_name(code)] += 1
        if frame.latency_ms is not None:
            self._add_times(row, request, frame, body, codes)

    def _add_times(
        self,
        row: ExchangeCounts,
        request: _KeptRequest | None,
        frame: Frame,
        body: Message | None,
        codes: Sequence[int],
    ) -> None:
        """Split a latency into the wait behind earlier requests, other waits, and service."""
        latency = max(frame.latency_ms or 0.0, 0.0)
        row.latency.add(latency)
        queued = min(self._queued_ms(request, frame), latency)
        if request is not None and request.is_held and not codes:
            row.wait.add(latency)
            return
        wait, is_known = self._wait_ms(request, body, queued, latency)
        if wait > 0:
            row.wait.add(wait)
        if is_known:
            row.service.add(latency - wait)
            if wait <= queued and _may_have_waited(request, body):
                row.unclear.add(latency - wait)

    def _queued_ms(self, request: _KeptRequest | None, frame: Frame) -> float:
        """Return how long a request waited for the answer to an earlier one on its connection.

        Call it once for each answer, as it also notes the time of this one.
        """
        before = self._last_response_ns.pop(frame.connection, None)
        self._last_response_ns[frame.connection] = frame.time_ns
        if len(self._last_response_ns) > STATS_ROWS_MAX:
            del self._last_response_ns[next(iter(self._last_response_ns))]
        if request is None or before is None:
            return 0.0
        return max(0.0, (before - request.time_ns) / _NS_PER_MS)

    def _wait_ms(
        self, request: _KeptRequest | None, body: Message | None, queued: float, latency: float
    ) -> tuple[float, bool]:
        """Return the wait in a latency, and whether the rest is known to be service."""
        if request is None or request.fetch is None or body is None:
            return queued, True
        request_ms = request.time_ns / _NS_PER_MS + queued
        wait, is_known = wait_ms(
            request.fetch, body, request_ms=request_ms, latency_ms=latency - queued
        )
        return queued + wait, is_known


def _may_have_waited(request: _KeptRequest | None, body: Any) -> bool:
    """Whether a Fetch without a visible wait may have been parked.

    Its records are older than it. They can have come late all the same, as those of a changelog
    of Kafka Streams do, whose timestamps are those of the stream.
    """
    fetch: Any = None if request is None else request.fetch
    if fetch is None or body is None or body.error_code or fetch.max_wait_ms <= 0:
        return False
    return any(each.records for topic in body.responses for each in topic.partitions)
