"""Ranges of client addresses, as the host of an ACL names them in CIDR notation (SEC-A16).

A host with a slash is a range; any other one is an address or ``*``, and is compared literally.
Both kinds of addresses are read as Kafka 4.4 reads them, which is more than `ipaddress` takes:
octets and groups may have leading zeros, IPv6 may stand in brackets.

Source: Kafka's `CidrUtils`, with the classes `SubnetUtils` and `SubnetUtils6` of Commons Net in
kafka-clients, read by ``javap``; Java's `InetAddress.getByName`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from kraftwire.errors import UsageError

_OCTETS = r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})"
_IPV4 = re.compile(_OCTETS, re.ASCII)
# Within IPv6, where Java counts the value and the whole text's length alone.
_EMBEDDED = re.compile(r"0*(\d{1,3})\.0*(\d{1,3})\.0*(\d{1,3})\.0*(\d{1,3})", re.ASCII)
_EMBEDDED_MAX = 15
_IPV4_RANGE = re.compile(rf"({_OCTETS})/(\d{{1,2}})", re.ASCII)
_GROUP = re.compile(r"0*([0-9a-fA-F]{1,4})")
# The zone of an address of IPv6: the number of an interface, or the name that one may have.
_ZONE_NUMBER = re.compile(r"0*(\d{1,10})", re.ASCII)
_ZONE_NUMBER_MAX = 2**31 - 1
_ZONE_NAME = re.compile(r"[^\s:/]{1,15}", re.ASCII)
# Java's `Integer.parseInt`: digits of any script in the first plane, and a sign.
_LENGTH = re.compile(r"([+-]?)0*(\d{1,9})")
_PLANE = 0x10000

_BITS = {4: 32, 6: 128}
# IPv4 addresses in IPv6, which Java reads as IPv4: they are in no range of IPv6.
_MAPPED = 0xFFFF


class HostRange(NamedTuple):
    """The addresses of one kind, 4 or 6, that begin with the same bits.

    `length` is the count of these bits; `prefix` is their value, as a number.
    """

    kind: int
    length: int
    prefix: int

    def __str__(self) -> str:
        if self.kind == 4:
            shown = ".".join(str(byte) for byte in self._first.to_bytes(4))
        else:
            shown = ":".join(f"{self._first >> at & 0xFFFF:x}" for at in range(112, -1, -16))
        return f"{shown}/{self.length}"

    @property
    def _first(self) -> int:
        return self.prefix << (_BITS[self.kind] - self.length)


class HostAddress(NamedTuple):
    """The address of a client, of kind 4 or 6, as a number."""

    kind: int
    value: int

    def within(self, length: int) -> tuple[int, int, int]:
        """Return the range of this length that the address is in; equal to its `HostRange`."""
        return self.kind, length, self.value >> (_BITS[self.kind] - length)


def is_range(host: str) -> bool:
    """Return whether the host of an ACL is a range, or is meant to be one."""
    return "/" in host


_HasInterface = Callable[[str], bool]


def _any_interface(_: str) -> bool:
    """Take every name for one that an interface of some node has."""
    return True


def parse_range(host: str, has_interface: _HasInterface = _any_interface) -> HostRange:
    """Read a range. Bits behind its length are ignored.

    `has_interface` is whether there is an interface of a name. Raises: UsageError for another text.
    """
    address, _, length = host.partition("/")
    bits = None
    if ":" in host:
        kind, value = 6, _ipv6(address, has_interface)
        bits = _integer(length)
    else:
        kind, value = 4, None
        if found := _IPV4_RANGE.fullmatch(host):
            value, bits = _ipv4(found[1]), int(found[6])
    if value is None:
        text = f"{host!r:.300} is no range of addresses: expected one such as 10.0.0.0/8"
        zone = "; a zone has to be an interface of this machine" if "%" in address else ""
        raise UsageError(text + zone)
    if bits is None or not 0 <= bits <= _BITS[kind]:
        text = f"the range {host!r:.300} has the length {length!r:.40}"
        raise UsageError(f"{text}: expected 0 to {_BITS[kind]}")
    return HostRange(*HostAddress(kind, value).within(bits))


def host_range(host: str) -> HostRange | None:
    """Return the range that the host of an ACL names; None if it is a single one, or unreadable."""
    if not is_range(host):
        return None
    try:
        return parse_range(host)
    except UsageError:
        return None


def host_address(host: str) -> HostAddress | None:
    """Read the address of a client as `host_text` writes it; None if it can be in no range."""
    value = _ipv6(host) if ":" in host else _ipv4(host)
    # Kafka finds 0.0.0.0 in no range, not even in that of all addresses.
    if value is None or (":" not in host and not value):
        return None
    return HostAddress(6 if ":" in host else 4, value)


def _ipv4(text: str, form: re.Pattern[str] = _IPV4) -> int | None:
    found = form.fullmatch(text)
    octets = [int(octet) for octet in found.groups()] if found else []
    if not octets or max(octets) > 255:
        return None
    return int.from_bytes(octets)


def _ipv6(text: str, has_interface: _HasInterface = _any_interface) -> int | None:
    """Read an address of IPv6, in brackets or not; a zone has to exist, and says nothing else."""
    if text.startswith("["):
        if not text.endswith("]"):
            return None
        text = text[1:-1]
    text, percent, zone = text.partition("%")
    if percent and not _is_zone(zone, has_interface):
        return None
    rest, colon, last = text.rpartition(":")
    if "." in last:
        embedded = _ipv4(last, _EMBEDDED) if len(last) <= _EMBEDDED_MAX else None
        if embedded is None:
            return None
        text = f"{rest}{colon}{embedded >> 16:x}:{embedded & 0xFFFF:x}"
    halves = [half.split(":") if half else [] for half in text.split("::")]
    count = sum(map(len, halves))
    # Two colons stand for one group of zeros at least.
    if len(halves) > 2 or (count != 8 if len(halves) == 1 else count > 7):
        return None
    zeros = ["0"] * (8 - count)
    value = 0
    for group in (*halves[0], *zeros, *halves[-1][: count - len(halves[0])]):
        found = _GROUP.fullmatch(group)
        if found is None:
            return None
        value = value << 16 | int(found[1], 16)
    return None if value >> 32 == _MAPPED else value


def _is_zone(zone: str, has_interface: _HasInterface) -> bool:
    number = _ZONE_NUMBER.fullmatch(zone)
    if number is not None and int(number[1]) <= _ZONE_NUMBER_MAX:
        return True
    return _ZONE_NAME.fullmatch(zone) is not None and has_interface(zone)


def _integer(text: str) -> int | None:
    """Read a number as Java's `Integer.parseInt` does, as far as it can be a length."""
    found = _LENGTH.fullmatch(text)
    if found is None or any(ord(digit) >= _PLANE for digit in text):
        return None
    return -int(found[2]) if found[1] == "-" else int(found[2])
