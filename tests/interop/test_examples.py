"""The examples do what their READMEs show."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.tidy.sources import ROOT

_SECONDS_MAX = 120

_STORY = r"""node (\d) leads
nodes 1, 2, 3 have shape = round
the leader is killed: green is still there
nodes (\d), (\d) have colour = blue
nodes 1, 2, 3 have shape = round
the killed node is back with an empty disk, by snapshot \d+-\d+
"""


def test_the_replicated_map_survives_its_leader_and_the_loss_of_a_disk() -> None:
    """People copy it: election, commit, snapshot and recovery have to work on the public port."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.kv"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    story = re.fullmatch(_STORY, done.stdout)
    assert story is not None, done.stdout
    first, *survivors = story.groups()
    assert first not in survivors
    assert "Traceback" not in done.stderr
    shown = (ROOT / "examples" / "kv" / "README.md").read_text()
    assert re.search(_STORY, shown), "the README shows another story"
