"""Values with named fields, the base of steps and layouts.

Declared like dataclasses, but built without that module: to import `dataclasses` and let it write
sixty classes takes longer than to build the functions of a message.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, dataclass_transform
else:

    def dataclass_transform(**_):
        """Mark a class for type checkers; does nothing at run time."""
        return lambda cls: cls


__all__ = ["Value"]


@dataclass_transform(frozen_default=True, eq_default=True)
class Value:
    """Fields by position or name, never changed afterwards; equal if all fields are.

    The fields are a class's annotated names, after those of its base; a value that the class
    gives to such a name is its default.
    """

    NAMES: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.NAMES = (*cls.NAMES, *cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(zip(self.NAMES, values, strict=False), **named)

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.NAMES)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or self._values() == other._values()

    def __hash__(self) -> int:
        # Layouts hold layouts and are looked up often.
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = hash(self._values())
        return known

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.NAMES)
        return f"{self.__class__.__name__}({shown})"
