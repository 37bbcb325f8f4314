"""Every scenario file runs as written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.scenarios import controller_script, raft_script
from tests.support.scenarios.text import parse_script, render_script

FOLDER = Path(__file__).parent

# By folder of scenarios: what carries out the commands of all blocks and returns their outputs.
RUN: dict[str, Callable[[Sequence[Sequence[str]]], list[list[str]]]] = {
    "raft": raft_script.run_scenario,
    "controller": controller_script.run_scenario,
}
SCENARIOS = sorted(FOLDER.glob("*/*.txt"))

# Set this to write the actual output into the files; read the difference before you commit it.
REWRITE = "KRAFTWIRE_REWRITE"


@pytest.mark.parametrize(
    "path", SCENARIOS, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix()
)
def test_a_scenario_runs_as_written(path: Path) -> None:
    """The files document the protocol, so they must show what really happens."""
    blocks = parse_script(path.read_text())
    outputs = RUN[path.parent.name]([block.commands for block in blocks])
    for block, output in zip(blocks, outputs, strict=True):
        if os.environ.get(REWRITE):
            block.expected = output
        assert output == block.expected, "\n".join(block.lines)
    if os.environ.get(REWRITE):
        path.write_text(render_script(blocks))
