"""The input of a story: a request, and its response once it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraftwire.story.forwarded import Api

__all__ = ["Talk"]


@dataclass(slots=True)
class Talk:
    """A request and its response.

    `request` is None where the capture lacks it, `response` until it is known. `inside` is the API
    of a request in an envelope, of which the other values are. Units: `asked` and `answered` are
    seconds since the epoch.
    """

    connection: str
    client_id: str
    api: str
    asked: float
    request: Any = None
    answered: float = 0.0
    response: Any = None
    inside: Api | None = None

    @property
    def client(self) -> str:
        """Host and port of the client."""
        return self.connection.rpartition("-")[0]

    @property
    def host(self) -> str:
        """Host of the client."""
        return self.client.rpartition(":")[0]
