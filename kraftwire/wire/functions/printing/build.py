"""Builds the printers of a message's version when it is first used, and runs them.

A `Printer` is what `JsonPlan` is in the engine: the same methods, and the same results.
"""

from __future__ import annotations

from struct import Struct
from threading import Lock

from kraftwire.wire.functions.compiled import compiled
from kraftwire.wire.functions.layout import layouts_of
from kraftwire.wire.functions.packers import PackerSet
from kraftwire.wire.functions.printing import texts
from kraftwire.wire.functions.printing.plan import PrintPlanner
from kraftwire.wire.functions.printing.texts import BAD_BYTES, NUMBERS
from kraftwire.wire.functions.steps import lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kraftwire.wire.facts import MessageFacts

    # Where records begin and end, and the topic around them: the bytes of its name, and its id.
    Place = tuple[int, int, bytes | None, bytes | None]
    Gap = tuple[int, int, int, str | None, bytes | None]
    Print = Callable[[bytes, int, int, list[Place]], tuple[str, int]]

__all__ = ["Printer", "printer_of"]

# Stands for records; no JSON text has this character.
_GAP = "\0"

# A second thread must wait until the source of a planned function is compiled.
_lock = Lock()
_builders: dict[type, _Builder] = {}


class Printer:
    """Writes one version of a message as JSON, straight from its bytes."""

    __slots__ = ("_print",)

    def __init__(self, function: Print) -> None:
        self._print = function

    def write(
        self, data: bytes, position: int, budget: int
    ) -> tuple[bytes, int, list[Gap] | None] | None:
        """Return the message at a position as JSON, where it ends, and gaps for its records.

        Returns None if it may take more structs and elements than the budget, or if Kafka would
        not have written these bytes.
        """
        places: list[Place] = []
        try:
            text, end = self._print(data, position, budget, places)
        except BAD_BYTES:
            return None
        if end > len(data):
            return None
        if not places:
            return text.encode("ascii"), end, None
        pieces = text.split(_GAP)
        gaps = []
        at = 0
        for (start, stop, name, topic_id), piece in zip(places, pieces, strict=False):
            at += len(piece)
            gaps.append((at, start, stop, None if name is None else name.decode(), topic_id))
        return "".join(pieces).encode("ascii"), end, gaps


def printer_of(facts: MessageFacts, version: int) -> Printer:
    """Return the printer for a version that exists; it must have a description for the engine."""
    with _lock:
        # By class, since modules of several sets of schemas may share names of messages.
        if facts.root.cls not in _builders:
            _builders[facts.root.cls] = _Builder(facts)
        return _builders[facts.root.cls].printer(version)


class _Builder:
    """Builds the printers of one message; structs of equal layout share them."""

    def __init__(self, facts: MessageFacts) -> None:
        self._name = f"{facts.root.cls.__module__}.{facts.name}"
        self._packers = PackerSet()
        self._planner = PrintPlanner(self._packers, layouts_of(facts), facts)
        self._globals: dict[str, Any] = {each: getattr(texts, each) for each in texts.__all__}
        self._globals |= {f"NUMBERS_{each}": made for each, made in NUMBERS.items()}
        self._globals["Packer"] = Struct
        self._printers: dict[str, Printer] = {}

    def printer(self, version: int) -> Printer:
        """Return the printer for a version."""
        name = self._planner.plan(version).name
        if name not in self._printers:
            self._globals |= compiled(f"{self._name} {name}", self._source(), self._globals)
            self._printers[name] = Printer(self._globals[name])
        return self._printers[name]

    def _source(self) -> str:
        """Return the text of all functions that are planned and not compiled yet."""
        lines = [
            f"{name} = {value}"
            for name, value in sorted(self._packers.formats.items())
            if name not in self._globals
        ]
        for function in self._planner.in_order():
            if function.name not in self._globals:
                lines += ["", "", *lines_of(function)]
        return "\n".join(lines) + "\n"
