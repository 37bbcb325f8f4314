"""The optional engine in C, under the same classes: which one is in use, and its functions.

`core` is the C module, or None if Python does all the work. Callers look it up at each use, so that
`use` can switch.
"""

from __future__ import annotations

import os
from importlib import import_module

from kraftwire.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

__all__ = ["PYTHON", "C", "available", "is_outdated", "name", "use"]

C = "C"
PYTHON = "Python"


# Must equal the number in `module.c`: a module built from older sources would be called wrongly.
_INTERFACE = 15


def _load() -> ModuleType | None:
    try:
        return import_module("kraftwire.engine._core")
    except ImportError:
        return None


_is_pure = os.environ.get("KRAFTWIRE_PURE", "") not in ("", "0")
_found: Any = None if _is_pure else _load()
# Whether a module is there that was built from other sources: Python works in its place.
is_outdated = _found is not None and getattr(_found, "INTERFACE", 0) != _INTERFACE
_loaded: Any = None if is_outdated else _found
core: Any = _loaded


def name() -> str:
    """The engine in use: ``C`` or ``Python``."""
    return PYTHON if core is None else C


def available() -> tuple[str, ...]:
    """The engines that this process can use, the fastest first."""
    return (PYTHON,) if _loaded is None else (C, PYTHON)


def use(engine: str) -> None:
    """Switch engines, for tests and measurements. Raises: UsageError if there is no such engine."""
    global core
    if engine not in available():
        known = " and ".join(available())
        raise UsageError(f"the engine {engine} is not available; there is {known}")
    core = _loaded if engine == C else None
