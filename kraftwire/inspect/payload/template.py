"""Templates in the format of kcat's ``-f``, whose letters stand for parts of a record.

Source: kcat's `format.c`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kraftwire.errors import UsageError
from kraftwire.inspect.payload.lines import plain_text
from kraftwire.inspect.payload.rows import Row

__all__ = ["LETTERS", "Template"]

Part = Callable[[Row], str]

_TOKEN = re.compile(r"%(?P<letter>.)|\\(?:x(?P<hex>[0-9a-fA-F]{2})|(?P<escape>.))", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "0": "\0"}


def _headers(row: Row) -> str:
    return ",".join(
        f"{name}={'NULL' if value is None else plain_text(value)}" for name, value in row.headers
    )


def _size(value: bytes | str | None) -> str:
    return "-1" if value is None else str(len(value)) if isinstance(value, bytes) else ""


LETTERS: dict[str, Part] = {
    "t": lambda row: row.topic or "",
    "p": lambda row: "" if row.partition is None else str(row.partition),
    "o": lambda row: "" if row.offset is None else str(row.offset),
    "k": lambda row: plain_text(row.key),
    "K": lambda row: _size(row.key),
    "s": lambda row: plain_text(row.value),
    "S": lambda row: _size(row.value),
    "h": _headers,
    "T": lambda row: str(row.timestamp),
    "%": lambda _row: "%",
}


class Template:
    """A parsed template."""

    def __init__(self, text: str) -> None:
        """Parse a template. Raises: UsageError for an unknown letter."""
        self._parts: list[str | Part] = []
        position = 0
        for match in _TOKEN.finditer(text):
            self._add(text[position : match.start()])
            self._parts.append(_part(match))
            position = match.end()
        rest = text[position:]
        if rest.endswith("%"):
            raise UsageError("the template ends with a lone %")
        self._add(rest)
        last = self._parts[-1] if self._parts else ""
        if not (isinstance(last, str) and last.endswith("\n")):
            self._parts.append("\n")

    def _add(self, text: str) -> None:
        if text:
            self._parts.append(text)

    def pieces(self, row: Row) -> list[tuple[str, bool]]:
        """Return the pieces of a record's text, each with whether it is text of the template."""
        return [
            (part, True) if isinstance(part, str) else (part(row), False) for part in self._parts
        ]


def _part(match: re.Match[str]) -> str | Part:
    letter, digits, escape = match["letter"], match["hex"], match["escape"]
    if digits:
        return chr(int(digits, 16))
    if escape:
        return _ESCAPES.get(escape, escape)
    if letter in LETTERS:
        return LETTERS[letter]
    known = " ".join(f"%{each}" for each in LETTERS)
    raise UsageError(f"the template has %{letter}, which stands for nothing; there are {known}")
