"""The totals of a capture: counts of packets, losses and connections.

Owns the totals that go to standard error. Single losses are findings of frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kraftwire.capture.packets.wrappings import LINK_NAMES
from kraftwire.capture.recorded import Recorded

# Encrypted connections are listed one by one up to this number; the rest are only counted.
TLS_CONNECTIONS_LISTED = 1000

# Connections of a proxy that are known to pass on what comes on another one.
PASSED_ON_MAX = 100_000

# Combinations of wrappings that are counted by name; a capture may have one for each port.
WRAPPINGS_LISTED = 100
_OTHER_WRAPPINGS = "other wrappings"


@dataclass(slots=True)
class TlsConnection:
    """An encrypted connection.

    `version` is the negotiated one, as in ``TLSv1.3``; empty if no ServerHello was seen.
    `certificate_name` is the subject of the client's certificate, as Kafka's mapping rules get it;
    empty if none was seen. `reason` says why it is not decrypted, though there are secrets.
    """

    connection: str
    server_name: str = ""
    version: str = ""
    client_bytes: int = 0
    server_bytes: int = 0
    damaged_records: int = 0
    reason: str = ""
    certificate_name: str = ""


@dataclass(slots=True)
class ByteCounts:
    """Where the bytes of captures are: each of them in exactly one of these places.

    Units: bytes, unpacked. `file` counts all that were read, `payload` those that TCP carries; they
    are `frames` of Kafka with their length prefixes, what `tls` connections and `other` ones say,
    `duplicates` of bytes that came before (or after all was over), and `undecoded` bytes of Kafka.
    Bytes that the capture lost are nowhere. Order: complete when the capture has been read.
    """

    file: int = 0
    payload: int = 0
    frames: int = 0
    tls: int = 0
    other: int = 0
    duplicates: int = 0
    undecoded: int = 0

    @property
    def headers(self) -> int:
        """Headers of files, blocks, links, IP and TCP, padding, packets without TCP, cut ends."""
        return self.file - self.payload

    @property
    def unaccounted(self) -> int:
        """Bytes of payload in none of these places; 0 unless the decoder lost or doubled some."""
        places = self.frames + self.tls + self.other + self.duplicates + self.undecoded
        return self.payload - places

@dataclass(slots=True)
class Health:
    """Totals of a run; `problem` says why a capture file ended before it should have, and
    `is_damaged` that it is wrong there, rather than just cut off.

    `sorted_packets` came after younger ones and were put in order; `late_packets` came too late for
    that, by at most `late_ns` nanoseconds. `recorded` are the times of all packets, and the hosts
    of connections of Kafka.
    `tls` are encrypted connections of which something was not decrypted, `decrypted` the others.
    `unsupported_links` counts packets by the number of a link type that cannot be read, `opened`
    and `unopened` those inside wrappings by the wrappings' names; `skipped_packets` are all others
    without TCP. `copies` are segments that came before in other wrappings, and
    `translated_connections` those that came before under another address. `passed_on` has the
    connections of a proxy, as its capture names them, with those whose requests they pass on.
    Units: counts of packets, connections, frames or bytes, as the names say; `missing_bytes` were
    lost by the capture, in connections of any kind, and `lost_responses` were among them;
    `skipped_bytes` are there in connections of Kafka, but belong to no frame that could be
    recognised; `undecoded_bytes` sums up both for connections of Kafka.
    """

    packets: int = 0
    skipped_packets: int = 0
    truncated_packets: int = 0
    fragments: int = 0
    copies: int = 0
    translated_connections: int = 0
    retransmissions: int = 0
    overlaps: int = 0
    conflicts: int = 0
    out_of_order: int = 0
    sorted_packets: int = 0
    late_packets: int = 0
    late_ns: int = 0
    gaps: int = 0
    missing_bytes: int = 0
    skipped_bytes: int = 0
    undecoded_bytes: int = 0
    resyncs: int = 0
    connections: int = 0
    kafka_connections: int = 0
    other_connections: int = 0
    midstream_connections: int = 0
    relieved_connections: int = 0
    tls_connections: int = 0
    frames: int = 0
    partial_frames: int = 0
    early_responses: int = 0
    unmatched_responses: int = 0
    unanswered_requests: int = 0
    lost_responses: int = 0
    problem: str = ""
    is_damaged: bool = False
    bytes: ByteCounts = field(default_factory=ByteCounts)
    recorded: Recorded = field(default_factory=Recorded)
    tls: list[TlsConnection] = field(default_factory=list)
    decrypted: list[TlsConnection] = field(default_factory=list)
    unsupported_links: dict[int, int] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)
    unopened: dict[str, int] = field(default_factory=dict)
    passed_on: dict[str, str] = field(default_factory=dict)

    @property
    def is_undecoded(self) -> bool:
        """Whether bytes of Kafka's were lost or skipped, apart from an end that cuts a frame."""
        return bool(self.undecoded_bytes or self.lost_responses)

    def add_problem(self, problem: str, *, is_damaged: bool) -> None:
        """Note why a file ended before it should have, if it did."""
        self.problem = "; ".join(filter(None, (self.problem, problem)))
        self.is_damaged |= is_damaged

    def count_skipped(self) -> None:
        """Count a packet that is not TCP over IP."""
        self.skipped_packets += 1

    def count_link(self, link: int) -> None:
        """Count a packet of a link type that cannot be read."""
        self.unsupported_links[link] = self.unsupported_links.get(link, 0) + 1

    def count_wrapped(self, names: tuple[str, ...], *, is_opened: bool) -> None:
        """Count a packet inside wrappings, outermost first, by whether they were opened."""
        counts = self.opened if is_opened else self.unopened
        name = ", ".join(names)
        if name not in counts and len(counts) >= WRAPPINGS_LISTED:
            name = _OTHER_WRAPPINGS
        counts[name] = counts.get(name, 0) + 1

    @property
    def disorder(self) -> str:
        """Say that packets come too late to be sorted, and what is to be done; empty if none do."""
        if not self.late_packets:
            return ""
        return (
            f"{_packets(self.late_packets)} up to {self.late_ns / 1e9:,.3f} s older than others "
            "before them, too far apart to be sorted: reordercap, which comes with Wireshark, puts "
            "a capture in order"
        )

    def unopened_texts(self) -> Iterator[str]:
        """Say which packets were not opened, and how many."""
        for wrapping, number in self.unopened.items():
            yield f"{_packets(number)} inside {wrapping}, which is not opened"
        for link, number in self.unsupported_links.items():
            name = LINK_NAMES.get(link, "unknown")
            yield f"{_packets(number)} of the unsupported link type {link} ({name})"

    def add_tls(self, connection: TlsConnection) -> None:
        """Count an encrypted connection and list it, unless the list is full."""
        self.tls_connections += 1
        if len(self.tls) < TLS_CONNECTIONS_LISTED:
            self.tls.append(connection)

    def add_decrypted(self, connection: TlsConnection) -> None:
        """List a connection that was decrypted, unless the list is full."""
        if len(self.decrypted) < TLS_CONNECTIONS_LISTED:
            self.decrypted.append(connection)


def _packets(number: int) -> str:
    return f"{number:,} packet{'s' * (number != 1)}"
