"""The secrets of TLS connections, as browsers and TLS libraries log them.

Owns the format: a line has a label, the client's random and a secret, the last two in hex. A
connection is found by the random of its hello.

Source: draft-ietf-tls-keylogfile (SSLKEYLOGFILE).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.decode.lines import read_lines
from kraftwire.decode.render.text import count_text
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
# Some clients name a connection of TLS 1.2 by its session, which is not supported.
_SESSION = "Session-ID:"
_LINE_BYTES_MAX = 1024
_RANDOM_SIZE = 32
_SECRET_SIZES = range(32, 65)
# Connections whose secrets are kept; the oldest are dropped.
_CONNECTIONS_MAX = 200_000


@dataclass(slots=True)
class KeyLog:
    """Secrets by the random of a client's hello and their labels; picklable.

    `notes` say what of a file is not used.
    """

    secrets: dict[bytes, dict[str, bytes]] = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list)
    _by_session: int = 0

    def find(self, random: bytes) -> dict[str, bytes]:
        """The secrets of a connection by their labels; none if the log does not have it."""
        return self.secrets.get(random, {})

    def add(self, lines: Iterable[bytes | bytearray | None]) -> int:
        """Take lines; returns how many of them were secrets. Others are skipped."""
        count = 0
        for line in lines:
            words = bytes(line or b"").decode("ascii", "replace").split()
            self._by_session += len(words) > 1 and words[1].startswith(_SESSION)
            if len(words) != 3 or words[0] not in _LABELS:
                continue
            try:
                random, secret = bytes.fromhex(words[1]), bytes.fromhex(words[2])
            except ValueError:
                continue
            if len(random) == _RANDOM_SIZE and len(secret) in _SECRET_SIZES:
                self._keep(random, words[0], secret)
                count += 1
        return count

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
        if made._by_session:
            lines = count_text(made._by_session, "line")
            verb = "is" if made._by_session == 1 else "are"
            made.notes.append(f"{lines} of RSA Session-ID in {path} {verb} not supported")
        if not count:
            expected = "lines such as CLIENT_RANDOM and two numbers in hex (SSLKEYLOGFILE)"
            notes = "".join(f"; {each}" for each in made.notes)
            raise StorageError(f"there is no secret in it; expected {expected}{notes}", file=path)
        return made
