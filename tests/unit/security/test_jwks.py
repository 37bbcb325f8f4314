"""Signed tokens: what is accepted, and the tricks that are not (SEC-S42)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from joserfc import jwk, jws

from kraftwire.errors import UsageError
from kraftwire.security.jwks import KeySet, TokenChecks
from kraftwire.security.oauth import BearerToken, TokenError

NOW = 1_700_000_000
RSA = jwk.RSAKey.generate_key(2048, parameters={"kid": "rsa"})
OTHER = jwk.RSAKey.generate_key(2048, parameters={"kid": "rsa"})
EC = jwk.ECKey.generate_key("P-256", parameters={"kid": "ec"})
SECRET = jwk.OctKey.import_key("a secret of a client", parameters={"kid": "secret"})
CLAIMS = {"sub": "alice", "exp": NOW + 600, "iat": NOW}


def key_set(*keys: Any) -> KeySet:
    """What a provider publishes."""
    entries = [key.as_dict(private=False) for key in keys or (RSA, EC)]
    return KeySet(json.dumps({"keys": entries}))


def signed(claims: Any, key: Any = RSA, **header: Any) -> str:
    """A token."""
    algorithm = {"RSA": "RS256", "EC": "ES256", "oct": "HS256"}[key.key_type]
    full = {"alg": algorithm, "kid": key.kid, **header}
    registry = jws.JWSRegistry(algorithms=[full["alg"]], strict_check_header=False)
    return jws.serialize_compact(
        {name: value for name, value in full.items() if value is not None},
        json.dumps(claims).encode(),
        key,
        registry=registry,
    )


def validate(token: str, checks: TokenChecks | None = None, at_s: float = NOW) -> BearerToken:
    """What our key set says of a token."""
    return key_set().validate(token, checks or TokenChecks(), int(at_s * 1000))


@pytest.mark.parametrize(
    "token",
    [
        signed(CLAIMS),
        signed(CLAIMS, EC),
        signed(CLAIMS, RSA, alg="PS384"),
        signed(CLAIMS, RSA, kid=None),
    ],
)
def test_what_is_accepted(token: str) -> None:
    """Keys of several kinds, found by their ids or one after the other."""
    assert validate(token) == BearerToken("alice", (NOW + 600) * 1000)


@pytest.mark.parametrize(
    "token",
    [
        # A chain of certificates, as some providers send it along.
        pytest.param(signed(CLAIMS, x5c=["QUJD" * 500] * 3), id="x5c"),
        # Parameters that are not understood are to be ignored (RFC 7515, section 4).
        pytest.param(signed(CLAIMS, nonce="AQABAAAAAAC5una0"), id="nonce"),
        pytest.param(signed(CLAIMS | {"groups": ["a" * 36] * 9_000}), id="groups"),
    ],
)
def test_tokens_are_as_large_as_their_listener_allows(token: str) -> None:
    """Which takes half a megabyte, as Kafka's does (SEC-S7)."""
    assert len(token) < 512 * 1024
    assert validate(token).name == "alice"


def test_claims() -> None:
    """By the names that the properties give."""
    checks = TokenChecks(frozenset({"kafka", "x"}), "https://idp", "user", "rights")
    claims = {"user": " bob ", "exp": NOW + 1, "iat": NOW, "iss": "https://idp"}
    claims |= {"aud": ["a", "kafka"], "rights": ["r", "w"]}
    found = validate(signed(claims), checks)
    assert found == BearerToken("bob", (NOW + 1) * 1000, frozenset({"r", "w"}))
    wrong: tuple[dict[str, Any], ...] = (
        *({"aud": other} for other in ("other", None, [], {"kafka": 1})),
        *({"iss": "https://evil"}, {"user": ""}),
    )
    for changes in wrong:
        with pytest.raises(TokenError):
            validate(signed(claims | changes), checks)
    for anybody in ("somebody", ["a", "b"], [], {"kafka": 1}):
        assert validate(signed(CLAIMS | {"aud": anybody})).name == "alice"


@pytest.mark.parametrize(
    ("claims", "at_s"),
    [
        (CLAIMS, NOW + 630),
        (CLAIMS, NOW - 31),
        (CLAIMS | {"nbf": NOW + 100}, NOW),
        ({"sub": "alice", "iat": NOW}, NOW),
        ({"sub": "alice", "exp": NOW + 9}, NOW),
        (CLAIMS | {"exp": "soon"}, NOW),
        (CLAIMS | {"exp": True}, NOW),
        (CLAIMS | {"exp": 1e300}, NOW),
        (CLAIMS | {"exp": NOW - 5, "iat": NOW}, NOW),
        (CLAIMS | {"exp": NOW + 10, "nbf": NOW + 20}, NOW),
        (CLAIMS | {"sub": 5}, NOW),
        (CLAIMS | {"sub": "\0 \x1f"}, NOW),
        (CLAIMS | {"sub": "\ud800"}, NOW),
        (CLAIMS | {"iss": 5}, NOW),
        (CLAIMS | {"jti": ["a"]}, NOW),
        (CLAIMS | {"scope": ["r", " r"]}, NOW),
        (CLAIMS | {"scope": " "}, NOW),
        (CLAIMS | {"scope": ["r", 5]}, NOW),
        (CLAIMS | {"x": float("nan")}, NOW),
        (["alice"], NOW),
        ("alice", NOW),
    ],
)
def test_claims_that_are_not(claims: Any, at_s: float) -> None:
    """Times within half a minute of skew, and of the right type."""
    with pytest.raises(TokenError):
        validate(signed(claims), at_s=at_s)
    assert validate(signed(CLAIMS), at_s=NOW + 629)
    assert validate(signed(CLAIMS), at_s=NOW - 29)


def test_no_claim_comes_twice() -> None:
    """Two readers of such a token could see different ones."""
    header = {"alg": "RS256", "kid": "rsa"}
    registry = jws.JWSRegistry(algorithms=["RS256"])
    for twice in ('"sub": "root"', '"x": {"y": 1, "y": 2}'):
        text = json.dumps(CLAIMS)[:-1] + f", {twice}}}"
        token = jws.serialize_compact(header, text.encode(), RSA, registry=registry)
        with pytest.raises(TokenError, match="no JSON"):
            validate(token)


def test_names_are_trimmed_as_java_does() -> None:
    """Other blanks belong to a name."""
    assert validate(signed(CLAIMS | {"sub": "\x1f a\xa0 "})).name == "a\xa0"


def test_times_are_whole_seconds() -> None:
    """The rest is cut off, as Kafka does."""
    assert validate(signed(CLAIMS | {"exp": NOW + 9.9})).expiry_ms == (NOW + 9) * 1000


def base64url(data: bytes) -> str:
    """Without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def by_hand(header: Any, key: bytes) -> str:
    """A token whose signature is a hash with a key."""
    parts = ".".join(base64url(json.dumps(one).encode()) for one in (header, CLAIMS))
    return f"{parts}.{base64url(hmac.new(key, parts.encode(), hashlib.sha256).digest())}"


def test_tricks() -> None:
    """No signature, another key, a public key as a secret, a changed claim, keys in the token."""
    good = signed(CLAIMS)
    head, body, signature = good.split(".")
    none = base64url(json.dumps({"alg": "none", "kid": "rsa"}).encode())
    public = RSA.as_pem(private=False)
    embedded = {"jwk": OTHER.as_dict(private=False)}
    tokens = [
        f"{none}.{body}.",
        f"{none}.{body}.{signature}",
        f"{head}.{body}.",
        f"{head}.{base64url(json.dumps(CLAIMS | {'sub': 'root'}).encode())}.{signature}",
        good[:-4] + "AAAA",
        signed(CLAIMS, OTHER),
        signed(CLAIMS, OTHER, **embedded),
        signed(CLAIMS, RSA, kid="unknown"),
        by_hand({"alg": "HS256", "kid": "rsa"}, public),
        by_hand({"alg": "HS256"}, public),
        by_hand({"alg": ["RS256"], "kid": "rsa"}, b""),
        by_hand({"alg": "RS256", "kid": ["rsa"]}, b""),
        by_hand([], b""),
        by_hand({"alg": "ES256", "kid": "rsa"}, b""),
        by_hand({"alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": False}, b""),
        "",
        "..",
        "a.b.c",
        "[" * 100_000,
    ]
    for token in tokens:
        with pytest.raises(TokenError) as caught:
            validate(token)
        assert len(str(caught.value)) < 80


def test_secrets_in_a_key_set_do_not_count() -> None:
    """Whoever can read the set could make tokens."""
    entries = {"keys": [SECRET.as_dict(private=True), RSA.as_dict(private=False)]}
    keys = KeySet(json.dumps(entries))
    assert len(keys) == 1
    with pytest.raises(TokenError):
        keys.validate(signed(CLAIMS, SECRET), TokenChecks(), NOW * 1000)


def test_key_sets() -> None:
    """Keys that are for encryption, or of unknown kinds, are passed over."""
    odd: list[Any] = [
        {"kty": "RSA", "kid": "x"},
        {"kty": "new"},
        5,
        {**RSA.as_dict(private=False), "use": "enc"},
    ]
    assert len(KeySet(json.dumps({"keys": [*odd, EC.as_dict(private=False)]}))) == 1
    for text in ("", "[]", "{}", '{"keys": 5}', json.dumps({"keys": [1] * 101}), "[" * 10_000):
        with pytest.raises(UsageError):
            KeySet(text)
