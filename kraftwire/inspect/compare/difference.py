"""Differences between two sides, and the result of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kraftwire.capture.limits import COMPARED_PROBLEMS_MAX

__all__ = ["Comparison", "Difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the two sides differ.

    `subject` is a partition, a file or a connection; `kind` is the key of `details` in JSON
    and `text` the words for people. `first` and `second` are what each side has.
    """

    subject: str
    kind: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The difference as a JSON object."""
        return {"subject": self.subject, "difference": self.kind, **self.details}


@dataclass(slots=True)
class Comparison:
    """The result of a comparison: the differences, and how much was compared.

    `compared` counts what both sides have: batches, or frames; `incomplete` counts what both have,
    but of which one lacks bytes. `problems` are what could not be read, the first of them, and
    `more_problems` counts the others.
    """

    noun: str
    differences: list[Difference] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    subjects: int = 0
    compared: int = 0
    incomplete: int = 0
    more_problems: int = 0

    def note(self, problem: str) -> None:
        """Keep a problem, or only count it if there are many."""
        if len(self.problems) < COMPARED_PROBLEMS_MAX:
            self.problems.append(problem)
        else:
            self.more_problems += 1
