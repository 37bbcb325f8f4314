"""What the table files says about the files of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kraftwire.capture.packets.time_order import WINDOW_BYTES
from kraftwire.decode.text import size_text
from kraftwire.spark.captures.findings import BadBytes
from kraftwire.spark.captures.recording import FileSums, Recording


class FileBytes(NamedTuple):
    """An input file and how its bytes were classified: a row of files."""

    file: str
    size: int
    kind: str
    kafka_bytes: int = 0
    tls_bytes: int = 0
    other_bytes: int = 0
    duplicate_bytes: int = 0
    header_bytes: int = 0
    bad_bytes: int = 0
    copied_packets: int | None = None
    translated_connections: int | None = None
    cluster: str | None = None
    state: str | None = None
    recording: str | None = None
    recorded: list[tuple[int, int]] | None = None


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
