"""Requests with their responses: what the table exchanges says about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kraftwire.capture.framing.frames import RESPONSE_LOST
from kraftwire.decode.body.frame import lazy
from kraftwire.decode.body.scan import topics
from kraftwire.decode.exchange import Exchange
from kraftwire.decode.sinks import no_response_text
from kraftwire.spark.captures.bodies import FindingCells, TableFrame
from kraftwire.spark.tables.columns import uuid_text

_NS_PER_MS = 1_000_000


class _NoFrame(NamedTuple):
    """The request or response of an exchange that was not captured."""

    file: None = None
    position: None = None
    size: None = None


NO_FRAME = _NoFrame()


class TableExchange(Exchange):
    """An exchange, and what tables alone say about it.

    `cluster` is known for exchanges of a quorum. Units: nanoseconds.
    """

    cluster: str | None = None
    request: TableFrame | None
    response: TableFrame | None
    first: TableFrame

    def __init__(
        self,
        request: TableFrame | None,
        response: TableFrame | None,
        topic_name: Callable[[str | None, bytes | None], str | None],
    ) -> None:
        """`topic_name` returns the name of a topic by name or id."""
        super().__init__(request, response)
        self.request_frame = request or NO_FRAME
        self.response_frame = response or NO_FRAME
        self._topic_name = topic_name

    @lazy
    def wait_ns(self) -> int | None:
        """How long the broker parked a Fetch; None if unknown, 0 for all other requests."""
        latency = self.latency_ns
        wait = None if latency is None else self.split(latency / _NS_PER_MS)[0]
        return None if wait is None else round(wait * _NS_PER_MS)

    @property
    def service_ns(self) -> int | None:
        """The latency without that wait."""
        latency, wait = self.latency_ns, self.wait_ns
        return None if latency is None or wait is None else latency - wait

    @property
    def topics(self) -> list[tuple[str | None, str | None, int | None]]:
        """The partitions that the request names; null for a topic without partitions."""
        request = self.request
        if request is None or request.body is None:
            return []
        found = []
        for name, topic_id, partitions in _topic_uses(request.body, request.body_version):
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
        asked = self.first.request
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
