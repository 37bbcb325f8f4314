"""Files and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.tidy.sources import GENERATED, nodes, project_files, python_files, show

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60
POSITIONAL_MAX = 5

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _written_by_hand() -> list[Path]:
    return [path for path in python_files() if GENERATED not in path.parents]


def _functions(path: Path) -> list[Function]:
    return [*nodes(path, ast.FunctionDef), *nodes(path, ast.AsyncFunctionDef)]


def test_files_are_at_most_700_lines_long() -> None:
    """Longer files are the ones that nobody wants to review; most have about 200 lines."""
    lengths = {path: len(path.read_text().splitlines()) for path in _written_by_hand()}
    long = [f"{show(path)}: {n} lines" for path, n in lengths.items() if n > FILE_LINES_MAX]
    assert not long, "\n".join(long)


def test_files_and_functions_in_c_are_no_longer_than_those_in_python() -> None:
    """In C a function ends at the first brace at the beginning of a line."""
    long = []
    for path in (path for path in project_files() if path.suffix in (".c", ".h")):
        lines = path.read_text().splitlines()
        if len(lines) > FILE_LINES_MAX:
            long.append(f"{show(path)}: {len(lines)} lines")
        begins = [number for number, line in enumerate(lines) if line == "{"]
        for begin in begins:
            length = lines[begin:].index("}") + 2
            if length > FUNCTION_LINES_MAX:
                long.append(f"{show(path, begin)}: {length} lines")
    assert not long, "\n".join(long)


def test_functions_are_at_most_60_lines_long() -> None:
    """A function that fits on a screen can be checked by eye."""
    long = []
    for path in _written_by_hand():
        for function in _functions(path):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                long.append(f"{show(path, function.lineno)} {function.name}: {lines} lines")
    assert not long, "\n".join(long)


def test_functions_take_at_most_five_positional_parameters() -> None:
    """Beyond five nobody remembers the order; keyword-only parameters carry their names."""
    wide = []
    for path in _written_by_hand():
        for function in _functions(path):
            names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            if count > POSITIONAL_MAX and not _is_framework_callback(function):
                wide.append(f"{show(path, function.lineno)} {function.name}: {count}")
    assert not wide, "\n".join(wide)


def _is_framework_callback(function: Function) -> bool:
    """click and pytest pass everything by keyword, so there is no order to remember."""
    decorators = " ".join(ast.unparse(d) for d in function.decorator_list)
    is_option = any(word in decorators for word in ("click.", "option(", "argument(", "command("))
    return is_option or function.name.startswith("test_")
