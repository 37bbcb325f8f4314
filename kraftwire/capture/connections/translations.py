"""Connections that a capture shows twice, before and after address translation.

A client's initial sequence number and its TCP timestamp pass unchanged. So a SYN with both of
another one, of the same moment, from the same client or to the same server, is that of the same
connection.
"""

from __future__ import annotations

from kraftwire.capture.packets.links import SYN, Segment

# Both are bounded; the oldest are forgotten.
_OPENED_MAX = 4096
_COPIES_MAX = 40_000
_MOMENT_NS = 1_000_000_000
_PORT_BYTES = 2
_ACK = 16
_HEADER_SIZE, _HEADER_SIZE_MAX = 20, 60
_END, _NOTHING, _TIMESTAMPS = 0, 1, 8


class Translations:
    """Knows the last SYNs, and the connections that are copies of others."""

    def __init__(self) -> None:
        # Sequence number and TCP timestamp -> key and time of the SYN.
        self._opened: dict[tuple[int, bytes], tuple[bytes, int]] = {}
        # The keys of both directions of copies.
        self._copies: dict[bytes, None] = {}

    def is_copy(self, segment: Segment) -> bool:
        """Whether a segment belongs to a copy.

        Order: all SYNs of clients have to come; each of them decides about what follows between
        its two ends.
        """
        if segment.flags & SYN and not segment.flags & _ACK:
            self._note_syn(segment)
        return segment.key in self._copies

    def _note_syn(self, syn: Segment) -> None:
        """Note a client's SYN, and whether it opens a copy of a connection."""
        timestamp = _timestamp(syn)
        if timestamp is None:
            return
        key, time_ns, mark = syn.key, syn.stamp[0], (syn.seq, timestamp)
        client, server = _ends(key)
        both = key, _key(server, client)
        before = self._opened.get(mark)
        if before is not None and time_ns - before[1] <= _MOMENT_NS and _share_end(key, before[0]):
            self._copies.update(dict.fromkeys(both))
            while len(self._copies) > _COPIES_MAX:
                del self._copies[next(iter(self._copies))]
            return
        for each in both:
            self._copies.pop(each, None)
        self._opened.pop(mark, None)
        self._opened[mark] = key, time_ns
        if len(self._opened) > _OPENED_MAX:
            del self._opened[next(iter(self._opened))]


def _timestamp(segment: Segment) -> bytes | None:
    """Return the sender's TCP timestamp, from the options between header and payload."""
    data, end = segment.data, segment.start
    for size in range(_HEADER_SIZE + 4, _HEADER_SIZE_MAX + 1, 4):
        at = end - size
        if at >= 0 and data[at : at + 4] == segment.key[-4:] and data[at + 12] >> 4 == size // 4:
            return _option(data[at + _HEADER_SIZE : end])
    return None


def _option(options: bytes) -> bytes | None:
    at = 0
    while at + 1 < len(options) and options[at] != _END:
        if options[at] == _NOTHING:
            at += 1
            continue
        if options[at] == _TIMESTAMPS and options[at + 2 : at + 6] != bytes(4):
            return options[at + 2 : at + 6]
        at += max(options[at + 1], 2)
    return None


def _ends(key: bytes) -> tuple[bytes, bytes]:
    """Return address and port of the sender, and of the receiver."""
    size = (len(key) - 2 * _PORT_BYTES) // 2
    ports = key[2 * size :]
    return key[:size] + ports[:_PORT_BYTES], key[size : 2 * size] + ports[_PORT_BYTES:]


def _key(sender: bytes, receiver: bytes) -> bytes:
    addresses = sender[:-_PORT_BYTES] + receiver[:-_PORT_BYTES]
    return addresses + sender[-_PORT_BYTES:] + receiver[-_PORT_BYTES:]


def _share_end(one: bytes, other: bytes) -> bool:
    """Whether two different pairs of ends have the client or the server in common."""
    if one == other or len(one) != len(other):
        return False
    return any(a == b for a, b in zip(_ends(one), _ends(other), strict=True))
