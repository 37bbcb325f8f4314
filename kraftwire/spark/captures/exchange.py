"""Requests and their responses, as the tables receive them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.capture.framing.frames import Request
from kraftwire.decode.body.scan import error_codes, topics
from kraftwire.decode.exchange.wait import FETCH_APIS, wait_ms
from kraftwire.limits import PENDING_REQUESTS_MAX
from kraftwire.limits import RENDER_PENDING_BYTES_MAX as PENDING_BYTES_MAX
from kraftwire.protocol.error_codes import error_name
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.findings import finding_cells
from kraftwire.spark.captures.place import ends, micros, uuid_text
from kraftwire.wire.message import Message

__all__ = ["Exchange", "Exchanges", "exchange_cells"]

_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class Exchange:
    """A request, a response, or both."""

    request: Read | None
    response: Read | None

    @property
    def first(self) -> Read:
        """Return the frame that determines time, connection and API."""
        first = self.request or self.response
        assert first is not None
        return first

    @property
    def latency_ns(self) -> int | None:
        """The time between the last packets of request and response; None if either is missing."""
        if self.request is None or self.response is None:
            return None
        return self.response.frame.time_ns - self.request.frame.time_ns


class Exchanges:
    """Keeps requests of a connection until their responses arrive.

    The number and size of open requests are limited; the oldest are dropped, so that a capture of
    one direction is not held in memory.
    """

    def __init__(self) -> None:
        self._waiting: dict[Request, Read] = {}
        self._bytes = 0

    def add(self, read: Read) -> Iterator[Exchange]:
        """Return the exchanges that a frame completes."""
        frame = read.frame
        request = frame.request
        if not frame.is_request:
            asked = self._waiting.pop(request, None) if request is not None else None
            self._bytes -= 0 if asked is None else asked.frame.size
            yield Exchange(asked, read)
        elif request is None or not request.has_response:
            yield Exchange(read, None)
        else:
            self._waiting[request] = read
            self._bytes += frame.size
            while self._is_too_much():
                oldest = self._waiting.pop(next(iter(self._waiting)))
                self._bytes -= oldest.frame.size
                yield Exchange(oldest, None)

    def _is_too_much(self) -> bool:
        count = len(self._waiting)
        return count > PENDING_REQUESTS_MAX or (count > 1 and self._bytes > PENDING_BYTES_MAX)

    def rest(self) -> Iterator[Exchange]:
        """Return the requests without a response."""
        waiting, self._waiting, self._bytes = self._waiting, {}, 0
        for read in waiting.values():
            yield Exchange(read, None)


def exchange_cells(exchange: Exchange, bodies: Bodies, api_name: str | None) -> tuple[Any, ...]:
    """The row of an exchange."""
    first, request, response = exchange.first, exchange.request, exchange.response
    frame = first.frame
    client, server = ends(frame.connection)
    latency = exchange.latency_ns
    wait = _wait_ns(exchange, latency)
    codes = _errors(response)
    asked = frame.request
    return (
        frame.file,
        frame.position,
        None if response is None else response.frame.file,
        None if response is None else response.frame.position,
        frame.connection,
        client,
        server,
        micros(frame.time_ns),
        frame.time_ns,
        frame.api_key,
        api_name,
        frame.api_version,
        frame.correlation_id,
        None if asked is None else asked.client_id,
        None if request is None else request.frame.size,
        None if response is None else response.frame.size,
        latency,
        wait,
        None if latency is None or wait is None else latency - wait,
        codes,
        [error_name(code) for code in codes] if codes else codes,
        _topics(request, bodies),
        [cell for read in (request, response) if read for cell in finding_cells(read)],
    )


def _wait_ns(exchange: Exchange, latency: int | None) -> int | None:
    """Return how long the broker parked a Fetch; None if unknown, 0 for all other requests."""
    request, response = exchange.request, exchange.response
    if latency is None or request is None or response is None:
        return None
    if request.frame.api_key not in FETCH_APIS:
        return 0
    if request.body is None or response.body is None:
        return None
    wait, is_known = wait_ms(
        request.body,
        response.body,
        asked_ms=request.frame.time_ns / _NS_PER_MS,
        latency_ms=latency / _NS_PER_MS,
    )
    return min(round(wait * _NS_PER_MS), latency) if is_known or wait else None


def _errors(response: Read | None) -> list[int]:
    if response is None or response.body is None:
        return []
    if response.decoded is not None:
        return response.decoded.error_codes
    memo = response.memo
    if memo is None:
        return error_codes(response.body, response.version)
    if "errors" not in memo:
        memo["errors"] = error_codes(response.body, response.version)
    codes: list[int] = memo["errors"]
    return codes


def _topics(request: Read | None, bodies: Bodies) -> list[tuple[Any, ...]]:
    """Return the partitions that a request names; null for a topic without partitions."""
    if request is None or request.body is None:
        return []
    if request.memo is not None and "topics" in request.memo:
        known: list[tuple[Any, ...]] = request.memo["topics"]
        return known
    body: Message = request.body
    if body.NAME == "ProduceRequest":
        return _produced(body, bodies)
    found: list[tuple[Any, ...]] = []
    for use in topics(body, request.version):
        name, id = bodies.topic_name(use.name, use.id), uuid_text(use.id)
        found.extend((name, id, each) for each in sorted(use.partitions))
        if not use.partitions:
            found.append((name, id, None))
    if request.memo is not None and all(name for name, _, _ in found):
        request.memo["topics"] = found
    return found


def _produced(body: Any, bodies: Bodies) -> list[tuple[Any, ...]]:
    """Return the partitions that a Produce request names; faster than the general search."""
    found: list[tuple[Any, ...]] = []
    for topic in body.topic_data:
        id_text = uuid_text(topic.topic_id)
        if topic.name or id_text:
            name = bodies.topic_name(topic.name or None, topic.topic_id if id_text else None)
            parts = sorted({part.index for part in topic.partition_data})
            found.extend((name, id_text, each) for each in parts or (None,))
    return found
