"""Which marks the tests of a folder have; a slow file of a fast folder is marked in the file.

``-m "not slow"`` selects what `make quick` runs.
"""

from __future__ import annotations

from pathlib import Path

# Folder or path prefix under `tests` -> marks. The longest prefix that fits counts.
MARKS: dict[str, tuple[str, ...]] = {
    "crash/": ("search", "slow"),
    "engine/": ("search", "slow"),
    "fuzz/": ("search", "slow"),
    "history/": ("search", "slow"),
    "hostile/": ("hostile", "slow"),
    "interop/": ("interop", "slow"),
    "mutants/": ("search", "slow"),
    "nemesis/": ("search", "slow"),
    "scenarios/": (),
    "simulation/": ("search", "slow"),
    "spark/": ("spark", "slow"),
    "tidy/": (),
    "tidy/test_hops": ("slow",),
    "tidy/test_readme": ("slow",),
    "tidy/test_recipes": ("slow",),
    "tidy/test_wheel": ("slow",),
    "unit/": (),
    "unit/capture/": ("portable",),
    "unit/decode/": ("portable",),
    "unit/inspect/": ("portable",),
    "unit/records/": ("portable",),
    "unit/story/": ("portable",),
    "unit/wire/": ("portable",),
}

QUICK = "not slow"


def marks_of(path: str) -> tuple[str, ...]:
    """The marks of a test file, whose path begins below `tests`."""
    fitting = [prefix for prefix in MARKS if path.startswith(prefix)]
    return MARKS[max(fitting, key=len)] if fitting else ()


def is_slow_folder(folder: str) -> bool:
    """Whether all tests of a folder at the top of `tests` are slow, so that none need be loaded."""
    return "slow" in MARKS.get(f"{folder}/", ()) and Path(folder).name == folder
