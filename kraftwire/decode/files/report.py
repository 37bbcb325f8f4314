"""What comes out of reading a file: lines, findings, and the tally that sets the exit code.

A line is for standard output and has the closed set of keys of its kind. What is wrong with a
file is a finding, for standard error: a batch line has no place for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from kraftwire.decode.files.kinds import FileKind
from kraftwire.limits import FINDING_HEX_BYTES
from kraftwire.records.reader import Batch

__all__ = ["ExitCode", "FileFinding", "FileLine", "FileReport", "FindingSink"]


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line of output: a batch, an index entry or the content of a state file.

    Shape: `kind` is that of the file, `position` where the line's bytes start in it; `json` is
    the object of ``--format jsonl``; `batch` is there where the line is one.
    """

    kind: FileKind
    position: int
    json: dict[str, Any]
    batch: Batch | None = None


@dataclass(frozen=True, slots=True)
class FileFinding:
    """Something about a file that its reader should know.

    Shape: `id` is stable and explained in the README of kraftwire/decode; `size` counts the
    bytes that it is about; `rest` holds the first of them; `is_loss` tells that bytes of Kafka's
    data stay undecoded or cannot be trusted.
    """

    id: str
    file: str
    position: int
    detail: str
    size: int = 0
    rest: bytes = b""
    is_loss: bool = False

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
        text = f"{self.file}: {self.id} at {self.position}"
        if self.size:
            text += f", {self.size} bytes"
        text += f": {self.detail}"
        return f"{text} [{self.rest.hex(' ')}]" if self.rest else text


class ExitCode(IntEnum):
    """What a run of the decode tool ends with."""

    CLEAN = 0
    NOTHING = 1
    USAGE = 2
    PARTIAL = 3


@dataclass(slots=True)
class FileReport:
    """The tally of a run over any number of files.

    Shape: `on_finding` sees every finding as it is made; only counts are kept here, so memory
    does not grow with the damage.
    """

    on_finding: Callable[[FileFinding], None] | None = None
    files: Counter[FileKind] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    line_count: int = 0
    loss_count: int = 0

    def add(self, finding: FileFinding) -> None:
        """Count a finding and hand it on."""
        self.findings[finding.id] += 1
        self.loss_count += finding.is_loss
        if self.on_finding is not None:
            self.on_finding(finding)

    @property
    def exit_code(self) -> ExitCode:
        """How the run went.

        Shape: a file that is known and well but empty counts as decoded.
        """
        if self.loss_count:
            return ExitCode.PARTIAL if self.line_count else ExitCode.NOTHING
        known = sum(n for kind, n in self.files.items() if kind is not FileKind.UNKNOWN)
        return ExitCode.CLEAN if known else ExitCode.NOTHING


class FindingSink:
    """Makes the findings of one file.

    Shape: with `hides_bytes` no bytes of the file are shown, because they may hold secrets.
    """

    def __init__(self, file: str, report: FileReport, *, hides_bytes: bool = False) -> None:
        self.file = file
        self.report = report
        self.hides_bytes = hides_bytes

    def add(
        self,
        id: str,
        position: int,
        detail: str,
        *,
        size: int = 0,
        rest: bytes | memoryview = b"",
        is_loss: bool = False,
    ) -> None:
        """Report a finding; of `rest` only the first bytes are kept."""
        head = b"" if self.hides_bytes else bytes(rest[:FINDING_HEX_BYTES])
        self.report.add(FileFinding(id, self.file, position, detail, size, head, is_loss))
