"""The subject of a certificate as Java writes it, which mapping rules and ACLs are made for.

Rule SEC-T22. Source: `X500Principal.getName`, RFC 2253. The library `cryptography` writes the same,
but for attributes without a keyword, whose text it shows where Java shows their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.errors import UsageError

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
# DER's tags. Java takes the bytes of all these strings for UTF-8.
_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_STRINGS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"


def distinguished_name(certificate: bytes) -> str:
    """Return the subject of a certificate in DER, most specific attribute first.

    Raises: UsageError for what is no certificate.
    """
    try:
        return subject_text(_subject(certificate))
    except (IndexError, ValueError):
        raise UsageError("the peer's certificate cannot be read") from None


def subject_text(name: bytes) -> str:
    """Return a name in DER as text. Raises: ValueError or IndexError for bad bytes."""
    sets = list(_elements(_content(name, 0, _SEQUENCE)[0]))
    parts = []
    for tag, value, _ in reversed(sets):
        if tag != _SET:
            raise ValueError("a part of a name is no set")
        parts.append("+".join(_attribute(one) for _, one, _ in _elements(value)))
    return ",".join(parts)


def _subject(certificate: bytes) -> bytes:
    """Find the subject: after version, serial number, algorithm, issuer and validity."""
    signed = _content(_content(certificate, 0, _SEQUENCE)[0], 0, _SEQUENCE)[0]
    fields = list(_elements(signed))
    skipped = 5 if fields[0][0] == _VERSION else 4
    return fields[skipped][2]


def _attribute(data: bytes) -> str:
    oid, rest = _content(data, 0, _OID)
    (tag, value, whole), *_ = _elements(data[rest:])
    name = _dotted(oid)
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


def _dotted(oid: bytes) -> str:
    numbers, value = [], 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _content(data: bytes, at: int, tag: int) -> tuple[bytes, int]:
    """Return the content of the element at a position, and the position after it."""
    if data[at] != tag:
        raise ValueError(f"expected tag {tag}, found {data[at]}")
    size, start = data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        if not 1 <= count <= 4:
            raise ValueError("a length of another form")
        size, start = int.from_bytes(data[start : start + count]), start + count
    if start + size > len(data):
        raise ValueError("an element longer than what contains it")
    return data[start : start + size], start + size


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Return tag, content and all bytes of each element."""
    at = 0
    while at < len(data):
        content, end = _content(data, at, data[at])
        yield data[at], content, data[at:end]
        at = end
