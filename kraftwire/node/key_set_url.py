"""The key set of an identity provider at a URL, fetched by a thread: at the start, and again later.

Whoever logs in never waits for the provider. Until there is a key set, and while one is fetched for
a token whose key is not known, the client is to come again. A key set that cannot be fetched is
reported, and the old one stays.

Source: SEC-S42; Kafka's `RefreshingHttpsJwks`.
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable

from kraftwire.errors import UsageError
from kraftwire.node.logs import log
from kraftwire.security.errors import NotKnownYet
from kraftwire.security.jwks import KeyRefresh, KeySet, TokenChecks, UnknownKeyError
from kraftwire.security.oauth import BearerToken
from kraftwire.security.tls import TlsContext
from kraftwire.transport.token_endpoint import fetched

# Anybody can make up a key's name: for one that is not known, the set is fetched this seldom.
_UNKNOWN_SECONDS = 60.0


class KeySetUrl:
    """A key set at a URL. `start` runs a fetch, elsewhere than in the caller's thread.

    `tls` verifies the provider, None for the platform's authorities.
    """

    def __init__(
        self,
        url: str,
        refresh: KeyRefresh,
        tls: TlsContext | None = None,
        *,
        start: Callable[[Callable[[], None]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._refresh = refresh
        self._tls = tls
        self._start = start or _in_thread
        self._clock = clock
        self._keys: KeySet | None = None
        self._failures = 0
        self._is_fetching = False
        self._next_at = self._unknown_at = clock()
        self._fetch_if_due(self._next_at)

    def validate(self, token: str, checks: TokenChecks, now_ms: int) -> BearerToken:
        """Return the verified claims of a token. Raises: TokenError, NotKnownYet."""
        self._fetch_if_due(self._next_at)
        if self._keys is None:
            raise NotKnownYet("the provider's key set has not been fetched yet")
        try:
            return self._keys.validate(token, checks, now_ms)
        except UnknownKeyError:
            if not self._fetch_if_due(self._unknown_at):
                raise
            raise NotKnownYet("the key set is fetched again for an unknown key") from None

    def _fetch_if_due(self, at: float) -> bool:
        """Start to fetch if it is time; returns whether one is on its way."""
        if not self._is_fetching and self._clock() >= at:
            self._is_fetching = True
            self._start(self._fetch)
            return True
        return self._is_fetching

    def _fetch(self) -> None:
        try:
            self._keys = KeySet(fetched(urllib.request.Request(self._url), self._tls))
            self._failures = 0
            log("debug", "key-set", url=self._url, keys=len(self._keys))
        except (OSError, ValueError, UsageError) as error:
            self._failures += 1
            if self._failures == 1:
                log("error", "key-set-kept", url=self._url, problem=error)
        now = self._clock()
        self._next_at = now + self._refresh.seconds(self._failures)
        self._unknown_at = now + _UNKNOWN_SECONDS
        self._is_fetching = False


def _in_thread(fetch: Callable[[], None]) -> None:
    threading.Thread(target=fetch, name="key-set", daemon=True).start()
