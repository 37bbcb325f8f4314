"""Requests and their responses, as the tables receive them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraftwire.decode.body.scan import error_codes, topics
from kraftwire.decode.exchange.wait import FETCH_APIS, wait_ms
from kraftwire.protocol.error_codes import error_name
from kraftwire.spark.captures.bodies import Bodies, Read
from kraftwire.spark.captures.findings import finding_cells
from kraftwire.spark.captures.place import ends, micros, uuid_text

__all__ = ["Exchange", "exchange_cells"]

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
    return error_codes(response.body, response.version)


def _topics(request: Read | None, bodies: Bodies) -> list[tuple[Any, ...]]:
    """Return the partitions that a request names; null for a topic without partitions."""
    if request is None or request.body is None:
        return []
    body = request.body
    if body.NAME == "FetchRequest":
        uses = [(t.topic, t.topic_id, [p.partition for p in t.partitions]) for t in body.topics]
        uses += [(t.topic, t.topic_id, t.partitions) for t in body.forgotten_topics_data]
    elif body.NAME == "ProduceRequest":
        uses = [(t.name, t.topic_id, [p.index for p in t.partition_data]) for t in body.topic_data]
    else:
        uses = [(t.name, t.id, list(t.partitions)) for t in topics(body, request.version)]
    found = []
    for name, topic_id, partitions in uses:
        id_text = uuid_text(topic_id)
        if name or id_text:
            known = bodies.topic_name(name or None, topic_id if id_text else None)
            if len(partitions) > 1:
                partitions = sorted(set(partitions))
            found += [(known, id_text, each) for each in partitions or (None,)]
    return found
