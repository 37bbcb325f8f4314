"""Imports go down only: who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.tidy.sources import PACKAGES, ROOT, nodes, python_files, show

LAYERS = (
    ("collector", "errors", "lazy_names", "limits", "pieces", "printable", "small_files"),
    ("engine", "properties_file"),
    ("wire", "properties"),
    ("messages",),
    ("protocol", "records"),
    ("security",),
    ("raft", "log", "controller", "faults"),
    ("replica", "transport", "capture"),
    ("node", "sim", "decode", "control"),
    ("proxy",),
    ("story", "client"),
    ("spark", "inspect", "testing"),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


# Libraries that are slow to import or shape the code around them stay where they belong.
LIBRARIES = {
    "trio": {"control", "node", "client", "proxy", "transport", "testing"},
    "click": {"cli"},
    "h11": {"transport"},
    "construct": {"decode"},
    "cryptography": {"capture", "security"},
    "ssl": {"security", "transport"},
    "cramjam": {"records", "capture", "decode"},
    "pyspark": {"spark"},
    "pyarrow": {"spark"},
    "numpy": {"spark"},
    "bokeh": {"spark"},
    "pytest": {"testing"},
}

SLOW_TO_IMPORT = {"trio", "construct", "rich", "click", "cramjam", "jinja2"}


@cache
def _imports(path: Path) -> list[tuple[str, int]]:
    """Every module that a file imports anywhere, with the line."""
    found = []
    for node in nodes(path, ast.Import):
        found += [(alias.name, node.lineno) for alias in node.names]
    for node in nodes(path, ast.ImportFrom):
        assert node.level == 0, f"{show(path, node.lineno)}: a relative import"
        found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    return found


def _part(path: Path) -> str:
    """The package (or top module) of kraftwire that a file belongs to; empty for __init__."""
    parts = path.relative_to(ROOT / "kraftwire").with_suffix("").parts
    return "" if parts[0] in ("__init__", "__main__") else parts[0]


def _may_import(part: str, target: str) -> bool:
    if target == part or target not in LEVEL:
        return True
    return LEVEL[target] < LEVEL[part]


def test_every_part_of_the_package_has_a_layer() -> None:
    """The next test would not check a package that is missing from the table."""
    parts = {_part(path) for path in python_files("kraftwire")} - {""}
    assert parts <= set(LEVEL), f"not in the table of layers: {sorted(parts - set(LEVEL))}"


def test_imports_inside_the_package_go_down_only() -> None:
    """A core that knows its shell can neither be simulated nor used alone."""
    wrong = []
    for path in python_files("kraftwire"):
        for module, line in _imports(path):
            name, _, rest = module.partition(".")
            if name == "kraftwire" and _part(path) and not _may_import(
                _part(path), rest.partition(".")[0]
            ):
                wrong.append(f"{show(path, line)} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_the_package_imports_nothing_that_its_wheel_lacks() -> None:
    """codegen, tools, examples and tests exist in a checkout only."""
    outside = {"codegen", "tools", "examples", "tests"}
    wrong = [
        f"{show(path, line)} imports {module}"
        for path in python_files("kraftwire")
        for module, line in _imports(path)
        if module.partition(".")[0] in outside
    ]
    assert not wrong, "\n".join(wrong)


def test_the_generator_knows_nothing_of_what_it_generates() -> None:
    """A broken module must not keep the generator from repairing it."""
    wrong = [
        f"{show(path, line)} imports {module}"
        for path in python_files("codegen")
        for module, line in _imports(path)
        if module.partition(".")[0] in {"kraftwire", "tools", "tests"}
    ]
    assert not wrong, "\n".join(wrong)


def test_libraries_stay_where_they_belong() -> None:
    """Above all trio: decoding a capture should not wait for an event loop to load."""
    wrong = [
        f"{show(path, line)} imports {module}"
        for path in python_files("kraftwire")
        for module, line in _imports(path)
        if _part(path) not in LIBRARIES.get(module.partition(".")[0], {_part(path)})
    ]
    assert not wrong, "\n".join(wrong)


def test_importing_the_package_loads_no_slow_library() -> None:
    """A codec is imported by programs that count their start-up in milliseconds."""
    code = (
        "import sys, kraftwire; from kraftwire.messages.vote_request import VoteRequest; "
        "print(*sorted(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not SLOW_TO_IMPORT & set(loaded)


def test_the_folders_that_the_rules_name_exist() -> None:
    """A rule for a renamed folder would silently stop working."""
    assert all((ROOT / name).is_dir() for name in PACKAGES)
