"""The exception of the checkers, and the exceptions that count as bugs of the checked code."""

from __future__ import annotations

import struct
import traceback

from kraftwire.errors import InvariantError, KraftwireError

# Exceptions of bugs in a core or a log, which end a run like a violation.
BUGS = (
    KraftwireError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
)


class Violation(InvariantError):
    """A cluster violated an invariant.

    `invariant` is the name in the list of invariants; `odds` are the things that contradict each
    other, one a line: two batches, two votes, two leaders. A line names a node after the word
    `node`, `leader`, `candidate` or `voter`, so that the timeline can prefer these nodes.
    """

    def __init__(self, invariant: str, detail: str, *odds: str) -> None:
        self.invariant = invariant
        self.detail = detail
        self.odds = odds
        super().__init__(f"{invariant}: {detail}")


def as_violation(error: Exception) -> Violation:
    """Return the violation that ended a run. A bug becomes one that names its place in
    kraftwire."""
    if isinstance(error, Violation):
        return error
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{where.filename.rpartition('kraftwire/')[2]}:{where.lineno}"
    return Violation("BUG", f"{type(error).__name__} in {place}: {error}")
