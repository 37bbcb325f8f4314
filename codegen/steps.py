"""What all steps of generated functions have in common; each kind is a class of its own.

A step holds the expressions that its macro prints, complete; templates put them into place and
decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codegen.names import snake

__all__ = ["Default", "Function", "Step", "helpers_of", "zero_uuid"]


@dataclass(frozen=True)
class Step:
    """A few lines of a generated function, printed by the macro of the class's name."""

    @property
    def macro(self) -> str:
        """Name of the macro in the templates: that of the class in snake case."""
        return snake(type(self).__name__)

    @property
    def helpers(self) -> frozenset[str]:
        """What its own lines need of kraftwire.wire.fast."""
        return frozenset()

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps that its macro prints in turn."""
        return ()

    def walk(self) -> Iterator[Step]:
        """The step and everything inside of it."""
        yield self
        for each in self.inner:
            yield from each.walk()


@dataclass(frozen=True)
class Function(Step):
    """A generated function: the struct and the versions that it is for."""

    name: str
    struct: str
    versions: str

    @property
    def remarks(self) -> str:
        """What else a person who looks at the plan wants to know."""
        return ""


@dataclass(frozen=True)
class Default(Step):
    """Gives a field that is not on the wire its default."""

    target: str
    value: str

    @property
    def helpers(self) -> frozenset[str]:
        """The zero uuid has a name."""
        return zero_uuid(self.value)


def zero_uuid(*expressions: str) -> frozenset[str]:
    """The helper that expressions name if a zero uuid is among them."""
    return frozenset({"ZERO_UUID"} if any("ZERO_UUID" in each for each in expressions) else ())


def helpers_of(steps: Iterable[Step]) -> set[str]:
    """What steps and all inside of them need of kraftwire.wire.fast."""
    return {name for step in steps for each in step.walk() for name in each.helpers}
