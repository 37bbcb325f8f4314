"""What tests import inside functions, or replace by its name, exists; collection finds the rest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, parse, show

FILES = sorted((ROOT / "tests").rglob("*.py"))


def _names(path: Path) -> Iterator[tuple[int, str, str]]:
    """The line, the module and the attribute of each import in a function and of each target."""
    tree = parse(path)
    inner = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in inner:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kraftwire"):
            for each in node.names:
                yield node.lineno, str(node.module), each.name
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr":
            target = node.args[0] if node.args else None
            if isinstance(target, ast.Constant) and str(target.value).startswith("kraftwire."):
                module, _, name = str(target.value).rpartition(".")
                yield node.lineno, module, name


def _exists(module: str, name: str) -> bool:
    """Whether a module or a class has this attribute."""
    try:
        found = import_module(module)
    except ModuleNotFoundError:
        outer, _, inner = module.rpartition(".")
        found = getattr(import_module(outer), inner, None)
    if hasattr(found, name):
        return True
    try:
        import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


def test_names_that_tests_import_late_exist() -> None:
    """A rename that a test with real Kafka misses shows at once."""
    pytest.importorskip("pyspark", reason="needs the extra spark")
    wrong = [
        f"{show(path, line)}: {module} has no {name}"
        for path in FILES
        for line, module, name in _names(path)
        if not _exists(module, name)
    ]
    assert not wrong, "\n".join(wrong)
