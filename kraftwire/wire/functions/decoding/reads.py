"""What the plans of decoders and printers share: reads of adjacent values, and of lengths."""

from __future__ import annotations

from kraftwire.wire.functions.decoding.steps import Advance, ReadByte, Unpack
from kraftwire.wire.functions.packers import offset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kraftwire.wire.functions.layout import Item
    from kraftwire.wire.functions.packers import PackerSet, Run
    from kraftwire.wire.functions.steps import Step

__all__ = ["advance", "flush", "length_code"]


def flush(run: Run, steps: list[Step], packers: PackerSet) -> None:
    """Add the step that reads a run; the position stays, and `run.at` counts what was read."""
    start = offset("pos", run.at)
    if run.codes == ["B"]:
        steps.append(ReadByte(run.names[0], start))
    elif run:
        targets = run.arguments + ("," if len(run.codes) == 1 else "")
        steps.append(Unpack(targets, packers.name("get", run.codes), start))
    run.at += run.size
    run.clear()


def advance(run: Run, steps: list[Step]) -> None:
    """Add the step that moves the position past what was read."""
    if run.at:
        steps.append(Advance(run.at))
    run.at = 0


def length_code(item: Item) -> str:
    """Return the letter, in a `struct` format, of the length before a value."""
    if item.compact:
        return "B"
    return "h" if item.kind == "string" else "i"
