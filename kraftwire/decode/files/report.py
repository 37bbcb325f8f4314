"""The output of reading files: lines, findings under stable ids, the tally for the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from kraftwire.decode.files.kinds import FileKind
from kraftwire.limits import FINDING_HEX_BYTES
from kraftwire.records.reader import Batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.controller.check import Contradiction
    from kraftwire.decode.files.checked_log import CheckedLog

# Oddities of a kind that are shown one by one.
ODDITIES_MAX = 10

# Id -> meaning. The README of kraftwire/decode shows this table.
FINDINGS = {
    "batch-bomb": "a batch, or a record of it, that would become far more than its bytes account "
    "for; it is not read, or one of the metadata log not checked against those before it",
    "batch-crc": "the CRC of a record batch is wrong; its records are read all the same",
    "batch-cut": "the file ends inside a batch, as that of an active segment may",
    "batch-damaged": "the records of a batch cannot be decompressed or read",
    "contradiction": "a record of the metadata log that contradicts the records before it; Kafka's "
    "controller does not start on such a log",
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

# A run with one of these findings exits with 3.
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


def more_text(count: int) -> str:
    """Return the remark about oddities that are not shown."""
    return f"{count:,} more of this kind"


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

    @contextmanager
    def folded(self) -> Iterator[FindingSink]:
        """A sink that passes on the first few findings of each kind; in the end it says how many
        more there were."""
        counts = Counter[str]()

        def hand_on(finding: FileFinding) -> None:
            counts[finding.id] += 1
            if counts[finding.id] <= ODDITIES_MAX:
                self._hand_on(finding)

        yield FindingSink(self.file, hand_on)
        for id, count in counts.items():
            if count > ODDITIES_MAX:
                self.add(id, 0, more_text(count - ODDITIES_MAX))


# Findings about bytes that are not decoded, which do not count as losses.
_CUTS = ("batch-cut", "trailing-bytes")


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line of output: a batch, an index entry or the content of a state file.

    `kind` is that of the file; `data` are the line's bytes, which start at `position` of
    the file; `json` is the object of ``--format jsonl``. Where the line is a batch, `batch` and
    the `family` of its records are there, and `hides_records`: its records must not be
    shown as bytes, because they hold secrets; where that was not found out, `may_hide_records`.
    Of another line `hides_records` is about all its bytes. `contradictions` are the records of a
    batch of the metadata log that contradict those before them.
    """

    kind: FileKind
    position: int
    json: dict[str, Any]
    data: bytes | memoryview = b""
    batch: Batch | None = None
    family: str | None = None
    hides_records: bool = False
    may_hide_records: bool = False
    contradictions: Sequence[Contradiction] = ()


class ExitCode(IntEnum):
    """The exit code of a run of the decode tool."""

    CLEAN = 0
    NOTHING = 1
    USAGE = 2
    PARTIAL = 3


@dataclass(slots=True)
class FileReport:
    """The tally of a run over any number of files, each read after the one before it.

    `on_finding` sees every finding as it is made; only counts are kept here, so memory
    does not grow with the damage. `checked_logs` are the metadata logs of the run by folder.
    """

    on_finding: Callable[[FileFinding], None] | None = None
    files: Counter[FileKind] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    line_count: int = 0
    loss_count: int = 0
    # The segment of a metadata log that was read last: its folder, and the offset after its end.
    last_segment: tuple[Path, int] | None = None
    checked_logs: dict[Path, CheckedLog] = field(default_factory=dict, repr=False)

    def sink(self, file: str) -> FindingSink:
        """Return the sink for the findings of one file of this run."""
        return FindingSink(file, self.add)

    def add(self, finding: FileFinding) -> None:
        """Count a finding and pass it on."""
        self.findings[finding.id] += 1
        self.loss_count += finding.is_loss
        if self.on_finding is not None:
            self.on_finding(finding)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the run.

        An empty file of a known kind counts as decoded, but not one that ends inside its first
        batch or entry.
        """
        if self.loss_count:
            return ExitCode.PARTIAL if self.line_count else ExitCode.NOTHING
        if not self.line_count and any(self.findings[id] for id in _CUTS):
            return ExitCode.NOTHING
        known = sum(n for kind, n in self.files.items() if not kind.is_unknown)
        return ExitCode.CLEAN if known else ExitCode.NOTHING
