"""Why an accepted connection ends, and counters over all of them."""

from __future__ import annotations

from dataclasses import dataclass, field


class ConnectionEnded(Exception):
    """Ends a connection. `cause` is a short word from a fixed set, for counting."""

    def __init__(self, cause: str, problem: str = "") -> None:
        self.cause = cause
        super().__init__(problem)


@dataclass(slots=True)
class ConnectionStats:
    """Counters over all accepted connections. `requests` by API name, `closed` by cause."""

    accepted: int = 0
    refused: int = 0
    open: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)

    def count_request(self, name: str) -> None:
        """Count a request of an API."""
        self.requests[name] = self.requests.get(name, 0) + 1

    def count_close(self, cause: str) -> None:
        """Count a connection that has ended."""
        self.closed[cause] = self.closed.get(cause, 0) + 1
