"""The secrets of TLS connections, as browsers and TLS libraries log them.

Owns the format: a line has a label, the client's random and a secret, the last two in hex. A
connection is found by the random of its hello.

Source: draft-ietf-tls-keylogfile (SSLKEYLOGFILE).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.capture.bounded_lines import read_lines
from kraftwire.errors import StorageError

__all__ = ["KeyLog"]

_LABELS = frozenset(
    {
        "CLIENT_RANDOM",
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    }
)
# In place of a client's random, some clients log the id of the session that TLS 1.2 makes.
_SESSION, _MASTER = "Session-ID:", "Master-Key:"
_MASTER_SIZE = 48
# Before the id of a session, which may be as long as a random.
_SESSION_KEY = b"session "
_LINE_BYTES_MAX = 1024
_RANDOM_SIZE = 32
_SECRET_SIZES = range(32, 65)
# Connections whose secrets are kept; the oldest are dropped.
_CONNECTIONS_MAX = 200_000


@dataclass(slots=True)
class KeyLog:
    """Secrets by the random of a client's hello and their labels; picklable.

    Sessions of TLS 1.2 are found by their ids as well.
    """

    secrets: dict[bytes, dict[str, bytes]] = field(default_factory=dict, repr=False)

    def find(self, random: bytes, session: bytes = b"") -> dict[str, bytes]:
        """The secrets of a connection by their labels; none if the log does not have it."""
        return self.secrets.get(random) or self.secrets.get(_SESSION_KEY + session, {})

    def add(self, lines: Iterable[bytes | bytearray | None]) -> int:
        """Take lines; returns how many of them were secrets. Others are skipped."""
        count = 0
        for line in lines:
            words = bytes(line or b"").decode("ascii", "replace").split()
            try:
                count += len(words) == 3 and self._take(*words)
            except ValueError:
                continue
        return count

    def _take(self, label: str, name: str, text: str) -> bool:
        """Take a line's words. Raises: ValueError if they are not hexadecimal."""
        if label == "RSA" and name.startswith(_SESSION) and text.startswith(_MASTER):
            session = bytes.fromhex(name.removeprefix(_SESSION))
            secret = bytes.fromhex(text.removeprefix(_MASTER))
            if not session or len(secret) != _MASTER_SIZE:
                return False
            self._keep(_SESSION_KEY + session, "CLIENT_RANDOM", secret)
            return True
        if label not in _LABELS:
            return False
        random, secret = bytes.fromhex(name), bytes.fromhex(text)
        if len(random) != _RANDOM_SIZE or len(secret) not in _SECRET_SIZES:
            return False
        self._keep(random, label, secret)
        return True

    def _keep(self, random: bytes, label: str, secret: bytes) -> None:
        if random not in self.secrets and len(self.secrets) >= _CONNECTIONS_MAX:
            del self.secrets[next(iter(self.secrets))]
        self.secrets.setdefault(random, {})[label] = secret

    @classmethod
    def read(cls, path: str) -> KeyLog:
        """Read a file. Raises: StorageError if it cannot be read, or has no secret in it."""
        made = cls()
        try:
            with Path(path).open("rb") as file:
                count = made.add(read_lines(file, _LINE_BYTES_MAX))
        except OSError as error:
            raise StorageError(f"cannot read: {error.strerror}", file=path) from error
        if not count:
            expected = "lines such as CLIENT_RANDOM and two numbers in hex (SSLKEYLOGFILE)"
            raise StorageError(f"there is no secret in it; expected {expected}", file=path)
        return made
