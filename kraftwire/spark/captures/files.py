"""The rows of the table files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kraftwire.spark.captures.pieces import Series
from kraftwire.spark.captures.sums import FileSums

__all__ = ["file_rows"]


def file_rows(
    series: Series, sums: Mapping[str, FileSums]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Return the rows of a recording's files and of what could not be read in them, with table
    names.

    `bad_bytes` are undecoded payload and what follows the last packet of a file that is
    cut or damaged.
    """
    for file in series.files:
        counts = sums.get(file.path, FileSums())
        rest = file.size - file.end
        headers = file.end - file.payload
        bad = counts.undecoded + rest
        if file.problem:
            id = "file-damaged" if file.is_damaged else "file-cut"
            yield "bad_input", (file.name, file.end, rest, "file", id, file.problem, None)
        yield (
            "files",
            (
                file.name, file.size, "capture", counts.kafka, counts.tls, counts.other,
                counts.duplicates, headers, bad, None,
            ),
        )  # fmt: skip
