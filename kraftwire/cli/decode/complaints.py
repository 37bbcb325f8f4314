"""What is wrong with inputs, on standard error: the first few of a kind, and how many more.

Damage inside a file of Kafka's is told each time; what a folder has that nobody can read is not.
"""

from __future__ import annotations

from collections import Counter

from kraftwire.cli.output import say
from kraftwire.decode.files.findings import FileFinding

__all__ = ["Complaints"]

_TOLD_MAX = 5
_UNREADABLE = "unreadable"
_KINDS = {
    "unknown-file": "files of no known kind",
    "unreadable-file": "files that cannot be read",
    _UNREADABLE: "inputs that cannot be read",
}


class Complaints:
    """Tells what is wrong, and what was kept back at the end; nothing unless `is_told`."""

    def __init__(self, *, is_told: bool = True) -> None:
        self._is_told = is_told
        self._counts: Counter[str] = Counter()

    def finding(self, finding: FileFinding) -> None:
        """Tell a finding of a file."""
        self._tell(finding.id, str(finding))

    def unreadable(self, text: str) -> None:
        """Tell of an input that cannot be read."""
        self._tell(_UNREADABLE, text)

    def finish(self) -> None:
        """Tell how many there were that nobody told."""
        for kind, words in _KINDS.items():
            more = self._counts[kind] - _TOLD_MAX
            if more > 0 and self._is_told:
                say(f"kraftwire: {more:,} more {words}")

    def _tell(self, kind: str, text: str) -> None:
        self._counts[kind] += 1
        is_one_of_few = kind not in _KINDS or self._counts[kind] <= _TOLD_MAX
        if self._is_told and is_one_of_few:
            say(f"kraftwire: {text}")
