"""The global values that functions look things up in: packers, rows, sweeps, arrays of numbers."""

from __future__ import annotations

from kraftwire.wire.functions.decoding.loops import UnevenSweep
from kraftwire.wire.functions.decoding.steps import Numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kraftwire.wire.functions.packers import PackerSet
    from kraftwire.wire.functions.steps import Function

__all__ = ["helpers_of_tables", "tables"]


def tables(
    packers: PackerSet, rows: dict[str, str], decoders: list[Function]
) -> Iterator[tuple[str, str]]:
    """Yield names and expressions, each after those that it needs."""
    yield from sorted(packers.formats.items())
    for name, layout in rows.items():
        yield name, f'Rows("{layout}")'
    steps = [step for function in decoders for step in function.walk()]
    sweeps = [step for step in steps if isinstance(step, UnevenSweep)]
    groups = {group.lists: group.arguments for sweep in sweeps for group in sweep.groups}
    for name, arguments in sorted(groups.items()):
        yield name, f"lists({arguments})"
    for sweep in sweeps:
        places = ", ".join(f"({group.gap}, {group.lists})" for group in sweep.groups)
        yield sweep.name, f'Sweep("{sweep.layout}", {places})'
    for code in sorted({step.code for step in steps if isinstance(step, Numbers)}):
        yield f"UNPACK_{code}", f'UNPACK["{code}"]'
        yield f"PACK_{code}", f'PACK["{code}"]'


def helpers_of_tables(found: list[tuple[str, str]]) -> set[str]:
    """Return the names from kraftwire.wire.fast that the expressions use."""
    return {value.partition("(")[0].partition("[")[0] for _, value in found}
