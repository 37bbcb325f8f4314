"""A client's login over Kafka's RPC, without its connection: payloads in, payloads out.

Rules SEC-S1 to SEC-S13. Order of a login, as of Kafka's `SaslClientAuthenticator`: ApiVersions in
version 0, SaslHandshake, then the mechanism's tokens in SaslAuthenticate, or bare where the server
is so old that it has none. A payload is a frame without its length.

The owner of the connection verifies TLS first (a password must not be sent before) and passes each
answer to `next_request`, in a thread if it has an event loop: SCRAM costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from kraftwire.errors import UsageError, WireError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.security.credentials import (
    GSSAPI,
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    BearerCredentials,
    Credentials,
    PasswordCredentials,
)
from kraftwire.security.errors import CREDENTIALS, LISTENER, MECHANISM, PROTOCOL, SaslError
from kraftwire.security.kerberos import KerberosClient, KerberosCredentials
from kraftwire.security.oauth import OAuthClient
from kraftwire.security.plain import PlainClient
from kraftwire.security.scram import ScramClient
from kraftwire.wire.message import Message

_HANDSHAKE = SaslHandshakeRequest.API_KEY
_AUTHENTICATE = SaslAuthenticateRequest.API_KEY
# Kafka's clients keep the last ids of all for logins, so that an answer tells what it belongs to.
_FIRST_ID = 2147483640
# A session is renewed at a random part of its lifetime between these two.
_RENEWAL_EARLIEST = 0.85
_RENEWAL_LATEST = 0.95


class MechanismClient(Protocol):
    """The client's side of a mechanism."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to be said by the client."""

    def first(self) -> bytes:
        """Return the first token."""

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the answer to a token of the server, None after the last one."""


def mechanism_client(mechanism: str, credentials: Credentials, nonce: str) -> MechanismClient:
    """Return the client's side of a mechanism.

    Raises: UsageError for an unknown mechanism, or for credentials that are not of its kind.
    """
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise UsageError(f"mechanism {mechanism} is not supported: expected one of {known}")
    if mechanism == OAUTHBEARER and isinstance(credentials, BearerCredentials):
        return OAuthClient(credentials)
    if mechanism == GSSAPI and isinstance(credentials, KerberosCredentials):
        return KerberosClient(credentials)
    if mechanism not in (OAUTHBEARER, GSSAPI) and isinstance(credentials, PasswordCredentials):
        is_plain = mechanism == PLAIN
        return PlainClient(credentials) if is_plain else ScramClient(mechanism, credentials, nonce)
    raise UsageError(f"these credentials are not for {mechanism}")


class SaslClient:
    """One login, or one renewal of a session, on one connection.

    Order: `next_request()` returns the first request, `next_request(answer)` each further one; None
    means that the login succeeded, and that `lifetime_ms` is known (0 for a session without end).
    `nonce`: printable ASCII without commas, new for each login. `versions` is what another login
    on the same connection learned; with it ApiVersions is not asked again, as in a renewal.
    """

    def __init__(
        self,
        mechanism: str,
        credentials: Credentials,
        nonce: str,
        *,
        client_id: str | None = None,
        versions: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.lifetime_ms = 0
        self.versions = dict(versions or {})
        self._client = mechanism_client(mechanism, credentials, nonce)
        self._client_id = client_id
        self._is_asked = versions is not None
        # The request in flight: correlation id, API and version; no API for a bare token.
        self._sent: tuple[int, int | None, int] = (_FIRST_ID - 1, None, 0)
        self._is_waiting = False
        self._is_bare = False

    @property
    def waits_for(self) -> str:
        """What the server has to answer next, for the text of an error."""
        names = {_HANDSHAKE: "SaslHandshake", ApiVersionsRequest.API_KEY: "ApiVersions"}
        return names.get(self._sent[1] or 0, "SaslAuthenticate")

    def next_request(self, answer: bytes | None = None) -> bytes | None:
        """Process the answer to the last request, return the next request; None after the last.

        Raises: SaslError if the login failed, after which this object cannot be used again;
        WireError if the answer is not one of Kafka's.
        """
        if answer is None:
            if self._is_waiting:
                raise UsageError("the last request has no answer yet")
            return self._handshake() if self._is_asked else self._request(ApiVersionsRequest(), 0)
        api_key = self._sent[1]
        if api_key is None:
            return self._after_token(answer)
        message = self._decoded(answer)
        if isinstance(message, ApiVersionsResponse):
            return self._after_versions(message)
        if isinstance(message, SaslHandshakeResponse):
            return self._after_handshake(message)
        return self._after_authenticate(cast("SaslAuthenticateResponse", message))

    def renew_after_ms(self, share: float) -> int | None:
        """Return how long after the login to log in again, None if the session has no end.

        `share`, from 0 to 1, is random, so that not all clients come at once (SEC-S13).
        """
        if self.lifetime_ms <= 0:
            return None
        part = _RENEWAL_EARLIEST + (_RENEWAL_LATEST - _RENEWAL_EARLIEST) * share
        return int(self.lifetime_ms * part)

    def _after_versions(self, response: ApiVersionsResponse) -> bytes:
        if response.error_code != ErrorCode.NONE:
            problem = f"the node answers ApiVersions with {error_name(response.error_code)}"
            raise SaslError(PROTOCOL, problem, response.error_code)
        self.versions = {
            key.api_key: (key.min_version, key.max_version) for key in response.api_keys
        }
        return self._handshake()

    def _handshake(self) -> bytes:
        if _HANDSHAKE not in self.versions:
            raise SaslError(LISTENER, "the node does not know SaslHandshake")
        # After version 0 tokens travel bare, even if the server knows SaslAuthenticate (SEC-S4).
        version = min(self._highest(_HANDSHAKE), int(_AUTHENTICATE in self.versions))
        self._is_bare = version == 0
        return self._request(SaslHandshakeRequest(mechanism=self.mechanism), version)

    def _after_handshake(self, response: SaslHandshakeResponse) -> bytes:
        enabled = f"enabled mechanisms are [{', '.join(response.mechanisms)}]"
        code = response.error_code
        if code == ErrorCode.NONE:
            return self._token(self._client.first())
        if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            text = f"Client SASL mechanism '{self.mechanism}' not enabled in the server, {enabled}"
            raise SaslError(MECHANISM, text, code)
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            raise SaslError(LISTENER, "the listener expects no login by SASL", code)
        raise SaslError(PROTOCOL, f"the node answers SaslHandshake with {error_name(code)}", code)

    def _after_authenticate(self, response: SaslAuthenticateResponse) -> bytes | None:
        code = response.error_code
        if code == ErrorCode.NONE:
            # Only the last answer has one that counts.
            self.lifetime_ms = max(0, response.session_lifetime_ms)
            return self._after_token(response.auth_bytes)
        text = response.error_message or error_name(code)
        is_refusal = code == ErrorCode.SASL_AUTHENTICATION_FAILED
        raise SaslError(CREDENTIALS if is_refusal else PROTOCOL, text, code)

    def _after_token(self, challenge: bytes) -> bytes | None:
        token = self._client.answer(challenge)
        if token is not None:
            return self._token(token)
        self._is_waiting = False
        return None

    def _token(self, token: bytes) -> bytes:
        if self._is_bare:
            self._sent = (self._sent[0], None, 0)
            return token
        request = SaslAuthenticateRequest(auth_bytes=token)
        return self._request(request, self._highest(_AUTHENTICATE))

    def _highest(self, api_key: int) -> int:
        own = (SaslHandshakeRequest if api_key == _HANDSHAKE else SaslAuthenticateRequest).VERSIONS
        low, high = self.versions[api_key]
        version = min(high, own.high)
        if version < max(low, own.low):
            name = "SaslHandshake" if api_key == _HANDSHAKE else "SaslAuthenticate"
            problem = f"the node supports {name} {low}-{high}, this client {own.low}-{own.high}"
            raise SaslError(PROTOCOL, problem, ErrorCode.UNSUPPORTED_VERSION)
        return version

    def _request(self, message: Message, version: int) -> bytes:
        correlation_id = self._sent[0] + 1
        self._sent = (correlation_id, message.API_KEY, version)
        self._is_waiting = True
        header = RequestHeader(
            request_api_key=message.API_KEY,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self._client_id,
        )
        return encode_request(header, message)

    def _decoded(self, answer: bytes) -> Message:
        correlation_id, api_key, version = self._sent
        assert api_key is not None
        header, message, _ = decode_response(answer, api_key, version)
        if header.correlation_id != correlation_id:
            raise WireError(
                "an answer to another request",
                message="ResponseHeader",
                path="correlation_id",
                expected=str(correlation_id),
                found=str(header.correlation_id),
            )
        return message
