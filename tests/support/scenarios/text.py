"""The text of a scenario: commands, each with its output.

A file is a sequence of blocks, separated by blank lines; a block is command lines, a line
`----`, and the expected output. Lines that begin with `#` are for the reader.
"""

from __future__ import annotations

from dataclasses import dataclass

_RULE = "----"


@dataclass
class Block:
    """Comments and commands, and their expected output."""

    lines: list[str]
    expected: list[str]

    @property
    def commands(self) -> list[str]:
        """The lines that do something."""
        return [line for line in self.lines if line and not line.startswith("#")]


def parse_script(text: str) -> list[Block]:
    """The blocks of a scenario."""
    blocks = []
    for part in text.strip().split("\n\n"):
        lines = part.splitlines()
        if _RULE in lines:
            rule = lines.index(_RULE)
            blocks.append(Block(lines[:rule], lines[rule + 1 :]))
        else:
            blocks.append(Block(lines, []))
    return blocks


def render_script(blocks: list[Block]) -> str:
    """A scenario as text, the inverse of `parse_script`."""
    parts = []
    for block in blocks:
        lines = list(block.lines)
        if block.commands:
            lines += [_RULE, *block.expected]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
