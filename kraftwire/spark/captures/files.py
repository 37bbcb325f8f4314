"""Where the bytes of files are: in frames, in other payload, in headers, or in no table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from kraftwire.capture.packets.time_order import WINDOW_BYTES
from kraftwire.decode.text import size_text
from kraftwire.spark.captures.connections import Connection
from kraftwire.spark.captures.recording import Recording
from kraftwire.spark.tables.files import BadBytes, FileBytes


@dataclass(slots=True)
class FileSums:
    """Bytes of payload of one file, or of some connections in it, and what came more than once.

    `copied_packets` came before in other wrappings, `translated_connections` under another address.
    """

    kafka: int = 0
    tls: int = 0
    other: int = 0
    duplicates: int = 0
    undecoded: int = 0
    copied_packets: int = 0
    translated_connections: int = 0

    def add(self, more: FileSums) -> None:
        """Add those of other connections."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(more, each.name))


def add_connection(sums: dict[str, FileSums], recording: Recording, about: Connection) -> None:
    """Add the bytes of a connection to the sums of the files that hold them, by path.

    The order of bytes decides which of several files they are in: skipped bytes first, then
    copies, then the rest.
    """
    places = [
        ("undecoded", about.undecoded), ("duplicates", about.duplicates), ("tls", about.tls),
        ("other", about.other), ("kafka", about.kafka),
    ]  # fmt: skip
    shares = recording.shares[about.number - 1]
    sums.setdefault(shares[0][0].path, FileSums()).copied_packets += about.copied_packets
    for file, payload in shares:
        left = payload if file is not shares[-1][0] else None
        into = sums.setdefault(file.path, FileSums())
        for at, (name, count) in enumerate(places):
            part = count if left is None else min(count, left)
            setattr(into, name, getattr(into, name) + part)
            places[at] = name, count - part
            left = None if left is None else left - part


def add_copy(sums: dict[str, FileSums], recording: Recording, number: int) -> None:
    """Add the bytes of a connection that is a copy to the sums of the files that hold them."""
    shares = recording.shares[number - 1]
    for file, payload in shares:
        sums.setdefault(file.path, FileSums()).duplicates += payload
    sums[shares[0][0].path].translated_connections += 1


def file_rows(
    recording: Recording, sums: Mapping[str, FileSums]
) -> Iterator[tuple[str, FileBytes | BadBytes]]:
    """Return rows about a recording's files and what could not be read in them, with table names.

    `bad_bytes` are undecoded payload and what follows the last packet of a file that is
    cut or damaged.
    """
    for file in recording.files:
        counts = sums.get(file.path, FileSums())
        rest = file.size - file.end
        if file.problem:
            id = "file-damaged" if file.is_damaged else "file-cut"
            yield "bad_input", BadBytes(file.name, file.end, rest, "file", id, file.problem)
        for text in file.unopened:
            yield "bad_input", BadBytes(file.name, 0, 0, "file", "unopened-packets", text)
        if file.disorder_ns:
            text = (
                f"packets come up to {file.disorder_ns / 1e9:,.3f} s after younger ones: those of "
                f"a connection are sorted within {size_text(WINDOW_BYTES)}; reordercap, which "
                "comes with Wireshark, puts a capture in order"
            )
            yield "bad_input", BadBytes(file.name, 0, 0, "file", "packets-out-of-order", text)
        yield (
            "files",
            FileBytes(
                file.name, file.size, "capture", counts.kafka, counts.tls, counts.other,
                counts.duplicates, file.end - file.payload, counts.undecoded + rest,
                counts.copied_packets, counts.translated_connections,
                recording=recording.files[0].name,
                recorded=[(first, last) for first, last in file.recorded.stretches],
            ),
        )  # fmt: skip


def unreadable_file(
    name: str, size: int, problem: str
) -> Iterator[tuple[str, FileBytes | BadBytes]]:
    """Return the rows about a capture that cannot be read, with table names."""
    yield "bad_input", BadBytes(name, 0, size, "file", "unreadable-file", problem)
    yield "files", FileBytes(name, size, "unknown", bad_bytes=size)
