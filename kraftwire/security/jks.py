"""Java's own key stores, JKS: their keys and certificates, without Java and without a library.

The file is ``FEEDFEED``, a version, the entries, and a digest over all of it with the password. A
key is hidden by an XOR with a chain of SHA-1 digests of the password.

Source: the file format of Java's `sun.security.provider.JavaKeyStore` and `KeyProtector`.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field

JKS_MAGIC = b"\xfe\xed\xfe\xed"
_VERSIONS = (1, 2)
_KEY, _TRUSTED = 1, 2
_DIGEST_SIZE = 20
# The digest is salted with these words.
_WHITENER = b"Mighty Aphrodite"
_SEQUENCE, _OCTETS = 0x30, 0x04


class JksError(Exception):
    """The store is damaged, or the password is wrong; `is_password` tells which."""

    def __init__(self, problem: str, *, is_password: bool = False) -> None:
        self.is_password = is_password
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class JksEntry:
    """One entry: a key that is still hidden, with its chain, or one trusted certificate.

    `chain` is in DER, the key's own certificate first.
    """

    alias: str
    chain: tuple[bytes, ...]
    hidden_key: bytes | None = field(default=None, repr=False)

    def key(self, password: str) -> bytes:
        """Return the key in DER, as PKCS 8. Raises: JksError for a wrong password."""
        assert self.hidden_key is not None
        return _reveal(_protected(self.hidden_key), password.encode("utf-16-be"))


def read_jks(data: bytes, password: str | None) -> list[JksEntry]:
    """Return the entries of a store, in file order.

    Without a password the store is not checked for changes, as in Java. Raises: JksError.
    """
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if password is not None:
        wanted = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + body).digest()
        if not hmac.compare_digest(wanted, digest):
            raise JksError("the password is wrong, or the file is damaged", is_password=True)
    try:
        return _entries(_Reader(body))
    except (struct.error, UnicodeDecodeError) as error:
        raise JksError("the file ends early, or is damaged") from error


class _Reader:
    """Big-endian values, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, layout: str = ">I") -> int:
        (value,) = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def bytes(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise struct.error("too short")
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        return self.bytes(self.number(">H")).decode()


def _entries(reader: _Reader) -> list[JksEntry]:
    if reader.bytes(4) != JKS_MAGIC or (version := reader.number()) not in _VERSIONS:
        raise JksError("this is no JKS store of version 1 or 2")
    found = []
    for _ in range(reader.number()):
        kind, alias = reader.number(), reader.text()
        reader.number(">Q")  # when it was made
        if kind == _KEY:
            hidden = reader.bytes(reader.number())
            chain = tuple(_certificate(reader, version) for _ in range(reader.number()))
            found.append(JksEntry(alias, chain, hidden))
        elif kind == _TRUSTED:
            found.append(JksEntry(alias, (_certificate(reader, version),)))
        else:
            raise JksError(f"an entry of the unknown kind {kind}")
    return found


def _certificate(reader: _Reader, version: int) -> bytes:
    if version > 1:
        reader.text()  # the type, X.509
    return reader.bytes(reader.number())


def _protected(data: bytes) -> bytes:
    """Return the octets in an EncryptedPrivateKeyInfo: ``SEQUENCE {algorithm, OCTET STRING}``."""
    content = _value(data, _SEQUENCE)[0]
    _, rest = _value(content, _SEQUENCE)
    return _value(rest, _OCTETS)[0]


def _value(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the content of the DER value at the start, and what follows it."""
    if len(data) < 2 or data[0] != tag:
        raise JksError("a key of an unknown layout")
    size, start = data[1], 2
    if size & 0x80:
        start = 2 + (size & 0x7F)
        size = int.from_bytes(data[2:start], "big")
    return data[start : start + size], data[start + size :]


def _reveal(protected: bytes, password: bytes) -> bytes:
    salt = protected[:_DIGEST_SIZE]
    hidden, check = protected[_DIGEST_SIZE:-_DIGEST_SIZE], protected[-_DIGEST_SIZE:]
    mask, digest = b"", salt
    while len(mask) < len(hidden):
        digest = hashlib.sha1(password + digest).digest()
        mask += digest
    key = bytes(a ^ b for a, b in zip(hidden, mask, strict=False))
    if not hmac.compare_digest(hashlib.sha1(password + key).digest(), check):
        raise JksError("the key's password is wrong", is_password=True)
    return key
