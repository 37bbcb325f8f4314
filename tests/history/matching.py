"""Finds code in a function by its tokens and replaces it.

How the function is laid out does not matter: line breaks, comments, quotes, trailing commas and
parentheses that only group. Nor does what surrounds the code.
"""

from __future__ import annotations

import ast
import io
import keyword
import textwrap
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_OPEN, _CLOSED = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class _Token:
    """A token: what it means, and where it is. `counts` is False for one that only groups."""

    text: str
    start: int
    end: int
    counts: bool = True


class NoMatchError(AssertionError):
    """The code is not there exactly once."""


def replaced(source: str, old: str, new: str, where: str) -> str:
    """Return a function's source with `new` in the place of `old`.

    The further lines of `new` are indented as the line where it begins. `where` is for the error.
    Raises: NoMatchError.
    """
    tokens, wanted = _tokens(source), _tokens(textwrap.dedent(old).strip())
    found = list(_matches(tokens, [one.text for one in wanted if one.counts]))
    if len(found) != 1:
        raise NoMatchError(f"{where} has {len(found)} times {old!r}: this edit is out of date")
    first, last = _wrapped(tokens, *_balanced(tokens, *found[0]), _wraps(wanted))
    start, end = tokens[first].start, tokens[last].end
    line = source[source.rfind("\n", 0, start) + 1 : start]
    indent = line[: len(line) - len(line.lstrip())]
    lines = textwrap.dedent(new).strip().replace("\n", "\n" + indent)
    return source[:start] + lines + source[end:]


def _tokens(source: str) -> list[_Token]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        if one.type not in _LAYOUT:
            (row, column), (end_row, end_column) = one.start, one.end
            place = starts[row - 1] + column, starts[end_row - 1] + end_column
            found.append(_Token(_meaning(one), *place))
    groups = _groups(found)
    return [
        _Token(one.text, one.start, one.end, counts=place not in groups)
        for place, one in enumerate(found)
    ]


def _meaning(token: tokenize.TokenInfo) -> str:
    """Return a text that is equal for tokens of the same meaning."""
    if token.type in (tokenize.STRING, tokenize.NUMBER):
        return ast.unparse(ast.parse(token.string, mode="eval"))
    if tokenize.tok_name[token.type] in ("FSTRING_START", "FSTRING_END"):
        return token.string.replace('"', "'")
    return token.string


def _groups(tokens: Sequence[_Token]) -> set[int]:
    """Return the places of parentheses that only group, and of trailing commas."""
    found, opened = set[int](), list[int]()
    for place, one in enumerate(tokens):
        if one.text in _OPEN:
            opened.append(place)
        elif one.text in _CLOSED:
            begin = opened.pop()
            if one.text == ")" and place > begin + 1 and not _is_called(tokens, begin):
                found |= {begin, place}
            if tokens[place - 1].text == ",":
                found.add(place - 1)
    return found


def _is_called(tokens: Sequence[_Token], place: int) -> bool:
    """Return whether a parenthesis follows what can be called or defined."""
    before = tokens[place - 1].text if place else ""
    is_name = before.isidentifier() and not keyword.iskeyword(before)
    return is_name or (bool(before) and before[-1] in ")]}'\"")


def _matches(tokens: Sequence[_Token], wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of the first and last token of each match."""
    places = [place for place, one in enumerate(tokens) if one.counts]
    count = len(wanted)
    return [
        (places[at], places[at + count - 1])
        for at in range(len(places) - count + 1)
        if all(tokens[places[at + k]].text == wanted[k] for k in range(count))
    ]


def _balanced(tokens: Sequence[_Token], first: int, last: int) -> tuple[int, int]:
    """Extend a match over the grouping parentheses whose other one is in it."""
    depth = least = 0
    for one in tokens[first : last + 1]:
        depth += (one.text in _OPEN) - (one.text in _CLOSED)
        least = min(least, depth)
    for _ in range(least, 0):
        first -= 1
        assert tokens[first].text == "("
    for _ in range(depth - least):
        last += 2 if tokens[last + 1].text == "," else 1
        assert tokens[last].text == ")"
    return first, last


def _wraps(wanted: Sequence[_Token]) -> int:
    """Return how many pairs of grouping parentheses the code is in."""
    count = 0
    while not wanted[count].counts and not wanted[-count - 1].counts:
        count += 1
    return count


def _wrapped(tokens: Sequence[_Token], first: int, last: int, wraps: int) -> tuple[int, int]:
    """Extend a match over this many pairs of grouping parentheses around it, if there are any."""
    for _ in range(wraps):
        end = last + (2 if tokens[last + 1].text == "," else 1)
        is_grouped = first > 0 and not tokens[first - 1].counts and tokens[first - 1].text == "("
        if not is_grouped or tokens[end].text != ")":
            break
        first, last = first - 1, end
    return first, last
