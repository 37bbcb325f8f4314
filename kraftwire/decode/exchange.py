"""Exchanges of captures: a request with its response, and how long the server made it wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.decode.sinks import DecodedExchangeSink
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import error_name
from kraftwire.records.header import HEADER_SIZE, MAGIC, fields
from kraftwire.wire.message import Message

FETCH_APIS = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})

_MADE = fields("magic", "max_timestamp")


def split_latency(
    api_key: int | None, request: Any, response: Any, *, request_ms: float, latency_ms: float
) -> tuple[float | None, float | None]:
    """Split a latency into the wait of a Fetch for records, and the server's work on a request.

    `request` and `response` are the bodies, None where one is not known. Returns None for what is
    not known. Units: milliseconds; `request_ms` since the epoch.
    """
    if api_key not in FETCH_APIS:
        return 0.0, latency_ms
    if request is None or response is None:
        return None, None
    limit = min(latency_ms, float(request.max_wait_ms))
    if response.error_code or limit <= 0:
        return 0.0, latency_ms
    made: int | None = None
    has_error = False
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.error_code:
                has_error = True
            records = partition.records
            if records:
                time = _made(records)
                made = time if made is None or time < made else made
    if made is not None:
        wait = min(max(made - request_ms, 0.0), limit)
        return wait, latency_ms - wait
    return (0.0, latency_ms) if has_error else (limit, None)


def is_held_for_members(api_key: int | None, request: Any) -> bool:
    """Whether a coordinator answers a request only after other members of its group sent theirs.

    This is so for JoinGroup, and for the SyncGroup of a member that does not bring the
    assignments itself. A request that is refused is answered at once.
    """
    if api_key == ApiKey.SYNC_GROUP:
        return not request.assignments
    return api_key == ApiKey.JOIN_GROUP


def _made(records: memoryview) -> int:
    """When the first batch was made; 0 if it does not say so in its current place."""
    if len(records) < HEADER_SIZE:
        return 0
    magic, time = _MADE.unpack_from(records)
    return time if magic == MAGIC else 0


_NS_PER_MS = 1_000_000


class Exchange:
    """A request with its response; one of the two may be missing.

    `first` is the request, or the response of one that is not in the capture; `is_awaited` if a
    response should have come. Units: as the names say.
    """

    def __init__(
        self, request: Frame | None, response: Frame | None, is_awaited: bool = True
    ) -> None:
        first = request or response
        assert first is not None
        self.request, self.response, self.first = request, response, first
        self.is_awaited = is_awaited

    @property
    def connection(self) -> str:
        """Both ends: "client:port-server:port"."""
        return self.first.connection

    @property
    def api_key(self) -> int | None:
        """Key of the API; None if it is not known."""
        return self.first.api_key

    @property
    def api_name(self) -> str | None:
        """Name of the API without Request or Response; None if it is not known."""
        return self.first.api_name

    @property
    def api_version(self) -> int | None:
        """Version of the request; None if it is not known."""
        return self.first.api_version

    @property
    def correlation_id(self) -> int | None:
        """The id that both carry; None for bare SASL tokens."""
        return self.first.correlation_id

    @property
    def client_id(self) -> str | None:
        """The client id of the request."""
        return self.first.client_id

    @property
    def request_body(self) -> Message | None:
        """The body of the request, None if it could not be decoded as a whole."""
        return None if self.request is None else self.request.body

    @property
    def response_body(self) -> Message | None:
        """The body of the response, None if it could not be decoded as a whole."""
        return None if self.response is None else self.response.body

    @property
    def is_response_lost(self) -> bool:
        """Whether the server sent the response, and the capture lost it."""
        request = self.first.request
        return request is not None and request.lost is not None

    @property
    def latency_ms(self) -> float | None:
        """Milliseconds between the last packets of both; None unless both are whole."""
        return None if self.response is None else self.response.latency_ms

    @property
    def latency_ns(self) -> int | None:
        """The same in nanoseconds, also where bytes of them are missing."""
        request, response = self.request, self.response
        if request is None or response is None:
            return None
        return response.time_ns - request.time_ns

    @property
    def wait_ms(self) -> float | None:
        """Milliseconds of the latency for which a Fetch waited for records; 0 for other requests.

        None where it is not known.
        """
        return self._split()[0]

    @property
    def service_ms(self) -> float | None:
        """Milliseconds of the latency that were the server's work; None where it is not known."""
        return self._split()[1]

    def _split(self) -> tuple[float | None, float | None]:
        latency = self.latency_ms
        return (None, None) if latency is None else self.split(max(latency, 0.0))

    def split(self, latency_ms: float) -> tuple[float | None, float | None]:
        """Split a latency of the exchange into the wait of a Fetch and service."""
        request = self.request
        if request is None:
            return None, None
        return split_latency(
            self.api_key,
            request.body,
            self.response_body,
            request_ms=request.time_ns / _NS_PER_MS,
            latency_ms=latency_ms,
        )

    @property
    def error_codes(self) -> list[int]:
        """Error codes in the response other than 0, each once."""
        return [] if self.response is None else self.response.error_codes

    @property
    def error_names(self) -> list[str]:
        """The names of the error codes."""
        return [error_name(code) for code in self.error_codes]


def exchanges(
    frames: Iterable[RawFrame], decoder: FrameDecoder | None = None
) -> Iterator[Exchange]:
    """Yield the exchanges of frames, in the order in which they are complete.

    Frames come in the order of a capture. `decoder` decodes them, by default with records in full
    and secrets hidden. Requests that wait for responses share
    a budget of memory; when it is used up, the requests that wait longest are returned without
    their responses.
    """
    decode = (decoder or FrameDecoder(Settings())).decode
    pairs = _ExchangeList()
    for frame in frames:
        pairs.frame(decode(frame))
        if pairs.found:
            yield from pairs.found
            pairs.found.clear()
    pairs.finish()
    yield from pairs.found


class _ExchangeList(DecodedExchangeSink):
    """Collects exchanges in `found`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Exchange] = []

    def exchange(
        self, request: Frame | None, response: Frame | None, is_awaited: bool, /
    ) -> None:
        self.found.append(Exchange(request, response, is_awaited))
