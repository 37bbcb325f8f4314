"""The header that a load balancer puts before the first bytes of a connection: who its client is.

Source: the PROXY protocol of HAProxy, versions 1 and 2.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import NamedTuple

_V1 = b"PROXY "
_V1_MAX = 107
_V2 = b"\r\n\r\n\0\r\nQUIT\n"
_V2_HEADER = 16
# Family of addresses -> the size of one.
_ADDRESS_SIZES = {1: 4, 2: 16}


class ProxyHeader(NamedTuple):
    """A header: its size, and a text that names both ends, if it does."""

    size: int
    text: str


def read_proxy_header(data: bytes | bytearray) -> ProxyHeader | None:
    """Return the header that the first bytes of a client are; None if more of them are needed.

    Its size is 0 if they are none.
    """
    if data.startswith(_V1):
        return _read_v1(bytes(data[:_V1_MAX]))
    if data.startswith(_V2):
        return _read_v2(bytes(data))
    is_open = any(mark.startswith(bytes(data)) for mark in (_V1, _V2))
    return None if is_open and data else ProxyHeader(0, "")


def _read_v1(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n")
    if end < 0:
        return None if len(data) < _V1_MAX else ProxyHeader(0, "")
    words = data[:end].decode("ascii", "replace").split(" ")
    ends = f": client {words[2]}:{words[4]}" if len(words) == 6 else ""
    return ProxyHeader(end + 2, f"a header of the PROXY protocol, version 1{ends}")


def _read_v2(data: bytes) -> ProxyHeader | None:
    if len(data) < _V2_HEADER:
        return None
    size = _V2_HEADER + int.from_bytes(data[14:16], "big")
    if len(data) < size:
        return None
    address_size = _ADDRESS_SIZES.get(data[13] >> 4, 0)
    ends, at = "", _V2_HEADER
    if address_size and size >= at + 2 * address_size + 4:
        address = ip_address(data[at : at + address_size])
        port = int.from_bytes(data[at + 2 * address_size : at + 2 * address_size + 2], "big")
        ends = f": client {f'[{address}]' if address_size == 16 else address}:{port}"
    return ProxyHeader(size, f"a header of the PROXY protocol, version 2{ends}")
