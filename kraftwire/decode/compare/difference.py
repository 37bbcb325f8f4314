"""What a comparison finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Comparison", "Difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the two sides differ.

    Shape: `subject` is a partition, a file or a connection; `kind` is the key of `details` in JSON
    and `text` the words for people. `first` and `second` say what stands on either side.
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
    """The differences, and how much was compared.

    Shape: `compared` counts what both sides have: batches, or frames; `problems` are what could not
    be read.
    """

    noun: str
    differences: list[Difference] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    subjects: int = 0
    compared: int = 0
