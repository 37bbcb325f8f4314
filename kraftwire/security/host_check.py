"""Whether a node's certificate is for the host that was dialled, by Java's rules.

OpenSSL's own check refuses names that Java takes: a star before a single label (``*.internal``),
or in a part of one. So the check is made here, at the end of each handshake, before anything is
sent.

Source: SEC-T14; Java's `HostnameChecker` of version 25, whose stars stand in the first label alone.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

# OpenSSL's code for it.
OTHER_HOST = 62
_STAR = "*"


class HostCheckingContext(ssl.SSLContext):
    """A client's context, of which every connection checks the host, unless `checks_host` is False.

    `check_hostname`, which is OpenSSL's check, stays off. `is_public` is True where the platform's
    authorities are trusted: a star then needs two labels behind it.
    """

    checks_host = True
    is_public = False

    def __init__(self, *_: object) -> None:
        self.sslobject_class = _CheckedObject
        self.sslsocket_class = _CheckedSocket
        self.check_hostname = False
        self.verify_mode = ssl.CERT_REQUIRED


class _CheckedObject(ssl.SSLObject):
    """A connection in memory."""

    def do_handshake(self) -> None:
        super().do_handshake()
        _check(self)


class _CheckedSocket(ssl.SSLSocket):
    """A connection on a socket."""

    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        _check(self)


def _check(connection: ssl.SSLObject | ssl.SSLSocket) -> None:
    """Raises: ssl.SSLCertVerificationError, as OpenSSL, for another host."""
    context, host = connection.context, connection.server_hostname
    if not isinstance(context, HostCheckingContext) or not context.checks_host:
        return
    certificate = connection.getpeercert() or {}
    if not is_for_host(certificate, host or "", is_public=context.is_public):
        error = ssl.SSLCertVerificationError(1, f"the certificate is not for {host}")
        error.verify_code, error.verify_message = OTHER_HOST, "Hostname mismatch"
        raise error


def is_for_host(certificate: Mapping[str, Any], host: str, *, is_public: bool = False) -> bool:
    """Return whether a certificate, as `ssl.SSLSocket.getpeercert` shows it, is for a host.

    A dot at the end of the host does not count. An address is one of the certificate's addresses; a
    name is one of its DNS names or, if it has none, its most specific common name.
    """
    names: tuple[tuple[str, str], ...] = certificate.get("subjectAltName", ())
    address = _address(host)
    if address is not None:
        return any(kind == "IP Address" and _address(each) == address for kind, each in names)
    of_dns = [each for kind, each in names if kind == "DNS"]
    if not of_dns:
        subject: Iterable[tuple[str, str]] = chain.from_iterable(certificate.get("subject", ()))
        of_dns = [value for key, value in subject if key == "commonName"][-1:]
    wanted = host.lower().removesuffix(".")
    matches = (_matches(each.lower(), wanted, is_public=is_public) for each in of_dns)
    return bool(wanted) and any(matches)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _matches(pattern: str, host: str, *, is_public: bool) -> bool:
    if _STAR not in pattern:
        return pattern == host
    label, _, rest = pattern.partition(".")
    host_label, _, host_rest = host.partition(".")
    if not rest or rest != host_rest or not host_label or (is_public and "." not in rest):
        return False
    first, *parts = label.split(_STAR)
    return host_label.startswith(first) and _has_in_order(host_label[len(first) :], parts)


def _has_in_order(text: str, parts: list[str]) -> bool:
    """Whether a text has all parts in this order, the last one at its end."""
    *between, last = parts
    for part in between:
        _, found, text = text.partition(part) if part else ("", True, text)
        if not found:
            return False
    return text.endswith(last)
