"""Counts of exchanges by API, version and client."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kraftwire.decode.render.stats.histogram import Histogram
from kraftwire.decode.render.stats.sizes import Sizes
from kraftwire.limits import STATS_ROWS_MAX

__all__ = ["Client", "Exchanges", "Row", "RowKey"]

OTHERS = "(others)"
_SOFTWARE_MAX = 16


@dataclass(frozen=True, slots=True)
class RowKey:
    """What a row is about."""

    api: str
    version: int
    client_id: str


@dataclass(slots=True)
class Row:
    """What was counted.

    Units: histograms of times hold milliseconds, those of sizes bytes. Shape: `latency` is of all
    answered requests. `service` is of those of which it is known, which are all but Fetches
    without records and requests that are held until other members of a group come along; `wait` is
    of the requests that waited for anything, their turn on the connection included.
    """

    requests: int = 0
    responses: int = 0
    without_response: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latency: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)
    wait: Histogram = field(default_factory=Histogram)
    request_sizes: Sizes = field(default_factory=Sizes)
    response_sizes: Sizes = field(default_factory=Sizes)

    @property
    def request_bytes(self) -> int:
        """Bytes of all requests."""
        return self.request_sizes.total

    @property
    def response_bytes(self) -> int:
        """Bytes of all responses."""
        return self.response_sizes.total

    def merge(self, other: Row) -> None:
        """Add what another row has counted."""
        self.requests += other.requests
        self.responses += other.responses
        self.without_response += other.without_response
        self.request_sizes.merge(other.request_sizes)
        self.response_sizes.merge(other.response_sizes)
        self.errors += other.errors
        self.latency.merge(other.latency)
        self.service.merge(other.service)
        self.wait.merge(other.wait)


@dataclass(slots=True)
class Client:
    """A client id: the software that it told in ApiVersions, and its connections."""

    software: set[str] = field(default_factory=set)
    connections: set[str] = field(default_factory=set)

    def add(self, connection: str) -> None:
        """Note a connection."""
        if len(self.connections) < STATS_ROWS_MAX:
            self.connections.add(connection)

    def note_software(self, body: Any) -> None:
        """Note what an ApiVersions request says of the client."""
        text = f"{body.client_software_name} {body.client_software_version}".strip()
        if text and len(self.software) < _SOFTWARE_MAX:
            self.software.add(text)


class Exchanges:
    """All rows; beyond a limit, clients share one."""

    def __init__(self) -> None:
        self.rows: dict[RowKey, Row] = {}
        self.clients: dict[str, Client] = {}

    def row(self, api: str, version: int, client_id: str) -> Row:
        """The row of an exchange."""
        key = RowKey(api, version, client_id)
        row = self.rows.get(key)
        if row is None:
            if len(self.rows) >= STATS_ROWS_MAX:
                key = RowKey(api, version, OTHERS)
            row = self.rows.setdefault(key, Row())
        return row

    def client(self, client_id: str) -> Client:
        """What is known of a client id."""
        client = self.clients.get(client_id)
        if client is None:
            if len(self.clients) >= STATS_ROWS_MAX:
                client_id = OTHERS
            client = self.clients.setdefault(client_id, Client())
        return client

    def by_api(self) -> dict[tuple[str, int], Row]:
        """The rows of all clients together."""
        merged: dict[tuple[str, int], Row] = {}
        for key, row in self.rows.items():
            merged.setdefault((key.api, key.version), Row()).merge(row)
        return merged

    def by_client(self) -> dict[str, Row]:
        """The rows of all APIs together."""
        merged: dict[str, Row] = {}
        for key, row in self.rows.items():
            merged.setdefault(key.client_id, Row()).merge(row)
        return merged
