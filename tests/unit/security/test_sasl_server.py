"""A listener's side of a login: order, versions, errors, delays, sessions (SEC-S1 to SEC-S12)."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.security.credentials import (
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    BearerCredentials,
    Credentials,
    PasswordCredentials,
)
from kraftwire.security.errors import CREDENTIALS, LISTENER, MECHANISM, SaslError
from kraftwire.security.oauth import BearerToken, OAuthServer, TokenError
from kraftwire.security.plain import PlainServer
from kraftwire.security.principal import Principal
from kraftwire.security.sasl_client import SaslClient
from kraftwire.security.sasl_server import LoginEnd, LoginSettings, LoginStep, SaslServer
from kraftwire.security.scram import ScramCredential, ScramServer, ScramUser, salted_password
from kraftwire.wire.message import Message
from tests.support.security.scram_decoys import decoys

NOW = 1_000
EPOCH = 1_700_000_000_000
USERS = {"alice": "secret", "bob": "other"}
SALTED = salted_password(SCRAM_SHA_256, "secret", b"salt", 4096)
CREDENTIAL = ScramCredential.of(SCRAM_SHA_256, SALTED, b"salt", 4096)

M = TypeVar("M", bound=Message)


def validate(token: str) -> BearerToken:
    """Two tokens that end in ten seconds, one of them bob's."""
    if token not in ("alice", "bob"):
        raise TokenError("unknown")
    return BearerToken(token, EPOCH + 10_000)


def user_of(name: str, is_token: bool) -> ScramUser | None:
    """One user, and one delegation token of the same name."""
    return ScramUser("owner" if is_token else name, CREDENTIAL) if name == "alice" else None


def login_settings(max_lifetime_ms: int = 0) -> LoginSettings:
    """A listener with three mechanisms."""
    return LoginSettings(
        {
            PLAIN: lambda: PlainServer(USERS.get),
            SCRAM_SHA_256: lambda: ScramServer(
                SCRAM_SHA_256, user_of, nonce="server", decoy_of=decoys(SCRAM_SHA_256)
            ),
            OAUTHBEARER: lambda: OAuthServer(validate),
        },
        dict.fromkeys((PLAIN, SCRAM_SHA_256, OAUTHBEARER), max_lifetime_ms),
        lambda _: ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=17, max_version=1), ApiVersion(api_key=36, max_version=2)]
        ),
    )


def server(max_lifetime_ms: int = 0) -> SaslServer:
    """A connection to that listener."""
    return SaslServer(login_settings(max_lifetime_ms))


def receive(listener: SaslServer, payload: bytes, at_ms: int = NOW) -> LoginStep:
    """What the listener does with a payload, at a time."""
    assert listener.is_of_login(payload)
    return listener.receive(payload, now_ms=at_ms, epoch_ms=EPOCH + at_ms - NOW)


def ask(listener: SaslServer, message: Message, version: int, at_ms: int = NOW) -> LoginStep:
    """Send one request."""
    return receive(listener, payload_of(message, version), at_ms)


def payload_of(message: Message, version: int) -> bytes:
    """A request with a header."""
    header = RequestHeader(
        request_api_key=message.API_KEY, request_api_version=version, correlation_id=7
    )
    return encode_request(header, message)


def answer(step: LoginStep, cls: type[M], version: int) -> M:
    """The message in a reply."""
    assert step.reply is not None
    header, message, end = decode_response(step.reply, cls.API_KEY, version)
    assert (header.correlation_id, end) == (7, len(step.reply))
    assert isinstance(message, cls)
    return message


def log_in(listener: SaslServer, login: SaslClient, at_ms: int = NOW) -> LoginStep:
    """Let a client and the listener talk until one of them ends it."""
    request = login.next_request()
    while request is not None:
        step = receive(listener, request, at_ms)
        if step.end is not LoginEnd.OPEN and step.reply is None:
            return step
        assert step.reply is not None
        request = login.next_request(step.reply)
    return step


@pytest.mark.parametrize(
    ("mechanism", "credentials", "principal"),
    [
        (PLAIN, PasswordCredentials("alice", "secret"), Principal("User", "alice")),
        (SCRAM_SHA_256, PasswordCredentials("alice", "secret"), Principal("User", "alice")),
        (SCRAM_SHA_256, PasswordCredentials("alice", "secret", True), Principal("User", "owner")),
        (OAUTHBEARER, BearerCredentials("alice"), Principal("User", "alice")),
    ],
)
def test_logins(mechanism: str, credentials: Credentials, principal: Principal) -> None:
    """Every mechanism, from the first request to the served ones."""
    listener = server()
    assert not listener.is_ready
    login = SaslClient(mechanism, credentials, "nonce")
    step = log_in(listener, login)
    assert (step.end, step.has_logged_in) == (LoginEnd.OPEN, True)
    assert (listener.principal, listener.mechanism) == (principal, mechanism)
    assert listener.principal is not None
    assert listener.principal.is_token is (principal.name == "owner")
    assert listener.is_ready
    assert not listener.is_of_login(payload_of(MetadataRequest(), 12))
    assert login.lifetime_ms == (10_000 if mechanism == OAUTHBEARER else 0)
    assert listener.is_expired(NOW + 10_000) is (mechanism == OAUTHBEARER)


@pytest.mark.parametrize(
    ("mechanism", "credentials", "text"),
    [
        (PLAIN, PasswordCredentials("alice", "x"), "Authentication failed: Invalid username or p"),
        (
            SCRAM_SHA_256,
            PasswordCredentials("alice", "x"),
            "during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        ),
        (OAUTHBEARER, BearerCredentials("x"), "invalid_token"),
    ],
)
def test_refused_credentials(mechanism: str, credentials: Credentials, text: str) -> None:
    """The answer and the end are delayed, and the client hears what Kafka's would (SEC-S8)."""
    listener = server()
    login = SaslClient(mechanism, credentials, "nonce")
    request, step = login.next_request(), LoginStep()
    while request is not None:
        step = receive(listener, request)
        request = login.next_request(step.reply) if step.end is LoginEnd.OPEN else None
    with pytest.raises(SaslError, match=text) as caught:
        login.next_request(step.reply)
    assert (caught.value.check, step.end) == (CREDENTIALS, LoginEnd.DELAYED)
    assert step.problem.startswith(mechanism)
    assert listener.principal is None
    assert not listener.is_ready


def test_a_mechanism_that_is_not_enabled() -> None:
    """Named exactly, or refused with the list (SEC-S3)."""
    for name in ("GSSAPI", "plain", ""):
        listener = server()
        step = ask(listener, SaslHandshakeRequest(mechanism=name), 1)
        found = answer(step, SaslHandshakeResponse, 1)
        assert (found.error_code, step.end) == (33, LoginEnd.DELAYED)
        assert found.mechanisms == [OAUTHBEARER, PLAIN, SCRAM_SHA_256]
    only = LoginSettings({PLAIN: lambda: PlainServer(USERS.get)}, {}, login_settings().versions)
    login = SaslClient(OAUTHBEARER, BearerCredentials("alice"), "n")
    with pytest.raises(SaslError) as caught:
        log_in(SaslServer(only), login)
    assert caught.value.check == MECHANISM


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0",
        b"\x60\x82garbage",
        b"\0alice\0secret",
        payload_of(MetadataRequest(), 12),
        payload_of(VoteRequest(), 2),
        payload_of(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2),
        payload_of(SaslHandshakeRequest(mechanism=PLAIN), 1).replace(b"\0\x11\0\1", b"\0\x11\0\2"),
        payload_of(SaslHandshakeRequest(mechanism=PLAIN), 1)[:-1],
    ],
)
def test_first_requests_that_end_the_connection(payload: bytes) -> None:
    """At once and without an answer (SEC-S1)."""
    step = receive(server(), payload)
    assert (step.reply, step.end) == (None, LoginEnd.CLOSED)
    assert step.problem
    assert "secret" not in step.problem


def test_api_versions() -> None:
    """Answered once; a version that is too new and a bad name may be repeated (SEC-S2)."""
    listener = server()
    new = payload_of(ApiVersionsRequest(), 3).replace(b"\0\x12\0\3", b"\0\x12\0\6", 1)
    for payload, code in (
        (new, 35),
        (
            payload_of(
                ApiVersionsRequest(client_software_name="-", client_software_version="1"), 3
            ),
            42,
        ),
        (
            payload_of(
                ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4
            ),
            0,
        ),
    ):
        step = receive(listener, payload)
        assert step.end is LoginEnd.OPEN
        found: Any = answer(step, ApiVersionsResponse, 4)
        assert found.error_code == code
        if code == 35:
            assert [(one.api_key, one.max_version) for one in found.api_keys] == [(18, 5)]
    assert listener.software == "x"
    step = receive(listener, payload_of(ApiVersionsRequest(), 0))
    assert (step.reply, step.end) == (None, LoginEnd.CLOSED)


def test_requests_out_of_turn() -> None:
    """In their own form, delayed; SaslAuthenticate in an unknown version at once (SEC-S5)."""
    for message, version in (
        (VoteRequest(), 2),
        (SaslHandshakeRequest(mechanism=PLAIN), 1),
        (ApiVersionsRequest(), 0),
    ):
        listener = server()
        ask(listener, SaslHandshakeRequest(mechanism=PLAIN), 1)
        step = ask(listener, message, version)
        assert step.end is LoginEnd.DELAYED
        if isinstance(message, VoteRequest):
            assert answer(step, VoteResponse, 2).error_code == 34
    listener = server()
    ask(listener, SaslHandshakeRequest(mechanism=PLAIN), 1)
    unknown = payload_of(SaslAuthenticateRequest(), 1).replace(b"\0\x24\0\1", b"\0\x24\0\3", 1)
    assert receive(listener, unknown).end is LoginEnd.CLOSED


def test_bare_tokens() -> None:
    """After a handshake of version 0: an empty frame, or just the end (SEC-S4)."""
    for token, step in (
        (b"\0alice\0secret", LoginStep(b"", has_logged_in=True)),
        (
            b"\0alice\0x",
            LoginStep(
                None,
                LoginEnd.DELAYED,
                "PLAIN: Authentication failed: Invalid username or password",
            ),
        ),
    ):
        listener = server()
        handshake = ask(listener, SaslHandshakeRequest(mechanism=PLAIN), 0)
        assert answer(handshake, SaslHandshakeResponse, 0).error_code == 0
        assert receive(listener, token) == step
        assert listener.is_ready is step.has_logged_in


def test_after_a_session_without_end() -> None:
    """A late login is an error, and the connection stays open (SEC-S10)."""
    listener = server()
    log_in(listener, SaslClient(PLAIN, PasswordCredentials("alice", "secret"), "n"))
    step = ask(listener, SaslHandshakeRequest(mechanism=PLAIN), 1)
    found = answer(step, SaslHandshakeResponse, 1)
    assert (found.error_code, found.mechanisms, step.end) == (34, [], LoginEnd.OPEN)
    step = ask(listener, SaslAuthenticateRequest(auth_bytes=b"x"), 2)
    late = answer(step, SaslAuthenticateResponse, 2)
    assert (late.error_code, step.end, listener.is_ready) == (34, LoginEnd.OPEN, True)
    assert late.error_message == "SaslAuthenticate request received after successful authentication"
    again = SaslClient(PLAIN, PasswordCredentials("alice", "secret"), "n", versions={17: (0, 1)})
    with pytest.raises(SaslError) as caught:
        again.next_request(receive(listener, again.next_request() or b"").reply)
    assert caught.value.check == LISTENER


def renewal(credentials: Credentials, mechanism: str = OAUTHBEARER) -> SaslClient:
    """A login on a connection that has one."""
    return SaslClient(mechanism, credentials, "m", versions={17: (0, 1), 36: (0, 2)})


def test_renewal() -> None:
    """The lifetime is the shorter of both; the first renewal at once, others a second later."""
    listener = server(max_lifetime_ms=4_000)
    login = SaslClient(OAUTHBEARER, BearerCredentials("alice"), "n")
    log_in(listener, login)
    assert login.lifetime_ms == 4_000
    assert [listener.is_expired(at) for at in (NOW + 3_999, NOW + 4_000)] == [False, True]
    again = renewal(BearerCredentials("alice"))
    assert log_in(listener, again, NOW + 9_500).has_logged_in
    assert again.lifetime_ms == 500
    assert [listener.is_expired(at) for at in (NOW + 9_999, NOW + 10_000)] == [False, True]
    step = ask(listener, SaslHandshakeRequest(mechanism=OAUTHBEARER), 1, NOW + 10_499)
    assert answer(step, SaslHandshakeResponse, 1).error_code == 34
    step = ask(listener, SaslAuthenticateRequest(), 2, NOW + 10_499)
    assert (step.reply, step.end) == (None, LoginEnd.CLOSED)
    step = ask(listener, SaslHandshakeRequest(mechanism=OAUTHBEARER), 1, NOW + 10_500)
    assert answer(step, SaslHandshakeResponse, 1).error_code == 0
    assert not listener.is_ready
    assert listener.is_of_login(payload_of(MetadataRequest(), 12))


def test_renewals_that_fail() -> None:
    """Another principal, another mechanism, a wrong credential (SEC-S11)."""
    for credentials, mechanism, text in (
        (BearerCredentials("bob"), OAUTHBEARER, "from User.alice: User.bob"),
        (BearerCredentials("x"), OAUTHBEARER, "invalid_token"),
        (PasswordCredentials("alice", "secret"), PLAIN, ""),
        (PasswordCredentials("alice", "x"), SCRAM_SHA_256, ""),
    ):
        listener = server()
        log_in(listener, SaslClient(OAUTHBEARER, BearerCredentials("alice"), "n"))
        again = renewal(credentials, mechanism)
        if text:
            with pytest.raises(SaslError, match=text):
                log_in(listener, again)
        else:
            step = log_in(listener, again)
            assert (step.reply, step.end) == (None, LoginEnd.DELAYED)
        assert listener.principal == Principal("User", "alice")
        assert not listener.is_ready
    listener = server(max_lifetime_ms=1_000)
    log_in(listener, SaslClient(SCRAM_SHA_256, PasswordCredentials("alice", "secret"), "n"))
    with pytest.raises(SaslError, match="during re-authentication due to invalid credentials"):
        log_in(listener, renewal(PasswordCredentials("alice", "x"), SCRAM_SHA_256))


def test_a_credential_that_just_ended() -> None:
    """Its session has an end: 0 would mean that it has none."""
    settings = LoginSettings(
        {OAUTHBEARER: lambda: OAuthServer(lambda _: BearerToken("alice", EPOCH - 5))},
        {},
        login_settings().versions,
    )
    listener = SaslServer(settings)
    login = SaslClient(OAUTHBEARER, BearerCredentials("alice"), "n")
    log_in(listener, login)
    assert login.lifetime_ms == 1
    assert listener.is_expired(NOW + 1)


def test_who_cannot_be_judged_yet_comes_again() -> None:
    """SEC-S35: not refused, which clients take for the last word; not at once either."""

    def scram() -> ScramServer:
        return ScramServer(
            SCRAM_SHA_256,
            lambda *_: None,
            nonce="server",
            decoy_of=decoys(SCRAM_SHA_256),
            are_known=lambda: False,
        )

    settings = LoginSettings({SCRAM_SHA_256: scram}, {}, login_settings().versions)
    for version in (0, 1):
        listener = SaslServer(settings)
        ask(listener, SaslHandshakeRequest(mechanism=SCRAM_SHA_256), version)
        for token in (b"n,,n=alice,r=client", b"c=biws,r=clientserver,p=AAAA"):
            if version == 0:
                step = receive(listener, token)
            else:
                step = ask(listener, SaslAuthenticateRequest(auth_bytes=token), 2)
        assert (step.reply, step.end) == (None, LoginEnd.DELAYED)
        assert step.problem == "SCRAM-SHA-256: this node has not read the users of the log yet"
        assert listener.principal is None
