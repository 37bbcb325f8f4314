"""Makes text safe to print: nothing that a peer or a file wrote can control a terminal.

All output for people goes through these functions. Characters that control a terminal, or hide or
reorder the text around them, are escaped as in JSON, so that JSON stays the same JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Controls (C0, DEL, C1), line and paragraph separators, surrogates, and all format characters:
# those that change the direction of text, and invisible ones.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)
# The start of a formula, also in the wide form of East Asian keyboards, where a cell begins: a
# spreadsheet may take a semicolon for the end of one. A number of a column of numbers is no text.
_FORMULA = re.compile("(^|;)(?=[\\s\"]*[=+@\uff1d\uff0b\uff0d\uff20-])")
_PLAIN = bytes(range(0x20, 0x7F))
_PLAIN_LINES = _PLAIN + b"\n"
# The colours of this program, and the end of one.
_COLOUR = re.compile("(\x1b\\[(?:0|1|2|4|31|32|33)m)")


def printable(text: str) -> str:
    """Return a line with every unsafe character, line ends included, escaped as ``\\uXXXX``.

    Characters beyond U+FFFF are two escapes, as in JSON; text without such characters is returned
    as it is.
    """
    # Nearly every text is plain ASCII, and this takes a tenth of the time of a search.
    if text.isascii() and not text.encode().translate(None, _PLAIN):
        return text
    return _UNSAFE.sub(_escaped, text)


def spreadsheet_cell(text: str) -> str:
    """Return a printable text that no spreadsheet takes for a formula: one gets a quote before it.
    """
    return _FORMULA.sub(r"\1'", printable(text))


def printable_lines(lines: Sequence[str], *, is_painted: bool = False) -> str:
    """Lines, each printable and with its end; those of `printable_painted` if `is_painted`."""
    text = "\n".join([*lines, ""])
    # Only the line ends remain, one for each line: no line has anything to escape.
    if text.isascii() and text.encode().translate(None, _PLAIN) == b"\n" * len(lines):
        return text
    one = printable_painted if is_painted else printable
    return "".join(one(line) + "\n" for line in lines)


def printable_text(text: str, *, is_painted: bool = False) -> str:
    """Return a text of whole lines with each line made printable, as by `printable_lines`.

    Line ends in the text stay. Costs little if everything is printable already.
    """
    if text.isascii() and not text.encode().translate(None, _PLAIN_LINES):
        return text
    return printable_lines(text.split("\n")[:-1], is_painted=is_painted)


def printable_painted(line: str) -> str:
    """Return a line made printable, except for this program's own colours.

    Code that assembles such a line calls `printable` for every part that it did not write itself.
    """
    if "\x1b" not in line:
        return printable(line)
    return "".join(
        part if index % 2 else printable(part) for index, part in enumerate(_COLOUR.split(line))
    )


def printable_pieces(pieces: Iterable[tuple[str, bool]]) -> str:
    """Join pieces of text, each made printable unless marked True as the user's own."""
    return "".join(text if is_own else printable(text) for text, is_own in pieces)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
