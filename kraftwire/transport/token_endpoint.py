"""Tokens for OAUTHBEARER from an identity provider, by the client credentials of OAuth 2.0.

A token serves many connections: it is requested again when four fifths of its life have passed.
The secret is sent to the endpoint alone; redirects are not followed. An endpoint that fails is
asked again for ten seconds; if it has never given a token by then, that is final, as Kafka's
clients do not start without one.

Source: SEC-S43; RFC 6749 section 4.4; Kafka's `ClientCredentialsJwtRetriever`.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from kraftwire.errors import ApiError, SecurityError
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.oauth import is_bearer_token
from kraftwire.security.tls import TlsContext

_SECONDS = 10.0
_ANSWER_BYTES_MAX = 1024 * 1024
_USED_SHARE = 0.8
# A token of unknown or longer life is requested again at each login.
_LIFE_MAX_S = 1e9
# As Kafka's default of `sasl.login.retry.backoff.max.ms`, which bounds all attempts of a login.
_PATIENCE_S = 10.0
# Transient statuses: a time-out, and too many requests.
_PASSING_STATUS = (408, 429)


def fetched(request: urllib.request.Request, tls: TlsContext | None = None) -> bytes:
    """Return the body of a provider's answer; blocks for ten seconds at most, however slowly it
    comes. `tls` verifies the provider, None for the platform's authorities.

    Raises: urllib.error.HTTPError, OSError, ValueError.
    """
    exchange = _Exchange(request, tls)
    exchange.start()
    exchange.join(_SECONDS)
    is_late = exchange.is_alive()
    exchange.cut()
    if is_late:
        raise TimeoutError("timed out")
    if exchange.failures:
        # An error that is in reach of its own frames keeps sockets open.
        raise exchange.failures.pop()
    return exchange.content


class _Exchange(threading.Thread):
    """One request, in a thread: a time-out of a socket begins again with each byte."""

    def __init__(self, request: urllib.request.Request, tls: TlsContext | None) -> None:
        super().__init__(name="provider", daemon=True)
        self.content = b""
        self.failures: list[Exception] = []
        self._request = request
        handler = _Handler(self._connect, tls.context if tls is not None else None)
        self._opener = urllib.request.build_opener(_NoRedirects, handler)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    def run(self) -> None:
        try:
            with self._opener.open(self._request, timeout=_SECONDS) as response:
                self.content = response.read(_ANSWER_BYTES_MAX)
        except http.client.HTTPException:
            self.failures.append(OSError("the answer is no HTTP"))
        except (OSError, ValueError) as error:
            self.failures.append(error)

    def cut(self) -> None:
        """End the connection, wherever the thread waits for it."""
        with self._lock:
            self._is_cut = True
            if self._socket is not None:
                _shut(self._socket)

    def _connect(self, *arguments: Any) -> socket.socket:
        made = socket.create_connection(*arguments)
        with self._lock:
            # TLS takes the descriptor of the socket itself away.
            self._socket = made.dup()
            if self._is_cut:
                _shut(self._socket)
        return made


def _shut(connected: socket.socket) -> None:
    with connected, suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


class _Handler(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Opens connections by a function of ours."""

    def __init__(
        self, connect: Callable[..., socket.socket], context: ssl.SSLContext | None
    ) -> None:
        super().__init__(context=context)
        self._connect = connect

    def do_open(
        self, http_class: Any, req: urllib.request.Request, **named: Any
    ) -> http.client.HTTPResponse:
        """Send the request; its connection gets the socket from that function."""

        def connection(*arguments: Any, **more: Any) -> http.client.HTTPConnection:
            made: Any = http_class(*arguments, **more)
            made._create_connection = self._connect
            return made  # type: ignore[no-any-return]

        return super().do_open(connection, req, **named)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Another address must not get the secret."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none: the redirect is the answer."""


@dataclass(slots=True)
class TokenEndpoint:
    """Where tokens come from, and by whose id and secret. `place` is that of the URL's key."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    place: str
    tls: TlsContext | None = None
    _token: str = field(default="", init=False, repr=False)
    _until: float = field(default=0.0, init=False)
    # When it failed first.
    _failing_since: float | None = field(default=None, init=False)

    def token(self) -> str:
        """Return a token, after asking for it if necessary; blocks for ten seconds at most.

        Raises: SecurityError if the endpoint refuses, answers what is no token or has only failed
        for ten seconds, ApiError NETWORK_EXCEPTION if it cannot be reached or fails.
        """
        now = time.monotonic()
        if not self._token or now >= self._until:
            answer = self._request_token()
            token, life = answer.get("access_token"), answer.get("expires_in")
            if not isinstance(token, str) or not is_bearer_token(token):
                raise self._refused("the answer has no access_token")
            if not isinstance(life, int | float) or not 0 <= life <= _LIFE_MAX_S:
                life = 0.0
            self._until = now + _USED_SHARE * life
            self._token = token
        return self._token

    def _request_token(self) -> dict[str, Any]:
        fields = {"grant_type": "client_credentials"}
        if self.scope:
            fields["scope"] = self.scope
        pair = f"{self.client_id}:{self.client_secret}".encode()
        headers = {
            "Authorization": f"Basic {base64.b64encode(pair).decode()}",
            "Accept": "application/json",
        }
        body = urlencode(fields).encode()
        request = urllib.request.Request(self.url, body, headers, method="POST")
        try:
            content = fetched(request, self.tls)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code >= 500 or error.code in _PASSING_STATUS:
                raise self._failed(f"HTTP {error.code}") from None
            raise self._refused(f"HTTP {error.code}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                problem = f"the certificate of the endpoint: {reason.verify_message}"
                raise self._refused(problem) from None
            if isinstance(reason, ssl.SSLError) and reason.reason == "WRONG_VERSION_NUMBER":
                raise self._refused("the endpoint speaks no TLS; is it http?") from None
            raise self._failed(str(getattr(reason, "strerror", None) or reason)) from None
        return self._parsed(content)

    def _parsed(self, content: bytes) -> dict[str, Any]:
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._refused("the answer is no JSON object")
        return found

    def _failed(self, problem: str) -> ApiError | SecurityError:
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if not self._token and now - self._failing_since >= _PATIENCE_S:
            return self._refused(f"{problem}, for {_PATIENCE_S:.0f} s")
        text = f"token endpoint {self._host}: {problem}; check {self.place}"
        return ApiError(ErrorCode.NETWORK_EXCEPTION, text)

    def _refused(self, problem: str) -> SecurityError:
        text = f"token endpoint {self._host}: client {self.client_id!r} got no token: {problem}"
        return SecurityError(f"{text}; check {self.place}", is_usage=False)

    @property
    def _host(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
