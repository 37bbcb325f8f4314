"""What went through a proxy: requests by client and API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kraftwire import messages
from kraftwire.limits import STATS_CLIENT_ROWS_MAX

# Clients beyond the limit share a row.
_OTHERS = b"(others)"


class Traffic:
    """Counts the requests of all connections."""

    def __init__(self) -> None:
        self._by_client: dict[bytes | None, Counter[int]] = {}

    def client(self, client_id: bytes | None) -> Counter[int]:
        """Return the counter of a client, by API key; the id is as sent, None for none."""
        found = self._by_client.get(client_id)
        if found is None:
            if len(self._by_client) >= STATS_CLIENT_ROWS_MAX:
                client_id = _OTHERS
            found = self._by_client.setdefault(client_id, Counter())
        return found

    def rows(self) -> Iterator[tuple[str | None, str, int]]:
        """Yield client id, API and number of requests, in the order of clients and API keys."""
        for client_id in sorted(self._by_client, key=lambda raw: raw or b""):
            name = None if client_id is None else client_id.decode(errors="replace")
            for api_key, count in sorted(self._by_client[client_id].items()):
                yield name, messages.API_NAMES.get(api_key, f"API {api_key}"), count
