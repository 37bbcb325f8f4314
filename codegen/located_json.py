"""JSON with comments, remembering on which line each object and key stands.

Kafka's schema files hold ``//`` comments, which JSON does not have, and an error in a schema must
name the line to fix, which `json` does not know.
"""

from __future__ import annotations

import json
import re
from typing import Any

from codegen.errors import SchemaError

# Kafka's deepest schema has ten levels; reading and planning recurse for each.
DEPTH_MAX = 64

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"[-+0-9.eE]+|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


class LocatedDict(dict[str, Any]):
    """A JSON object with the line it starts on and the line of each key."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def line_of(self, key: str) -> int:
        """Line of a key, or of the object if the key is missing."""
        return self.lines.get(key, self.line)


def parse(text: str, file: str) -> Any:
    """Parse a whole text. Raises: SchemaError with file and line."""
    return _Parser(text, file).document()


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.position = 0
        self.depth = 0

    def document(self) -> Any:
        value = self.value()
        self.blank()
        if self.position < len(self.text):
            raise self.error("unexpected text after the end of the document")
        return value

    def error(self, problem: str) -> SchemaError:
        return SchemaError(problem, file=self.file, line=self.line())

    def line(self) -> int:
        return self.text.count("\n", 0, self.position) + 1

    def blank(self) -> None:
        match = _BLANK.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def peek(self) -> str:
        self.blank()
        return self.text[self.position : self.position + 1]

    def expect(self, char: str, after: str) -> None:
        if self.peek() != char:
            found = self.peek() or "the end of the file"
            raise self.error(f"expected '{char}' {after}, found {found!r}")
        self.position += 1

    def value(self) -> Any:
        char = self.peek()
        if char and char in "{[":
            self.depth += 1
            if self.depth > DEPTH_MAX:
                raise self.error(f"nested deeper than {DEPTH_MAX} levels")
            result = self.object() if char == "{" else self.array()
            self.depth -= 1
            return result
        if char == '"':
            return self.string()
        match = _SCALAR.match(self.text, self.position)
        try:
            scalar = json.loads(match.group() if match else "")
        except ValueError:
            raise self.error(f"expected a value, found {char!r}") from None
        self.position += len(match.group()) if match else 0
        return scalar

    def string(self) -> str:
        match = _STRING.match(self.text, self.position)
        if match is None:
            raise self.error("a string is not closed on its line")
        self.position = match.end()
        return str(json.loads(match.group()))

    def object(self) -> LocatedDict:
        result = LocatedDict(self.line())
        self.expect("{", "to open an object")
        while self.peek() != "}":
            if result:
                self.expect(",", "between two keys")
            line = (self.peek(), self.line())[1]
            if self.peek() != '"':
                raise self.error(f"expected a key in quotes, found {self.peek()!r}")
            key = self.string()
            if key in result:
                raise self.error(f"key {key!r} appears twice in one object")
            self.expect(":", f"after key {key!r}")
            result[key] = self.value()
            result.lines[key] = line
        self.position += 1
        return result

    def array(self) -> list[Any]:
        result: list[Any] = []
        self.expect("[", "to open an array")
        while self.peek() != "]":
            if result:
                self.expect(",", "between two elements")
            result.append(self.value())
        self.position += 1
        return result
