"""Who may use a control interface: whoever is on this machine, or has its token.

Pages in a browser are on this machine too. They can neither send JSON to another site unasked nor
change a Host header, so one that is reached by a name of theirs is refused.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass

from kraftwire.errors import UsageError
from kraftwire.protocol.endpoint import is_loopback
from kraftwire.small_files import read_small_file
from kraftwire.transport.http_server import HttpRequest

_JSON = "application/json"
_TOKEN = re.compile(r"[!-~]{16,4096}", re.ASCII)
_HOST = re.compile(r"(?:\[([^]]*)\]|([^:]*))(?::\d*)?")


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, problem: str, *headers: tuple[str, str]) -> None:
        self.status = status
        self.headers = headers
        super().__init__(problem)


def read_token(path: str) -> str:
    """Read the token of a file. Raises: UsageError if it has none; OSError."""
    token = read_small_file(path).decode("latin-1").strip()
    if not _TOKEN.fullmatch(token):
        problem = "expected a token: 16 characters of ASCII or more, without blanks"
        raise UsageError(f"{path}: {problem}")
    return token


@dataclass(frozen=True, slots=True)
class Access:
    """What a request has to show: a token, or without one that it was sent to this machine."""

    token: str | None = None

    def check(self, request: HttpRequest) -> None:
        """Raises: RefusedError."""
        headers = request.headers
        if self.token is not None:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.encode("latin-1"), self.token.encode("latin-1"))
            if scheme.lower() != "bearer" or not is_right:
                wanted = ("WWW-Authenticate", "Bearer")
                raise RefusedError(401, "Authorization: expected Bearer and the token", wanted)
        elif not _is_to_loopback(headers.get("host", "")):
            found = headers.get("host", "none")
            raise RefusedError(403, f"Host: expected localhost or its address, found {found:.60}")
        if request.method == "POST":
            kind = headers.get("content-type", "none")
            if kind.partition(";")[0].strip().lower() != _JSON:
                raise RefusedError(415, f"Content-Type: expected {_JSON}, found {kind:.60}")


def _is_to_loopback(header: str) -> bool:
    found = _HOST.fullmatch(header)
    return found is not None and is_loopback(found[1] or found[2] or "")
