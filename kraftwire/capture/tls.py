"""The secrets and keys of TLS connections: from hellos and logged secrets to opening records.

Owns the format of a key log: a line has a label, the client's random and a secret, the last two in
hex. A connection is found by the random of its hello.

Source: draft-ietf-tls-keylogfile (SSLKEYLOGFILE).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kraftwire.capture.bounded_lines import read_lines
from kraftwire.errors import StorageError, UsageError
from kraftwire.small_files import open_regular

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

CLIENT_HELLO = 1
SERVER_HELLO = 2
CERTIFICATE = 11
_SERVER_NAME = 0
_SUPPORTED_VERSIONS = 43
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


@dataclass(slots=True)
class KeyLog:
    """Secrets by the random of a client's hello and their labels; picklable.

    Sessions of TLS 1.2 are found by their ids as well.
    """

    secrets: dict[bytes, dict[str, bytes]] = field(default_factory=dict, repr=False)

    def find(self, random: bytes, session: bytes = b"") -> dict[str, bytes]:
        """The secrets of a connection by their labels; none if the log does not have it."""
        return self.secrets.get(random) or self.secrets.get(_SESSION_KEY + session, {})

    def add_lines(self, lines: Iterable[bytes | bytearray | None]) -> int:
        """Take lines; returns how many of them were secrets. Others are skipped."""
        count = 0
        for line in lines:
            words = bytes(line or b"").decode("ascii", "replace").split()
            try:
                count += len(words) == 3 and self._add_line(*words)
            except ValueError:
                continue
        return count

    def _add_line(self, label: str, name: str, text: str) -> bool:
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
            with open(path, "rb", opener=open_regular) as file:
                count = made.add_lines(read_lines(file, _LINE_BYTES_MAX))
        except (OSError, ValueError) as error:
            # A name with a null byte is a ValueError.
            problem = error.strerror if isinstance(error, OSError) else str(error)
            raise StorageError(f"cannot read: {problem}", file=path) from error
        if not count:
            expected = "lines such as CLIENT_RANDOM and two numbers in hex (SSLKEYLOGFILE)"
            raise StorageError(f"there is no secret in it; expected {expected}", file=path)
        return made


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


TLS_1_2 = 0x0303
TLS_1_3 = 0x0304

# Messages of a handshake are looked through up to this size.
_HANDSHAKE_BYTES_MAX = 1024 * 1024
# Longer names are left out: they go into lines and tables.
_NAME_MAX = 4096


class HandshakeMessages:
    """The messages of one direction's handshake, out of records that may cut them anywhere."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def held_bytes(self) -> int:
        """The bytes of a message that is not complete."""
        return len(self._buffer)

    def clear(self) -> None:
        """Forget a message that is not complete."""
        self._buffer.clear()

    def messages_of(self, text: bytes | bytearray) -> Iterator[bytes]:
        """Take what a record holds; yields the messages that are complete by now."""
        buffer = self._buffer
        buffer += text
        while len(buffer) >= 4:
            size = 4 + int.from_bytes(buffer[1:4], "big")
            if size > _HANDSHAKE_BYTES_MAX:
                buffer.clear()
            if len(buffer) < size:
                return
            message = bytes(buffer[:size])
            del buffer[:size]
            yield message


def certificate_name(message: bytes, version: int) -> str:
    """Return the subject of the first certificate in a message, as Kafka's mapping rules get it.

    Empty if there is none, or it cannot be read.
    """
    from kraftwire.security.names import distinguished_name  # few captures have certificates

    at = 4 + 3
    if version == TLS_1_3:
        at += 1 + int.from_bytes(message[4:5], "big")
    end = at + 3 + int.from_bytes(message[at : at + 3], "big")
    try:
        name = distinguished_name(message[at + 3 : end])
    except UsageError:
        return ""
    return name if len(name) <= _NAME_MAX else ""


TAG_SIZE = 16
_EXPLICIT_SIZE = 8
_NONCE_SIZE = 12


@dataclass(frozen=True, slots=True)
class Suite:
    """A cipher suite: what it encrypts with, and the name of the hash that makes its keys."""

    is_gcm: bool
    key_size: int
    hash: str
    version: int


_SHA_256, _SHA_384 = "sha256", "sha384"
_HASH_SIZES = {_SHA_256: 32, _SHA_384: 48}
_AES_128, _AES_256 = (True, 16, _SHA_256), (True, 32, _SHA_384)
_CHACHA = (False, 32, _SHA_256)
SUITES = {
    0x1301: Suite(*_AES_128, TLS_1_3),
    0x1302: Suite(*_AES_256, TLS_1_3),
    0x1303: Suite(*_CHACHA, TLS_1_3),
    **{id: Suite(*_AES_128, TLS_1_2) for id in (0x009C, 0x009E, 0xC02B, 0xC02D, 0xC02F, 0xC031)},
    **{id: Suite(*_AES_256, TLS_1_2) for id in (0x009D, 0x009F, 0xC02C, 0xC02E, 0xC030, 0xC032)},
    **{id: Suite(*_CHACHA, TLS_1_2) for id in (0xCCA8, 0xCCA9, 0xCCAA)},
}


def has_ciphers() -> bool:
    """Whether the extra is installed."""
    from importlib.util import find_spec

    return find_spec("cryptography") is not None


def ensure_ciphers() -> None:
    """Refuse to decrypt without the extra. Raises: UsageError if it is not installed."""
    if not has_ciphers():
        needed = "decryption needs the package cryptography"
        raise UsageError(f"{needed}: pip install 'kraftwire[security]'")


class Opener:
    """Opens the records of one direction under one key.

    `overhead` is how much longer a record is on the wire than its text, apart from the
    padding of TLS 1.3. Units: bytes.
    """

    def __init__(self, suite: Suite, key: bytes, iv: bytes, secret: bytes = b"") -> None:
        from cryptography.hazmat.primitives.ciphers import aead

        cipher = aead.AESGCM if suite.is_gcm else aead.ChaCha20Poly1305
        self._decrypt = cipher(key).decrypt
        self._iv = iv
        self._suite = suite
        self._secret = secret
        self._is_explicit = suite.is_gcm and suite.version == TLS_1_2
        explicit = _EXPLICIT_SIZE if self._is_explicit else 0
        self.overhead = TAG_SIZE + explicit + (suite.version == TLS_1_3)

    @classmethod
    def of_secret(cls, suite: Suite, secret: bytes) -> Opener:
        """The opener of a traffic secret of TLS 1.3."""
        key = _expand_label(suite, secret, b"key", suite.key_size)
        return cls(suite, key, _expand_label(suite, secret, b"iv", _NONCE_SIZE), secret)

    def next(self) -> Opener:
        """The opener after a key update of TLS 1.3."""
        size = _HASH_SIZES[self._suite.hash]
        return Opener.of_secret(
            self._suite, _expand_label(self._suite, self._secret, b"traffic upd", size)
        )

    def open(self, head: bytes, body: bytes, number: int) -> tuple[int, bytes] | None:
        """Return kind and text of a record; None if damaged, or not of this key and number."""
        from cryptography.exceptions import InvalidTag

        if len(body) < self.overhead:
            return None
        if self._suite.version == TLS_1_3:
            nonce, about, sealed = self._mixed(number), head, body
        else:
            nonce, sealed = self._mixed(number), body
            if self._is_explicit:
                nonce, sealed = self._iv + body[:_EXPLICIT_SIZE], body[_EXPLICIT_SIZE:]
            size = len(sealed) - TAG_SIZE
            about = number.to_bytes(8, "big") + head[:3] + size.to_bytes(2, "big")
        try:
            text = self._decrypt(nonce, sealed, about)
        except InvalidTag:
            return None
        if self._suite.version != TLS_1_3:
            return head[0], text
        # The kind follows the text, and zeros follow the kind.
        text = text.rstrip(b"\0")
        return (text[-1], text[:-1]) if text else None

    def _mixed(self, number: int) -> bytes:
        if self._is_explicit:
            return b""
        mixed = int.from_bytes(self._iv, "big") ^ number
        return mixed.to_bytes(_NONCE_SIZE, "big")


def _expand_label(suite: Suite, secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label without a context, for sizes of one block."""
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0"
    return _digest(secret, info + b"\x01", suite)[:size]


def _digest(key: bytes, text: bytes, suite: Suite) -> bytes:
    import hmac  # slow to import, and rarely needed

    return hmac.digest(key, text, suite.hash)


def openers_1_2(
    suite: Suite, master: bytes, client_random: bytes, server_random: bytes
) -> tuple[Opener, Opener]:
    """The openers of client and server of a connection of TLS 1.2."""
    iv_size = _NONCE_SIZE - _EXPLICIT_SIZE if suite.is_gcm else _NONCE_SIZE
    seed = b"key expansion" + server_random + client_random
    size = 2 * (suite.key_size + iv_size)
    made, link = b"", seed
    while len(made) < size:
        link = _digest(master, link, suite)
        made += _digest(master, link + seed, suite)
    keys, ivs = made[: 2 * suite.key_size], made[2 * suite.key_size : size]
    return (
        Opener(suite, keys[: suite.key_size], ivs[:iv_size]),
        Opener(suite, keys[suite.key_size :], ivs[iv_size:]),
    )
