"""Makes two tests of a scenario: it holds as shipped, and fails once a historic bug is put back.

A bug is an edit of the shipped source: so it says exactly what the bug is, and a scenario whose bug
can no longer be put back fails, rather than proving nothing.
"""

from __future__ import annotations
import __future__

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from kraftwire.pieces import Divided
from tests.history.matching import replaced

AS_SHIPPED = "as shipped"
WITH_THE_BUG = "with the bug"


@dataclass(frozen=True)
class Edit:
    """A change of one function. `where` is `module:function` or `module:Class.method`; `old` occurs
    exactly once in its source, whose layout does not matter (`matching`)."""

    where: str
    old: str
    new: str


Bug = tuple[Edit, ...]


@dataclass(frozen=True)
class Known:
    """A historic bug that has a scenario."""

    number: int
    ticket: str
    rules: str
    test: str
    module: str
    bug: Bug


# Every bug with a scenario, by the import of the modules here.
_BUGS: list[Known] = []


def known_bugs() -> list[Known]:
    """Return all bugs with a scenario. Order: by number."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        import_module(f"tests.history.{path.stem}")
    return sorted(set(_BUGS), key=lambda bug: (bug.number, bug.module, bug.test))


def function_at(where: str) -> FunctionType:
    """Return the function that an edit is about: of divided work the one that does the pieces."""
    module, _, path = where.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = inspect.getattr_static(found, name)
        if isinstance(found, property):
            found = found.fget
        if isinstance(found, classmethod | staticmethod):
            found = found.__func__
        if isinstance(found, Divided):
            found = found.in_pieces
    assert isinstance(found, FunctionType), where
    return found


def source_of(function: FunctionType) -> str:
    """Return the source of a function, without its indentation."""
    return textwrap.dedent(inspect.getsource(function))


def _code_of(where: str, function: FunctionType, edits: list[Edit]) -> CodeType:
    """The code of the function after the edits."""
    source = source_of(function)
    for edit in edits:
        source = replaced(source, edit.old, edit.new, where)
    # The globals stay those of the module, because only the code is taken over.
    flags = __future__.annotations.compiler_flag
    code = compile(source, where, "exec", flags, True)
    made = next(
        one
        for one in code.co_consts
        if isinstance(one, CodeType) and one.co_name == function.__name__
    )
    assert made.co_freevars == function.__code__.co_freevars, where
    return made


def put_back(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a bug back while a test runs."""
    for where in dict.fromkeys(edit.where for edit in bug):
        function = function_at(where)
        edits = [edit for edit in bug if edit.where == where]
        monkeypatch.setattr(function, "__code__", _code_of(where, function, edits))


def history(
    number: int,
    ticket: str,
    rules: str,
    *bug: Edit,
    red: str,
    fails_with: type[BaseException] = AssertionError,
) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Make two tests of a scenario.

    `number` is the bug's in the table of this folder's README; `rules` are the rules and invariants
    that forbid it; `red` occurs in the message with which the scenario fails when the bug is back:
    it must fail for the right reason.
    """

    def decorate(scenario: Callable[[], None]) -> Callable[..., None]:
        known = Known(number, ticket, rules, scenario.__name__, scenario.__module__, bug)
        _BUGS.append(known)

        @pytest.mark.parametrize("code", [AS_SHIPPED, WITH_THE_BUG])
        @wraps(scenario)
        def test(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
            if code == AS_SHIPPED:
                scenario()
                return
            put_back(bug, monkeypatch)
            with pytest.raises(fails_with, match=re.escape(red)):
                scenario()

        # Otherwise pytest takes the scenario's parameters, none, for those of the test.
        del test.__wrapped__
        return test

    return decorate
