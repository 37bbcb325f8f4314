"""Compiles the source of planned functions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["compiled"]


def compiled(name: str, source: str, known: dict[str, Any]) -> dict[str, Any]:
    """Return what a source defines, by name; `known` are the globals that it may use."""
    # Tracebacks and debuggers find the source by these two.
    made = {**known, "__name__": name, "__loader__": _Source(source)}
    exec(compile(source, name, "exec", dont_inherit=True), made)
    return {key: value for key, value in made.items() if not key.startswith("__")}


class _Source:
    """The part of a module's loader by which tracebacks find the source."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, _name: str) -> str:
        """Return the text of the functions that were built together."""
        return self._text
