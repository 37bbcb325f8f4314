"""What a crash leaves of a file: its current bytes, its durable bytes, and the writes between."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

# The unflushed writes that survive a power loss: none, all, those up to a byte, any set of
# sectors, or sizes without the bytes (zeros).
CRASH_POLICIES = ("none", "all", "prefix", "sectors", "zeros")

_SECTOR = 512

# A write (offset, bytes), or a change of size (size, None).
Change = tuple[int, bytes | None]


@dataclass(slots=True, eq=False)
class Inode:
    """A file without its name."""

    seen: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)

    def change(self, change: Change) -> None:
        """Change what a process sees."""
        apply(self.seen, change)
        self.pending.append(change)

    def make_durable(self, count: int) -> None:
        """Make the first `count` pending changes durable."""
        for change in self.pending[:count]:
            apply(self.durable, change)
        del self.pending[:count]

    def revert(self) -> None:
        """Lose what is not durable."""
        self.pending.clear()
        self.seen[:] = self.durable


def apply(data: bytearray, change: Change) -> None:
    """Carry out a change."""
    position, new = change
    if new is None:
        if position <= len(data):
            del data[position:]
        else:
            data.extend(bytes(position - len(data)))
        return
    gap = position - len(data)
    if gap >= 0:
        if gap:
            data.extend(bytes(gap))
        data.extend(new)
    else:
        data[position : position + len(new)] = new


def kept_names(random: Random, policy: str, count: int) -> int:
    """Draw how many of the first pending changes of names survive."""
    if policy == "none":
        return 0
    return count if policy == "all" else random.randint(0, count)


def survive(inode: Inode, random: Random, policy: str) -> None:
    """Decide which of a file's pending changes survive a power loss."""
    if policy == "all":
        inode.make_durable(len(inode.pending))
    elif policy == "prefix":
        _keep_prefix(inode, random)
    elif policy == "sectors":
        _keep_sectors(inode, random)
    elif policy == "zeros":
        _keep_sizes(inode, random)
    inode.revert()


def _keep_prefix(inode: Inode, random: Random) -> None:
    count = random.randint(0, len(inode.pending))
    torn = inode.pending[count] if count < len(inode.pending) else None
    inode.make_durable(count)
    if torn is not None and torn[1] is not None:
        data = torn[1]
        size = random.randint(0, len(data))
        if random.random() < 0.5:
            size -= size % _SECTOR
        apply(inode.durable, (torn[0], data[:size]))


def _keep_sectors(inode: Inode, random: Random) -> None:
    """Any set of sectors survives, in any order; holes hold zeros."""
    chance = random.random()
    for position, data in inode.pending:
        if data is None:
            if random.random() < chance:
                apply(inode.durable, (position, None))
            continue
        start = 0
        while start < len(data):
            end = min(len(data), start + _SECTOR - (position + start) % _SECTOR)
            if random.random() < chance:
                apply(inode.durable, (position + start, data[start:end]))
            start = end


def _keep_sizes(inode: Inode, random: Random) -> None:
    """The file is as long as it was, with zeros where bytes are missing."""
    keep = random.randint(0, len(inode.pending))
    for number, (position, data) in enumerate(inode.pending):
        if data is not None and number >= keep:
            apply(inode.durable, (position, bytes(len(data))))
        else:
            apply(inode.durable, (position, data))
