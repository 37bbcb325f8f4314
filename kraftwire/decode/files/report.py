"""The output of reading files: lines, and the tally of findings that sets the exit code.

A line is for standard output and has the closed set of keys of its kind. What is wrong with a
file is a finding, for standard error: a batch line has no place for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from kraftwire.decode.files.findings import FileFinding, FindingSink
from kraftwire.decode.files.kinds import FileKind
from kraftwire.records.reader import Batch

__all__ = ["ExitCode", "FileLine", "FileReport"]


# Findings about bytes that are not decoded, which do not count as losses.
_CUTS = ("batch-cut", "trailing-bytes")


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line of output: a batch, an index entry or the content of a state file.

    `kind` is that of the file; `data` are the line's bytes, which start at `position` of
    the file; `json` is the object of ``--format jsonl``. Where the line is a batch, `batch` and
    the `family` of its records are there, and `hides_records`: its records must not be
    shown as bytes, because they hold secrets; where that was not found out, `may_hide_records`.
    Of another line `hides_records` is about all its bytes.
    """

    kind: FileKind
    position: int
    json: dict[str, Any]
    data: bytes | memoryview = b""
    batch: Batch | None = None
    family: str | None = None
    hides_records: bool = False
    may_hide_records: bool = False


class ExitCode(IntEnum):
    """The exit code of a run of the decode tool."""

    CLEAN = 0
    NOTHING = 1
    USAGE = 2
    PARTIAL = 3


@dataclass(slots=True)
class FileReport:
    """The tally of a run over any number of files.

    `on_finding` sees every finding as it is made; only counts are kept here, so memory
    does not grow with the damage.
    """

    on_finding: Callable[[FileFinding], None] | None = None
    files: Counter[FileKind] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    line_count: int = 0
    loss_count: int = 0

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
