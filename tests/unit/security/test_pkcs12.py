"""PKCS12 stores: every scheme, Java's count of entries, damage, and passwords hashed for ever."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.serialization import pkcs12

from kraftwire.security import der
from kraftwire.security.password_encryption import open_key
from kraftwire.security.pkcs12 import read_pkcs12
from kraftwire.security.rc2 import decrypt_rc2
from kraftwire.security.store_entries import StoreEntry, StoreError
from tests.support.security import certificates
from tests.support.security.certificates import (
    PASSWORD,
    authority,
    below_intermediate,
    identity,
    trust_pkcs12,
    unmarked_pkcs12,
)

PBES = pkcs12.PBES
_ROUNDS = 65_537
_ROUNDS_DER, _MORE_DER = bytes.fromhex("0203010001"), bytes.fromhex("02037fffff")


def _store(
    scheme: PBES = PBES.PBESv2SHA256AndAES256CBC,
    digest: hashes.HashAlgorithm | None = None,
    rounds: int = 2048,
) -> bytes:
    holder = below_intermediate()
    encryption = (
        form.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(rounds)
        .key_cert_algorithm(scheme)
        .hmac_hash(digest or hashes.SHA256())
        .build(PASSWORD.encode())
    )
    return pkcs12.serialize_key_and_certificates(
        b"node", holder.key, holder.certificate, list(reversed(holder.issuers)), encryption
    )


def _only_key(entries: list[StoreEntry]) -> StoreEntry:
    (entry,) = entries
    assert entry.hidden_key is not None
    return entry


@pytest.mark.parametrize(
    "digest", [hashes.SHA1(), hashes.SHA256(), hashes.SHA384(), hashes.SHA512()]
)
@pytest.mark.parametrize(
    "scheme", [PBES.PBESv2SHA256AndAES256CBC, PBES.PBESv1SHA1And3KeyTripleDESCBC]
)
def test_a_key_and_its_chain_are_read(scheme: PBES, digest: hashes.HashAlgorithm) -> None:
    """The authorities are no entries of their own."""
    holder = below_intermediate()
    found = _only_key(read_pkcs12(_store(scheme, digest), PASSWORD))
    assert found.alias == "node"
    assert found.chain == tuple(map(certificates.der, holder.chain))
    assert open_key(found.hidden_key or b"", PASSWORD) == holder.key_der


def test_certificates_count_that_are_marked_as_trusted() -> None:
    """As keytool marks them; those of openssl pkcs12 -nokeys are none."""
    authorities = [authority().certificate, authority("Other").certificate]
    chains = [(certificates.der(each),) for each in authorities]
    found = read_pkcs12(trust_pkcs12(*authorities), PASSWORD)
    assert [each.chain for each in found] == chains
    assert read_pkcs12(unmarked_pkcs12(*authorities), PASSWORD) == []


def test_without_a_password_only_what_is_in_clear_is_there() -> None:
    """As in Java, whose own list of authorities is such a store."""
    ca = authority().certificate
    named = [pkcs12.PKCS12Certificate(ca, b"ca")]
    in_clear = pkcs12.serialize_java_truststore(named, form.NoEncryption())
    for password in (None, ""):
        assert [each.chain for each in read_pkcs12(in_clear, password)] == [(certificates.der(ca),)]
    assert read_pkcs12(trust_pkcs12(ca), None) == []


def test_a_key_in_clear_is_refused_with_the_reason() -> None:
    """Java does not see it; what works here alone would surprise."""
    node = identity()
    in_clear = pkcs12.serialize_key_and_certificates(
        b"node", node.key, node.certificate, None, form.NoEncryption()
    )
    with pytest.raises(StoreError, match="its key is not encrypted, and Java does not see"):
        read_pkcs12(in_clear, "")


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_wrong_password_is_named_so(password: str) -> None:
    """The store's, and that of a key."""
    with pytest.raises(StoreError, match="the password is wrong") as caught:
        read_pkcs12(_store(), password)
    assert caught.value.is_password
    entry = _only_key(read_pkcs12(_store(), PASSWORD))
    with pytest.raises(StoreError, match="the key's password is wrong") as caught:
        open_key(entry.hidden_key or b"", password)
    assert caught.value.is_password


def _sequence(*parts: bytes) -> bytes:
    return b"\x30\x80" + b"".join(parts) + b"\0\0"


def test_a_password_is_hashed_a_bounded_number_of_times() -> None:
    """A file says how often; Java's limit holds for the store, and for a key alone."""
    data = _store(rounds=_ROUNDS)
    version, safe, mac = (whole for _, _, whole in der.elements(data[4:]))
    info, salt, _ = (whole for _, _, whole in der.elements(der.content(mac, 0, der.SEQUENCE)[0]))
    without_mac = _sequence(version, safe).replace(_ROUNDS_DER, _MORE_DER)
    with_mac = _sequence(version, safe, _sequence(info, salt, _MORE_DER))
    for bad in (without_mac, with_mac):
        with pytest.raises(StoreError, match="hashed 8,388,607 times: more than 5,000") as caught:
            read_pkcs12(bad, PASSWORD)
        assert not caught.value.is_password
    hidden = _only_key(read_pkcs12(data, PASSWORD)).hidden_key or b""
    with pytest.raises(StoreError, match="hashed 8,388,607 times"):
        open_key(hidden.replace(_ROUNDS_DER, _MORE_DER), PASSWORD)


def _indefinite(data: bytes) -> bytes:
    """The same elements without lengths, octet strings in two parts."""
    made = b""
    for tag, content, whole in der.elements(data):
        if tag & 0x20:
            made += bytes((tag, 0x80)) + _indefinite(content) + b"\0\0"
        elif tag == der.OCTETS and len(content) > 9:
            parts = b"".join(bytes((tag, len(p))) + p for p in (content[:7], content[7:90]))
            rest = content[90:]
            parts += b"\x04\x83" + len(rest).to_bytes(3) + rest
            made += bytes((tag | 0x20, 0x80)) + parts + b"\0\0"
        else:
            made += whole
    return made


@pytest.mark.parametrize("make", [_store, lambda: trust_pkcs12(authority().certificate)])
def test_lengths_may_be_indefinite(make: Callable[[], bytes]) -> None:
    """Some tools write so, and Java reads it."""
    data = make()
    assert der.definite(data) == data
    assert read_pkcs12(_indefinite(data), PASSWORD) == read_pkcs12(data, PASSWORD)


def test_damage_is_an_error_and_nothing_else() -> None:
    """Any flipped byte and any cut, with and without the check of the whole."""
    source, data = random.Random(7), _store(rounds=1)
    for at in range(0, len(data), 5):
        flipped = data[:at] + bytes([data[at] ^ source.randrange(1, 256)]) + data[at + 1 :]
        for bad in (flipped, data[:at]):
            for password in (PASSWORD, None):
                try:
                    for entry in read_pkcs12(bad, password):
                        open_key(entry.hidden_key or b"", PASSWORD)
                except StoreError:
                    pass


def test_elements_nested_for_ever_are_refused() -> None:
    """And not by the end of the stack."""
    for data in (b"\x30\x80" * 100_000, b"\x30\x80" + b"\x24\x80" * 100_000):
        with pytest.raises(StoreError):
            read_pkcs12(data, PASSWORD)
    nested = b""
    for _ in range(2_000):
        nested = b"\x24\x83" + len(nested).to_bytes(3) + nested
    kind = bytes.fromhex("06092a864886f70d010701")
    body = b"\xa0\x83" + len(nested).to_bytes(3) + nested
    with pytest.raises(StoreError, match="damaged"):
        read_pkcs12(_sequence(b"\x02\x01\x03", _sequence(kind, body)), PASSWORD)


def test_an_identifier_without_end_is_refused() -> None:
    """Its number took time with the square of its length."""
    assert der.dotted(bytes.fromhex("2a864886f70d010701")) == "1.2.840.113549.1.7.1"
    with pytest.raises(ValueError, match="too long"):
        der.dotted(b"\xff" * 900_000)


@pytest.mark.parametrize(
    ("key", "plain", "data"),
    [
        ("ffffffffffffffff", "ffffffffffffffff", "278b27e42e2f0d49"),
        ("3000000000000000", "1000000000000001", "30649edf9be7d2c2"),
        ("88bca90e90875a7f0f79c384627bafb2", "0000000000000000", "2269552ab0f85ca6"),
    ],
)
def test_rc2_is_that_of_its_specification(key: str, plain: str, data: str) -> None:
    """RFC 2268, section 5."""
    found = decrypt_rc2(bytes.fromhex(key), bytes(8), bytes.fromhex(data) * 2)
    assert found[:8].hex() == plain
    assert bytes(a ^ b for a, b in zip(found[8:], bytes.fromhex(data), strict=True)).hex() == plain
