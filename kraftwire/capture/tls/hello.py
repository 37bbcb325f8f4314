"""What the hellos of a TLS handshake show in clear.

Source: RFC 8446, section 4 (and 4.2.1 for the version that TLS 1.3 hides in an extension).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLIENT_HELLO", "SERVER_HELLO", "Hello", "read_hello"]

CLIENT_HELLO = 1
SERVER_HELLO = 2
_SERVER_NAME = 0
_SUPPORTED_VERSIONS = 43
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


@dataclass(frozen=True, slots=True)
class Hello:
    """A hello; `suite` is 0 in a client's, and `version` then the highest of TLS 1.2.

    `session` is the id of the session, which a server may leave empty.

    `is_retry` marks a server's that asks for another hello of the client.
    """

    kind: int
    random: bytes
    version: int
    suite: int = 0
    server_name: str = ""
    session: bytes = b""

    @property
    def is_retry(self) -> bool:
        """Whether this is only a server's request for another hello."""
        return self.random == _RETRY


def read_hello(data: bytes) -> Hello | None:
    """The hello at the start of a handshake's bytes; None if there is none, or not all of it."""
    if len(data) < 4 or data[0] not in (CLIENT_HELLO, SERVER_HELLO):
        return None
    try:
        return _read(data)
    except IndexError:
        return None


def _read(data: bytes) -> Hello:
    kind, version = data[0], int.from_bytes(data[4:6], "big")
    random = data[6:38]
    at = 38 + 1 + data[38]
    session = data[39:at]
    suite = 0
    if kind == CLIENT_HELLO:
        at += 2 + int.from_bytes(data[at : at + 2], "big")
        at += 1 + data[at]
    else:
        suite = int.from_bytes(data[at : at + 2], "big")
        at += 3
    name = ""
    end = min(at + 2 + int.from_bytes(data[at : at + 2], "big"), len(data))
    at += 2
    while at + 4 <= end:
        extension = int.from_bytes(data[at : at + 2], "big")
        value = data[at + 4 : at + 4 + int.from_bytes(data[at + 2 : at + 4], "big")]
        at += 4 + len(value)
        if extension == _SERVER_NAME and kind == CLIENT_HELLO:
            name = value[5:].decode("ascii", "backslashreplace")
        elif extension == _SUPPORTED_VERSIONS and kind == SERVER_HELLO:
            version = int.from_bytes(value, "big")
    return Hello(kind, random, version, suite, name, session)
