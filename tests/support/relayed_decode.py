"""`kraftwire decode` by several processes that take turns after a few frames, not after thousands.

The sizes that are measured in a real run are fixed here, so that small captures are shared in
many ways, and in the same way each time.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from unittest import mock

from kraftwire.cli import decoding
from kraftwire.cli.main import main
from kraftwire.inspect.run import parallel
from tests.support.run_decode import Done


def relayed_decode(*arguments: str, chunk: int, alone: int) -> Done:
    """Run `kraftwire decode`; workers show `chunk` frames, the process itself `alone` at once."""
    sizes = (str(chunk), str(alone))
    command = [sys.executable, "-m", "tests.support.relayed_decode", *sizes, "decode", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    return Done(done.stdout, done.stderr, done.returncode)


class _FixedChunks(parallel.ChunkSize):
    """Chunks of `size` frames, whatever they take."""

    size = 0
    _calls = count()

    def frames(self, _: int) -> int:
        # Every other time the process goes on by itself while the workers run.
        return self.size if next(self._calls) % 3 else 0


class _PatientRelay(parallel.Relay):
    """Waits for room rather than looks whether there is any."""

    def _collect_finished(self) -> None:
        while len(self._running) >= self.count - 1:
            self._collect(self._running[0])


def _run(chunk: str, alone: str, *arguments: str) -> int:
    _FixedChunks.size = int(chunk)
    with (
        mock.patch.object(parallel, "CHECKED_FRAMES", int(alone)),
        mock.patch.object(parallel, "ChunkSize", _FixedChunks),
        mock.patch.object(decoding, "Relay", _PatientRelay),
    ):
        return main(list(arguments))


if __name__ == "__main__":
    sys.exit(_run(*sys.argv[1:]))
