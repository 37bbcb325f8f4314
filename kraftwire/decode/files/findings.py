"""Findings of files: what is odd, damaged or missing, under stable ids.

Owns the ids and which of them mean that bytes of Kafka's data stay undecoded or cannot be trusted.
Findings inside frames have a table of their own; an id that is in both tables means the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kraftwire.limits import FINDING_HEX_BYTES

__all__ = ["FINDINGS", "LOSSES", "FileFinding", "FindingSink"]

# Id -> meaning. The README of kraftwire/decode shows this table.
FINDINGS = {
    "batch-bomb": "a batch, or a record of it, that would become far more than its bytes account "
    "for; it is not read",
    "batch-crc": "the CRC of a record batch is wrong; its records are read all the same",
    "batch-cut": "the file ends inside a batch, as that of an active segment may",
    "batch-damaged": "the records of a batch cannot be decompressed or read",
    "garbage": "bytes that are not a batch, skipped up to the next batch with a right CRC",
    "hole": "zeros where a batch should begin, skipped like garbage",
    "index-hole": "zeros between the entries of an index",
    "index-mismatch": "an index entry that does not fit the batch in the segment next to it",
    "missing-key": "a state file without a key that its version has",
    "not-monotonic": "offsets, positions, timestamps or epochs that go back",
    "offset-gap": "offsets missing between two batches of the metadata log",
    "record-undecoded": "a record of an internal topic whose type, version or bytes fit no schema",
    "replaced": "another file took the name of the one that is followed",
    "snapshot-crc": "the CRC of a producer snapshot is wrong",
    "snapshot-incomplete": "a snapshot without its header or footer record",
    "state-crc": "the checksum of a state file, or of one of its copies, is wrong",
    "trailing-bytes": "bytes after the last entry",
    "truncated": "the followed log became shorter; what replaces the rest is shown",
    "unknown-file": "a file of no known kind; nothing of it is decoded",
    "unknown-key": "a state file with a key that its version lacks",
    "unknown-version": "an index entry of an unknown version; it and what follows stay undecoded",
    "unreadable-file": "the file cannot be opened, read or unpacked",
    "unreadable-state": "a state file that does not follow its format or is of an unknown version",
    "wrong-count": "a checkpoint that announces another number of entries than it has",
    "wrong-length": "a batch with a wrong length; its CRC proves the right one, with which it is "
    "read",
    "zero-tail": "zeros up to the end, as preallocation or a crash leaves them",
}

# A run with one of these exits with 3.
LOSSES = frozenset(
    {
        "batch-bomb",
        "batch-crc",
        "batch-damaged",
        "garbage",
        "hole",
        "record-undecoded",
        "snapshot-crc",
        "state-crc",
        "unknown-version",
        "unreadable-file",
        "unreadable-state",
        "wrong-length",
    }
)


@dataclass(frozen=True, slots=True)
class FileFinding:
    """Something about a file that its reader should know.

    `id` is a key of `FINDINGS`; `size` counts the bytes that it is about, from `position`
    on, and `rest` holds the first of them.
    """

    id: str
    file: str
    position: int
    detail: str
    size: int = 0
    rest: bytes = b""

    @property
    def is_loss(self) -> bool:
        """Whether bytes of Kafka's data stay undecoded or cannot be trusted."""
        return self.id in LOSSES

    @property
    def json(self) -> dict[str, Any]:
        """The finding as a JSON object."""
        return {
            "file": self.file,
            "position": self.position,
            "id": self.id,
            "detail": self.detail,
            "size": self.size,
            "hex": self.rest.hex(),
            "isLoss": self.is_loss,
        }

    def __str__(self) -> str:
        about = f", {self.size} bytes" if self.size else ""
        text = f"{self.file}: {self.id} at {self.position}{about}: {self.detail}"
        return f"{text} [{self.rest.hex()}]" if self.rest else text


class FindingSink:
    """Makes the findings of one file and passes them on.

    With `hides_bytes` no bytes of the file are shown, because they may hold secrets.
    """

    def __init__(self, file: str, hand_on: Callable[[FileFinding], None]) -> None:
        self.file = file
        self.hides_bytes = False
        self._hand_on = hand_on

    def add(
        self,
        id: str,
        position: int,
        detail: str,
        *,
        size: int = 0,
        rest: bytes | memoryview = b"",
    ) -> None:
        """Report a finding; of `rest` only the first bytes are kept."""
        head = b"" if self.hides_bytes else bytes(rest[:FINDING_HEX_BYTES])
        self._hand_on(FileFinding(id, self.file, position, detail, size, head))
