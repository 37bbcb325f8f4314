"""Version conditions: which steps of a reader or writer are for which versions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Step:
    """One line of a reader or writer; which of its parts are set depends on its kind.

    `attribute` is the field's; `wire` is the encoding that it has, `value` what is read or written:
    the end of a helper's name, a default, or the names in a call of a `packer`; `lines` are these
    names where they do not fit into one line. For the elements of an array, `packer` is what reads
    or writes one.
    """

    kind: str
    attribute: str = ""
    wire: str = ""
    value: str = ""
    packer: str = ""
    size: int = 0
    struct: str = ""
    lines: tuple[str, ...] = ()


# Alternatives: the steps for some versions, those with the newest versions first.
Row = dict[tuple[int, ...], list[Step]]


@dataclass
class Branch:
    """Steps for some versions; `head` is the line before them, empty if they are for all."""

    head: str
    steps: list[Step]


@dataclass
class Block:
    """Alternative branches: at most one is taken."""

    branches: list[Branch] = field(default_factory=list)


def groups(versions: list[int], keys: dict[int, K]) -> list[tuple[int, ...]]:
    """Versions of equal keys, those of the newest versions first."""
    found: dict[K, list[int]] = {}
    for version in reversed(versions):
        found.setdefault(keys[version], []).insert(0, version)
    return [tuple(some) for some in found.values()]


def condition(some: list[int], of: list[int]) -> str:
    """The condition that a version is one of `some`, given that it is one `of`; empty if always."""
    low, high = some[0], some[-1]
    if some == of:
        return ""
    if some == [each for each in of if each >= low]:
        return f"version >= {low}"
    if some == [each for each in of if each <= high]:
        return f"version < {high + 1}"
    if low == high:
        return f"version == {low}"
    if some == [each for each in of if low <= each <= high]:
        return f"{low} <= version <= {high}"
    others = [each for each in of if each not in some]
    if others == [each for each in of if others[0] <= each <= others[-1]]:
        return f"not {condition(others, of)}"
    return f"version in {tuple(some)}"


def blocks_of(rows: list[Row], versions: list[int]) -> list[Block]:
    """Make blocks of rows; neighbours that differ in the same versions become one block."""
    merged: list[Row] = []
    for row in rows:
        if merged and sorted(merged[-1]) == sorted(row):
            for some, steps in row.items():
                merged[-1][some] = merged[-1][some] + steps
        else:
            merged.append(dict(row))
    return [block for row in merged if (block := _block(row, versions)).branches]


def _block(row: Row, versions: list[int]) -> Block:
    """One block; what only sets defaults comes last, and versions without steps have no branch."""
    left = versions
    block = Block()
    in_order = sorted(row.items(), key=lambda pair: all(step.kind == "default" for step in pair[1]))
    for some, steps in in_order:
        if not steps:
            continue
        test = condition(list(some), left)
        word = "elif" if block.branches else "if"
        head = f"{word} {test}:" if test else "else:" if block.branches else ""
        block.branches.append(Branch(head, steps))
        left = [each for each in left if each not in some]
    return block
