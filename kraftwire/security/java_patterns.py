"""Patterns and replacements of Java's `java.util.regex`, as far as Python's mean the same.

What Python would read in another way is refused, so that a rule never lets in whom Kafka would not.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kraftwire.errors import UsageError

# The parts of a pattern outside brackets; everything else means something else to Python.
_PIECES = re.compile(
    r"(?P<escape>\\[\\.^$|?*+()\[\]{}/,=\-\"# <>;@:&_!%'~])"
    r"|(?P<kind>\\[dDwWsStnrf])"
    r"|(?P<set>\[\^?(?:\\[\\.^$|?*+()\[\]{}/,=\-dDwWsStnrf ]|[^\[\]\\&^])+\])"
    r"|(?P<name>\(\?<(?P<label>[a-zA-Z][a-zA-Z0-9]*)>)"
    r"|(?P<group>\((?!\?)|\(\?(?::|=|!|<=|<!))"
    r"|(?P<count>\{[0-9]{1,4}(?:,[0-9]{0,4})?\}[?+]?)"
    r"|(?P<any>\.)|(?P<end>\$)"
    r"|(?P<plain>[*+?][?+]?|[|)^]|[^\\\[(){*+?|^$.]+?)",
    re.DOTALL,
)
_FLAGS = re.compile(r"\(\?i\)")
# Java's line ends; Python knows only one of them.
_ANY = "[^\\n\\r\\x85\\u2028\\u2029]"
_END = "(?=(?:\\r\\n|[\\n\\r\\x85\\u2028\\u2029])?\\Z)"
CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}
"""What the letter after a rule does to a name."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Translate a pattern of Java's. Raises: UsageError where Python's means something else."""
    at, out, flags = 0, [], re.ASCII
    if _FLAGS.match(pattern):
        at, flags = len("(?i)"), re.ASCII | re.IGNORECASE
    while at < len(pattern):
        piece = _PIECES.match(pattern, at)
        if piece is None:
            raise UsageError(
                f"pattern {pattern!r}: at character {at} stands what only Java's patterns have"
            )
        out.append(_translated(piece))
        at = piece.end()
    try:
        return re.compile("".join(out), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"pattern {pattern!r}: {error}") from None


def _translated(piece: re.Match[str]) -> str:
    if piece["any"]:
        return _ANY
    if piece["end"]:
        return _END
    if piece["name"]:
        return f"(?P<{piece['label']}>"
    return piece[0]


class Replacement:
    """What takes the place of each match of a pattern, as `Matcher.appendReplacement` reads it.

    Raises: UsageError for a reference to a group that does not exist.
    """

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self._parts = _parts(text, pattern)

    def applied(self, text: str, count: int = 0) -> str:
        """Return a text with so many matches replaced, 0 for all of them."""
        return self.pattern.sub(self._replaced, text, count=count)

    def _replaced(self, match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self._parts)


def _parts(text: str, pattern: re.Pattern[str]) -> tuple[str | int, ...]:
    """Read a replacement: texts and numbers of groups."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            parts.append(text[at + 1])
            at += 2
        elif text[at] == "$":
            group, at = _reference(text, at + 1, pattern)
            parts.append(group)
        elif text[at] == "\\":
            raise UsageError(f"replacement {text!r} ends with a backslash")
        else:
            parts.append(text[at])
            at += 1
    return tuple(parts)


def _reference(text: str, at: int, pattern: re.Pattern[str]) -> tuple[int, int]:
    """Read what follows a dollar: as many digits as still name a group, or a name in braces."""
    named = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}").match(text, at)
    if named is not None and named[1] in pattern.groupindex:
        return pattern.groupindex[named[1]], named.end()
    digits = re.compile("[0-9]{1,9}").match(text, at)
    if digits is None or int(digits[0][0]) > pattern.groups:
        raise UsageError(f"replacement {text!r}: $ does not name a group of the pattern")
    end = at + 1
    while end < digits.end() and int(text[at : end + 1]) <= pattern.groups:
        end += 1
    return int(text[at:end]), end
