"""Log lines of either kind of node that report problems."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

# What a Java node prints when something is wrong. Lost connections are warnings; that there is no
# active controller is an error for those that look for one, and they retry. How long a commit took
# depends on the machine, or on voters that are down. A Java leader cannot encode its refusal
# of a FetchSnapshot (R-FSN-3), and the sender gets an unknown error. And 4.x asks 3.9, which does
# not support pre-votes, for one in vain before it stands for election without. A broker says of
# each partition that is added to a topic that it was missing, whoever leads. And one that registers
# again, as its features rise, repeats the assignments that it had sent with its earlier epoch.
_DEPENDS_ON_TIME = (
    r"\[Controller(Apis|RegistrationManager)",
    r".*\(EventPerformanceMonitor\)",
)
_HARMLESS = (
    *_DEPENDS_ON_TIME,
    r".*UNKNOWN_SERVER_ERROR in FETCH_SNAPSHOT response",
    r"\[AssignmentsManager .*STALE_BROKER_EPOCH\. Retrying",
    r"\[Broker id=\d+\] Expected partition .* to exist, but it was missing. Creating",
    r"Request OutboundRequest\(.*VoteRequestData.*unsupported version",
)
_JAVA = re.compile(
    rf" FATAL | ERROR (?!{'|'.join(_HARMLESS)})"
    r"|Encountered .*fault"
    r"|Illegal(State|Argument)Exception"
)
_JAVA_ERROR = re.compile(r" (?:FATAL|ERROR) (.*)")
_IN_ANY_RUN = re.compile(rf" (?:FATAL|ERROR) (?!{'|'.join(_DEPENDS_ON_TIME)})(?P<text>[^(]*)")

# What differs between two lines about the same thing: uuids in base64, and numbers.
_CHANGING = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])|\d+(?:\.\d+)*")


def our_errors(lines: Iterable[str]) -> list[str]:
    """Errors in the log of one of our nodes."""
    return [line for line in lines if "Traceback" in line or "level=error" in line]


def java_errors(console: Path) -> list[str]:
    """Errors that a Java node has printed, without those that any restart of a peer causes."""
    return [line for line in _lines(console) if _JAVA.search(line)]


def error_kinds(consoles: Iterable[Path]) -> Counter[str]:
    """How often Java nodes have printed each line of level ERROR or FATAL.

    Without those that any restart of a peer causes. Numbers and uuids are replaced, so that two
    runs of one script can be compared.
    """
    found: Counter[str] = Counter()
    for console in consoles:
        for line in _lines(console):
            if (match := _JAVA_ERROR.search(line)) is not None and _JAVA.search(line):
                found[_CHANGING.sub("#", match[1])] += 1
    return found


def errors_told(consoles: Iterable[Path]) -> set[str]:
    """Which lines of level ERROR or FATAL Java nodes have printed, up to their first bracket,
    those included that are harmless in every run of a script."""
    lines = (line for console in consoles for line in _lines(console))
    found = (_IN_ANY_RUN.search(line) for line in lines)
    return {_CHANGING.sub("#", match["text"]) for match in found if match is not None}


def _lines(console: Path) -> list[str]:
    return console.read_text(errors="replace").splitlines() if console.exists() else []
