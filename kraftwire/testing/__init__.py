"""A real quorum for tests: node processes on loopback that a test can start, stop and kill.

Loads nothing until it is used, because pytest imports this package in every run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.testing.nodes import Quorum, quorum
    from kraftwire.testing.process import QuorumError

__all__ = ["Quorum", "QuorumError", "quorum"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = "process" if name == "QuorumError" else "nodes"
    return getattr(import_module(f"{__name__}.{module}"), name)
