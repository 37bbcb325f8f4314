"""The end of a process, at a chosen call of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Killed", "Kills"]


class Killed(BaseException):
    """Stands for the end of the process."""


class Kills:
    """Ends the process at a call: the first is number 1. `left` are the calls up to then."""

    def __init__(self, call: int) -> None:
        self.left = call

    def at(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, whose calls count."""

        def call(*arguments: Any) -> Any:
            self.left -= 1
            if not self.left:
                raise Killed
            return original(*arguments)

        return call
