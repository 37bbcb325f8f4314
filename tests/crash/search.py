"""Crashes at every operation of the script, on a given number of disks."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from kraftwire.errors import KraftwireError
from kraftwire.sim.disk import SimFiles
from tests.crash.check import problem_of
from tests.crash.outcomes import CrashPoint
from tests.crash.script import Expectation, Run

# One disk in this many is written to after the start, and one gets a second crash during it.
_USED = 4
_AGAIN = 300
_DISKS_AGAIN = 3

# The script is run at most this often, so that other steps get what some had no disks for.
_ROUNDS_MAX = 6


@dataclass(slots=True)
class Figures:
    """What a search has tried. `exhausted` counts the steps of which every legal disk was tried."""

    images: int = 0
    second: int = 0
    steps: int = 0
    exhausted: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add the figures of another search."""
        self.images += other.images
        self.second += other.second
        self.steps += other.steps
        self.exhausted += other.exhausted
        self.violations += other.violations


def steps_of_the_script() -> int:
    """How many operations change the disk, and the moment after the last one.

    A script that is refused ends there; the search tells why.
    """
    count = 1

    def step() -> None:
        nonlocal count
        count += 1

    with contextlib.suppress(KraftwireError):
        Run(SimFiles(step)).go()
    return count


def crash(
    images: int, jobs: int = 1, only: int | None = None, *, until_found: bool = False
) -> Figures:
    """Try about this many disks, spread over all operations or on one.

    With `until_found` the first violation ends the search. Order: deterministic for a number of
    jobs.
    """
    if jobs == 1:
        search = _Search(images, 0, 1, only)
        search.is_impatient = until_found
        return search.run()
    total = Figures()
    with ProcessPoolExecutor(jobs) as pool:
        shares = [pool.submit(_share, images // jobs, part, jobs) for part in range(jobs)]
        for share in shares:
            total.add(share.result())
    return total


def _share(images: int, part: int, parts: int) -> Figures:
    return _Search(images, part, parts, None).run()


class _FoundError(Exception):
    """A violation was found, and one is enough."""


class _Search:
    """Crashes at one operation in `parts`."""

    def __init__(self, images: int, part: int, parts: int, only: int | None) -> None:
        self._left = images
        steps = range(steps_of_the_script()) if only is None else [only]
        self._steps = {number for number in steps if number % parts == part or only is not None}
        self._seen: set[bytes] = set()
        self._exhausted: set[int] = set()
        self._figures = Figures()
        self.is_impatient = False

    def run(self) -> Figures:
        """Run the script, and again if steps had fewer disks than their share."""
        # A start logs each torn end that it truncates, which is only noise here.
        logging.disable(logging.CRITICAL)
        try:
            for self._round in range(_ROUNDS_MAX):
                self._go_through()
                if self._left <= 0 or self._exhausted == self._steps:
                    break
        except _FoundError:
            pass
        except KraftwireError as error:
            # Without any crash, as at a start after a stop.
            self._figures.violations.append(f"step {self._number}: the script ended by {error}")
        finally:
            logging.disable(logging.NOTSET)
        self._figures.steps, self._figures.exhausted = len(self._steps), len(self._exhausted)
        return self._figures

    def _go_through(self) -> None:
        self._number = 0
        self._waiting = len(self._steps - self._exhausted)
        self._files = SimFiles(self._step)
        self._run = Run(self._files)
        self._run.go()
        self._step()

    def _step(self) -> None:
        """Crash here, before the operation of this number."""
        number, self._number = self._number, self._number + 1
        if number not in self._steps or number in self._exhausted:
            return
        # In the first round every step has its turn.
        count = max(self._left // self._waiting, 0 if self._round else 1)
        self._waiting -= 1
        point = CrashPoint(self._files)
        if point.total <= count:
            self._exhausted.add(number)
        expected = self._run.expected
        disks = point.disks(count, Random(f"crash {number} {self._round}"))
        new = (content for content in disks if self._is_new(content))
        for content in islice(new, count):
            self._try(number, content, expected)

    def _is_new(self, content: dict[str, bytes]) -> bool:
        """Whether this disk has not been tried yet with the present expectation."""
        digest = hashlib.blake2b(b"%d" % self._run.stage, digest_size=16)
        for path in sorted(content):
            digest.update(b"%s %d " % (path.encode(), len(content[path])))
            digest.update(content[path])
        key = digest.digest()
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _try(self, number: int, content: dict[str, bytes], expected: Expectation) -> None:
        figures = self._figures
        figures.images += 1
        self._left -= 1
        problem = problem_of(
            SimFiles.holding(content), expected, use=not figures.images % _USED
        )
        if problem is None and not figures.images % _AGAIN:
            problem = self._crash_again(content, expected)
        if problem is not None:
            sizes = {path.rpartition("/")[2]: len(data) for path, data in content.items()}
            figures.violations.append(
                f"step {number} ({expected.what}): {problem}; files {sizes}"
            )
            if self.is_impatient:
                raise _FoundError

    def _crash_again(self, content: dict[str, bytes], expected: Expectation) -> str | None:
        """Crash at every operation of the start as well."""
        problems = [
            problem_of(SimFiles.holding(after), expected)
            for after in self._disks_of_a_start(content)
        ]
        self._figures.images += len(problems)
        self._figures.second += len(problems)
        self._left -= len(problems)
        return next((f"crashed twice: {each}" for each in problems if each), None)

    def _disks_of_a_start(self, content: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
        found: list[dict[str, bytes]] = []
        random = Random(self._figures.images)

        def step() -> None:
            found.extend(islice(CrashPoint(files).disks(_DISKS_AGAIN, random), _DISKS_AGAIN))

        files = SimFiles.holding(content, step)
        problem_of(files, Expectation())
        yield from found
