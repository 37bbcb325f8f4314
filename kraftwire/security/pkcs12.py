"""PKCS12 stores: their entries, counted as Java counts them.

A certificate is trusted if keytool has marked it so. All others belong to keys: that of a key has
its id or its name, and the next ones are those of the issuers.

Source: RFC 7292; Java's `PKCS12KeyStore`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kraftwire.security import der
from kraftwire.security.names import issuer_and_subject
from kraftwire.security.password_encryption import Password, decrypt, mac_is_right
from kraftwire.security.store_entries import WRONG_PASSWORD, StoreEntry, StoreError

_VERSION = 3
_DATA, _ENCRYPTED_DATA = "1.2.840.113549.1.7.1", "1.2.840.113549.1.7.6"
_PLAIN_KEY_BAG, _KEY_BAG, _CERTIFICATE_BAG = (f"1.2.840.113549.1.12.10.1.{n}" for n in (1, 2, 3))
_NAME, _ID = "1.2.840.113549.1.9.20", "1.2.840.113549.1.9.21"
_TRUSTED = "2.16.840.1.113894.746875.1.1"
# The id that Java gives a key, and its certificate, that have none.
_NO_ID = b"01"
# As many as OpenSSL verifies.
_CHAIN_MAX = 100


def read_pkcs12(data: bytes, password: str | None) -> list[StoreEntry]:
    """Return the entries of a store, in file order.

    Without a password the store is not checked, and what is encrypted is left out. Raises:
    StoreError.
    """
    try:
        return _read(data, None if password is None else Password(password))
    except StoreError as error:
        if password != "" or not error.is_password:
            raise
        return _read(data, Password("", is_absent=True))


def _read(data: bytes, password: Password | None) -> list[StoreEntry]:
    try:
        (_, version), (_, safe), *mac = der.fields(data)
        if der.number(version) != _VERSION:
            raise StoreError("this is no PKCS12 store of version 3")
        kind, body = _content(safe)
        if kind != _DATA:
            raise StoreError(f"this PKCS12 store is signed by a key ({kind})")
        safe = der.octets(*_first(body))
        is_right = password is None or not mac or mac_is_right(mac[0][1], safe, password)
        contents = [found for _, found in der.fields(safe)] if is_right else []
    except (ValueError, IndexError):
        raise StoreError("the file ends early, or is damaged") from None
    if not is_right:
        raise StoreError(WRONG_PASSWORD, is_password=True)
    found = _Found()
    for each in contents:
        _read_content(each, password, found)
    return found.entries()


def _read_content(data: bytes, password: Password | None, found: _Found) -> None:
    is_encrypted = False
    try:
        kind, body = _content(data)
        is_encrypted = kind == _ENCRYPTED_DATA
        if kind == _DATA:
            found.add_all(der.octets(*_first(body)))
        elif not is_encrypted:
            raise StoreError(f"a part of the PKCS12 store is encrypted for a key ({kind})")
        elif password is not None:
            sealed = der.content(body, 0, der.SEQUENCE)[0]
            _, (_, info, _) = der.elements(sealed)
            _, (_, algorithm, _), (tag, secret, _) = der.elements(info)
            found.add_all(decrypt(algorithm, der.octets(tag, secret), password))
    except (ValueError, IndexError):
        problem = WRONG_PASSWORD if is_encrypted else "the file ends early, or is damaged"
        raise StoreError(problem, is_password=is_encrypted) from None


def _content(data: bytes) -> tuple[str, bytes]:
    """Return kind and content of a ContentInfo."""
    (_, kind, _), (_, body, _) = der.elements(data)
    return der.dotted(kind), body


def _first(data: bytes) -> tuple[int, bytes]:
    tag, found, _ = next(der.elements(data), (0, b"", b""))
    return tag, found


@dataclass(frozen=True, slots=True)
class _Key:
    """A key, which is hidden, with the name and the id that tie it to its certificate."""

    hidden: bytes = field(repr=False)
    name: str
    id: bytes


class _Found:
    """The keys and certificates of a store; a later one of the same name takes an entry's place."""

    def __init__(self) -> None:
        self._entries: dict[str, _Key | StoreEntry] = {}
        self._keys = 0
        self._unnamed = 0
        self._has_plain_key = False
        # Certificates: where both tie them to a key the first one counts, else the last one.
        self._by_both: dict[tuple[bytes, str], bytes] = {}
        self._by_id: dict[bytes, bytes] = {}
        self._by_name: dict[str, bytes] = {}
        self._by_subject: dict[bytes, bytes] = {}
        self._issuers: dict[bytes, bytes] = {}

    def add_all(self, data: bytes) -> None:
        """Take the bags of a SafeContents. Raises: ValueError or IndexError for what is none."""
        for at, (_, bag) in enumerate(der.fields(data)):
            (_, kind, _), (_, value, _), *sets = der.elements(bag)
            oid = der.dotted(kind)
            attributes = _attributes(found for _, found, _ in sets)
            if oid == _KEY_BAG:
                self._add_key(value, attributes)
            elif oid == _CERTIFICATE_BAG:
                self._add_certificate(value, attributes, is_first=at == 0)
            self._has_plain_key |= oid == _PLAIN_KEY_BAG

    def entries(self) -> list[StoreEntry]:
        """Return the entries. Raises: StoreError if the only key is in clear."""
        found = [
            StoreEntry(each.name, self._chain(each), each.hidden)
            if isinstance(each, _Key)
            else each
            for each in self._entries.values()
        ]
        if self._has_plain_key and not found:
            problem = "its key is not encrypted, and Java does not see such a key"
            raise StoreError(f"{problem}: make the store without -keypbe NONE")
        return found

    def _add_key(self, hidden: bytes, attributes: _Attributes) -> None:
        self._keys += 1
        if attributes.id is None and self._keys > 1:
            return
        key = _Key(hidden, attributes.name or self._new_name(), attributes.id or _NO_ID)
        self._entries[key.name.lower()] = key

    def _add_certificate(self, bag: bytes, attributes: _Attributes, *, is_first: bool) -> None:
        _, (_, wrapped) = der.fields(bag)
        certificate = der.first(der.octets(*_first(wrapped)), der.SEQUENCE)
        identity, name = attributes.id, attributes.name
        if identity is None and self._keys == 1 and is_first:
            identity = _NO_ID
        if attributes.is_trusted:
            name = name or self._new_name()
            self._entries[name.lower()] = StoreEntry(name, (certificate,))
        else:
            if identity is not None:
                self._by_id[identity] = certificate
            if name is not None:
                self._by_name[name.lower()] = certificate
            if identity is not None and name is not None:
                self._by_both.setdefault((identity, name.lower()), certificate)
        issuer, subject = issuer_and_subject(certificate)
        self._by_subject.setdefault(subject, certificate)
        if issuer != subject:
            self._issuers[certificate] = issuer

    def _chain(self, key: _Key) -> tuple[bytes, ...]:
        """Return the certificates of a key, each issued by the next."""
        name = key.name.lower()
        following = self._by_both.get((key.id, name))
        following = following or self._by_id.get(key.id) or self._by_name.get(name)
        chain: dict[bytes, None] = {}
        while following is not None and following not in chain and len(chain) < _CHAIN_MAX:
            chain[following] = None
            following = self._by_subject.get(self._issuers.get(following, b""))
        return tuple(chain)

    def _new_name(self) -> str:
        self._unnamed += 1
        return str(self._unnamed)


@dataclass(frozen=True, slots=True)
class _Attributes:
    """What a store says of a key or a certificate."""

    name: str | None
    id: bytes | None
    is_trusted: bool


def _attributes(sets: Iterable[bytes]) -> _Attributes:
    values = {}
    for found in sets:
        for _, attribute, _ in der.elements(found):
            (_, kind, _), (_, value, _) = der.elements(attribute)
            values[der.dotted(kind)] = _first(value)
    name, identity = values.get(_NAME), values.get(_ID)
    return _Attributes(
        name[1].decode("utf-16-be", "replace") if name else None,
        der.octets(*identity) if identity else None,
        _TRUSTED in values,
    )
