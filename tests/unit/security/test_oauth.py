"""OAUTHBEARER: framing, and tokens without a signature (SEC-S40, SEC-S41)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kraftwire.security.credentials import BearerCredentials
from kraftwire.security.errors import Refused, SaslError
from kraftwire.security.jaas import JaasError
from kraftwire.security.oauth import (
    BearerToken,
    OAuthClient,
    OAuthServer,
    TokenError,
    UnsecuredValidator,
    unsecured_credentials,
)

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000


def token(claims: Any, header: Any = None, signature: str = "") -> str:
    """A token in its compact form."""
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "none"} if header is None else header, claims)
    ]
    return ".".join([*parts, signature])


def accept(value: str) -> BearerToken:
    """A validator that knows one token."""
    if value != "good":
        raise TokenError("unknown token")
    return BearerToken("alice", NOW_MS)


def test_a_login() -> None:
    """The token and its extensions in one message, answered by nothing."""
    client = OAuthClient(BearerCredentials("good", {"traceId": "x y"}))
    assert client.first() == b"n,,\x01auth=Bearer good\x01traceId=x y\x01\x01"
    server = OAuthServer(accept)
    assert client.answer(server.answer(client.first())) is None
    assert client.is_complete
    assert (server.name, server.lifetime_end_ms) == ("alice", NOW_MS)


def test_a_bad_token_is_refused_in_two_steps() -> None:
    """JSON, one byte from the client, then the failure."""
    client, server = OAuthClient(BearerCredentials("bad")), OAuthServer(accept)
    answer = client.answer(server.answer(client.first()))
    assert answer == b"\x01"
    assert server.refusal is not None
    # The frames of an exception hold the token, for as long as the login lasts.
    assert (server.refusal.__traceback__, server.refusal.__context__) == (None, None)
    with pytest.raises(Refused, match=r"^\{.status.:.invalid_token.\}$") as caught:
        server.answer(answer)
    assert caught.value.is_public
    assert server.name is None
    with pytest.raises(SaslError):
        client.answer(b"again")
    with pytest.raises(Refused):
        server.answer(b"n,,\x01auth=Bearer good\x01\x01")


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good\x01\x01",
        b"n,a=alice,\x01auth=bearer   good\x01x=y\x01\x01",
    ],
)
def test_forms_that_are_read(message: bytes) -> None:
    """The scheme in any case, the principal as authorization id."""
    assert OAuthServer(accept).answer(message) == b""


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer good bad\x01\x01",
        b"n,,\x01k1=v\x01auth=Bearer good\x01\x01",
        b"n,a=bob,\x01auth=Bearer good\x01\x01",
    ],
)
def test_forms_that_are_not(message: bytes) -> None:
    """Another header, scheme, key, or somebody else's name."""
    with pytest.raises(Refused):
        OAuthServer(accept).answer(message)


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a1": "x"}, {"a": ""}, {"a": "\x01"}])
def test_extensions_of_the_client(extensions: dict[str, str]) -> None:
    """Only letters as keys, and none that would end the message."""
    with pytest.raises(SaslError):
        OAuthClient(BearerCredentials("good", extensions))


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"sub": "a", "exp": NOW + 1}, ""),
        ({"sub": "a", "exp": NOW + 0.5, "iat": NOW}, ""),
        ({"sub": "a", "exp": NOW}, "expired"),
        ({"sub": "a", "exp": NOW + 9, "iat": NOW + 1}, "future"),
        ({"sub": "a", "exp": str(NOW + 9)}, "numbers"),
        ({"sub": "a", "exp": True}, "numbers"),
        ({"sub": "a", "exp": float("inf")}, "no JSON"),
        ({"sub": "a"}, "numbers"),
        ({"sub": " ", "exp": NOW + 9}, "no claim sub"),
        ({"sub": ["a"], "exp": NOW + 9}, "no claim sub"),
        (["sub"], "no JSON object"),
    ],
)
def test_unsecured_tokens(claims: Any, text: str) -> None:
    """A subject, an end in the future, no beginning in it."""
    if not text:
        found = UnsecuredValidator().validate(token(claims), NOW_MS)
        assert (found.name, found.expiry_ms) == ("a", int(claims["exp"] * 1000))
        return
    with pytest.raises(TokenError, match=text):
        UnsecuredValidator().validate(token(claims), NOW_MS)


@pytest.mark.parametrize(
    "value",
    [
        token({"sub": "a", "exp": NOW + 9}, {"alg": "None"}),
        token({"sub": "a", "exp": NOW + 9}, {"alg": "HS256"}),
        token({"sub": "a", "exp": NOW + 9}, {}),
        token({"sub": "a", "exp": NOW + 9}, signature="AA"),
        token({"sub": "a", "exp": NOW + 9})[:-1],
        "..",
        "a.b.",
        "[" * 100_000 + "..",
    ],
)
def test_algorithm_tricks(value: str) -> None:
    """Only `none`, and only without a signature."""
    with pytest.raises(TokenError) as caught:
        UnsecuredValidator().validate(value, NOW_MS)
    assert value not in str(caught.value) or len(value) < 5


def test_options_of_the_validator() -> None:
    """Names of claims, scopes and skew come from the JAAS entry."""
    options = {
        "unsecuredValidatorPrincipalClaimName": "user",
        "unsecuredValidatorScopeClaimName": "rights",
        "unsecuredValidatorRequiredScope": "a b",
        "unsecuredValidatorAllowableClockSkewMs": "2000",
    }
    validator = UnsecuredValidator.of(options)
    claims = {"user": "x", "exp": NOW - 1, "rights": ["b", " a ", "c"]}
    assert validator.validate(token(claims), NOW_MS).scopes == {"a", "b", "c"}
    with pytest.raises(TokenError) as caught:
        validator.validate(token({**claims, "rights": "a b"}), NOW_MS)
    assert caught.value.answer == '{"status":"insufficient_scope", "scope":"[a, b]"}'
    with pytest.raises(JaasError):
        UnsecuredValidator.of({"unsecuredValidatorAllowableClockSkewMs": "-1"})


def test_made_tokens_are_valid() -> None:
    """The client's options make a token that the validator takes."""
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_n": "1.5",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_x": "y",
    }
    made = unsecured_credentials(options, NOW_MS)
    assert made.token not in repr(made)
    assert made.extensions == {"x": "y"}
    found = UnsecuredValidator().validate(made.token, NOW_MS)
    assert found == BearerToken("alice", NOW_MS + 60_000, frozenset({"a", "b"}))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unsecuredLoginExtension_x": "y"},
        {"unsecuredLoginStringClaim_name": "alice"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginStringClaim_exp": "1"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_x": "one"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "1.5"},
    ],
)
def test_options_that_make_no_token(options: dict[str, str]) -> None:
    """No claims, no principal, a reserved claim, or no number."""
    with pytest.raises(JaasError):
        unsecured_credentials(options, NOW_MS)
