"""SASL tokens: their parts, by mechanism, without the secrets unless these are asked for.

Source: RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER), RFC 7519 (JWT).
"""

from __future__ import annotations

import json
import re
from binascii import a2b_base64
from typing import Any

from kraftwire.decode.body.secrets import REDACTED

_SCRAM_NAMES = {
    b"a": "authorizationId",
    b"c": "channelBinding",
    b"e": "error",
    b"i": "iterations",
    b"n": "username",
    b"p": "proof",
    b"r": "nonce",
    b"s": "salt",
    b"v": "serverSignature",
}
# With these an eavesdropper can try passwords, or pose as the server.
_SCRAM_SECRETS = frozenset({"proof", "salt", "serverSignature"})
_GS2_FLAGS = (b"n", b"y", b"p=")
_ITERATIONS = re.compile(r"[0-9]{1,10}")

_BEARER = "auth=Bearer "
_SEPARATOR = b"\x01"


def sasl_token(
    mechanism: str, token: bytes, *, is_request: bool, show_secrets: bool
) -> dict[str, Any] | None:
    """Return the parts of a token; None for an empty one.

    ``mechanism`` is always among them. A token of an unknown mechanism, or one that does not
    follow its mechanism's format, adds only its size.
    """
    if not token:
        return None
    parts: dict[str, Any] | None = None
    if mechanism == "PLAIN":
        parts = _plain(token) if is_request else None
    elif mechanism.startswith("SCRAM-"):
        parts = _scram(token)
    elif mechanism == "OAUTHBEARER":
        parts = _bearer(token) if is_request else _bearer_error(token)
    if parts is None:
        parts = {"size": len(token)}
    if not show_secrets:
        for name in parts.keys() & (_SCRAM_SECRETS | {"password", "token"}):
            parts[name] = REDACTED
    return {"mechanism": mechanism, **parts}


def _text(data: bytes) -> str:
    return data.decode(errors="backslashreplace")


def _plain(token: bytes) -> dict[str, Any] | None:
    parts = token.split(b"\0")
    if len(parts) != 3:
        return None
    names = ("authorizationId", "username", "password")
    return dict(zip(names, map(_text, parts), strict=True))


def _scram(token: bytes) -> dict[str, Any] | None:
    head, *rest = token.split(b",")
    if head in _GS2_FLAGS[:2] or head.startswith(_GS2_FLAGS[2]):
        step, fields = "client-first", rest
    else:
        steps = {b"r=": "server-first", b"c=": "client-final"}
        step, fields = steps.get(head[:2], "server-final"), [head, *rest]
    parts: dict[str, Any] = {"step": step}
    for each in fields:
        key, equals, value = each.partition(b"=")
        if not equals:
            continue
        name = _SCRAM_NAMES.get(key)
        if name is None:
            parts.setdefault("extensions", {})[_text(key)] = _text(value)
        else:
            # Commas and equal signs of a name are escaped (RFC 5802, section 5.1).
            text = _text(value).replace("=2C", ",").replace("=3D", "=")
            is_number = name == "iterations" and _ITERATIONS.fullmatch(text) is not None
            parts[name] = int(text) if is_number else text
    return parts if len(parts) > 1 else None


def _bearer(token: bytes) -> dict[str, Any] | None:
    head, *fields = token.split(_SEPARATOR)
    if not fields:
        return None
    parts: dict[str, Any] = {}
    for each in head.split(b","):
        if each.startswith(b"a="):
            parts["authorizationId"] = _text(each[2:])
    for each in filter(None, fields):
        text = _text(each)
        if text.startswith(_BEARER):
            parts["token"] = text.removeprefix(_BEARER)
        else:
            name, _, value = text.partition("=")
            parts.setdefault("extensions", {})[name] = value
    return parts or None


def _bearer_error(token: bytes) -> dict[str, Any] | None:
    """Return a server's error (RFC 7628, section 3.2.2); None for anything else, which may be what
    a client has sent."""
    try:
        error = json.loads(token)
    except (ValueError, RecursionError):
        return None
    return {"error": _text(token)} if isinstance(error, dict) and "status" in error else None


# Longer names are not told, as they go into lines and tables, nor what is in longer tokens.
_NAME_MAX = 4096
_TOKEN_MAX = 65_536
_TOKEN_AUTH = "tokenauth"
# The claim that Kafka takes for the name, unless it is told another one.
_SUBJECT = "sub"


def principal_of(mechanism: str, token: bytes) -> str | None:
    """Return who a client's token logs in, as Kafka names principals; None if it does not say.

    By a delegation token its owner logs in, whose name is not in it.
    """
    if len(token) > _TOKEN_MAX:
        return None
    parts = sasl_token(mechanism, token, is_request=True, show_secrets=True) or {}
    name = parts.get("username")
    if "token" in parts:
        name = _subject(parts["token"])
    elif _TOKEN_AUTH in parts.get("extensions", ()):
        name = None
    is_name = isinstance(name, str) and 0 < len(name) <= _NAME_MAX
    return f"User:{name}" if is_name else None


def _subject(token: str) -> Any:
    """Return the subject of a JWT; None if there is none, or nothing is readable."""
    try:
        claims = json.loads(a2b_base64(token.split(".")[1].translate(_URL_SAFE) + "=="))
    except (ValueError, IndexError, RecursionError):
        return None
    return claims.get(_SUBJECT) if isinstance(claims, dict) else None


_URL_SAFE = str.maketrans("-_", "+/")
