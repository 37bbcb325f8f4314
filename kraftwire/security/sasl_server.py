"""A listener's side of a login, without its connection: payloads in, answers out.

Rules SEC-S1 to SEC-S12. Source: `SaslServerAuthenticator`, `KafkaChannel`. The owner of the
connection passes on each payload for which `is_of_login` is True, does what the `LoginStep` says,
and serves all others as those of `principal` unless `is_expired`. Clocks are arguments: `now_ms`
never goes back, `epoch_ms` is the time of day, in which credentials end.

PBKDF2 is not needed on this side: a step costs microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from kraftwire.errors import WireError
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import (
    decode_request,
    decode_request_header,
    encode_response,
    peek_request,
)
from kraftwire.protocol.refusals import Error, refusal
from kraftwire.protocol.software import WITH_SOFTWARE, software_name
from kraftwire.protocol.versions import API_VERSIONS_MAX
from kraftwire.security.credentials import OAUTHBEARER
from kraftwire.security.errors import NotKnownYet, Refused
from kraftwire.security.oauth import OAuthServer
from kraftwire.security.principal import Principal
from kraftwire.wire.message import Message
from kraftwire.wire.versions import Versions

_HANDSHAKE = SaslHandshakeRequest.API_KEY
_AUTHENTICATE = SaslAuthenticateRequest.API_KEY
# A session is renewed once a second at most (SEC-S11).
_RENEWAL_PAUSE_MS = 1000
_TOO_LATE = "SaslAuthenticate request received after successful authentication"
_OUT_OF_TURN = "Unexpected request during SASL authentication."


class MechanismServer(Protocol):
    """The listener's side of a mechanism, for one login."""

    @property
    def name(self) -> str | None:
        """Who logged in; None until then."""

    @property
    def is_token(self) -> bool:
        """Whether the login was by a delegation token."""

    @property
    def lifetime_end_ms(self) -> int | None:
        """When the credential ends, milliseconds since the epoch; None if it does not."""

    def answer(self, token: bytes) -> bytes:
        """Return the answer to a token. Raises: Refused, NotKnownYet."""


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """What all logins of a listener share.

    `mechanisms` makes the listener's side of each enabled mechanism, for one login.
    `max_lifetime_ms` is `connections.max.reauth.ms` by mechanism, 0 for none. `versions` returns
    the answer to ApiVersions in a version.
    """

    mechanisms: Mapping[str, Callable[[], MechanismServer]]
    max_lifetime_ms: Mapping[str, int]
    versions: Callable[[int], ApiVersionsResponse]
    receive_max_bytes: int = 524288


class LoginEnd(Enum):
    """What becomes of the connection after a step."""

    OPEN = "open"
    CLOSED = "closed"
    """At once, after the reply if there is one."""
    DELAYED = "delayed"
    """Read nothing more; reply and close after the delay for failures (SEC-S9)."""


@dataclass(frozen=True, slots=True)
class LoginStep:
    """What to do after a payload: the reply to send, if any, and how to go on.

    `problem` is for the node's log; it contains no secret, but may contain a name as a peer wrote
    it. `has_logged_in` is True once, when a login or a renewal succeeded.
    """

    reply: bytes | None = None
    end: LoginEnd = LoginEnd.OPEN
    problem: str = ""
    has_logged_in: bool = False


class SaslServer:
    """The login and the session of one connection."""

    def __init__(self, settings: LoginSettings) -> None:
        self.principal: Principal | None = None
        self.mechanism = ""
        self.software = ""
        self._settings = settings
        self._is_asked = False
        # The login or renewal in progress.
        self._server: MechanismServer | None = None
        self._is_bare = False
        self._other_mechanism = ""
        self._renewed_ms: int | None = None
        self._end_ms: int | None = None

    @property
    def is_ready(self) -> bool:
        """Whether requests are served: after a login, and not within a renewal."""
        return self.principal is not None and not self._is_in_progress

    @property
    def _is_in_progress(self) -> bool:
        return self._server is not None or bool(self._other_mechanism)

    def is_of_login(self, payload: bytes) -> bool:
        """Whether a payload is part of a login, or has to be treated as one."""
        if not self.is_ready:
            return True
        return len(payload) >= 2 and int.from_bytes(payload[:2]) in (_HANDSHAKE, _AUTHENTICATE)

    def is_expired(self, now_ms: int) -> bool:
        """Whether the session has ended, so that no request is served (SEC-S12)."""
        return self._end_ms is not None and now_ms >= self._end_ms

    def receive(self, payload: bytes, *, now_ms: int, epoch_ms: int) -> LoginStep:
        """Process a payload of a login; returns the reply, and what becomes of the connection."""
        if self._other_mechanism:
            text = f"mechanism {self._other_mechanism} for a renewal of {self.mechanism}"
            return LoginStep(end=LoginEnd.DELAYED, problem=text)
        if self._server is not None and self._is_bare:
            return self._bare_token(payload, self._server, (now_ms, epoch_ms))
        try:
            if peek_request(payload)[0] == ApiKey.API_VERSIONS and not self._is_in_progress:
                return self._versions(payload)
            header, body, _ = decode_request(payload)
        except WireError as error:
            return LoginStep(end=LoginEnd.CLOSED, problem=f"no request of a login: {error}")
        if self._server is not None:
            if isinstance(body, SaslAuthenticateRequest):
                return self._token(header, body.auth_bytes, self._server, (now_ms, epoch_ms))
            return _out_of_turn(header, body)
        if isinstance(body, SaslHandshakeRequest):
            return self._handshake(header, body.mechanism, now_ms)
        if isinstance(body, SaslAuthenticateRequest) and self.principal is not None:
            if self.is_expired(now_ms):
                return LoginStep(end=LoginEnd.CLOSED, problem="the session has ended")
            late = SaslAuthenticateResponse(
                error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TOO_LATE
            )
            return LoginStep(_encoded(header, late))
        return LoginStep(end=LoginEnd.CLOSED, problem=f"{body.NAME} before a login")

    def _versions(self, payload: bytes) -> LoginStep:
        """Answer ApiVersions before the login (SEC-S2)."""
        header, position = decode_request_header(payload)
        version = header.request_api_version
        if self._is_asked:
            return LoginStep(end=LoginEnd.CLOSED, problem="a second ApiVersions before a login")
        known = Versions(0, API_VERSIONS_MAX)
        if version not in known:
            own = ApiVersion(
                api_key=ApiKey.API_VERSIONS, min_version=known.low, max_version=known.high
            )
            unknown = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
            return LoginStep(_encoded(header, unknown, 0))
        body, _ = ApiVersionsRequest.decode(payload, version, position)
        if version >= WITH_SOFTWARE:
            software = software_name(body)
            if software is None:
                refused = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
                return LoginStep(_encoded(header, refused))
            self.software = software
        self._is_asked = True
        return LoginStep(_encoded(header, self._settings.versions(version)))

    def _handshake(self, header: RequestHeader, mechanism: str, now_ms: int) -> LoginStep:
        """Begin a login, or the renewal of a session (SEC-S3, SEC-S10, SEC-S11)."""
        enabled = sorted(self._settings.mechanisms)
        if self.principal is not None:
            if self._end_ms is None or not self._may_renew(now_ms):
                illegal = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
                return LoginStep(_encoded(header, illegal))
            self._renewed_ms = now_ms
        if mechanism not in self._settings.mechanisms:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            refused = SaslHandshakeResponse(error_code=code, mechanisms=enabled)
            problem = f"mechanism {mechanism!r} is not enabled"
            return LoginStep(_encoded(header, refused), LoginEnd.DELAYED, problem)
        if self.principal is not None and mechanism != self.mechanism:
            self._other_mechanism = mechanism
        else:
            self._server = self._settings.mechanisms[mechanism]()
            self.mechanism = mechanism
            self._is_bare = header.request_api_version == 0
        return LoginStep(_encoded(header, SaslHandshakeResponse(mechanisms=enabled)))

    def _may_renew(self, now_ms: int) -> bool:
        return self._renewed_ms is None or now_ms - self._renewed_ms >= _RENEWAL_PAUSE_MS

    def _token(
        self,
        header: RequestHeader,
        token: bytes,
        server: MechanismServer,
        times: tuple[int, int],
    ) -> LoginStep:
        """Take a token in SaslAuthenticate (SEC-S6, SEC-S8)."""
        try:
            answer = server.answer(token)
            lifetime_ms = self._lifetime(server, *times)
        except NotKnownYet as error:
            return LoginStep(end=LoginEnd.DELAYED, problem=f"{self.mechanism}: {error}")
        except Refused as refused:
            text = str(refused) if refused.is_public else self._generic_text()
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text
            )
            problem = self._problem(server, refused)
            return LoginStep(_encoded(header, response), LoginEnd.DELAYED, problem)
        response = SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)
        return LoginStep(_encoded(header, response), has_logged_in=server.name is not None)

    def _bare_token(
        self, token: bytes, server: MechanismServer, times: tuple[int, int]
    ) -> LoginStep:
        """Process a token without a request around it: a failure is just the end (SEC-S4)."""
        try:
            answer = server.answer(token)
            self._lifetime(server, *times)
        except (Refused, NotKnownYet) as refused:
            return LoginStep(end=LoginEnd.DELAYED, problem=self._problem(server, refused))
        return LoginStep(answer, has_logged_in=server.name is not None)

    def _lifetime(self, server: MechanismServer, now_ms: int, epoch_ms: int) -> int:
        """End a login that has succeeded; returns the lifetime of its session, 0 for none.

        Raises: Refused if a renewal has another principal (SEC-S11).
        """
        if server.name is None:
            return 0
        principal = Principal("User", server.name, server.is_token)
        if self.principal is not None and self.principal != principal:
            before, after = (f"{one.type}.{one.name}" for one in (self.principal, principal))
            text = f"Cannot change principals during re-authentication from {before}: {after}"
            raise Refused(text, is_public=True)
        ends = [self._settings.max_lifetime_ms.get(self.mechanism, 0)]
        if server.lifetime_end_ms is not None:
            ends.append(max(1, server.lifetime_end_ms - epoch_ms))
        lifetime_ms = min((end for end in ends if end > 0), default=0)
        self.principal, self._server = principal, None
        self._end_ms = now_ms + lifetime_ms if lifetime_ms else None
        return lifetime_ms

    def _generic_text(self) -> str:
        what = "authentication" if self.principal is None else "re-authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials "
            f"with SASL mechanism {self.mechanism}"
        )

    def _problem(self, server: MechanismServer, refused: Refused | NotKnownYet) -> str:
        cause = refused
        if self.mechanism == OAUTHBEARER and isinstance(server, OAuthServer):
            cause = server.refusal or refused
        return f"{self.mechanism}: {cause}"


def _out_of_turn(header: RequestHeader, body: Message) -> LoginStep:
    """Refuse a request between handshake and success, in its own form (SEC-S5)."""
    error = Error(ErrorCode.ILLEGAL_SASL_STATE, _OUT_OF_TURN)
    response = refusal(body, header.request_api_version, lambda _: error, error)
    reply = _encoded(header, response)
    return LoginStep(reply, LoginEnd.DELAYED, f"{body.NAME} within a login")


def _encoded(header: RequestHeader, response: Message, version: int | None = None) -> bytes:
    version = header.request_api_version if version is None else version
    answered = ResponseHeader(correlation_id=header.correlation_id)
    return encode_response(answered, response, version)
