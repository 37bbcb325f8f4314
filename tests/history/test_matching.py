"""Edits of the shipped source still apply after other edits of the same function."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable
from functools import cache

import pytest

from tests.history.matching import NoMatchError, replaced
from tests.history.putting_back import Edit, function_at, known_bugs, source_of
from tests.mutants.catalogue import ALL


def _edits() -> list[Edit]:
    """All edits of the catalogue and of the historic bugs."""
    bugs = [*(mutant.bug for mutant in ALL), *(known.bug for known in known_bugs())]
    return [edit for bug in bugs for edit in bug]


@cache
def _source(edit: Edit) -> str:
    return source_of(function_at(edit.where))


# ---- other edits ---------------------------------------------------------------------------------


def _rewritten(source: str, _edit: Edit) -> str:
    """Other line breaks and quotes, and neither comments nor needless parentheses."""
    return ast.unparse(ast.parse(source))


def _spread(source: str, _edit: Edit) -> str:
    """A comment and a line break after each bracket and each comma in brackets."""
    lines, depth, found = source.splitlines(keepends=True), 0, list[tuple[int, int]]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if depth and token.string in "([{,":
                found.append(token.end)
    for row, column in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}  # a comment (\n{line[column:]}"
    return "".join(lines)


class _Names(ast.NodeTransformer):
    """Renames the parameters and variables that are not in the code of an edit."""

    def __init__(self, tree: ast.AST, edit: Edit) -> None:
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self._own = own - set(re.findall(r"\w+", f"{edit.old} {edit.new}"))

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self._own:
            node.id = f"other_{node.id}"
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        self.generic_visit(node)
        if node.arg in self._own:
            node.arg = f"other_{node.arg}"
        return node


def _renamed(source: str, edit: Edit) -> str:
    """Other names of neighbours."""
    tree = ast.parse(source)
    return ast.unparse(_Names(tree, edit).visit(tree))


_STATEMENT = "new_statement(of=[some, code])"


def _is_if(block: list[ast.stmt]) -> bool:
    return len(block) == 1 and isinstance(block[0], ast.If)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _surrounded(source: str, _edit: Edit) -> str:
    """Further statements before and after each statement."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            is_elif = name == "orelse" and isinstance(block, list) and _is_if(block)
            if isinstance(block, list) and block and node is not tree and not is_elif:
                more = [one for old in block for one in (old, *ast.parse(_STATEMENT).body)]
                first = [] if _is_docstring(block[0]) else ast.parse(_STATEMENT).body
                setattr(node, name, [*first, *more])
    return ast.unparse(tree)


@cache
def _meaning(source: str) -> list[str]:
    """Return the code without layout and without what `_surrounded` adds."""
    lines = ast.unparse(ast.parse(source)).splitlines()
    return [line for line in lines if line.strip() != _STATEMENT]


@cache
def _after(edit: Edit) -> list[str]:
    """The meaning of a function after an edit alone."""
    return _meaning(replaced(_source(edit), edit.old, edit.new, edit.where))


@pytest.mark.parametrize("other", [_rewritten, _spread, _surrounded])
def test_an_edit_does_the_same_after_another_edit(other: Callable[[str, Edit], str]) -> None:
    """Layout, comments and the statements around it do not matter."""
    for edit in _edits():
        source = _source(edit)
        changed = other(source, edit)
        assert changed != source
        assert _meaning(changed) == _meaning(source)
        found = replaced(changed, edit.old, edit.new, edit.where)
        assert _meaning(found) == _after(edit)
        assert _meaning(found) != _meaning(source), edit


def test_an_edit_applies_after_its_neighbours_are_renamed() -> None:
    """Only the names in its own code matter."""
    for edit in _edits():
        source = _renamed(_source(edit), edit)
        assert _meaning(replaced(source, edit.old, edit.new, edit.where)) != _meaning(source)


# ---- what is found -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "old", "new", "expected"),
    [
        ("x = f(\n    a,  # why\n    b,\n)", "f(a, b)", "g(a)", "x = g(a)"),
        ("if (\n    a\n    and b\n):\n    pass", "if a and b:", "if a:", "if a:\n    pass"),
        ("if (a and b):\n    pass", "a and b", "a", "if (a):\n    pass"),
        ("x = (a or b) and c", "(a or b) and c", "c", "x = c"),
        ("x = [(a, b), (c, d)]", "(c, d)", "*()", "x = [(a, b), *()]"),
        ("return a, b", "return (a, b)", "return b", "return b"),
        ("x = f('a', 20_000)", 'f("a", 20000)', "f()", "x = f()"),
        ("if a:\n    b()\n    c()", "b()", "b()\nd()", "if a:\n    b()\n    d()\n    c()"),
    ],
)
def test_code_is_found_whatever_its_layout(
    source: str, old: str, new: str, expected: str
) -> None:
    """Its parentheses go with it, and the lines that replace it are indented as it was."""
    assert replaced(source, old, new, "f") == expected


@pytest.mark.parametrize(
    ("source", "old", "times"),
    [
        ("x = a + b", "a - b", 0),
        ("x = 'a + b'  # a + b", "a + b", 0),
        ("x = f(a) + f(a)", "f(a)", 2),
        ("x = f((a + b) * c)", "f(a)", 0),
        ("x = nothing + b", "thing + b", 0),
    ],
)
def test_code_that_is_not_there_once_is_an_error(source: str, old: str, times: int) -> None:
    """A bug that is out of date must not pass for one that was put back."""
    with pytest.raises(NoMatchError, match=re.escape(f"m:f has {times} times {old!r}")):
        replaced(source, old, "x", "m:f")
