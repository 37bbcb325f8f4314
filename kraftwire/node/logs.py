"""The node's log: one line of `key=value` pairs per event, on standard error.

A rate limit applies to lines that peers can provoke. A line has no secrets, and a peer's text is
quoted.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

from kraftwire.printable import printable

LOGGER = logging.getLogger("kraftwire.node")
# Repairs of the log when it was opened: that package has no notion of node or event.
_STORAGE = logging.getLogger("kraftwire.log")

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@+,[]*")


def set_up(level: str, node_id: int) -> None:
    """Write this process's log lines to standard error, each with the node's id.

    Messages of the log package get the event `storage`.
    """
    for logger, formatter in ((LOGGER, _Formatter(node_id)), (_STORAGE, _OfStorage(node_id))):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(formatter)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())


def log(level: str, event: str, **fields: object) -> None:
    """Write a line: the event and its fields. `level` is as in `logging`."""
    number = _LEVELS[level]
    if LOGGER.isEnabledFor(number):
        LOGGER.log(number, "%s", event, extra={"fields": fields})


def log_fault(event: str, fault: BaseException, **fields: object) -> None:
    """Write a line about a bug: the exception, and the line of code that raised it."""
    trace = fault.__traceback__
    place = ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    log("error", event, **fields, fault=repr(fault), at=place)


def quote(value: object) -> str:
    """Format a value: bare if it is a simple word, else in quotation marks."""
    text = str(value)
    if text and _PLAIN.issuperset(text):
        return text
    escaped = text.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{escaped}"'


class RateLimit:
    """Lets one line of each kind through per interval, and counts the others.

    Units: `interval` in seconds of the clock.
    """

    def __init__(self, clock: Callable[[], float], interval: float = 10.0) -> None:
        self._clock = clock
        self._interval = interval
        self._last: dict[str, float] = {}
        self._held_back: dict[str, int] = {}

    def log(self, kind: str, event: str, level: str = "warning", **fields: object) -> None:
        """Write a line unless one of this kind was written within the interval.

        Kinds come from a small fixed set.
        """
        now = self._clock()
        last = self._last.get(kind)
        if last is not None and now - last < self._interval:
            self._held_back[kind] = self._held_back.get(kind, 0) + 1
            return
        self._last[kind] = now
        held_back = self._held_back.pop(kind, 0)
        if held_back:
            fields["held_back"] = held_back
        log(level, event, **fields)


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class _Formatter(logging.Formatter):
    """Time, level, node, event, then the fields in the order they were given."""

    def __init__(self, node_id: int) -> None:
        super().__init__()
        self._node_id = node_id

    def format(self, record: logging.LogRecord) -> str:
        event, fields = self._facts(record)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = (
            f"{moment}.{int(record.msecs):03d}Z level={record.levelname.lower()} "
            f"node={self._node_id} event={quote(event)}"
        )
        facts = (f"{name}={quote(value)}" for name, value in fields.items())
        return printable(" ".join([head, *facts]))

    def _facts(self, record: logging.LogRecord) -> tuple[str, dict[str, object]]:
        """Return the event and its fields."""
        return record.getMessage(), getattr(record, "fields", {})


class _OfStorage(_Formatter):
    """Formats lines of the log package, which are plain text."""

    def _facts(self, record: logging.LogRecord) -> tuple[str, dict[str, object]]:
        return "storage", {"text": record.getMessage()}
