"""What the bytes of a file were: rows of `bad_input`, and the row of `files` with the sums.

Every byte is counted once: in a batch, in a row of `bad_input`, or as zeros at the end.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kraftwire.decode.files.report import FileFinding
from kraftwire.spark.tables import TABLES

# Findings about bytes, with the stage that detected them; the others are about
# order, or about files of other kinds.
_STAGES = {
    "batch-bomb": "batch",
    "batch-crc": "batch",
    "batch-cut": "batch",
    "batch-damaged": "batch",
    "garbage": "file",
    "hole": "file",
    "record-undecoded": "record",
    "unknown-file": "file",
    "unreadable-file": "file",
    "unreadable-state": "file",
    "wrong-length": "batch",
}
# The bytes of these findings are those of a batch that has a separate row.
_IN_BATCHES = frozenset(
    {"batch-bomb", "batch-crc", "batch-damaged", "record-undecoded", "wrong-length"}
)
_FIRST_BYTES = 32


class Accounts:
    """The sums of one file, or of a range of it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows: list[dict[str, Any]] = []
        self.batch_bytes = 0
        self.bad_bytes = 0
        self.zero_bytes = 0
        self._bad_in_batches = 0

    def note(self, finding: FileFinding) -> None:
        """Record a finding of the scan."""
        if finding.id == "zero-tail":
            self.zero_bytes += finding.size
        elif finding.id in _STAGES:
            self.rows.append(
                {
                    "file": self.file,
                    "position": finding.position,
                    "length": finding.size,
                    "stage": _STAGES[finding.id],
                    "id": finding.id,
                    "detail": finding.detail,
                    "first_bytes": bytes(finding.rest[:_FIRST_BYTES]),
                }
            )
            self.bad_bytes += finding.size
            if finding.id in _IN_BATCHES:
                self._bad_in_batches += finding.size

    @property
    def kafka_bytes(self) -> int:
        """The bytes of batches, except those reported in `bad_input`."""
        return self.batch_bytes - self._bad_in_batches

    def take_rows(self) -> Any:
        """Return the rows of `bad_input` since the last call."""
        rows, self.rows = self.rows, []
        return bad_rows(rows)


def bad_rows(rows: list[dict[str, Any]]) -> Any:
    """Convert rows to a table of `bad_input`."""
    return pa.Table.from_pylist(rows, TABLES["bad_input"].arrow)


def file_row(
    file: str,
    kind: str,
    size: int,
    accounts: Accounts | None = None,
    *,
    cluster: str | None = None,
    state: str | None = None,
) -> Any:
    """Return the row of `files`; None as accounts stands for a kind of file without batches."""
    row: dict[str, Any] = dict.fromkeys(TABLES["files"].arrow.names, 0)
    row |= {"file": file, "kind": kind, "size": size, "cluster": cluster, "state": state}
    row |= {"recording": None, "recorded": None}  # of captures
    if accounts is None:
        row["other_bytes"] = size
    else:
        row["kafka_bytes"] = accounts.kafka_bytes
        row["header_bytes"] = accounts.zero_bytes
        row["bad_bytes"] = accounts.bad_bytes
    return pa.Table.from_pylist([row], TABLES["files"].arrow)
