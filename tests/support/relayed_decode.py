"""`kraftwire decode` by several processes that take turns after a few frames, not after thousands.

The sizes that are measured in a real run are fixed here, so that small captures are shared in
many ways, and in the same way each time.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.run_decode import Done

__all__ = ["relayed_decode"]

_PROGRAM = """
import sys
from itertools import count

from kraftwire.cli.main import main
from kraftwire.inspect.run import relay
from kraftwire.inspect.run.chunking import Pace

stretch, alone, *arguments = sys.argv[1:]
calls = count()

def fixed(pace, number):
    # Every other time the process goes on by itself while the copies run.
    return int(stretch) if next(calls) % 3 else 0

def hear(self):
    # Wait for room rather than look whether there is any.
    while len(self._running) >= self.count - 1:
        self._hear(self._running[0])

relay.CHECKED_FRAMES = int(alone)
Pace.stretch = fixed
relay.Relay._hear_some = hear
sys.exit(main(arguments))
"""


def relayed_decode(*arguments: str, stretch: int, alone: int) -> Done:
    """Run `kraftwire decode`; copies show `stretch` frames, the process itself `alone` at once."""
    sizes = (str(stretch), str(alone))
    command = [sys.executable, "-c", _PROGRAM, *sizes, "decode", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    return Done(done.stdout, done.stderr, done.returncode)
