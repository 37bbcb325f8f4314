"""Whether a certificate is for a host: names, stars, addresses, and when it is asked."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from kraftwire.properties import Properties
from kraftwire.security.host_check import OTHER_HOST, HostCheckingContext, is_for_host
from kraftwire.security.settings import client_settings
from kraftwire.security.tls import client_tls
from tests.support.security.certificates import authority, identity, pem, shaken

IS_FOR = [
    ("node.svc", "node.svc"),
    ("node.svc", "node.svc."),
    ("NODE.Svc", "node.sVC"),
    ("*.svc", "node.svc"),
    ("*.svc", "node.svc."),
    ("*.a.svc", "node.a.svc"),
    ("node*.svc", "node1.svc"),
    ("n*d*-x.svc", "nxdy-x.svc"),
    ("127.0.0.1", "127.0.0.1"),
    ("::1", "0:0:0:0:0:0:0:1"),
]
IS_NOT_FOR = [
    ("node.svc", "other.svc"),
    ("node.svc", "node.svc.."),
    ("node.svc.", "node.svc"),
    ("*.svc", "a.node.svc"),
    ("*.svc", ".svc"),
    ("*", "localhost"),
    ("*.", "localhost."),
    ("*svc", "xsvc"),
    ("a.*.svc", "a.b.svc"),
    ("*.*.svc", "a.b.svc"),
    ("node*e.svc", "node.svc"),
    ("a*b*a.svc", "aba.a.svc"),
    ("localhost", "127.0.0.1"),
    ("*.0.0.1", "127.0.0.1"),
    ("x", "node"),
    ("", ""),
]


def _certificate(*names: str, common: tuple[str, ...] = ("other", "node")) -> dict[str, Any]:
    is_address = [":" in name or name[:1].isdigit() for name in names]
    kinds = ["IP Address" if each else "DNS" for each in is_address]
    subject = tuple((("commonName", each),) for each in common)
    return {"subject": subject, "subjectAltName": tuple(zip(kinds, names, strict=True))}


@pytest.mark.parametrize(("name", "host"), IS_FOR)
def test_a_certificate_is_for_its_names(name: str, host: str) -> None:
    """One of several is enough."""
    assert is_for_host(_certificate(name), host)
    assert is_for_host(_certificate("x.y", name), host)


@pytest.mark.parametrize(("name", "host"), IS_NOT_FOR)
def test_a_certificate_is_not_for_other_names(name: str, host: str) -> None:
    """A star stands for a part of the first label, and never for all of a name."""
    assert not is_for_host(_certificate(name), host)


def test_the_common_name_counts_without_a_dns_name() -> None:
    """The last one, which is the most specific; addresses do not count as names."""
    assert is_for_host(_certificate(), "node")
    assert is_for_host(_certificate("127.0.0.1"), "node")
    assert not is_for_host(_certificate(), "other")
    assert not is_for_host(_certificate("a.b"), "node")
    assert not is_for_host(_certificate(common=("127.0.0.1",)), "127.0.0.1")


def test_an_authority_of_the_platform_gives_no_star_for_a_whole_domain() -> None:
    """With a trust store of one's own, the authority is known."""
    assert is_for_host(_certificate("*.svc"), "node.svc")
    assert not is_for_host(_certificate("*.com"), "node.com", is_public=True)
    assert is_for_host(_certificate("*.node.com"), "a.node.com", is_public=True)
    assert client_tls(client_settings(Properties.of({"security.protocol": "SSL"}, "x"))).context


def test_each_handshake_checks_the_host(tmp_path: Path) -> None:
    """Its error is that of OpenSSL; without a name nothing passes."""
    context = HostCheckingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem(authority().certificate))
    holder = identity("starred", hosts=("*.svc",))
    shaken(context, holder, tmp_path, "node.svc")
    for host in ("node.other", None):
        with pytest.raises(ssl.SSLCertVerificationError) as caught:
            shaken(context, holder, tmp_path, host)
        assert caught.value.verify_code == OTHER_HOST
    context.checks_host = False
    shaken(context, holder, tmp_path, "node.other")
    stranger = identity("stranger", hosts=("node.svc",), of="Another CA")
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(context, stranger, tmp_path, "node.svc")
