"""Work about thousands of elements that pauses between them, so that other work can go on."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Pieces = Generator[None, None, T]
"""Work that pauses at each `yield`. Order: nothing that it depends on changes before its end."""


def whole(pieces: Pieces[T]) -> T:
    """Do all pieces of some work; returns its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: T = end.value
            return result


class Divided(Generic[P, T]):
    """Work that can be done at once, by calling it, or in pieces of about a millisecond at most."""

    def __init__(self, in_pieces: Callable[P, Pieces[T]]) -> None:
        self.in_pieces = in_pieces
        self.__doc__ = in_pieces.__doc__

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> T:
        """Do all of it."""
        return whole(self.in_pieces(*arguments, **named))
