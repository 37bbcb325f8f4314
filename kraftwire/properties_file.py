"""Java's properties files: reading them with line numbers, and writing their escapes.

Kafka's server.properties and meta.properties are such files. Java reads the bytes as ISO 8859-1;
other characters are escaped as ``\\uXXXX``.

Source: the file format that `java.util.Properties` documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraftwire.errors import UsageError
from kraftwire.small_files import read_small_file


@dataclass(frozen=True, slots=True)
class Property:
    """One entry. Units: `line` counts from 1 and is the line of the key. `origin` names where it is
    from, if not from the file of the others."""

    key: str
    value: str
    line: int
    origin: str = ""


def read_properties(path: str) -> list[Property]:
    """Return all entries of a file, as `parse_properties`.

    Raises: OSError if it cannot be read, or is longer than any properties file; UsageError if it
    begins with a byte order mark, or has values that only providers of Java's know.
    """
    content = read_small_file(path)
    if content.startswith(_BYTE_ORDER_MARK):
        problem = "begins with a byte order mark, which Java takes for a part of the first key"
        raise UsageError(f"{path}:1: {problem}: save the file without it")
    entries = parse_properties(content.decode("latin-1"), path)
    _check_providers(entries, path)
    return entries


def _check_providers(entries: Iterable[Property], path: str) -> None:
    """Refuse ``${name:...}`` of a provider: taken as it stands, it would be a password."""
    names = [part for one in entries if one.key == _PROVIDERS for part in one.value.split(",")]
    starts = tuple(f"${{{name.strip()}:" for name in names)
    for one in entries:
        if any(start in one.value for start in starts):
            problem = f"{one.key}: {_PROVIDERS} are Java's: write the value in place of ${{...}}"
            raise UsageError(f"{path}:{one.line}: {problem}")


def suggestion(key: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown key that is like a known one; empty if none
    is."""
    # Only mistakes need it, and every command that decodes imports this file.
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


def parse_properties(text: str, path: str) -> list[Property]:
    """Return all entries in file order, including repeated keys (in Java the last one wins).

    `path` is only for messages.
    Raises: UsageError for a ``\\u`` escape without four hex digits.
    """
    entries = []
    for number, line in _logical_lines(text):
        match = _ENTRY.fullmatch(line)
        if match is None:  # the pattern takes any text; this is for the type checker
            continue
        try:
            entries.append(Property(_unescape(match[1]), _unescape(match[2]), number))
        except _BadEscape as error:
            problem = f"{str(error)!r} is not an escape (\\u takes four hex digits)"
            raise UsageError(f"{path}:{number}: {problem}") from error
    return entries


def escape_property(text: str, *, is_key: bool = False) -> str:
    """Escape a key or value as `Properties.store` does: all spaces in keys, leading ones in
    values."""
    escaped = _SPECIAL.sub(_escape, text)
    if is_key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


class _BadEscape(Exception):
    """An invalid escape."""


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PROVIDERS = "config.providers"
# Line ends are \n, \r and \r\n only, so str.splitlines would see too many.
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANKS = " \t\f"
# The key ends at the first unescaped separator: a space, = or :. Spaces around one = or : belong to
# neither side.
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u.{0,4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPECIAL = re.compile(r"[\\=:#!]|[^ -~]")
_NAMES = {control: name for name, control in _CONTROLS.items()}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with an entry, continuation lines joined, each with its first line number."""
    pending = ""
    first = 0
    for number, raw in enumerate(_LINE_END.split(text), 1):
        line = raw.lstrip(_BLANKS)
        # Java recognizes a comment only at the start of an entry.
        if not pending and line[:1] in ("#", "!"):
            continue
        if not pending:
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        if pending or line:
            yield first, pending + line
        pending = ""
    if pending:
        yield first, pending


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] != "u":
            return _CONTROLS.get(code, code)
        if len(code) != 5 or not _HEX.fullmatch(code[1:]):
            raise _BadEscape(match[0])
        return chr(int(code[1:], 16))

    return _ESCAPE.sub(plain, text)


_HEX = re.compile("[0-9a-fA-F]{4}")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _NAMES:
        return "\\" + _NAMES[character]
    if " " <= character <= "~":
        return "\\" + character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04X}" for i in range(0, len(units), 2))
