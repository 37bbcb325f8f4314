"""A client's login, against servers that answer as told (SEC-S1 to SEC-S13)."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError, WireError
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftwire.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftwire.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftwire.protocol.payloads import decode_request, encode_response
from kraftwire.security.credentials import (
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_512,
    BearerCredentials,
    PasswordCredentials,
)
from kraftwire.security.errors import CREDENTIALS, LISTENER, MECHANISM, PROTOCOL, SaslError
from kraftwire.security.sasl_client import SaslClient
from kraftwire.wire.message import Message

ALICE = PasswordCredentials("alice", "secret")
MODERN = {17: 1, 36: 2}


def answer(request: bytes | None, message: Message, correlation_id: int | None = None) -> bytes:
    """The payload of an answer to a request."""
    assert request is not None
    header, _, _ = decode_request(request)
    if correlation_id is None:
        correlation_id = header.correlation_id
    reply = ResponseHeader(correlation_id=correlation_id)
    return encode_response(reply, message, header.request_api_version)


def offered(versions: dict[int, int]) -> ApiVersionsResponse:
    """An answer to ApiVersions with these highest versions."""
    keys = [ApiVersion(api_key=key, max_version=high) for key, high in versions.items()]
    return ApiVersionsResponse(api_keys=keys)


def after_handshake(login: SaslClient, versions: dict[int, int]) -> bytes:
    """Bring a login to its first token; returns the request with it."""
    handshake = login.next_request(answer(login.next_request(), offered(versions)))
    enabled = SaslHandshakeResponse(mechanisms=[login.mechanism])
    request = login.next_request(answer(handshake, enabled))
    assert request is not None
    return request


def test_a_login_by_plain() -> None:
    """ApiVersions 0, SaslHandshake 1, SaslAuthenticate 2, with the ids of Kafka's clients."""
    login = SaslClient(PLAIN, ALICE, "n", client_id="me")
    first = login.next_request()
    assert first is not None
    header, _, _ = decode_request(first)
    assert (header.request_api_key, header.request_api_version) == (18, 0)
    assert (header.correlation_id, header.client_id) == (2147483640, "me")
    assert login.waits_for == "ApiVersions"
    with pytest.raises(UsageError):
        login.next_request()
    handshake = login.next_request(answer(first, offered(MODERN)))
    assert handshake is not None
    header, body, _ = decode_request(handshake)
    assert isinstance(body, SaslHandshakeRequest)
    assert (header.request_api_version, body.mechanism) == (1, PLAIN)
    assert login.waits_for == "SaslHandshake"
    token = login.next_request(answer(handshake, SaslHandshakeResponse(mechanisms=[PLAIN])))
    assert token is not None
    header, body, _ = decode_request(token)
    assert isinstance(body, SaslAuthenticateRequest)
    assert (header.request_api_version, body.auth_bytes) == (2, b"\0alice\0secret")
    assert login.waits_for == "SaslAuthenticate"
    done = SaslAuthenticateResponse(session_lifetime_ms=1000)
    assert login.next_request(answer(token, done)) is None
    assert login.lifetime_ms == 1000
    assert [login.renew_after_ms(share) for share in (0, 1)] == [850, 950]


@pytest.mark.parametrize("versions", [{17: 1, 36: 0}, {17: 1, 36: 1}, {17: 9, 36: 9}])
def test_versions(versions: dict[int, int]) -> None:
    """The highest of both; version 0 knows no lifetime."""
    login = SaslClient(PLAIN, ALICE, "n")
    token = after_handshake(login, versions)
    assert decode_request(token)[0].request_api_version == min(2, versions[36])
    assert login.next_request(answer(token, SaslAuthenticateResponse())) is None
    assert (login.lifetime_ms, login.renew_after_ms(0.5)) == (0, None)


@pytest.mark.parametrize("versions", [{17: 0, 36: 2}, {17: 1}, {17: 0}])
def test_old_servers_get_bare_tokens(versions: dict[int, int]) -> None:
    """After a handshake in version 0 (SEC-S4)."""
    login = SaslClient(PLAIN, ALICE, "n")
    assert after_handshake(login, versions) == b"\0alice\0secret"
    assert login.next_request(b"") is None


def test_a_session_is_renewed_without_api_versions() -> None:
    """The versions are those of the login before."""
    first = SaslClient(OAUTHBEARER, BearerCredentials("x"), "n")
    first.next_request(answer(after_handshake(first, MODERN), SaslAuthenticateResponse()))
    again = SaslClient(OAUTHBEARER, BearerCredentials("y"), "m", versions=first.versions)
    handshake = again.next_request()
    assert handshake is not None
    assert decode_request(handshake)[0].request_api_key == 17


@pytest.mark.parametrize(
    ("code", "check", "text"),
    [
        (
            33,
            MECHANISM,
            "'SCRAM-SHA-512' not enabled in the server, enabled mechanisms are [PLAIN]",
        ),
        (34, LISTENER, "expects no login"),
        (-1, PROTOCOL, "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_a_refused_handshake(code: int, check: str, text: str) -> None:
    """Each code has another cure."""
    login = SaslClient(SCRAM_SHA_512, ALICE, "n")
    handshake = login.next_request(answer(login.next_request(), offered(MODERN)))
    refused = SaslHandshakeResponse(error_code=code, mechanisms=[PLAIN])
    with pytest.raises(SaslError) as caught:
        login.next_request(answer(handshake, refused))
    assert (caught.value.check, caught.value.code) == (check, code)
    assert text in caught.value.detail


@pytest.mark.parametrize(
    ("code", "given", "check", "text"),
    [
        (58, "Authentication failed: x", CREDENTIALS, "Authentication failed: x"),
        (58, None, CREDENTIALS, "SASL_AUTHENTICATION_FAILED"),
        (34, "too late", PROTOCOL, "too late"),
    ],
)
def test_a_refused_token(code: int, given: str | None, check: str, text: str) -> None:
    """The server's text is the error's."""
    login = SaslClient(PLAIN, ALICE, "n")
    refused = SaslAuthenticateResponse(error_code=code, error_message=given)
    with pytest.raises(SaslError) as caught:
        login.next_request(answer(after_handshake(login, MODERN), refused))
    assert (caught.value.check, caught.value.detail) == (check, text)


def test_answers_of_another_kind() -> None:
    """Bad bytes, another request's answer, errors of ApiVersions, no SaslHandshake at all."""
    login = SaslClient(PLAIN, ALICE, "n")
    login.next_request()
    with pytest.raises(WireError):
        login.next_request(b"")
    login = SaslClient(PLAIN, ALICE, "n")
    first = login.next_request()
    with pytest.raises(WireError, match="another request"):
        login.next_request(answer(first, offered(MODERN), 5))
    for response, check in (
        (ApiVersionsResponse(error_code=42), PROTOCOL),
        (offered({18: 4}), LISTENER),
        (offered({17: -1, 36: 2}), PROTOCOL),
    ):
        login = SaslClient(PLAIN, ALICE, "n")
        with pytest.raises(SaslError) as caught:
            login.next_request(answer(login.next_request(), response))
        assert caught.value.check == check


def test_scram_does_not_end_early() -> None:
    """A server that says yes without a signature is not believed."""
    login = SaslClient(SCRAM_SHA_512, ALICE, "n")
    with pytest.raises(SaslError):
        login.next_request(answer(after_handshake(login, MODERN), SaslAuthenticateResponse()))


def test_wrong_credentials() -> None:
    """A token is no password, and the mechanism has to be known."""
    for mechanism, credentials in ((PLAIN, BearerCredentials("x")), (OAUTHBEARER, ALICE)):
        with pytest.raises(UsageError, match="not for"):
            SaslClient(mechanism, credentials, "n")
    with pytest.raises(UsageError, match="expected one of PLAIN"):
        SaslClient("X", ALICE, "n")
    assert "secret" not in repr(SaslClient(PLAIN, ALICE, "n"))
