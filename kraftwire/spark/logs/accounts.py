"""What the bytes of a file were: rows of `bad_input`, and the row of `files` with the sums.

Every byte is counted once: in a batch, in a row of `bad_input`, or as zeros at the end.
"""

from __future__ import annotations

import pyarrow as pa

from kraftwire.decode.files.report import FileFinding
from kraftwire.spark.tables.files import BAD_INPUT, FILES, BadBytes, FileBytes

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


class FileAccounts:
    """The sums of one file, or of a range of it, and what is wrong with its bytes."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows: list[BadBytes] = []
        self.batch_bytes = 0
        self._bad_bytes = 0
        self._zero_bytes = 0
        self._bad_in_batches = 0

    def note(self, finding: FileFinding) -> None:
        """Record a finding of the scan."""
        if finding.id == "zero-tail":
            self._zero_bytes += finding.size
        elif (stage := _STAGES.get(finding.id)) is not None:
            first_bytes = bytes(finding.rest[:_FIRST_BYTES])
            place = self.file, finding.position, finding.size
            self.rows.append(BadBytes(*place, stage, finding.id, finding.detail, first_bytes))
            self._bad_bytes += finding.size
            if finding.id in _IN_BATCHES:
                self._bad_in_batches += finding.size

    def tables(self, about: FileBytes) -> dict[str, pa.Table]:
        """Return the rows of `bad_input`, and the row of `files`."""
        return {"bad_input": BAD_INPUT.table(self.rows), "files": FILES.table([about])}

    def sums(self) -> dict[str, int]:
        """Return the sums of a file with batches, by the columns of `files`.

        Batches count without what `bad_input` reports of them.
        """
        return {
            "kafka_bytes": self.batch_bytes - self._bad_in_batches,
            "header_bytes": self._zero_bytes,
            "bad_bytes": self._bad_bytes,
        }
