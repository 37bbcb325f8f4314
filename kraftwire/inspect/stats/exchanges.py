"""Counts of exchanges by API, version and client: latencies, sizes and errors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import floor, log
from typing import Any

from kraftwire.limits import STATS_ROWS_MAX

GROWTH = 1.05
ERROR = (GROWTH - 1) / 2

_LOG = log(GROWTH)
# Smaller values count as this one, which is a nanosecond if the unit is milliseconds.
_LEAST = 1e-6


class Histogram:
    """A histogram of values that are not negative."""

    __slots__ = ("_buckets", "count", "largest", "smallest", "total")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0
        self.total = 0.0
        self.smallest = float("inf")
        self.largest = 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        self._buckets[floor(log(max(value, _LEAST)) / _LOG)] += 1
        self.count += 1
        self.total += value
        self.smallest = min(self.smallest, value)
        self.largest = max(self.largest, value)

    def merge(self, other: Histogram) -> None:
        """Add the values of another histogram."""
        self._buckets.update(other._buckets)
        self.count += other.count
        self.total += other.total
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)

    def without(self, others: Histogram) -> Histogram:
        """Return a histogram without some of the values; the smallest and largest stay."""
        rest = Histogram()
        rest._buckets = self._buckets - others._buckets
        rest.count = self.count - others.count
        rest.total = self.total - others.total
        rest.smallest, rest.largest = self.smallest, self.largest
        return rest

    def quantile(self, share: float) -> float | None:
        """Return the value that a share of all values does not exceed; None without values."""
        if not self.count:
            return None
        rank = share * self.count
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                middle: float = GROWTH ** (bucket + 0.5)
                return min(max(middle, self.smallest), self.largest)
        return self.largest

    def to_json(self) -> dict[str, float | int | None]:
        """Return count, p50, p99 and maximum as a JSON object."""
        return {
            "count": self.count,
            "p50": self.quantile(0.5),
            "p99": self.quantile(0.99),
            "max": self.largest if self.count else None,
        }


# Upper bounds of the bars; one more bar counts larger sizes.
BOUNDS = (64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
_BARS = "▁▂▃▄▅▆▇█"
_NONE = "·"

LEGEND = (
    f"(sizes: how many have up to 64 B, 256 B, 1, 4, 16, 64, 256 KiB, 1 MiB, or more; "
    f"{_BARS[0]} few to {_BARS[-1]} most, {_NONE} none)"
)


class Sizes:
    """A distribution of sizes. Units: bytes."""

    __slots__ = ("_counts", "histogram", "total")

    def __init__(self) -> None:
        self.histogram = Histogram()
        self.total = 0
        self._counts = [0] * (len(BOUNDS) + 1)

    def add(self, size: int) -> None:
        """Add a size."""
        self.histogram.add(size)
        self.total += size
        self._counts[_place(size)] += 1

    def merge(self, other: Sizes) -> None:
        """Add the sizes of another distribution."""
        self.histogram.merge(other.histogram)
        self.total += other.total
        self._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]

    def bars(self) -> str:
        """Draw a bar for each bound and one for larger sizes; the tallest is the most frequent."""
        peak = max(self._counts)
        if not peak:
            return ""
        top = len(_BARS)
        return "".join(
            _BARS[-(-count * top // peak) - 1] if count else _NONE for count in self._counts
        )

    def to_json(self) -> dict[str, Any]:
        """Return quantiles, and counts with their upper bounds, null for none, as a JSON object."""
        bounds = [*BOUNDS, None]
        counts = [
            {"upTo": bound, "count": count}
            for bound, count in zip(bounds, self._counts, strict=True)
            if count
        ]
        return {**self.histogram.to_json(), "total": self.total, "counts": counts}


def _place(size: int) -> int:
    return next((at for at, bound in enumerate(BOUNDS) if size <= bound), len(BOUNDS))


OTHERS = "(others)"
_SOFTWARE_MAX = 16


@dataclass(frozen=True, slots=True)
class ExchangeKey:
    """The API, version and client of a row of counts."""

    api: str
    version: int
    client_id: str


@dataclass(slots=True)
class ExchangeCounts:
    """Counts, latencies and sizes of exchanges with one API, version and client.

    `latency` is of all answered requests. `service` leaves out requests whose service time is not
    known: Fetches without records, and requests that are held until other members of a group have
    come. `wait` is of requests that waited, including those that waited behind earlier requests on
    their connection. `unclear` is of those in `service` that may have waited all the same.

    Units: histograms of times hold milliseconds, those of sizes bytes.
    """

    requests: int = 0
    responses: int = 0
    without_response: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latency: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)
    wait: Histogram = field(default_factory=Histogram)
    unclear: Histogram = field(default_factory=Histogram)
    request_sizes: Sizes = field(default_factory=Sizes)
    response_sizes: Sizes = field(default_factory=Sizes)

    @property
    def request_bytes(self) -> int:
        """The bytes of all requests."""
        return self.request_sizes.total

    @property
    def response_bytes(self) -> int:
        """The bytes of all responses."""
        return self.response_sizes.total

    @property
    def clear_service(self) -> Histogram:
        """The service of requests that surely did not wait meanwhile."""
        return self.service.without(self.unclear) if self.unclear.count else self.service

    def merge(self, other: ExchangeCounts) -> None:
        """Add the counts of another row."""
        self.requests += other.requests
        self.responses += other.responses
        self.without_response += other.without_response
        self.request_sizes.merge(other.request_sizes)
        self.response_sizes.merge(other.response_sizes)
        self.errors += other.errors
        self.latency.merge(other.latency)
        self.service.merge(other.service)
        self.wait.merge(other.wait)
        self.unclear.merge(other.unclear)


@dataclass(slots=True)
class Client:
    """A client id: its software as given in ApiVersions, and its connections."""

    software: set[str] = field(default_factory=set)
    connections: set[str] = field(default_factory=set)

    def add(self, connection: str) -> None:
        """Add a connection."""
        if len(self.connections) < STATS_ROWS_MAX:
            self.connections.add(connection)

    def note_software(self, body: Any) -> None:
        """Note the client's software from the body of an ApiVersions request."""
        text = f"{body.client_software_name} {body.client_software_version}".strip()
        if text and len(self.software) < _SOFTWARE_MAX:
            self.software.add(text)


class ExchangeTable:
    """Counts by API, version and client; beyond a limit, further clients share a row."""

    def __init__(self) -> None:
        self.rows: dict[ExchangeKey, ExchangeCounts] = {}
        self.clients: dict[str, Client] = {}

    def row(self, api: str, version: int, client_id: str) -> ExchangeCounts:
        """Return the row of an exchange, which is added if it is new."""
        key = ExchangeKey(api, version, client_id)
        row = self.rows.get(key)
        if row is None:
            if len(self.rows) >= STATS_ROWS_MAX:
                key = ExchangeKey(api, version, OTHERS)
            row = self.rows.setdefault(key, ExchangeCounts())
        return row

    def client(self, client_id: str) -> Client:
        """Return the client with an id, which is added if it is new."""
        client = self.clients.get(client_id)
        if client is None:
            if len(self.clients) >= STATS_ROWS_MAX:
                client_id = OTHERS
            client = self.clients.setdefault(client_id, Client())
        return client

    def by_api(self) -> dict[tuple[str, int], ExchangeCounts]:
        """Return a row for each API and version, which counts all clients."""
        merged: dict[tuple[str, int], ExchangeCounts] = {}
        for key, row in self.rows.items():
            merged.setdefault((key.api, key.version), ExchangeCounts()).merge(row)
        return merged

    def by_client(self) -> dict[str, ExchangeCounts]:
        """Return a row for each client, which counts all APIs."""
        merged: dict[str, ExchangeCounts] = {}
        for key, row in self.rows.items():
            merged.setdefault(key.client_id, ExchangeCounts()).merge(row)
        return merged
