"""Text for people goes through the one function that makes it harmless to terminals."""

from __future__ import annotations

import ast

from tests.tidy.sources import ROOT, nodes, python_files, show

# Owns printing for the command line.
_OUTPUT = "kraftwire/cli/output.py"
# These lines are written without a command line; the second test checks that they are printable.
_PRINTERS = {_OUTPUT, "kraftwire/node/app.py"}
# Draws tables on a terminal, of cells that are printable already.
_DRAWS = "kraftwire/inspect/tables.py"
_SAFE = {"printable", "printable_lines", "printable_painted", "printable_pieces", "printable_text"}


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _calls(path: str) -> list[ast.Call]:
    return nodes(ROOT / path, ast.Call)


def _is_safe(node: ast.expr) -> bool:
    """Whether a text consists of constants and of what the one function returns."""
    if isinstance(node, ast.BinOp):
        return _is_safe(node.left) and _is_safe(node.right)
    if isinstance(node, ast.Call):
        return _name(node.func) in _SAFE
    return isinstance(node, ast.Constant)


def test_only_one_module_prints() -> None:
    """A print somewhere else would show names as a peer wrote them."""
    wrong = []
    for file in python_files("kraftwire"):
        path = str(file.relative_to(ROOT))
        for call in _calls(path):
            is_printing = _name(call.func) in ("print", "echo", "secho")
            if is_printing and path not in {*_PRINTERS, _DRAWS}:
                wrong.append(show(file, call.lineno))
    assert not wrong, "\n".join(wrong)


def test_what_is_written_to_a_stream_of_text_is_printable() -> None:
    """Writers of the decode tool, and the lines that a node prints itself."""
    wrong, count = [], 0
    for file in python_files("kraftwire"):
        path = str(file.relative_to(ROOT))
        for call in _calls(path):
            holder = call.func.value if isinstance(call.func, ast.Attribute) else None
            is_stream = holder is not None and _name(holder) in ("stream", "_stream", "stdout")
            is_write = _name(call.func) == "write" and is_stream and path != _OUTPUT
            if is_write or (path in _PRINTERS - {_OUTPUT} and _name(call.func) == "print"):
                count += 1
                if not all(map(_is_safe, call.args)):
                    wrong.append(show(file, call.lineno))
    assert not wrong, "\n".join(wrong)
    assert count > 8


def test_nobody_else_writes_log_lines() -> None:
    """A handler without the node's formatter would write texts as they come."""
    makers = {
        str(file.relative_to(ROOT))
        for file in python_files("kraftwire")
        for call in _calls(str(file.relative_to(ROOT)))
        if _name(call.func) in ("StreamHandler", "basicConfig", "FileHandler")
    }
    assert makers <= {"kraftwire/node/logs.py"}
