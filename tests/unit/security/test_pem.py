"""PEM text: which blocks count, and how long a search for them takes."""

from __future__ import annotations

import pytest

from kraftwire.security.pem import pem_block, pem_certificates, pem_keys

CERTIFICATE = bytes.fromhex("30020500")
OTHER = bytes.fromhex("30020101")
BEGIN = "-----BEGIN CERTIFICATE-----\n"


@pytest.mark.parametrize("label", ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"])
def test_certificates_have_the_labels_of_all_tools(label: str) -> None:
    """What openssl trusts a certificate for stands behind it, and is not part of it."""
    text = pem_block(label, CERTIFICATE + b"\x30\x00") + pem_block("CERTIFICATE REQUEST", OTHER)
    assert pem_certificates(text) == (CERTIFICATE,)


def test_keys_are_found_with_their_labels() -> None:
    """A caller says which of them it takes."""
    text = pem_block("EC PRIVATE KEY", OTHER) + pem_block("PRIVATE KEY", CERTIFICATE)
    assert pem_keys(text) == [("EC PRIVATE KEY", OTHER), ("PRIVATE KEY", CERTIFICATE)]


def test_blocks_without_an_end_do_not_count_and_cost_little() -> None:
    """A mebibyte of them takes milliseconds; a search for each end anew would take minutes."""
    text = BEGIN * (1024 * 1024 // len(BEGIN))
    assert pem_certificates(text) == ()
    assert pem_certificates(text + pem_block("CERTIFICATE", CERTIFICATE)) == (CERTIFICATE,)
    assert pem_certificates("-----BEGIN " * 90_000) == ()
    assert pem_keys("-----BEGIN " + "A " * 500_000) == []


@pytest.mark.parametrize("body", ["!", "A", "MAU="])
def test_what_is_not_base64_is_refused(body: str) -> None:
    """Also a content that ends early."""
    with pytest.raises(ValueError, match=r".*"):
        pem_certificates(f"{BEGIN}{body}\n-----END CERTIFICATE-----\n")
