"""PEM text: the blocks of keys and certificates in it, and nothing of what stands around them.

Source: RFC 7468; Kafka's `DefaultSslEngineFactory.PemParser`, and the labels of older tools.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from kraftwire.security import der

PEM_START = "-----BEGIN "
KEY, ENCRYPTED_KEY = "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"
# The last one is openssl's, with what it trusts the certificate for behind it.
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
_MARK = re.compile("-----(BEGIN|END) ([A-Z0-9 ]+)-----")


def pem_certificates(text: str) -> tuple[bytes, ...]:
    """Return all certificates, in DER. Raises: ValueError for a block that is not base64."""
    bodies = [_decoded(body) for label, body in _blocks(text) if label in _CERTIFICATES]
    return tuple(der.first(each, der.SEQUENCE) if each[:1] == b"0" else each for each in bodies)


def pem_keys(text: str) -> list[tuple[str, bytes]]:
    """Return label and content of all private keys. Raises: ValueError as `pem_certificates`."""
    return [(label, _decoded(body)) for label, body in _blocks(text) if label.endswith(KEY)]


def pem_block(label: str, content: bytes) -> str:
    """Return a block."""
    body = base64.encodebytes(content).decode()
    return f"{PEM_START}{label}-----\n{body}-----END {label}-----\n"


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield label and body of each block that is complete, in time that grows with the text."""
    label, start = "", 0
    for mark in _MARK.finditer(text):
        if mark[1] == "BEGIN":
            label, start = mark[2], mark.end()
        elif mark[2] == label:
            yield label, text[start : mark.start()]
            label = ""


def _decoded(body: str) -> bytes:
    """Return the bytes of a block, whose base64 may follow lines like ``Bag Attributes: ...``."""
    lines = (line.strip() for line in body.splitlines())
    text = "".join(line.replace(" ", "") for line in lines if ":" not in line)
    return base64.b64decode(text, validate=True)
