"""OAUTHBEARER: the framing of a token, both sides; and tokens without a signature, for tests.

Rules SEC-S40 and SEC-S41. Source: RFC 7628, `OAuthBearerSaslClient`, `OAuthBearerSaslServer`,
`OAuthBearerUnsecuredJws`. Whether a token is valid is decided by a function from outside: here for
unsecured ones, elsewhere for signed ones, so that no library of cryptography is needed.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kraftwire.security.credentials import BearerCredentials
from kraftwire.security.errors import PROTOCOL, Refused, SaslError
from kraftwire.security.jaas import JaasError

_SEPARATOR = "\x01"
_AFTER_FAILURE = b"\x01"
_AUTH = "auth"
_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_KEY = r"[A-Za-z]+"
_VALUE = r"[!-~ \t\r\n]+"
_MESSAGE = re.compile(rf"n,(?:a=({_NAME}))?,\x01((?:{_KEY}={_VALUE}\x01)*)\x01")
_EXTENSION = re.compile(rf"({_KEY})=({_VALUE})")
# Java's `trim` takes these, and no other blanks.
_BLANKS = "".join(map(chr, range(33)))
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = r"[-_~+/.a-zA-Z0-9]+=*"
_BEARER = re.compile(rf"(\w+) +({_TOKEN})", re.ASCII)

_LOGIN = "unsecuredLogin"
_VALIDATOR = "unsecuredValidator"
_LIFETIME_S = "3600"
# Set by the token's maker alone.
_RESERVED = ("iat", "exp")


class TokenError(Refused):
    """A token that is not accepted; the client is told the status, `scope` too if one is missing.

    The text is for the node's log and does not contain the token.
    """

    def __init__(self, text: str, *, scope: str | None = None) -> None:
        super().__init__(text)
        self.scope = scope

    @property
    def answer(self) -> str:
        """The JSON text that RFC 7628 wants as the answer."""
        if self.scope is None:
            return '{"status":"invalid_token"}'
        return f'{{"status":"insufficient_scope", "scope":{json.dumps(self.scope)}}}'


@dataclass(frozen=True, slots=True)
class BearerToken:
    """What a valid token says: whose it is, until when (milliseconds since the epoch)."""

    name: str
    expiry_ms: int
    scopes: frozenset[str] = frozenset()


class OAuthClient:
    """The client's side: the token, and one byte more if it is refused."""

    is_complete = False

    def __init__(self, credentials: BearerCredentials) -> None:
        for key, value in credentials.extensions.items():
            if key == _AUTH or _EXTENSION.fullmatch(f"{key}={value}") is None:
                raise SaslError(
                    PROTOCOL, f"extension {key!r} has a name or value that is not legal"
                )
        self._credentials = credentials
        self._problem = ""

    def first(self) -> bytes:
        """Return the first token of the exchange, with the bearer token in it."""
        found = self._credentials
        holder = f"a={found.authorization_id}" if found.authorization_id else ""
        pairs = {_AUTH: f"Bearer {found.token}", **found.extensions}
        text = "".join(f"{key}={value}{_SEPARATOR}" for key, value in pairs.items())
        return f"n,{holder},{_SEPARATOR}{text}{_SEPARATOR}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """Take the server's token: empty for success; else the server waits for one byte more."""
        if not challenge:
            self.is_complete = True
            return None
        if self._problem:
            raise SaslError(PROTOCOL, "the server continues after it refused the token")
        self._problem = challenge.decode("utf-8", "replace")
        return _AFTER_FAILURE


class OAuthServer:
    """The server's side; `validate` returns what a token says, or raises TokenError."""

    is_token = False

    def __init__(self, validate: Callable[[str], BearerToken]) -> None:
        self._validate = validate
        self._refusal: TokenError | None = None
        self.name: str | None = None
        self.lifetime_end_ms: int | None = None

    def answer(self, token: bytes) -> bytes:
        """Check the client's message; the answer to a bad token is JSON, then one more message.

        Raises: Refused for a message of another form, and after the client heard of its bad token.
        """
        if self._refusal is not None:
            raise Refused(self._refusal.answer, is_public=True)
        value, authorization_id = _parsed(token)
        try:
            found = self._validate(value)
        except TokenError as refusal:
            # Its frames hold the token, several times.
            refusal.__traceback__ = refusal.__context__ = None
            self._refusal = refusal
            return refusal.answer.encode()
        if authorization_id not in ("", found.name):
            raise Refused(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) "
                f"that is different from the token's principal name ({found.name})",
                is_public=True,
            )
        self.name, self.lifetime_end_ms = found.name, found.expiry_ms
        return b""

    @property
    def refusal(self) -> TokenError | None:
        """Why the last token was not accepted, for the node's log."""
        return self._refusal


def _parsed(message: bytes) -> tuple[str, str]:
    """Return token and authorization id of the client's message. Raises: Refused."""
    match = _MESSAGE.fullmatch(message.decode("utf-8", "replace"))
    if match is None:
        raise Refused("the client's OAUTHBEARER message has another form")
    pairs = dict(pair.split("=", 1) for pair in match[2].split(_SEPARATOR) if pair)
    bearer = _BEARER.fullmatch(pairs.get(_AUTH, ""))
    if bearer is None or bearer[1].lower() != "bearer":
        raise Refused("the client's OAUTHBEARER message has no bearer token")
    return bearer[2], match[1] or ""


def is_bearer_token(text: str) -> bool:
    """Whether a text can be a token: a client that shows another one sends something else."""
    return re.fullmatch(_TOKEN, text) is not None


@dataclass(frozen=True, slots=True)
class UnsecuredValidator:
    """Accepts tokens without a signature, which anybody can make: for tests alone (SEC-S41).

    Made from the options `unsecuredValidator...` of a JAAS entry.
    """

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scopes: tuple[str, ...] = ()
    skew_ms: int = 0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> UnsecuredValidator:
        """Read the options. Raises: JaasError for a skew that is no number."""
        given = {key.removeprefix(_VALIDATOR): value.strip() for key, value in options.items()}
        skew = given.get("AllowableClockSkewMs") or "0"
        if not skew.isascii() or not skew.isdigit():
            raise JaasError(f"{_VALIDATOR}AllowableClockSkewMs: expected milliseconds")
        return cls(
            given.get("PrincipalClaimName") or "sub",
            given.get("ScopeClaimName") or "scope",
            tuple((given.get("RequiredScope") or "").split()),
            int(skew),
        )

    def validate(self, token: str, now_ms: int) -> BearerToken:
        """Return what a token says. Raises: TokenError."""
        header, claims = _unsigned_parts(token)
        if header.get("alg") != "none":
            raise TokenError("an unsecured token has the algorithm none")
        name = text_of(claims.get(self.principal_claim))
        expiry: Any = claims.get("exp")
        issued: Any = claims.get("iat")
        if not name:
            raise TokenError(f"the token has no claim {self.principal_claim}")
        if not _is_number(expiry) or not (issued is None or _is_number(issued)):
            raise TokenError("the token's claims exp and iat have to be numbers")
        if issued is not None and 1000.0 * issued > now_ms + self.skew_ms:
            raise TokenError("the token was issued in the future")
        if now_ms - self.skew_ms >= 1000.0 * expiry:
            raise TokenError("the token has expired")
        if issued is not None and expiry <= issued:
            raise TokenError("the token expires before it was issued")
        scopes = _scopes(claims.get(self.scope_claim))
        if not scopes.issuperset(self.required_scopes):
            wanted = f"[{', '.join(self.required_scopes)}]"
            raise TokenError("the token lacks a scope", scope=wanted)
        return BearerToken(name, int(1000 * expiry), scopes)


def text_of(claim: object) -> str:
    """Return a text without the blanks around it, as Java trims; empty if it is no Unicode text."""
    if not isinstance(claim, str) or _LONE_SURROGATE.search(claim):
        return ""
    return claim.strip(_BLANKS)


def json_part(part: str) -> dict[str, Any]:
    """Return the JSON object of a part of a token, which is in base64url. Raises: TokenError."""
    try:
        data = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise TokenError("a part of the token is not in base64url") from None
    return json_object(data)


def json_object(data: bytes) -> dict[str, Any]:
    """Return a JSON object, in which no object has a key twice. Raises: TokenError."""
    try:
        found = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise TokenError("a part of the token is no JSON") from None
    if not isinstance(found, dict):
        raise TokenError("a part of the token is no JSON object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def unsecured_credentials(options: Mapping[str, str], now_ms: int) -> BearerCredentials:
    """Return a token without a signature from the options `unsecuredLogin...` of a JAAS entry.

    Source: `OAuthBearerUnsecuredLoginCallbackHandler`. Raises: JaasError if the options give no
    token, or one without its principal.
    """
    given = {
        key.removeprefix(_LOGIN): value for key, value in options.items() if key.startswith(_LOGIN)
    }
    extensions = _with_prefix(given, "Extension_")
    if len(extensions) == len(given):
        raise JaasError(
            "sasl.oauthbearer.token.endpoint.url is missing: it says where tokens are; for tests, "
            f"the options {_LOGIN}StringClaim_sub and others make one without a signature"
        )
    claims = _claims(given, now_ms)
    principal = given.get("PrincipalClaimName", "").strip() or "sub"
    if not isinstance(claims.get(principal), str) or not str(claims[principal]).strip():
        raise JaasError(f"{_LOGIN}StringClaim_{principal} is missing: it names the principal")
    header = _base64url(b'{"alg":"none"}')
    token = f"{header}.{_base64url(json.dumps(claims, separators=(',', ':')).encode())}."
    return BearerCredentials(token, extensions)


def _claims(given: Mapping[str, str], now_ms: int) -> dict[str, object]:
    lifetime = given.get("LifetimeSeconds", _LIFETIME_S)
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", lifetime):
        raise JaasError(f"{_LOGIN}LifetimeSeconds: expected a whole number")
    claims: dict[str, object] = {"exp": now_ms / 1000 + int(lifetime), "iat": now_ms / 1000}
    found: dict[str, object] = dict(_with_prefix(given, "StringClaim_"))
    for name, value in _with_prefix(given, "NumberClaim_").items():
        try:
            found[name] = float(value)
        except ValueError:
            raise JaasError(f"{_LOGIN}NumberClaim_{name}: expected a number") from None
    for name, value in _with_prefix(given, "ListClaim_").items():
        # The first character is what separates the elements.
        found[name] = value[1:].split(value[0]) if len(value) > 1 else []
    for name in _RESERVED:
        if name in found:
            raise JaasError(f"the claim {name} cannot be set: {_LOGIN}LifetimeSeconds sets it")
    return claims | found


def _with_prefix(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key[len(prefix) :]: value for key, value in given.items() if key.startswith(prefix)}


def _unsigned_parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    parts = token.split(".")
    if len(parts) != 3 or parts[2] or not parts[1]:
        raise TokenError("an unsecured token has a header, claims, and an empty signature")
    return json_part(parts[0]), json_part(parts[1])


def _scopes(claim: object) -> frozenset[str]:
    """Return the scopes of a claim: a list, or one text; Kafka does not split the text."""
    values = claim if isinstance(claim, list) else [claim]
    return frozenset(filter(None, map(text_of, values)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
