"""Counts of exchanges by API, version and client."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kraftwire.inspect.stats.histogram import Histogram
from kraftwire.inspect.stats.sizes import Sizes
from kraftwire.limits import STATS_ROWS_MAX

__all__ = ["Client", "Exchanges", "Row", "RowKey"]

OTHERS = "(others)"
_SOFTWARE_MAX = 16


@dataclass(frozen=True, slots=True)
class RowKey:
    """The API, version and client that a row counts."""

    api: str
    version: int
    client_id: str


@dataclass(slots=True)
class Row:
    """The counts of a row.

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

    def merge(self, other: Row) -> None:
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


class Exchanges:
    """All rows; beyond a limit, further clients share one."""

    def __init__(self) -> None:
        self.rows: dict[RowKey, Row] = {}
        self.clients: dict[str, Client] = {}

    def row(self, api: str, version: int, client_id: str) -> Row:
        """Return the row of an exchange, which is added if it is new."""
        key = RowKey(api, version, client_id)
        row = self.rows.get(key)
        if row is None:
            if len(self.rows) >= STATS_ROWS_MAX:
                key = RowKey(api, version, OTHERS)
            row = self.rows.setdefault(key, Row())
        return row

    def client(self, client_id: str) -> Client:
        """Return the client with an id, which is added if it is new."""
        client = self.clients.get(client_id)
        if client is None:
            if len(self.clients) >= STATS_ROWS_MAX:
                client_id = OTHERS
            client = self.clients.setdefault(client_id, Client())
        return client

    def by_api(self) -> dict[tuple[str, int], Row]:
        """Return a row for each API and version, which counts all clients."""
        merged: dict[tuple[str, int], Row] = {}
        for key, row in self.rows.items():
            merged.setdefault((key.api, key.version), Row()).merge(row)
        return merged

    def by_client(self) -> dict[str, Row]:
        """Return a row for each client, which counts all APIs."""
        merged: dict[str, Row] = {}
        for key, row in self.rows.items():
            merged.setdefault(key.client_id, Row()).merge(row)
        return merged
