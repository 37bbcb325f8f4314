"""Requests with their responses: what the table exchanges says about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kraftwire.capture.framing.frames import RESPONSE_LOST, RawFrame
from kraftwire.decode.body.frame import lazy
from kraftwire.decode.body.scan import topics
from kraftwire.decode.exchange.exchanges import split_latency
from kraftwire.decode.exchange.sinks import no_response_text
from kraftwire.spark.captures.bodies import FindingCells, FrameBody
from kraftwire.spark.tables.columns import uuid_text

_NS_PER_MS = 1_000_000


class _NoFrame(NamedTuple):
    """The request or response of an exchange that was not captured."""

    file: None = None
    position: None = None
    size: None = None


NO_FRAME = _NoFrame()


class Exchange:
    """A request, a response, or both.

    `frame` determines time, connection and API: that of the request, if it was captured.
    `latency_ns` is the time between the last packets of both; `cluster` is known for exchanges of a
    quorum. Units: nanoseconds.
    """

    cluster: str | None = None

    def __init__(
        self,
        request: FrameBody | None,
        response: FrameBody | None,
        topic_name: Callable[[str | None, bytes | None], str | None],
    ) -> None:
        """`topic_name` returns the name of a topic by name or id."""
        first = request or response
        assert first is not None
        self.frame: RawFrame = first.frame
        self.request = request
        self.response = response
        self.request_frame = NO_FRAME if request is None else request.frame
        self.response_frame = NO_FRAME if response is None else response.frame
        self.latency_ns = None
        if request is not None and response is not None:
            self.latency_ns = response.frame.time_ns - request.frame.time_ns
        self._topic_name = topic_name

    @lazy
    def wait_ns(self) -> int | None:
        """How long the broker parked a Fetch; None if unknown, 0 for all other requests."""
        request, response, latency = self.request, self.response, self.latency_ns
        if latency is None or request is None or response is None:
            return None
        wait, _ = split_latency(
            self.frame.api_key,
            request.body,
            response.body,
            request_ms=self.frame.time_ns / _NS_PER_MS,
            latency_ms=latency / _NS_PER_MS,
        )
        return None if wait is None else round(wait * _NS_PER_MS)

    @property
    def service_ns(self) -> int | None:
        """The latency without that wait."""
        latency, wait = self.latency_ns, self.wait_ns
        return None if latency is None or wait is None else latency - wait

    @lazy
    def error_codes(self) -> list[int]:
        """The error codes in the response other than 0, each once."""
        response = self.response
        return [] if response is None or response.body is None else response.error_codes

    @property
    def topics(self) -> list[tuple[str | None, str | None, int | None]]:
        """The partitions that the request names; null for a topic without partitions."""
        request = self.request
        if request is None or request.body is None:
            return []
        found = []
        for name, topic_id, partitions in _topic_uses(request.body, request.version):
            id_text = uuid_text(topic_id)
            if name or id_text:
                known = self._topic_name(name or None, topic_id if id_text else None)
                if len(partitions) > 1:
                    partitions = sorted(set(partitions))
                found += [(known, id_text, each) for each in partitions or (None,)]
        return found

    @property
    def finding_cells(self) -> list[FindingCells]:
        """The findings of both frames, and that the capture lost the response."""
        found: list[FindingCells] = []
        asked = self.frame.request
        if self.response is None and asked is not None and asked.lost:
            found.append((RESPONSE_LOST, None, "", no_response_text(asked)))
        for read in (self.request, self.response):
            if read is not None and read.findings:
                found += read.finding_cells
        return found


def _topic_uses(body: Any, version: int) -> list[tuple[str | None, bytes | None, list[int]]]:
    """Return name, id and partitions of the topics in a request; two APIs need no search."""
    if body.NAME == "FetchRequest":
        uses = [(t.topic, t.topic_id, [p.partition for p in t.partitions]) for t in body.topics]
        uses += [(t.topic, t.topic_id, t.partitions) for t in body.forgotten_topics_data]
        return uses
    if body.NAME == "ProduceRequest":
        return [(t.name, t.topic_id, [p.index for p in t.partition_data]) for t in body.topic_data]
    return [(use.name, use.id, list(use.partitions)) for use in topics(body, version)]
