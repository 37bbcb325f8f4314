"""Decodes several captures, each in a process of its own, with the output of one process.

A first pass counts the frames of each capture and learns what they reveal. So the second one begins
a capture with the number, the names and the reference time that one process would have by then.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from kraftwire.capture.capture import Capture
from kraftwire.cli.decoding import MakeSink, Problem, Problems, Reading
from kraftwire.collector import collect_rarely
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.errors import StorageError
from kraftwire.inspect.run.totals import Totals


@dataclass(slots=True)
class Earlier:
    """What a process has to know of earlier frames.

    `count` is their number, `first_ns` the time of the first of them in nanoseconds since the
    epoch, None without frames, and `memory` what they reveal.
    """

    count: int = 0
    first_ns: int | None = None
    memory: Memory = field(default_factory=Memory)


def decode_captures(
    reading: Reading, make_sink: MakeSink, out: IO[Any], jobs: int, totals: Totals
) -> None:
    """Write what is in captures, which are read apart, and add up `totals`; reports problems.

    `make_sink` has to be picklable.
    """
    problems = Problems()
    with TemporaryDirectory(prefix="kraftwire-") as folder:
        files = [Path(folder) / str(at) for at, _ in enumerate(reading.inputs)]
        pool = ProcessPoolExecutor(jobs, initializer=collect_rarely)
        try:
            # Nothing comes after the last capture that would have to know of it.
            found = pool.map(partial(_survey, reading), reading.inputs[:-1])
            show = partial(_decode, reading, make_sink)
            for part, told in pool.map(show, reading.inputs, files, _accumulated(found)):
                totals.add(part)
                for problem in told:
                    problems.report(problem)
                _move(files.pop(0), out)
        finally:
            pool.shutdown(cancel_futures=True)
    out.flush()
    problems.finish()


def _survey(reading: Reading, path: str) -> Earlier:
    """Return what later captures have to know of one."""
    found = Earlier()
    decoder = FrameDecoder(reading.options.settings(found.memory), found.memory)
    try:
        for frame in Capture(path, keys=reading.options.keys, frame_class=Frame):
            if found.first_ns is None:
                found.first_ns = frame.time_ns
            decoder.decode(frame)
            found.count += 1
    except StorageError:
        pass  # reported by who decodes it
    return found


def _accumulated(found: Iterable[Earlier]) -> Iterator[Earlier]:
    """Yield what is known before each capture, by what each but the last one alone reveals."""
    earlier = Earlier()
    yield earlier
    for each in found:
        memory = each.memory
        memory.merge(earlier.memory)
        first_ns = each.first_ns if earlier.first_ns is None else earlier.first_ns
        earlier = Earlier(earlier.count + each.count, first_ns, memory)
        yield earlier


def _decode(
    reading: Reading, make_sink: MakeSink, path: str, file: Path, earlier: Earlier
) -> tuple[Totals, list[Problem]]:
    """Decode a capture into a file; returns what was counted, and what has to be reported."""
    told: list[Problem] = []
    with file.open("wb") as out:
        run = reading.start(make_sink, out, earlier.memory)
        if earlier.first_ns is not None:
            run.begin(earlier.count, earlier.first_ns)
        reading.read(run, [path], Problems(told.append))
    run.totals.frames -= earlier.count
    run.totals.files.on_finding = None
    return run.totals, told


def _move(file: Path, out: IO[Any]) -> None:
    with file.open("rb") as part:
        shutil.copyfileobj(part, out)
    file.unlink()
