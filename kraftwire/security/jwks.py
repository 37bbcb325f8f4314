"""Signed tokens for OAUTHBEARER: verified by the key set of an identity provider.

Rule SEC-S42. Source: `BrokerJwtValidator`. The only user of the library `joserfc`, which is loaded
when a listener needs it. Signatures are by asymmetric keys alone: a token that names the algorithm
`none`, or a public key's text as a secret, is refused before any key is looked at.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kraftwire.errors import UsageError
from kraftwire.security.oauth import BearerToken, TokenError, json_object, json_part, text_of

# Kafka allows every algorithm but `none`, secrets included; a key set of secrets would let the
# provider's other clients make tokens.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
               "EdDSA")  # fmt: skip
# A key set has a few keys, a token a few kilobytes.
_KEYS_MAX = 100
_NUMBER_MAX = 1e12


@dataclass(frozen=True, slots=True)
class KeyRefresh:
    """When a key set is fetched again. Units: milliseconds, as in Kafka's keys."""

    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int

    def seconds(self, failures: int) -> float:
        """Return the time to the next fetch after so many failures in a row."""
        if not failures:
            return self.refresh_ms / 1000
        return min(self.backoff_max_ms, self.backoff_ms * 2.0 ** min(failures - 1, 32)) / 1000


class UnknownKeyError(TokenError):
    """A token whose key is not in the key set, which may be an old one."""


@dataclass(frozen=True, slots=True)
class TokenChecks:
    """What a token's claims have to say; times in seconds.

    `audiences`: the token has to name one of them, if there are any; `issuer`: None for any.
    """

    audiences: frozenset[str] = frozenset()
    issuer: str | None = None
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    skew_s: int = 30


class KeySet:
    """The public keys of a provider, from the JSON text that it publishes (RFC 7517).

    Raises: UsageError if the text is no key set, or if the library is missing.
    """

    def __init__(self, text: bytes | str) -> None:
        try:
            from joserfc import errors, jwk, jws
        except ImportError:
            raise UsageError(
                "signed tokens need the extra: pip install 'kraftwire[security]'"
            ) from None
        self._jws, self._errors = jws, errors
        # joserfc keeps the algorithms outside its own few apart, as not recommended.
        registry = jws.JWSRegistry(algorithms=list(_ALGORITHMS), strict_check_header=False)
        # The listener has bounded the token (SEC-S7): the library's own limits are too small for
        # chains of certificates in the header, and for the claims of people in many groups.
        registry.max_header_length = registry.max_payload_length = sys.maxsize
        registry.max_signature_length = sys.maxsize
        self._registry = registry
        self._keys: dict[str | None, list[Any]] = {}
        try:
            entries = json.loads(text)["keys"]
            if not isinstance(entries, list) or len(entries) > _KEYS_MAX:
                raise ValueError("no list of keys")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UsageError('no key set: expected {"keys": [...]}') from None
        for entry in entries:
            # A set may have keys of kinds that are not for signatures, or not known here.
            if not isinstance(entry, dict) or entry.get("kty") not in ("RSA", "EC", "OKP"):
                continue
            if entry.get("use", "sig") != "sig":
                continue
            try:
                key = jwk.import_key(entry)
            except (errors.JoseError, ValueError, TypeError, KeyError):
                continue
            self._keys.setdefault(entry.get("kid"), []).append(key)

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def validate(self, token: str, checks: TokenChecks, now_ms: int) -> BearerToken:
        """Return what a token says. Raises: TokenError."""
        claims = self._verified(token)
        now_s = now_ms / 1000
        expiry, issued = _time(claims, "exp"), _time(claims, "iat")
        not_before = 0 if claims.get("nbf") is None else _time(claims, "nbf")
        if expiry + checks.skew_s <= now_s:
            raise TokenError("the token has expired")
        if expiry < max(issued, not_before):
            raise TokenError("the token has ended before it began")
        if issued - checks.skew_s > now_s:
            raise TokenError("the token was issued in the future")
        if not_before - checks.skew_s > now_s:
            raise TokenError("the token is not valid yet")
        if checks.issuer is not None and claims.get("iss") != checks.issuer:
            raise TokenError("the token is of another issuer")
        for name in ("iss", "sub", "jti"):
            _texts(claims, name, is_list=False)
        if checks.audiences and checks.audiences.isdisjoint(_texts(claims, "aud")):
            raise TokenError("the token is for another audience")
        subject = text_of(claims.get(checks.subject_claim))
        if not subject:
            raise TokenError(f"the token has no claim {checks.subject_claim}")
        return BearerToken(subject, expiry * 1000, _scopes(claims.get(checks.scope_claim)))

    def _verified(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token whose signature is right."""
        try:
            found = self._jws.extract_compact(token.encode(), registry=self._registry)
        except (self._errors.JoseError, ValueError, RecursionError):
            raise TokenError("the token is no signed JWT") from None
        header = json_part(token.partition(".")[0])
        if header.get("alg") not in _ALGORITHMS:
            raise TokenError("the token's algorithm is not allowed")
        if header.get("crit"):
            raise TokenError("the token has critical headers")
        kid = header.get("kid")
        keys = [key for known, some in self._keys.items() if kid in (None, known) for key in some]
        if not keys:
            raise UnknownKeyError("the token's key is not in the key set")
        for key in keys:
            try:
                is_right = self._jws.validate_compact(found, key, registry=self._registry)
            except (self._errors.JoseError, ValueError, TypeError, RecursionError):
                continue
            if is_right:
                return json_object(found.payload)
        raise TokenError("the token's signature is wrong")


def _time(claims: Mapping[str, Any], name: str) -> int:
    value: Any = claims.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < _NUMBER_MAX:
        raise TokenError(f"the token has no claim {name}")
    return int(value)


def _texts(claims: Mapping[str, Any], name: str, *, is_list: bool = True) -> list[str]:
    """Return the texts of a claim, which may be missing. Raises: TokenError for anything else."""
    value = claims.get(name)
    values = value if is_list and isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, str) for one in values):
        raise TokenError(f"the token's claim {name} is no text")
    return values


def _scopes(claim: object) -> frozenset[str]:
    """Return the scopes of a claim: a list, or one text. Raises: TokenError for a blank or two."""
    values = claim if isinstance(claim, list) else [claim] if isinstance(claim, str) else []
    found = frozenset(filter(None, map(text_of, values)))
    if len(found) < len(values):
        raise TokenError("the token has a scope twice, or one that is no text")
    return found
