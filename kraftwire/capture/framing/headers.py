"""What the first bytes of a request show: whether it is Kafka, which API, and if it is answered.

Owns the rules by which Kafka is recognised on any port. They are strict where bytes are searched
for a header, and lenient where a header must be.

Source: Kafka's `RequestHeader`; `acks` as in its `ProduceRequest`.
"""

from __future__ import annotations

import struct
from functools import cache

from kraftwire import messages
from kraftwire.limits import FRAME_SIZE_MAX, UNCONFIRMED_FRAME_SIZE_MAX
from kraftwire.protocol.api_keys import ApiKey

# Length prefix, API key and version as one number, correlation id, length of the client id.
HEADER = struct.Struct(">iIih")
HEADER_SIZE = HEADER.size

# Kinds of requests that the reader treats differently.
_ORDINARY = 0
PRODUCE = 1
SASL_HANDSHAKE_V0 = 2

_CONTROLLED_SHUTDOWN_V0 = ApiKey.CONTROLLED_SHUTDOWN << 16

_API_KEY_MAX = 255
_API_VERSION_MAX = 2**15 - 1
_NEWER_VERSIONS = 16

# GSSAPI tokens of clients that send no SaslHandshake: an ASN.1 application tag, with the object
# identifier of Kerberos right after its length.
_KERBEROS = b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"

# A client id or another name of a client, which is kept beyond its frame, is kept up to this many
# characters: those of real clients have tens, and 32,767 bytes that repeat take next to nothing in
# a compressed capture.
NAME_CHARACTERS_MAX = 255

_I16 = struct.Struct(">h")

# Position, declared size, API key, API version, correlation id, client id (None if null).
Header = tuple[int, int, int, int, int, bytes | None]
# Client id and correlation id of the request before.
Before = tuple[bytes, int]


def shortened(name: str) -> str:
    """Return a name as it is kept beyond its frame: a very long one is cut, with a mark."""
    if len(name) <= NAME_CHARACTERS_MAX:
        return name
    return f"{name[:NAME_CHARACTERS_MAX]}… ({len(name):,} characters)"


@cache
def api_table() -> dict[int, tuple[int, int, int]]:
    """Every known ``api_key << 16 | api_version`` -> key, version, kind of request."""
    table: dict[int, tuple[int, int, int]] = {}
    for key, (low, high) in messages.API_VERSIONS.items():
        for version in range(low, high + 1):
            kind = PRODUCE if key == ApiKey.PRODUCE else _ORDINARY
            table[key << 16 | version] = key, version, kind
    table[ApiKey.SASL_HANDSHAKE << 16] = ApiKey.SASL_HANDSHAKE, 0, SASL_HANDSHAKE_V0
    # The only request without a client id: its header is shorter than all others.
    table.pop(_CONTROLLED_SHUTDOWN_V0, None)
    return table


def parse_header(
    data: bytes | bytearray, at: int, *, strict: bool, before: Before | None = None
) -> Header | None:
    """The request header after a length prefix at `at`; None if there cannot be one.

    `strict` demands a known API and version, and that the client id be there; otherwise
    newer APIs and versions pass, and so does a client id that ends after `data`. Any API passes,
    as vendors have their own, where the client id is that of the request before it.
    """
    if at + HEADER_SIZE > len(data):
        return None
    size, kind, correlation_id, id_size = HEADER.unpack_from(data, at)
    if not HEADER_SIZE - 4 + max(id_size, 0) <= size <= FRAME_SIZE_MAX or id_size < -1:
        return None
    is_far_ahead = False
    if kind not in api_table() and (strict or not _may_be_newer(kind >> 16, kind & 0xFFFF)):
        is_far_ahead = not strict and _is_first_question(kind >> 16, kind & 0xFFFF)
        if not is_far_ahead and not _follows(data, at, before):
            return None
    if correlation_id < 0 and strict:
        return None
    raw = bytes(data[at + HEADER_SIZE : at + HEADER_SIZE + id_size]) if id_size >= 0 else None
    if raw is not None:
        is_whole = len(raw) == id_size
        if not (is_whole or not strict) or (is_whole and client_id(raw) is None):
            return None
        # So few bytes of the header are certain that the client id has to look like one.
        if is_far_ahead and not raw.decode(errors="ignore").isprintable():
            return None
    return at, size, kind >> 16, kind & 0xFFFF, correlation_id, raw


def _follows(data: bytes | bytearray, at: int, before: Before | None) -> bool:
    """Whether a request of an unknown API is of the client whose requests came before it.

    A client without an id, or with one that ends after `data`, is known by its next correlation id.
    """
    _, kind, correlation_id, id_size = HEADER.unpack_from(data, at)
    if before is None or kind >> 31 or kind & 0x8000:
        return False
    client, last_id = before
    found = data[at + HEADER_SIZE : at + HEADER_SIZE + max(id_size, 0)]
    if max(id_size, 0) != len(client) or not client.startswith(found):
        return False
    return len(found) == len(client) > 0 or correlation_id == last_id + 1


def unknown_client(data: bytes) -> Before | None:
    """The client id and correlation id of a first request of an unknown API; None if it is none.

    So little of it is certain that the client id has to be there, and to be printable.
    """
    size, kind, correlation_id, id_size = HEADER.unpack_from(data)
    if not HEADER_SIZE - 4 + id_size <= size <= UNCONFIRMED_FRAME_SIZE_MAX or id_size <= 0:
        return None
    raw = data[HEADER_SIZE : HEADER_SIZE + id_size]
    is_text = raw.isascii() and raw.decode("ascii", "replace").isprintable()
    is_known = kind >> 16 in messages.API_VERSIONS
    is_one = is_text and not is_known and not kind & 0x80008000 and correlation_id >= 0
    return (raw, correlation_id) if is_one else None


# No tagged fields in the header, and a null transactional id.
_NO_TRANSACTION = b"\x00\x00"


def _may_be_newer(api_key: int, api_version: int) -> bool:
    """Whether a later release of Kafka could have this API in this version."""
    low, high = messages.API_VERSIONS.get(api_key, (0, 0))
    if api_key not in messages.API_VERSIONS and not 0 < api_key <= _API_KEY_MAX:
        return False
    return low <= api_version <= high + _NEWER_VERSIONS


def _is_first_question(api_key: int, api_version: int) -> bool:
    """Whether this is ApiVersions, in which a client begins with its own newest version."""
    return api_key == ApiKey.API_VERSIONS and api_version <= _API_VERSION_MAX


def client_id(raw: bytes) -> str | None:
    """Return the text of a client id; None if the bytes cannot be a client id.

    Kafka takes any UTF-8, controls included; a stricter rule would let a client hide. A very long
    one is cut: it is remembered until the response, and by statistics even longer.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return shortened(text)


def is_controlled_shutdown_v0(data: bytes, at: int) -> bool:
    """Whether the one request without a client id is here: 12 bytes with a broker id."""
    return data.startswith(b"\x00\x00\x00\x0c\x00\x07\x00\x00", at)


def is_gssapi_token(data: bytes) -> bool:
    """Whether a frame starts like a Kerberos token sent without any Kafka header."""
    return data.startswith(b"\x60") and _KERBEROS in data[:20]


def produce_acks(data: bytes, at: int, end: int, api_version: int) -> int | None:
    """The acks of a Produce request whose client id ends at `at`; None if not captured.

    `end` is that of the request's captured bytes; `data` may go on with other packets.
    """
    try:
        if api_version >= 9 and data.startswith(_NO_TRANSACTION, at):
            at += len(_NO_TRANSACTION)
        elif api_version >= 9:
            at = _skip_tags(data, at)
            size, at = _uvarint(data, at)
            at += max(size - 1, 0)
        elif api_version >= 3:
            (size,) = _I16.unpack_from(data, at)
            at += 2 + max(size, 0)
        return int(_I16.unpack_from(data, at)[0]) if at + 2 <= end else None
    except (struct.error, IndexError):
        return None


def _skip_tags(data: bytes, at: int) -> int:
    count, at = _uvarint(data, at)
    for _ in range(min(count, len(data))):
        _, at = _uvarint(data, at)
        size, at = _uvarint(data, at)
        at += size
    return at


def _uvarint(data: bytes, at: int) -> tuple[int, int]:
    """Raises: IndexError where the bytes end; the caller takes that for not captured."""
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1
