"""The page of public modules is true: what it names can be imported, and says what it offers."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.tidy.sources import GENERATED, ROOT, nodes, python_files, show

PAGE = (ROOT / "docs" / "public.md").read_text()
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]
MODULES = [name for row in ROWS for name in re.findall(r"`(kraftwire[\w.]*)`", row.split("|")[1])]


def _is_loaded_without_extras(name: str) -> bool:
    return not name.startswith("kraftwire.spark")


def test_the_page_names_modules() -> None:
    """Otherwise the tests below test nothing."""
    assert {"kraftwire.errors", "kraftwire.decode", "kraftwire.client"} <= set(MODULES)


@pytest.mark.parametrize("name", [name for name in MODULES if _is_loaded_without_extras(name)])
def test_a_public_module_says_what_it_offers(name: str) -> None:
    """People import what `__all__` lists; a name that is missing there is private."""
    holder, _, last = name.rpartition(".")
    if last == "find":
        assert callable(getattr(import_module(holder), last))
        return
    module = import_module(name)
    assert module.__all__
    for offered in module.__all__:
        assert hasattr(module, offered), f"{name}.{offered}"


@pytest.mark.parametrize("name", re.findall(r"^::: (\S+)$", REFERENCE, re.MULTILINE))
def test_the_reference_describes_public_modules(name: str) -> None:
    """What the reference shows, people use."""
    assert any(name.startswith(public) for public in MODULES) or "Message" in name


def test_other_modules_do_not_list_what_they_offer() -> None:
    """Underscores say it already; a list says more where a module offers the names of others."""
    files = [path for path in python_files("kraftwire", "codegen", "tools") if _is_private(path)]
    assert files
    assert [str(path.relative_to(ROOT)) for path in files if _lists_own_names_only(path)] == []


def _is_private(path: Path) -> bool:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return path.name != "__init__.py" and GENERATED not in path.parents and module not in MODULES


def _lists_own_names_only(path: Path) -> bool:
    imports = [*nodes(path, ast.Import), *nodes(path, ast.ImportFrom)]
    imported = {name.asname or name.name for node in imports for name in node.names}
    lists = [
        ast.literal_eval(node.value)
        for node in nodes(path, ast.Assign)
        if [ast.unparse(target) for target in node.targets] == ["__all__"]
    ]
    return any(imported.isdisjoint(names) for names in lists)


def test_no_name_that_is_loaded_on_first_use_is_that_of_a_module() -> None:
    """Once the module is imported, it would stand in the place of what the package offers."""
    lazy = [
        path
        for path in python_files("kraftwire")
        if path.name == "__init__.py"
        and any(node.name == "__getattr__" for node in nodes(path, ast.FunctionDef))
    ]
    assert lazy
    for path in lazy:
        names = {
            name
            for node in nodes(path, ast.Assign)
            if [ast.unparse(target) for target in node.targets] == ["__all__"]
            for name in ast.literal_eval(node.value)
        }
        modules = {each.stem for each in path.parent.glob("*.py")}
        assert names.isdisjoint(modules), f"{show(path)}: {sorted(names & modules)}"
