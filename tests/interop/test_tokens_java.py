"""Tokens of OAUTHBEARER are judged as Kafka's BrokerJwtValidator judges them, or more strictly.

Each token is a right one with a few changes, signed by a key of the set or by a trick.
`KRAFTWIRE_ROUNDS` (4) scales the count of 400.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwk

from kraftwire.security.jwks import KeySet, TokenChecks
from kraftwire.security.oauth import TokenError
from tests.support.kafka.java import JavaPeer
from tests.support.kafka.java_cases import ROUNDS

RSA = jwk.RSAKey.generate_key(2048, parameters={"kid": "rsa"})
OTHER = jwk.RSAKey.generate_key(2048, parameters={"kid": "rsa"})
EC = jwk.ECKey.generate_key("P-256", parameters={"kid": "ec"})
CHECKS = [
    TokenChecks(),
    TokenChecks(frozenset({"kafka", "x"}), "https://idp", skew_s=300),
    TokenChecks(subject_claim="user", scope_claim="rights", skew_s=0),
]
# Far from any limit: the two sides look at the clock one after the other.
TIMES = [-4000, -200, -10, 10, 200, 4000]
ODD: list[Any] = [None, True, False, "", " ", "text", [], {}, ["a"], [1], [None], {"a": 1}]
NUMBERS: list[Any] = [0, -1, 1.5, 1e12, 1e300, 2**31, 2**63 - 1, 2**63, 10**30, -(10**30)]
NAMES = ["alice", " bob ", "\xa0bob\xa0", "\u2003x\x85", "a\0b", "\x1fc", "ä𝄞", "User:x", "\ud800"]
AUDIENCES: list[Any] = ["kafka", "x", "other", ["kafka"], ["a", "x"], ["a"], [], ["kafka", 1], 5]
ISSUERS: list[Any] = ["https://idp", "https://idp/", "HTTPS://IDP", "", ["https://idp"], 5]
SCOPES: list[Any] = ["r w", ["r", "w"], ["r", "r"], ["r", " r "], [""], " ", 5, ["r", 5], {"a": 1}]


def base64url(data: bytes) -> str:
    """Without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def by_rsa(data: bytes, key: jwk.RSAKey = RSA) -> bytes:
    """The signature RS256."""
    private = key.private_key
    assert isinstance(private, rsa.RSAPrivateKey)
    return private.sign(data, padding.PKCS1v15(), SHA256())


def by_ec(data: bytes) -> bytes:
    """The signature ES256."""
    private = EC.private_key
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    pair = utils.decode_dss_signature(private.sign(data, ec.ECDSA(SHA256())))
    return b"".join(number.to_bytes(32) for number in pair)


def by_public_key(data: bytes) -> bytes:
    """HS256, with what everybody knows as the secret."""
    return hmac.new(RSA.as_pem(private=False), data, hashlib.sha256).digest()


Sign = Callable[[bytes], bytes]

HONEST: list[tuple[dict[str, Any], Sign]] = [
    ({"alg": "RS256", "kid": "rsa"}, by_rsa),
    ({"alg": "RS256", "kid": "rsa", "typ": "at+jwt"}, by_rsa),
    ({"alg": "RS256"}, by_rsa),
    ({"alg": "ES256", "kid": "ec"}, by_ec),
]
FORGED: list[tuple[dict[str, Any], Sign]] = [
    ({"alg": "none"}, lambda _: b""),
    ({"alg": "none", "kid": "rsa"}, by_rsa),
    ({"alg": "HS256", "kid": "rsa"}, by_public_key),
    ({"alg": "HS256"}, by_public_key),
    ({"alg": "RS256", "kid": "rsa"}, lambda data: by_rsa(data, OTHER)),
    ({"alg": "RS256", "kid": "rsa", "jwk": OTHER.as_dict(private=False)},
     lambda data: by_rsa(data, OTHER)),
    ({"alg": "RS256", "kid": "rsa"}, lambda data: by_rsa(data + b"x")),
    ({"alg": "RS256", "kid": "ec"}, by_rsa),
    ({"alg": "RS256", "kid": "unknown"}, by_rsa),
    ({"alg": "RS256", "kid": 5}, by_rsa),
    ({"alg": "rs256", "kid": "rsa"}, by_rsa),
    ({"alg": "ES256", "kid": "ec"}, lambda _: bytes(64)),
    ({"alg": "RS256", "kid": "rsa", "crit": ["x"], "x": 1}, by_rsa),
    ({"kid": "rsa"}, by_rsa),
]  # fmt: skip


class Maker:
    """Makes tokens around a moment, in seconds since the epoch."""

    def __init__(self, source: random.Random, now: int) -> None:
        self._source = source
        self._now = now

    def token(self, checks: TokenChecks) -> str:
        """A token in which a few things may be wrong."""
        source = self._source
        claims: list[tuple[str, Any]] = [
            (checks.subject_claim, source.choice(NAMES)),
            ("iat", self._now - 10),
            ("exp", self._now + 4000),
        ]
        if checks.audiences:
            claims += [("aud", "kafka"), ("iss", "https://idp")]
        for _ in range(source.choice([0, 1, 1, 2])):
            self._change(claims, checks)
        header, sign = source.choice(HONEST if source.random() < 0.8 else FORGED)
        pairs = ",".join(f"{json.dumps(name)}:{self._value(value)}" for name, value in claims)
        body = f"{{{pairs}}}".encode(errors="surrogatepass")
        parts = f"{base64url(json.dumps(header).encode())}.{base64url(body)}"
        token = f"{parts}.{base64url(sign(parts.encode()))}"
        return source.choice([*[token] * 30, token + ".", token[:-4], "a" + token])

    def _change(self, claims: list[tuple[str, Any]], checks: TokenChecks) -> None:
        """Change, drop or double a claim."""
        source = self._source
        values: dict[str, list[Any]] = {
            "exp": self._times(),
            "iat": self._times(),
            "nbf": self._times(),
            "aud": AUDIENCES,
            "iss": ISSUERS,
            checks.scope_claim: SCOPES,
            checks.subject_claim: NAMES,
            "jti": ["x"],
            "sub": NAMES,
        }
        name = source.choice(list(values))
        value = source.choice([*values[name] * 3, *ODD])
        if source.random() < 0.9:
            claims[:] = [one for one in claims if one[0] != name]
        if source.random() < 0.9:
            claims.append((name, value))

    def _times(self) -> list[Any]:
        near = [self._now + each for each in TIMES]
        return [*near, *near, *(each + 0.5 for each in near), str(near[0]), *NUMBERS]

    def _value(self, value: Any) -> str:
        """The JSON of a value, now and then of a kind that JSON does not have."""
        if self._source.random() < 0.01:
            return self._source.choice(["NaN", "Infinity", "-Infinity", "01", "1e999", "'a'"])
        return json.dumps(value, ensure_ascii=self._source.random() < 0.5)


# Where a listener of ours is stricter: times that no provider writes, names and numbers that are
# not quite Unicode or JSON.
STRICTER = ("was issued in the future", "has no claim", "is no JSON")


def verdict(keys: KeySet, token: str, checks: TokenChecks) -> dict[str, Any]:
    """What our listener takes a token for, in the words of the Java program."""
    try:
        found = keys.validate(token, checks, time.time_ns() // 1_000_000)
    except TokenError as error:
        return {"error": str(error)}
    return {"name": found.name, "end": found.expiry_ms, "scopes": sorted(found.scopes)}


def test_tokens(tmp_path: Path, seed: int) -> None:
    """No token is accepted that Kafka refuses; nearly all that Kafka accepts are."""
    source = random.Random(f"{seed}/tokens")
    text = json.dumps({"keys": [key.as_dict(private=False) for key in (RSA, EC)]})
    path = tmp_path / "keys.json"
    path.write_text(text)
    keys, accepted, stricter, count = KeySet(text), 0, 0, 34 * ROUNDS
    with JavaPeer(folder="security", program="Security") as security:
        for checks in CHECKS:
            maker = Maker(source, int(time.time()))
            tokens = [maker.token(checks) for _ in range(count)]
            (answer,) = security.ask([_question(path, checks, tokens)])
            for token, theirs in zip(tokens, answer["results"], strict=True):
                ours = verdict(keys, token, checks)
                if "error" not in ours:
                    assert ours == theirs, token
                    accepted += 1
                elif "error" not in theirs:
                    assert any(reason in ours["error"] for reason in STRICTER), (ours, token)
                    stricter += 1
    assert accepted > count // 2
    assert stricter < accepted // 4


def _question(path: Path, checks: TokenChecks, tokens: list[str]) -> dict[str, Any]:
    return {
        "op": "tokens",
        "keys": path.as_uri(),
        "audiences": sorted(checks.audiences),
        "issuer": checks.issuer,
        "subject": checks.subject_claim,
        "scope": checks.scope_claim,
        "skew": checks.skew_s,
        "tokens": tokens,
    }
