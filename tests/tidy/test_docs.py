"""What must be documented is documented: public names, modules and folders."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.sources import (
    GENERATED,
    PACKAGES,
    ROOT,
    parse,
    project_files,
    python_files,
    show,
)

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _public(body: list[ast.stmt]) -> Iterator[Documented]:
    """Public classes and functions, and the public methods of public classes."""
    for node in body:
        if not isinstance(node, Documented) or node.name.startswith("_"):
            continue
        if any(ast.unparse(d) in ("overload", "override") for d in node.decorator_list):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _public(node.body)


def test_every_module_opens_with_what_it_owns() -> None:
    """The first line of a file decides whether a reader has to go on."""
    bare = [show(path) for path in python_files() if not ast.get_docstring(parse(path))]
    assert not bare, "\n".join(bare)


def test_public_names_have_docstrings() -> None:
    """Each public name says in one sentence what it is for.

    In generated modules only the classes are public; one version's functions are their insides.
    """
    bare = [
        f"{show(path, node.lineno)} {node.name}"
        for path in python_files(*PACKAGES)
        for node in _public(parse(path).body)
        if not ast.get_docstring(node)
        and not (GENERATED in path.parents and isinstance(node, ast.FunctionDef))
    ]
    assert not bare, "\n".join(bare)


def test_tests_say_why_they_matter() -> None:
    """When a test fails in two years, its docstring is all that is left of the reason."""
    bare = [
        f"{show(path, node.lineno)} {node.name}"
        for path in python_files("tests")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert not bare, "\n".join(bare)


def test_every_folder_with_code_has_a_readme() -> None:
    """A folder's README is its documentation and the first thing that a newcomer opens."""
    files = set(project_files())
    folders = {path.parent for path in python_files()}
    bare = [show(folder) for folder in sorted(folders) if folder / "README.md" not in files]
    assert ROOT / "README.md" in files
    assert not bare, "\n".join(bare)
