"""Addresses as people write them."""

from __future__ import annotations

import pytest

from kraftwire.protocol.endpoint import Endpoint, address_text, parse_address, parse_endpoint


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9092", ("localhost", 9092)),
        (" a.example:1 ", ("a.example", 1)),
        ("[::1]:65535", ("::1", 65535)),
        ("[fe80::1%eth0]:1", ("fe80::1%eth0", 1)),
        ("", None),
        ("a", None),
        (":1", None),
        ("a:0", None),
        ("a:65536", None),
        ("a:123456", None),
        ("a:\u0661", None),
        ("::1:9092", None),
        ("[a", None),
        ("1@a:1", None),
        ("a b:1", None),
        ("A://a:1", None),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int] | None) -> None:
    """What nobody can connect to is none."""
    assert parse_address(text) == address
    if address is not None:
        assert parse_address(address_text(address)) == address


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("plaintext://a:9092", Endpoint("PLAINTEXT", "a", 9092)),
        ("IN.ter-nal_1://[::]:0", Endpoint("IN.TER-NAL_1", "::", 0)),
        ("A://:65535", Endpoint("A", "", 65535)),
        ("a:9092", None),
        ("A:9092", None),
        ("://a:1", None),
        ("A b://a:1", None),
        ("A://a", None),
        ("A://a:65536", None),
        ("A://a:1,B://b:1", None),
    ],
)
def test_an_endpoint_has_a_name_before_the_address(text: str, endpoint: Endpoint | None) -> None:
    """An empty host is every interface, port 0 one that the system chooses."""
    assert parse_endpoint(text) == endpoint
