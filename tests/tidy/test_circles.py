"""No module imports itself through others: even for types alone, a circle hides who owns what."""

from __future__ import annotations

import ast

from tests.tidy.sources import PACKAGES, ROOT, nodes, python_files


def _imports() -> dict[str, set[str]]:
    """The modules of the project that each module imports, in any block."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in python_files(*PACKAGES)
    }
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        targets = set()
        for node in nodes(path, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                targets.add(full if full in paths else str(node.module))
        for plain in nodes(path, ast.Import):
            targets |= {alias.name for alias in plain.names}
        targets &= paths.keys()
        # To import a module is to import the packages around it, unless one is in them already.
        around = {parent for target in targets for parent in _parents(target)}
        inside = {name, *_parents(name)}
        found[name] = (targets | (around & paths.keys()) - inside) - {name}
    return found


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def test_no_import_goes_in_a_circle() -> None:
    """Modules are removed once nothing that they import is left; what remains is a circle."""
    left = _imports()
    assert len(left) > 300
    while free := {name for name, targets in left.items() if not targets & left.keys()}:
        left = {name: targets for name, targets in left.items() if name not in free}
    # What only leads to a circle is not part of one.
    while loose := left.keys() - {target for targets in left.values() for target in targets}:
        left = {name: targets for name, targets in left.items() if name not in loose}
    assert sorted(left) == []
