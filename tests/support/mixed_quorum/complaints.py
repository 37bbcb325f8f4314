"""Lines of logs that tell of something wrong, of either kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

__all__ = ["error_kinds", "java_complaints", "our_complaints"]

# What a Java node prints when something is wrong. Lost connections are warnings; that there is no
# active controller is an error to those who ask for one, and they ask again. How long a commit took
# says something of the machine, or of voters that are down. A Java leader cannot write its refusal
# of a FetchSnapshot (R-FSN-3), and the asker is told of an unknown error. And 4.x asks 3.9, which
# has no pre-vote, in vain for one before it stands for election without.
_HARMLESS = (
    r"\[Controller(Apis|RegistrationManager)",
    r".*\(EventPerformanceMonitor\)",
    r".*UNKNOWN_SERVER_ERROR in FETCH_SNAPSHOT response",
    r"Request OutboundRequest\(.*VoteRequestData.*unsupported version",
)
_JAVA = re.compile(
    rf" FATAL | ERROR (?!{'|'.join(_HARMLESS)})"
    r"|Encountered .*fault"
    r"|Illegal(State|Argument)Exception"
)
_JAVA_ERROR = re.compile(r" (?:FATAL|ERROR) (.*)")

# What differs between two lines that tell of the same: uuids in base64, and numbers.
_CHANGING = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])|\d+(?:\.\d+)*")


def our_complaints(lines: Iterable[str]) -> list[str]:
    """Errors in the log of one of our nodes."""
    return [line for line in lines if "Traceback" in line or "level=error" in line]


def java_complaints(console: Path) -> list[str]:
    """Errors in what a Java node has printed, without those that any restart of a peer causes."""
    return [line for line in _lines(console) if _JAVA.search(line)]


def error_kinds(consoles: Iterable[Path]) -> Counter[str]:
    """How often Java nodes have printed which line of level ERROR or FATAL.

    Without those that any restart of a peer causes. Numbers and uuids are replaced, so that two
    runs of one script can be compared.
    """
    found: Counter[str] = Counter()
    for console in consoles:
        for line in _lines(console):
            if (match := _JAVA_ERROR.search(line)) is not None and _JAVA.search(line):
                found[_CHANGING.sub("#", match[1])] += 1
    return found


def _lines(console: Path) -> list[str]:
    return console.read_text(errors="replace").splitlines() if console.exists() else []
