"""`kraftwire decode` by several processes that take turns after a few frames, not after thousands.

The sizes that are measured in a real run are fixed here, so that small captures are shared in
many ways, and in the same way each time.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.run_decode import Done

_PROGRAM = """
import sys
from itertools import count

from kraftwire.cli.main import main
from kraftwire.inspect.run import parallel

chunk, alone, *arguments = sys.argv[1:]
calls = count()

def fixed(size, number):
    # Every other time the process goes on by itself while the workers run.
    return int(chunk) if next(calls) % 3 else 0

def wait(self):
    # Wait for room rather than look whether there is any.
    while len(self._running) >= self.count - 1:
        self._collect(self._running[0])

parallel.CHECKED_FRAMES = int(alone)
parallel.ChunkSize.frames = fixed
parallel.Relay._collect_finished = wait
sys.exit(main(arguments))
"""


def relayed_decode(*arguments: str, chunk: int, alone: int) -> Done:
    """Run `kraftwire decode`; workers show `chunk` frames, the process itself `alone` at once."""
    sizes = (str(chunk), str(alone))
    command = [sys.executable, "-c", _PROGRAM, *sizes, "decode", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    return Done(done.stdout, done.stderr, done.returncode)
