"""Ranges of addresses in ACLs (SEC-A16); tests/interop compares them with Kafka's."""

from __future__ import annotations

import pytest

from kraftwire.errors import UsageError
from kraftwire.security.host_ranges import host_address, host_range, parse_range


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("010.001.2.3/08", "10.0.0.0/8"),
        ("1.2.3.4/32", "1.2.3.4/32"),
        ("255.1.2.3/0", "0.0.0.0/0"),
        ("fe80::1/10", "fe80:0:0:0:0:0:0:0/10"),
        ("[FE80::0001%2]/+64", "fe80:0:0:0:0:0:0:0/64"),
        ("a::1%eth1/16", "a:0:0:0:0:0:0:0/16"),
        ("a::1%1]x/16", "a:0:0:0:0:0:0:0/16"),
        ("a::1%002147483647/16", "a:0:0:0:0:0:0:0/16"),
        ("00001:2:3:4:5:6:7:8/128", "1:2:3:4:5:6:7:8/128"),
        ("::/0", "0:0:0:0:0:0:0:0/0"),
        ("::2:1.2.3.4/112", "0:0:0:0:0:2:102:0/112"),
        ("::2:1.2.3.00004/128", "0:0:0:0:0:2:102:304/128"),
        ("1:2:3:4:5:6:7::/120", "1:2:3:4:5:6:7:0/120"),
    ],
)
def test_ranges(text: str, shown: str) -> None:
    """Bits behind the length do not count, and one range has many texts."""
    assert str(parse_range(text)) == shown
    assert parse_range(text) == parse_range(shown) == host_range(text)


@pytest.mark.parametrize(
    "text",
    [
        *("10.0.0.0", "10.0.0/8", "10.0.0.256/8", "10.0.0.0/8 ", "10.0.0.0/8\n", "10.0.0.0/8/8"),
        *("1.2.3.4/255.0.0.0", "/8", "host/8", "1234.0.0.0/8", "::ffff:1.2.3.4/96", ":1/8"),
        *("a::1%51c:6819/32", "a::1%eth 0/32", "a::1%1234567890123456/32", "[a::1%]/32"),
        *("0001.0.0.0/8", "::2:1.2.3.0000000004/8"),
        *("1:2:3:4:5:6:7:8::/8", "1::2::3/8", "::12345/8", "fe80::%/8", "[::/8", "[::1/8", "::g/8"),
    ],
)
def test_texts_that_are_no_range(text: str) -> None:
    """Also IPv4 within IPv6, which is never the address of a client."""
    with pytest.raises(UsageError, match="expected one such as"):
        parse_range(text)
    assert host_range(text) is None


@pytest.mark.parametrize("text", ["1.2.3.4/33", "::/129", "::/-1", "::/", "::/0x8", "::/1_0"])
def test_lengths_that_no_address_has(text: str) -> None:
    """Up to 32 bits of IPv4, and 128 of IPv6."""
    with pytest.raises(UsageError, match="expected"):
        parse_range(text)


def test_a_zone_has_to_be_an_interface_where_these_are_known() -> None:
    """Interfaces have names and numbers; any number passes, as in Java."""
    is_eth0 = {"eth0"}.__contains__
    assert parse_range("a::1%eth0/32", is_eth0) == parse_range("a::1%7/32", is_eth0)
    for zone in ("eth1", "2147483648", "eth0 "):
        with pytest.raises(UsageError, match="a zone has to be an interface of this machine"):
            parse_range(f"a::1%{zone}/32", is_eth0)


def test_addresses_of_clients() -> None:
    """Zones say nothing; Kafka finds 0.0.0.0 in no range."""
    host = host_address("fe80:0:0:0:0:0:0:1%eth0")
    assert host is not None
    assert host.within(64) == parse_range("fe80::/64")
    assert host_address("0.0.0.0") is None
    assert host_address("0:0:0:0:0:0:0:0") is not None
    assert host_address("h") is None
