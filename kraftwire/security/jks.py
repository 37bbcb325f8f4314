"""Java's own key stores, JKS: their keys and certificates, without Java and without a library.

The file is ``FEEDFEED``, a version, the entries, and a digest over all of it with the password.

Source: the file format of Java's `sun.security.provider.JavaKeyStore`.
"""

from __future__ import annotations

import hashlib
import hmac
import struct

from kraftwire.security.store_entries import WRONG_PASSWORD, StoreEntry, StoreError

JKS_MAGIC = b"\xfe\xed\xfe\xed"
_VERSIONS = (1, 2)
_KEY, _TRUSTED = 1, 2
_DIGEST_SIZE = 20
# The digest is salted with these words.
_WHITENER = b"Mighty Aphrodite"


def read_jks(data: bytes, password: str | None) -> list[StoreEntry]:
    """Return the entries of a store, in file order.

    Without a password the store is not checked for changes, as in Java. Raises: StoreError.
    """
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if password is not None:
        wanted = hashlib.sha1(
            password.encode("utf-16-be", "surrogatepass") + _WHITENER + body
        ).digest()
        if not hmac.compare_digest(wanted, digest):
            raise StoreError(WRONG_PASSWORD, is_password=True)
    try:
        return _entries(_StoreReader(body))
    except (struct.error, UnicodeDecodeError) as error:
        raise StoreError("the file ends early, or is damaged") from error


class _StoreReader:
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


def _entries(reader: _StoreReader) -> list[StoreEntry]:
    if reader.bytes(4) != JKS_MAGIC or (version := reader.number()) not in _VERSIONS:
        raise StoreError("this is no JKS store of version 1 or 2")
    found = []
    for _ in range(reader.number()):
        kind, alias = reader.number(), reader.text()
        reader.number(">Q")  # when it was made
        if kind == _KEY:
            hidden = reader.bytes(reader.number())
            chain = tuple(_certificate(reader, version) for _ in range(reader.number()))
            found.append(StoreEntry(alias, chain, hidden))
        elif kind == _TRUSTED:
            found.append(StoreEntry(alias, (_certificate(reader, version),)))
        else:
            raise StoreError(f"an entry of the unknown kind {kind}")
    return found


def _certificate(reader: _StoreReader, version: int) -> bytes:
    if version > 1:
        reader.text()  # the type, X.509
    return reader.bytes(reader.number())
