"""Reports problems of inputs on standard error: the first few of each kind, and how many more.

Damage inside a file of Kafka is always reported; unreadable files of a folder are summarized.
"""

from __future__ import annotations

from collections import Counter

from kraftwire.cli.output import say
from kraftwire.decode.files.report import FileFinding

_SHOWN_MAX = 5
_UNREADABLE = "unreadable"
_KINDS = {
    "unknown-file": "files of no known kind",
    "unreadable-file": "files that cannot be read",
    _UNREADABLE: "inputs that cannot be read",
}


class Problems:
    """Reports problems; `finish` adds the number of those left out."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def finding(self, finding: FileFinding) -> None:
        """Report a finding of a file."""
        self._report(finding.id, str(finding))

    def unreadable(self, text: str) -> None:
        """Report an input that cannot be read."""
        self._report(_UNREADABLE, text)

    def finish(self) -> None:
        """Report how many problems were left out."""
        for kind, words in _KINDS.items():
            more = self._counts[kind] - _SHOWN_MAX
            if more > 0:
                say(f"kraftwire: {more:,} more {words}")

    def _report(self, kind: str, text: str) -> None:
        self._counts[kind] += 1
        if kind not in _KINDS or self._counts[kind] <= _SHOWN_MAX:
            say(f"kraftwire: {text}")
