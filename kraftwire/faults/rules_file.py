"""Rules in a file, JSON or TOML: a list `rules` of rows, checked with the line of each mistake."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.faults.rows import new_rule
from kraftwire.faults.rules import FaultRule
from kraftwire.faults.selectors import Offered, RowError
from kraftwire.small_files import read_small_file

_RULES = "rules"
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_TOML_ROW = re.compile(r"^[ \t]*\[\[[ \t]*[\"']?rules[\"']?[ \t]*\]\]", re.MULTILINE)
_JSON_RULES = re.compile(r"\s*\{\s*\"rules\"\s*:\s*\[", re.ASCII)
_BETWEEN = re.compile(r"[\s,]*")
# Python converts no number of more digits.
_LONG_NUMBER = re.compile(r"[0-9_]{4301}")


class _Row(NamedTuple):
    """A row, and where it stands in the text."""

    values: Any
    start: int
    end: int


def read_rules(path: str | Path, offered: Offered = messages.API_VERSIONS) -> list[FaultRule]:
    """Read the rules of a file, in the order in which they are to be added.

    Raises: UsageError with file and line for a mistake; OSError.
    """
    name = str(path)
    text = _decoded(name, read_small_file(path))
    if name.endswith(".json"):
        rows = list(_json_rows(name, text))
    elif name.endswith(".toml"):
        rows = list(_toml_rows(name, text))
    else:
        raise UsageError(f"{name}: a file of rules ends with .json or .toml")
    return [_rule(name, text, row, offered) for row in rows]


def parse_rule(name: str, data: bytes, offered: Offered = messages.API_VERSIONS) -> FaultRule:
    """Return the rule of one row in JSON.

    Raises: UsageError with the name and the line for a mistake.
    """
    text = _decoded(name, data)
    return _rule(name, text, _Row(_json(name, text), 0, len(text)), offered)


def _decoded(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: it is no UTF-8: {error.reason} at byte {error.start}") from None


def _rule(name: str, text: str, row: _Row, offered: Offered) -> FaultRule:
    line = _line(text, row.start)
    if not isinstance(row.values, Mapping):
        raise UsageError(f"{name}:{line}: expected a rule, found {row.values!r:.60}")
    try:
        return new_rule(row.values, offered)
    except RowError as error:
        found = re.compile(rf"[\"']?{re.escape(error.key)}[\"']?\s*[:=]").search(
            text, row.start, row.end
        )
        if error.key and found is not None:
            line = _line(text, found.start())
        raise UsageError(f"{name}:{line}: {error}") from None


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise UsageError(f"{name}:{error.lineno}: {error.msg}") from None
    except _TwiceError as error:
        places = [each.start() for each in re.finditer(rf'"{re.escape(error.key)}"\s*:', text)]
        line = _line(text, places[-1]) if places else 1
        raise UsageError(f"{name}:{line}: {error.key} is there twice") from None
    except RecursionError:
        raise UsageError(f"{name}: it is nested too deeply") from None
    except ValueError:
        raise _long_number(name, text) from None


def _json_rows(name: str, text: str) -> Iterator[_Row]:
    whole = _json(name, text)
    _check_shape(name, whole)
    decoder = json.JSONDecoder()
    begin = _JSON_RULES.match(text)
    position = begin.end() if begin is not None else 0
    for _ in whole[_RULES]:
        between = _BETWEEN.match(text, position)
        start = between.end() if between is not None else position
        values, position = decoder.raw_decode(text, start)
        yield _Row(values, start, position)


class _TwiceError(Exception):
    """An object has a key twice, and only one of the values would count."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _TwiceError(key)
        found[key] = value
    return found


def _toml_rows(name: str, text: str) -> Iterator[_Row]:
    try:
        whole = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = _TOML_LINE.search(str(error))
        place = f"{name}:{found[1]}" if found else name
        raise UsageError(f"{place}: {_TOML_LINE.sub('', str(error)).strip()}") from None
    except ValueError:
        raise _long_number(name, text) from None
    _check_shape(name, whole)
    starts = [each.start() for each in _TOML_ROW.finditer(text)]
    rows = whole[_RULES]
    if len(starts) != len(rows):
        starts = [0] * len(rows)  # as inline tables, which are all in one place
    for values, start, end in zip(rows, starts, [*starts[1:], len(text)], strict=True):
        yield _Row(values, start, end if end > start else len(text))


def _long_number(name: str, text: str) -> UsageError:
    found = _LONG_NUMBER.search(text)
    line = _line(text, found.start()) if found is not None else 1
    return UsageError(f"{name}:{line}: expected a number, found more than 4300 digits")


def _check_shape(name: str, whole: Any) -> None:
    if not isinstance(whole, dict) or not isinstance(whole.get(_RULES), list):
        raise UsageError(f"{name}:1: expected a list {_RULES}, found {whole!r:.60}")
    others = [key for key in whole if key != _RULES]
    if others:
        raise UsageError(f"{name}:1: expected {_RULES} alone, found {others[0]!r}")
