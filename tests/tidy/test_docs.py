"""What must be documented is documented: public names, modules and folders."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from tests.tidy.sources import (
    GENERATED,
    PACKAGES,
    ROOT,
    nodes,
    parse,
    project_files,
    python_files,
    show,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.ClassDef | Function

# Folders inside packages that a newcomer edits; each package has a README anyway.
EDITED = ("kraftwire/node/handlers", "tests/interop/clients", "tests/mutants/catalogue")


def _public(body: list[ast.stmt], promised: Set[str]) -> Iterator[Documented]:
    """Public classes and functions, and those public methods of classes that nobody promised."""
    for node in body:
        if not isinstance(node, Documented) or node.name.startswith("_"):
            continue
        if any(ast.unparse(d) in ("overload", "override") for d in node.decorator_list):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if getattr(one, "name", "") not in promised]
            yield from _public(methods, promised)


def test_every_module_opens_with_what_it_owns() -> None:
    """The first line of a file tells a reader whether to read on."""
    bare = [show(path) for path in python_files() if not ast.get_docstring(parse(path))]
    assert not bare, "\n".join(bare)


def _promised_methods() -> set[str]:
    """The methods of protocols and of base classes, which are described there."""
    classes = [
        node
        for path in python_files(*PACKAGES)
        if GENERATED not in path.parents
        for node in nodes(path, ast.ClassDef)
    ]
    bases = {ast.unparse(base).rpartition(".")[2] for node in classes for base in node.bases}
    return {
        method.name
        for node in classes
        if node.name in bases or any("Protocol" in ast.unparse(base) for base in node.bases)
        for method in node.body
        if isinstance(method, Function)
    }


def test_public_names_have_docstrings() -> None:
    """Each public name says in one sentence what it is for.

    A method that implements a protocol is described by the protocol. In generated modules only the
    classes are public; the functions of one version are internal.
    """
    promised = _promised_methods()
    bare = [
        f"{show(path, node.lineno)} {node.name}"
        for path in python_files(*PACKAGES)
        for node in _public(parse(path).body, promised)
        if not ast.get_docstring(node)
        and not (GENERATED in path.parents and isinstance(node, Function))
    ]
    assert not bare, "\n".join(bare)


def test_tests_say_why_they_matter() -> None:
    """When a test fails in two years, its docstring is all that is left of the reason."""
    bare = [
        f"{show(path, node.lineno)} {node.name}"
        for path in python_files("tests")
        for node in nodes(path, ast.FunctionDef, ast.AsyncFunctionDef)
        if node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert not bare, "\n".join(bare)


def test_every_package_has_a_readme() -> None:
    """Newcomers open it first: what the package owns, and where to begin reading.

    A package is a folder with code at the top of the project or one level below. A folder further
    down has a README if newcomers edit it.
    """
    files = set(project_files())
    folders = {path.parent for path in python_files()}
    packages = {folder for folder in folders if len(folder.relative_to(ROOT).parts) <= 2}
    required = packages | {ROOT / name for name in EDITED}
    assert required <= folders
    bare = [show(folder) for folder in sorted(required) if folder / "README.md" not in files]
    assert not bare, "\n".join(bare)


def _tables(text: str) -> Iterator[tuple[int, list[str]]]:
    """The tables of a page: the number of the first line, and the lines."""
    rows: list[str] = []
    is_code = False
    lines = [*text.splitlines(), ""]
    for number, line in enumerate(lines, 1):
        is_code ^= line.startswith("```")
        if line.startswith("|") and not is_code:
            rows.append(line)
        elif rows:
            yield number - len(rows), rows
            rows = []


def test_rows_of_tables_are_whole() -> None:
    """Each row is one line and has as many cells as the head; else no reader sees a table."""
    broken = [
        f"{show(path, first + index)}: {row[:60]}"
        for path in project_files()
        if path.suffix == ".md"
        for first, rows in _tables(path.read_text(encoding="utf-8"))
        for index, row in enumerate(rows)
        if not row.endswith("|")
        or row.replace("\\|", "").count("|") != rows[0].replace("\\|", "").count("|")
    ]
    assert not broken, "\n".join(broken)
