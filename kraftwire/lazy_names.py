"""Names that a package offers, and loads from its modules on first use."""

from __future__ import annotations

import sys

# Imports for type checkers only are not executed: who loads names late has to start at once.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def load_name(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return what a package offers under a name, and keep it there; for its `__getattr__`.

    `homes` are the modules that define its names. Raises: AttributeError for another name.
    """
    home = homes.get(name)
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    setattr(sys.modules[package], name, value)
    return value
