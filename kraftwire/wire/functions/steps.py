"""The base of all steps of functions; each kind is a class of its own.

A step holds the expressions that its text needs, complete. `TEXT` looks like the lines that it
becomes: ``{name}`` is a field, and a line that consists only of a field stands for the lines of the
steps in that field.
"""

from __future__ import annotations

from kraftwire.wire.functions.names import snake
from kraftwire.wire.functions.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = ["Default", "Function", "Step", "helpers_of", "lines_of", "zero_uuid"]


class Step(Value):
    """A few lines of a function."""

    TEXT = ""

    @property
    def kind(self) -> str:
        """The class's name in snake case."""
        return snake(type(self).__name__)

    @property
    def helpers(self) -> frozenset[str]:
        """The names from kraftwire.wire.fast that the step's own lines use."""
        return frozenset()

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps that its text prints, in order."""
        return ()

    def walk(self) -> Iterator[Step]:
        """Yield the step and all steps inside it."""
        yield self
        for each in self.inner:
            yield from each.walk()

    def __getitem__(self, name: str) -> Any:
        # What `str.format_map` asks for.
        return getattr(self, name)


class Function(Step):
    """A function: the struct and the versions that it is for."""

    # Whether it takes the budget of small structs, and hands back what is left of it.
    takes_budget = False

    name: str
    struct: str
    versions: str

    @property
    def remarks(self) -> str:
        """A remark on the function for a person who reads the plan."""
        return ""


class Default(Step):
    """Set a field that is not on the wire to its default."""

    TEXT = "{target} = {value}"
    target: str
    value: str

    @property
    def helpers(self) -> frozenset[str]:
        """The zero uuid, if it is the default."""
        return zero_uuid(self.value)


def zero_uuid(*expressions: str) -> frozenset[str]:
    """Return the name of the zero uuid if any of the expressions uses it."""
    return frozenset({"ZERO_UUID"} if any("ZERO_UUID" in each for each in expressions) else ())


def helpers_of(steps: Iterable[Step]) -> set[str]:
    """Return the names from kraftwire.wire.fast that steps and all steps inside them use."""
    return {name for step in steps for each in step.walk() for name in each.helpers}


# The lines of each class's text: indentation, text, and the field if a line consists only of it.
_parsed: dict[type[Step], list[tuple[str, str, str]]] = {}


def lines_of(steps: Step | Iterable[Step], pad: str = "") -> list[str]:
    """Return the lines of steps, each after `pad`."""
    out: list[str] = []
    for step in (steps,) if isinstance(steps, Step) else steps:
        for indentation, text, field in _parsed.get(type(step)) or _parse(type(step)):
            if field:
                out += lines_of(step[field], pad + indentation)
            else:
                out.append(f"{pad}{indentation}{text.format_map(step)}")
    return out


def _parse(kind: type[Step]) -> list[tuple[str, str, str]]:
    lines = []
    for line in kind.TEXT.strip("\n").splitlines():
        text = line.lstrip()
        field = text[1:-1] if text[:1] == "{" and text[1:-1].isidentifier() else ""
        lines.append((line[: len(line) - len(text)], text, field))
    _parsed[kind] = lines
    return lines
