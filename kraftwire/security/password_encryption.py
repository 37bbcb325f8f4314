"""What a password protects in stores and PEM files: the schemes of PKCS 5, PKCS 12 and JKS.

A file names its scheme and how often the password is hashed. The library `cryptography` has the
ciphers; JKS needs none. Where a hash checks nothing, a wrong password is noticed by the padding.

Source: RFC 7292 (appendix B), RFC 8018, RFC 9579, Java's `KeyProtector` and `PKCS12KeyStore`.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from kraftwire.security import der
from kraftwire.security.rc2 import decrypt_rc2
from kraftwire.security.store_entries import WRONG_PASSWORD, StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherAlgorithm, modes

# As in Java: seconds of work, and hundreds of times what tools write.
ITERATIONS_MAX = 5_000_000
# No hash here is longer.
_MAC_KEY_MAX = 64
_KEY_USE, _IV_USE, _MAC_USE = 1, 2, 3

_JKS = "1.3.6.1.4.1.42.2.17.1.1"
_JKS_DIGEST_BYTES = 20
_MD5_DES = "1.2.840.113549.1.5.3"
_PBES2, _PBKDF2, _PBMAC1 = (f"1.2.840.113549.1.5.{last}" for last in (13, 12, 14))
# The schemes of PKCS 12, all with SHA-1: the cipher, and its key's length in bytes.
_PKCS12 = {
    "1.2.840.113549.1.12.1.1": ("RC4", 16),
    "1.2.840.113549.1.12.1.2": ("RC4", 5),
    "1.2.840.113549.1.12.1.3": ("3DES", 24),
    "1.2.840.113549.1.12.1.5": ("RC2", 16),
    "1.2.840.113549.1.12.1.6": ("RC2", 5),
}
# The ciphers of PBES2.
_CIPHERS = {
    "2.16.840.1.101.3.4.1.2": ("AES", 16),
    "2.16.840.1.101.3.4.1.22": ("AES", 24),
    "2.16.840.1.101.3.4.1.42": ("AES", 32),
    "1.2.840.113549.3.7": ("3DES", 24),
}
_HMACS = {
    "1.2.840.113549.2.7": "sha1",
    "1.2.840.113549.2.8": "sha224",
    "1.2.840.113549.2.9": "sha256",
    "1.2.840.113549.2.10": "sha384",
    "1.2.840.113549.2.11": "sha512",
}
_DIGESTS = {
    "1.3.14.3.2.26": "sha1",
    "2.16.840.1.101.3.4.2.4": "sha224",
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}


class Password:
    """A password, and how often one file may still have it hashed.

    PKCS 12 has two forms of an empty password; `is_absent` selects the rarer one.
    """

    def __init__(self, text: str, *, is_absent: bool = False) -> None:
        self.utf8 = text.encode("utf-8", "surrogatepass")
        self.wide = text.encode("utf-16-be", "surrogatepass")
        self.ended = b"" if is_absent else self.wide + b"\0\0"
        self._left = ITERATIONS_MAX

    def spend(self, iterations: int) -> int:
        """Count what a scheme takes; returns the same. Raises: StoreError beyond the limit."""
        if iterations < 1:
            raise ValueError("no number of iterations")
        self._left -= iterations
        if self._left < 0:
            allowed = f"more than {ITERATIONS_MAX:,} in all are not done, as in Java"
            raise StoreError(f"it has the password hashed {iterations:,} times: {allowed}")
        return iterations


def open_key(hidden: bytes, password: str) -> bytes:
    """Return the key in an EncryptedPrivateKeyInfo as PKCS 8 in DER.

    Raises: StoreError for a wrong password, an unknown scheme, or too much work.
    """
    try:
        return _key(hidden, Password(password))
    except StoreError as error:
        if password or not error.is_password:
            raise
        return _key(hidden, Password(password, is_absent=True))


def _key(hidden: bytes, password: Password) -> bytes:
    try:
        (_, algorithm), (tag, data) = der.fields(hidden)[:2]
        if tag != der.OCTETS:
            raise ValueError("no octets")
    except (ValueError, IndexError):
        raise StoreError("a key of an unknown layout") from None
    try:
        key = decrypt(algorithm, data, password)
        der.fields(key)
    except (ValueError, IndexError):
        raise StoreError("the key's password is wrong", is_password=True) from None
    return key


def decrypt(algorithm: bytes, data: bytes, password: Password) -> bytes:
    """Return what a scheme has encrypted; `algorithm` is the content of an AlgorithmIdentifier.

    Raises: StoreError for an unknown scheme, or too much work; ValueError or IndexError for a wrong
    password, which is not always noticed.
    """
    scheme, parameters = _algorithm(algorithm)
    if scheme == _JKS:
        return _reveal(data, password.wide)
    if scheme == _PBES2:
        derivation, cipher = (found for _, found in der.fields(parameters))
        oid, parameter = _algorithm(cipher)
        if oid not in _CIPHERS:
            raise StoreError(f"it is encrypted in an unknown way ({oid})")
        kind, size = _CIPHERS[oid]
        key = _pbkdf2(derivation, password, size)
        return _decrypted(kind, key, der.content(parameter, 0, der.OCTETS)[0], data)
    if scheme != _MD5_DES and scheme not in _PKCS12:
        raise StoreError(f"it is encrypted in an unknown way ({scheme})")
    (_, salt), (_, iterations) = der.fields(parameters)
    count = der.number(iterations)
    if scheme == _MD5_DES:
        made = password.utf8 + salt
        for _ in range(password.spend(count)):
            made = hashlib.md5(made).digest()
        return _decrypted("3DES", made[:8] * 3, made[8:], data)
    kind, size = _PKCS12[scheme]
    key = _derived("sha1", _KEY_USE, password, salt, count, size=size)
    iv = _derived("sha1", _IV_USE, password, salt, count, size=8) if kind != "RC4" else b""
    return _decrypted(kind, key, iv, data)


def mac_is_right(mac: bytes, data: bytes, password: Password) -> bool:
    """Return whether a MacData, its content given, is that of the data and the password.

    Raises: StoreError for an unknown digest, or too much work; ValueError or IndexError.
    """
    (_, info), (_, salt), *rest = ((tag, found) for tag, found, _ in der.elements(mac))
    (_, algorithm, _), (_, expected, _) = der.elements(info)
    oid, parameters = _algorithm(algorithm)
    if oid == _PBMAC1:
        (_, derivation), (_, scheme) = der.fields(parameters)
        name = _HMACS.get(_algorithm(scheme)[0], "")
        size = der.number(der.fields(_algorithm(derivation)[1])[2][1])
        key = _pbkdf2(derivation, password, min(size, _MAC_KEY_MAX))
    else:
        name = _DIGESTS.get(oid, "")
        count = der.number(rest[0][1]) if rest else 1
        size = hashlib.new(name).digest_size if name else 0
        key = _derived(name, _MAC_USE, password, salt, count, size=size) if name else b""
    if not name:
        raise StoreError(f"it is checked in an unknown way ({oid})")
    return hmac.compare_digest(hmac.digest(key, data, name), expected)


def _algorithm(data: bytes) -> tuple[str, bytes]:
    """Return the identifier and the parameters, which are empty if there are none."""
    (_, oid, _), *parameters = der.elements(data)
    return der.dotted(oid), parameters[0][2] if parameters else b""


def _pbkdf2(algorithm: bytes, password: Password, size: int) -> bytes:
    oid, parameters = _algorithm(algorithm)
    if oid != _PBKDF2:
        raise StoreError(f"its key is derived in an unknown way ({oid})")
    (_, salt), (_, iterations), *rest = der.fields(parameters)
    schemes = [_algorithm(found)[0] for tag, found in rest if tag == der.SEQUENCE]
    name = _HMACS.get(schemes[0]) if schemes else "sha1"
    if name is None:
        raise StoreError(f"its key is derived in an unknown way ({schemes[0]})")
    count = password.spend(der.number(iterations))
    return hashlib.pbkdf2_hmac(name, password.utf8, salt, count, size)


def _derived(
    name: str, use: int, password: Password, salt: bytes, iterations: int, *, size: int
) -> bytes:
    """Derive a key, an initial vector or a key for a MAC, as PKCS 12 does (appendix B.2)."""
    hashed = getattr(hashlib, name)
    block = hashed().block_size
    mixed = _repeated(salt, block) + _repeated(password.ended, block)
    made = b""
    while len(made) < size:
        digest = bytes([use]) * block + mixed
        for _ in range(password.spend(iterations)):
            digest = hashed(digest).digest()
        made += digest
        more = int.from_bytes(_repeated(digest, block)[:block]) + 1
        mixed = b"".join(
            (int.from_bytes(mixed[at : at + block]) + more).to_bytes(block + 1)[1:]
            for at in range(0, len(mixed), block)
        )
    return made[:size]


def _repeated(data: bytes, block: int) -> bytes:
    size = -(-len(data) // block) * block
    return (data * (size // len(data) + 1))[:size] if data else b""


def _decrypted(kind: str, key: bytes, iv: bytes, data: bytes) -> bytes:
    if kind == "RC2":
        return _unpadded(decrypt_rc2(key, iv, data))
    cipher, mode = _cipher(kind, key, iv)
    from cryptography.hazmat.primitives.ciphers import Cipher

    decryptor = Cipher(cipher, mode).decryptor()
    plain = decryptor.update(data) + decryptor.finalize()
    return plain if kind == "RC4" else _unpadded(plain)


def _cipher(kind: str, key: bytes, iv: bytes) -> tuple[CipherAlgorithm, modes.CBC | None]:
    try:
        from cryptography.hazmat.primitives.ciphers import algorithms, modes
    except ImportError:
        raise StoreError("it is encrypted: install kraftwire[security]") from None
    if kind == "AES":
        return algorithms.AES(key), modes.CBC(iv)
    try:
        from cryptography.hazmat.decrepit.ciphers import algorithms as old
    except ImportError:  # before 43
        old = algorithms  # type: ignore[misc]
    if kind == "RC4":
        return old.ARC4(key), None
    return old.TripleDES(key), modes.CBC(iv)


def _unpadded(data: bytes) -> bytes:
    size = data[-1]
    if not 1 <= size <= 16 or data[-size:] != bytes([size]) * size:
        raise ValueError("no padding")
    return data[:-size]


def _reveal(protected: bytes, password: bytes) -> bytes:
    """Return a key that JKS hides by an XOR with a chain of digests of the password."""
    salt = protected[:_JKS_DIGEST_BYTES]
    hidden = protected[_JKS_DIGEST_BYTES:-_JKS_DIGEST_BYTES]
    mask, digest = bytearray(), salt
    while len(mask) < len(hidden):
        digest = hashlib.sha1(password + digest).digest()
        mask += digest
    key = bytes(a ^ b for a, b in zip(hidden, mask, strict=False))
    check = protected[-_JKS_DIGEST_BYTES:]
    if not hmac.compare_digest(hashlib.sha1(password + key).digest(), check):
        raise ValueError(WRONG_PASSWORD)
    return key
