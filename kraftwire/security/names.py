"""The subject of a certificate as Java writes it, which mapping rules and ACLs are made for.

Rule SEC-T22. Source: `X500Principal.getName`, RFC 2253. The library `cryptography` writes the same,
but for attributes without a keyword, whose text it shows where Java shows their bytes.
"""

from __future__ import annotations

from kraftwire.errors import UsageError
from kraftwire.security import der

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# Tags. Java takes the bytes of all these strings for UTF-8.
_VERSION = 0xA0
_STRINGS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"


def distinguished_name(certificate: bytes) -> str:
    """Return the subject of a certificate in DER, most specific attribute first.

    Raises: UsageError for what is no certificate.
    """
    try:
        return subject_text(issuer_and_subject(certificate)[1])
    except (IndexError, ValueError):
        raise UsageError("the peer's certificate cannot be read") from None


def subject_text(name: bytes) -> str:
    """Return a name in DER as text. Raises: ValueError or IndexError for bad bytes."""
    sets = list(der.elements(der.content(name, 0, der.SEQUENCE)[0]))
    parts = []
    for tag, value, _ in reversed(sets):
        if tag != der.SET:
            raise ValueError("a part of a name is no set")
        parts.append("+".join(_attribute(one) for _, one, _ in der.elements(value)))
    return ",".join(parts)


def issuer_and_subject(certificate: bytes) -> tuple[bytes, bytes]:
    """Return both names of a certificate, all in DER. Raises: ValueError or IndexError."""
    # Before the issuer: version, serial number and algorithm; after it, the validity.
    signed = der.content(der.content(certificate, 0, der.SEQUENCE)[0], 0, der.SEQUENCE)[0]
    fields = list(der.elements(signed))
    skipped = 3 if fields[0][0] == _VERSION else 2
    return fields[skipped][2], fields[skipped + 2][2]


def _attribute(data: bytes) -> str:
    oid, rest = der.content(data, 0, der.OID)
    (tag, value, whole), *_ = der.elements(data[rest:])
    name = der.dotted(oid)
    if name not in _KEYWORDS or tag not in _STRINGS:
        return f"{_KEYWORDS.get(name, name)}=#{whole.hex()}"
    return f"{_KEYWORDS[name]}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    lead = len(text) - len(text.lstrip(_BLANKS))
    trail = len(text.rstrip(_BLANKS))
    out = []
    for at, char in enumerate(text):
        if char == "\0":
            out.append("\\00")
        else:
            is_edge = at < lead or at >= trail
            out.append(f"\\{char}" if char in _ESCAPED or is_edge else char)
    return "".join(out)
