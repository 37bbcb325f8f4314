"""Which entries of a configuration are secret, by the shape of their names and values.

The rule is broader than Kafka's own type PASSWORD: plugins, connectors and clients bring keys of
their own, and each spells them as it likes. What is only about a secret, such as the type of a
keystore, is shown.
"""

from __future__ import annotations

import re
from functools import lru_cache

_KNOWN_MAX = 4096
_NAME_MAX = 1024

# Words of a name: between dots, dashes and underscores, and as camel case divides it.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")

# Secret wherever they stand, also at the end of a word, as in ``dbpassword``.
_SECRET = (
    "password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials",
    "jaas",
)  # fmt: skip
_SECRET_WORDS = frozenset({"secrets", "tokens", "passwords"})
# Secret as the last word, or the last ones.
_SECRET_LAST = frozenset(
    {"assertion", "authorization", "bearer", "cookie", "creds", "hmac", "jwt", "license"}
    | {"mnemonic", "otp", "pass", "passcode", "pw", "sas", "userinfo", "userpass", "webhook"}
)
_SECRET_ENDS = frozenset(
    {
        ("access", "signature"),
        ("account", "json"),
        ("basic", "auth"),
        ("certificate", "chain"),
        ("connection", "string"),
        ("key", "pem"),
        ("keyfile", "json"),
        ("keystore", "key"),
        ("pass", "phrase"),
        ("pass", "word"),
        ("private", "pem"),
        ("truststore", "certificates"),
        ("user", "info"),
        ("webhook", "url"),
    }
)
# A key is secret after these; a key of a map, a partition or a converter is not.
_KEY_KINDS = frozenset(
    {"access", "account", "aes", "api", "auth", "cipher", "decryption", "encryption", "hmac"}
    | {"license", "master", "private", "root", "rsa", "sas", "secret", "server", "session"}
    | {"shared", "signing", "ssh", "ssl", "stored", "symmetric", "tls", "unseal", "wrapping"}
)
_KEY_WORDS = tuple(f"{kind}key" for kind in _KEY_KINDS)

# Words of facts about a secret, rather than of the secret itself.
_HARMLESS_LAST = frozenset(
    {"algorithm", "class", "count", "enable", "enabled", "file", "iterations", "length"}
    | {"location", "ms", "name", "path", "provider", "requests", "seconds", "size", "type"}
    | {"uri", "url"}
)
_HARMLESS_ENDS = frozenset({("client", "id"), ("credentials", "source")})

# Values that are secret whatever their name is: private keys, tokens, addresses, option lists and
# JSON with a password in them. Services mark their tokens by how these begin.
_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\."
    r"|://[^/\s:@]{0,256}:[^/\s@]{1,256}@"
    r"|:thin:[^/\s@]{1,256}/[^/\s@]{1,256}@"
    r"|(?:password|passwd|pwd|secret|accountkey|accesskey|accesssignature"
    r"|(?:access|auth|refresh|id)_?token|(?:api|secret|private)[_-]?key)[\"']?\s*[=:]\s*[^\s,;]"
    r"|(?:[?&;,\s]|^)(?:pass|sig|token)=[^\s,;&]"
    r"|(?:^|authorization[\"']?\s*[=:]\s*[\"']?)(?:basic|bearer)\s+[\w+/=.~-]{8}"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|sk_live_|AIza)[\w-]{16}",
    re.IGNORECASE,
)


def is_secret_config(name: str) -> bool:
    """Whether the value of a configuration key is to be hidden."""
    return _is_secret_end(name[-_NAME_MAX:])


@lru_cache(maxsize=_KNOWN_MAX)
def _is_secret_end(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return False
    last, ending = words[-1], tuple(words[-2:])
    if last in _SECRET_LAST or ending in _SECRET_ENDS or last.endswith(_KEY_WORDS):
        return True
    if last == "key" and ending[0] in _KEY_KINDS:
        return True
    if last in _HARMLESS_LAST or ending in _HARMLESS_ENDS:
        return False
    return any(word in _SECRET_WORDS or word.endswith(_SECRET) for word in words)


def is_secret_value(value: object) -> bool:
    """Whether a value is to be hidden whatever its key is."""
    return isinstance(value, str) and _SECRET_VALUE.search(value) is not None
