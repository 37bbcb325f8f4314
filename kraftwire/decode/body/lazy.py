"""Attributes that are worked out on first use.

`functools.cached_property` takes a lock each time in Python 3.11, which costs more than most of
what is worked out for a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["lazy"]

T = TypeVar("T")


class lazy(Generic[T]):
    """Decorate a method: it runs once, and its result then replaces it on the object."""

    def __init__(self, method: Callable[[Any], T]) -> None:
        self._method = method
        self._name = ""
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> lazy[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._method(instance)
        return value
