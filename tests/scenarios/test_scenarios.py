"""Every scenario file runs as written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.raft_script import Script, parse_script, render_script

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))

# Set this to write the actual output into the files; read the difference before you commit it.
REWRITE = "KRAFTWIRE_REWRITE"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_runs_as_written(path: Path) -> None:
    """The files document the protocol, so they must show what really happens."""
    script = Script()
    blocks = parse_script(path.read_text())
    for block in blocks:
        if block.commands:
            output = script.run(block.commands)
            if os.environ.get(REWRITE):
                block.expected = output
            assert output == block.expected, "\n".join(block.lines)
    if os.environ.get(REWRITE):
        path.write_text(render_script(blocks))
