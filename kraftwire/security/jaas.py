"""JAAS texts: which login module, and its options, as `sasl.jaas.config` gives them.

Rule SEC-S60. Kafka's `JaasConfig` stands on Java's `StreamTokenizer`, whose habits decide what a
text means: a lone ``/`` begins a comment, what begins with a digit is a number, and quoted text
ends at the end of its line.

Errors name a position and what was expected there, never what was found: it may be a password.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from kraftwire.errors import UsageError

# Kafka refuses these, since they let whoever writes the text make the process call any server.
_FORBIDDEN = (
    "com.sun.security.auth.module.JndiLoginModule",
    "com.sun.security.auth.module.LdapLoginModule",
)
_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LINE_ENDS = "\r\n"
_OCTAL = "01234567"


class JaasError(UsageError):
    """A JAAS text that cannot be used; the message never quotes an option's value."""


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module with its options; `flag` is in lower case. Its repr hides the options."""

    module: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """The class without its package, by which people know it."""
        return self.module.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, a quoted text, a number, or one character; `start` counts characters from 0."""

    kind: str
    text: str
    start: int


_QUOTES = (
    "a value needs quotes if it begins with a digit, or has other characters than letters, digits, "
    "'.', '-', '_' and '$'; a '/' outside quotes begins a comment"
)
_WORD, _NUMBER, _END = "word", "number", "end of the text"
_QUOTED, _SINGLE = "quoted text", "text in single quotes"
_TEXTS = (_WORD, _QUOTED, _SINGLE)


def parse_entry(text: str) -> JaasEntry:
    """Read the value of `sasl.jaas.config`, which has exactly one entry.

    Raises: JaasError on everything that `JaasContext` refuses, and on an option without a name.
    """
    tokens = _TokenCursor(text)
    entries = []
    while tokens.peek.kind != _END:
        entries.append(_read_entry(tokens))
    if len(entries) != 1:
        raise JaasError(f"expected one login module, found {len(entries) or 'none'}")
    module = entries[0].module.strip()
    if module in _FORBIDDEN:
        raise JaasError(f"{module} is not allowed, as in Kafka")
    return entries[0]


def _read_entry(tokens: _TokenCursor) -> JaasEntry:
    module = tokens.text("a login module's class")
    if tokens.peek.kind in ("{", _END):
        around = "an entry has neither quotes nor KafkaClient { } around it"
        raise JaasError(f"expected a flag after the login module; {around}")
    flag = _flag(tokens)
    try:
        options = {}
        while tokens.peek.kind != ";":
            key = tokens.text("the name of an option, or ';'")
            tokens.character("=")
            options[key] = tokens.text("a value")
        tokens.character(";")
    except JaasError as error:
        raise JaasError(f"{error}; {_QUOTES}") from None
    return JaasEntry(module, flag, options)


def _flag(tokens: _TokenCursor) -> str:
    start = tokens.peek.start
    flag = tokens.text("a flag").lower()
    if flag not in _FLAGS:
        raise JaasError(f"at character {start}: expected one of {', '.join(_FLAGS)}")
    return flag


class _TokenCursor:
    """The tokens of a text, one ahead."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self.peek = next(self._tokens)

    def text(self, expected: str) -> str:
        """Return the next word or quoted text. Raises: JaasError if it is something else."""
        if self.peek.kind not in _TEXTS:
            raise self._error(expected)
        return self._advance()

    def character(self, expected: str) -> None:
        """Pass over a character. Raises: JaasError if it is not there."""
        if self.peek.kind != expected:
            raise self._error(f"'{expected}'")
        self._advance()

    def _advance(self) -> str:
        text = self.peek.text
        if self.peek.kind != _END:
            self.peek = next(self._tokens)
        return text

    def _error(self, expected: str) -> JaasError:
        return JaasError(
            f"at character {self.peek.start}: expected {expected}, found {self._kind_found()}"
        )

    def _kind_found(self) -> str:
        is_named = self.peek.kind in (*_TEXTS, _NUMBER, _END)
        return self.peek.kind if is_named else f"{self.peek.kind!r}"


def _tokens(text: str) -> Iterator[_Token]:
    """Cut a text as `StreamTokenizer` does; the end is a token as well."""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "/":
            at = _after_comment(text, at)
        elif char <= " ":
            at += 1
        elif char in "\"'":
            token, at = _quoted(text, at)
            yield token
        elif char.isascii() and (char.isdigit() or char in ".-"):
            token, at = _number(text, at)
            yield token
        elif _is_letter(char):
            word = "".join(takewhile(_is_in_word, text[at:]))
            yield _Token(_WORD, word, at)
            at += len(word)
        else:
            yield _Token(char, char, at)
            at += 1
    yield _Token(_END, "", len(text))


def _is_letter(char: str) -> bool:
    return (char.isascii() and char.isalpha()) or char >= "\xa0" or char in "$-_"


def _is_in_word(char: str) -> bool:
    return _is_letter(char) or char in "0123456789.-"


def _after_comment(text: str, at: int) -> int:
    """Return the position after a comment; a single slash begins one, too."""
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    ends = [end for end in (text.find(char, at) for char in _LINE_ENDS) if end >= 0]
    return min(ends, default=len(text))


def _number(text: str, at: int) -> tuple[_Token, int]:
    """Read a number, or the character ``-`` if no number follows it."""
    end = at + 1
    if text[at] == "-" and text[end : end + 1] not in tuple(".0123456789"):
        return _Token("-", "-", at), end
    has_point = text[at] == "."
    while end < len(text) and (text[end] in "0123456789" or (text[end] == "." and not has_point)):
        has_point = has_point or text[end] == "."
        end += 1
    return _Token(_NUMBER, "", at), end


def _quoted(text: str, start: int) -> tuple[_Token, int]:
    """Read quoted text with C's escapes; like Java's, it ends at the line's end at the latest."""
    quote, at = text[start], start + 1
    out = []
    while at < len(text) and text[at] != quote and text[at] not in _LINE_ENDS:
        if text[at] == "\\":
            char, at = _escape(text, at + 1)
            out.append(char)
        else:
            out.append(text[at])
            at += 1
    is_closed = at < len(text) and text[at] == quote
    kind = _QUOTED if quote == '"' else _SINGLE
    return _Token(kind, "".join(out), start), at + is_closed


def _escape(text: str, at: int) -> tuple[str, int]:
    """Read what follows a backslash: up to three octal digits, or one character."""
    if at >= len(text):
        raise JaasError(f"at character {at}: a backslash ends the text")
    if text[at] not in _OCTAL:
        return _ESCAPES.get(text[at], text[at]), at + 1
    longest = 3 if text[at] <= "3" else 2
    digits = "".join(takewhile(lambda c: c in _OCTAL, text[at : at + longest]))
    return chr(int(digits, 8)), at + len(digits)
