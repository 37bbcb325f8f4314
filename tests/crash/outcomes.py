"""What a power loss may leave of files: every legal content, every legal set of names.

Sectors of 512 bytes are written whole, those of different writes in any order. A change of size is
a piece of its own. Names of a directory change in order, as a journal of the file system keeps
them. Where the pieces of a file are few, every subset of them is tried; else every beginning, every
one left out, every one alone, and sizes without bytes. The last write may also be torn inside of a
sector, which is harsher than disks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, pairwise, product
from random import Random

from kraftwire.sim.crash_model import Change, Inode, apply
from kraftwire.sim.disk import SimFiles

_SECTOR = 512

_Choice = tuple[dict[str, Inode], dict[Inode, int]]

# Of a step with many disks, this many are drawn for each that is wanted, because some are equal.
_TRIES = 6

# With this many pieces or fewer, all subsets are tried: 64 of them.
_SUBSETS_MAX = 6


def contents_of(inode: Inode) -> list[bytes]:
    """Every content that a file may be found with.

    Order: the durable content first, the one with all changes last.
    """
    pieces = list(chain.from_iterable(map(_pieces, inode.pending)))
    found = {bytes(inode.durable): None}
    for subset in _subsets(pieces):
        found[_applied(inode, subset)] = None
    if pieces:
        found[_applied(inode, [_as_zeros(piece) for piece in pieces])] = None
        position, data = pieces[-1]
        if data is not None and len(data) > 1:
            for size in (1, len(data) // 2, len(data) - 1):
                found[_applied(inode, [*pieces[:-1], (position, data[:size])])] = None
    everything = _applied(inode, pieces)
    found.pop(everything, None)
    return [*found, everything]


def _pieces(change: Change) -> list[Change]:
    position, data = change
    if data is None:
        return [change]
    first = _SECTOR - position % _SECTOR
    bounds = [0, *range(first, len(data), _SECTOR), len(data)]
    return [(position + low, data[low:high]) for low, high in pairwise(bounds)]


def _subsets(pieces: list[Change]) -> Iterator[Sequence[Change]]:
    count = len(pieces)
    if count <= _SUBSETS_MAX:
        for size in range(count + 1):
            yield from combinations(pieces, size)
        return
    for number in range(count + 1):
        yield pieces[:number]
        yield pieces[:number] + pieces[number + 1 :]
        yield pieces[number : number + 1]


def _as_zeros(piece: Change) -> Change:
    position, data = piece
    return position, None if data is None else bytes(len(data))


def _applied(inode: Inode, pieces: Sequence[Change]) -> bytes:
    content = bytearray(inode.durable)
    for piece in pieces:
        apply(content, piece)
    return bytes(content)


class CrashPoint:
    """All disks that may be found if the power fails at this moment.

    `total` says how many choices there are; different ones may lead to equal disks.
    """

    def __init__(self, files: SimFiles) -> None:
        counts = files.pending_names()
        kept = product(*(range(count + 1) for count in counts.values()))
        self._names = [files.named_after(dict(zip(counts, each, strict=True))) for each in kept]
        self._contents: dict[Inode, list[bytes]] = {}
        self.total = 0
        for names in self._names:
            choices = 1
            for inode in names.values():
                if inode not in self._contents:
                    self._contents[inode] = contents_of(inode)
                choices *= len(self._contents[inode])
            self.total += choices

    def disks(self, count: int, random: Random) -> Iterator[dict[str, bytes]]:
        """All disks if they are so few, else some more than that, of which some may be equal.

        First come those with one file chosen freely, and all others without or with all their
        changes; then anything.
        """
        if self.total <= count:
            yield from self._all()
            return
        plain = list(self._one_file_free())
        random.shuffle(plain)
        yield from (self._disk(*each) for each in plain)
        for _ in range(_TRIES * count):
            names = random.choice(self._names)
            sizes = {inode: len(self._contents[inode]) for inode in names.values()}
            yield self._disk(names, {one: random.randrange(size) for one, size in sizes.items()})

    def _all(self) -> Iterator[dict[str, bytes]]:
        for names in self._names:
            inodes = list(names.values())
            for picks in product(*(range(len(self._contents[inode])) for inode in inodes)):
                yield self._disk(names, dict(zip(inodes, picks, strict=True)))

    def _one_file_free(self) -> Iterator[_Choice]:
        for names in self._names:
            for rest in (0, -1):
                yield names, dict.fromkeys(names.values(), rest)
                for inode in names.values():
                    for pick in range(len(self._contents[inode])):
                        yield names, {**dict.fromkeys(names.values(), rest), inode: pick}

    def _disk(self, names: dict[str, Inode], picks: dict[Inode, int]) -> dict[str, bytes]:
        return {path: self._contents[inode][picks[inode]] for path, inode in names.items()}
