"""Checks logs and voter changes: logs agree, what is committed stays, and was durable.

Invariants S5 to S16 and S21. Written without knowing a core or a message.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from kraftwire.sim import describe
from kraftwire.sim.invariants import Violation
from kraftwire.sim.replica_log import Batch, ReplicaLog, digest, split
from kraftwire.sim.voters import InForce, Key, Voters, members


def check_change(node: int, now: InForce, *, high_watermark: int, has_committed: bool) -> None:
    """A leader writes a voter set. S16: one member differs, and all before is committed.

    `now` is in effect from then on; `has_committed` is True if the leader knows that a record of
    its own epoch is committed.
    """
    before = now.before
    if before is None or now.offset == before.offset:
        return
    old, new = _comparable(before.voters, now.voters)
    if not new:
        raise Violation("S16", f"{node} writes a voter set of nobody")
    if old == new:
        return
    if len(old ^ new) > 1:
        raise Violation(
            "S16",
            f"{node} changes more than one voter at once",
            f"in force: {describe.voters(sorted(old))}",
            f"written: {describe.voters(sorted(new))}",
        )
    if before.offset >= high_watermark:
        raise Violation(
            "S16", f"{node} changes voters, the set at {before.offset} is not committed"
        )
    if not has_committed:
        raise Violation("S16", f"{node} changes voters, nothing of its epoch is committed")


def _comparable(old: Voters, new: Voters) -> tuple[set[Key], set[Key]]:
    """Return both sets in comparable form: the upgrade from kraft.version 0 adds directory ids."""
    if any(any(member[1]) for member in old):
        return set(old), set(new)
    return {(one[0], b"") for one in old}, {(one[0], b"") for one in new}


def check_added(committed: InForce, key: Key) -> None:
    """Check the answer to an operator that a voter is added, and that this is committed. S12."""
    if not any(key in in_force.voters for in_force in committed.past()):
        raise Violation(
            "S12",
            f"voter {key[0]} was acknowledged, and is in no committed set",
            f"committed: {describe.voters(committed.voters)}",
        )


def check_removed(committed: InForce, key: Key) -> None:
    """Check the answer to an operator that a voter is removed, and that this is committed. S12."""
    for in_force in committed.past():
        before = in_force.before
        if key not in in_force.voters and before is not None and key in before.voters:
            return
    raise Violation(
        "S12",
        f"the removal of voter {key[0]} was acknowledged, and is not committed",
        f"committed: {describe.voters(committed.voters)}",
    )


@dataclass(slots=True)
class _Epoch:
    """The batches of an epoch, which one leader wrote without a gap."""

    end: int
    batches: dict[int, Batch] = field(default_factory=dict)

    @property
    def first_end(self) -> int:
        """Where the first batch ends."""
        return next(iter(self.batches.values())).end


class LogChecks:
    """The logs of a cluster and what was committed."""

    def __init__(self, initial: InForce, replicas: Mapping[int, ReplicaLog]) -> None:
        """`initial` is in force before anything is written."""
        self.initial = initial
        self.logs = dict(replicas)
        self.lost: list[ReplicaLog] = []  # those of disks that were replaced
        self.committed: list[Batch] = []
        self.commit_epochs: list[int] = []
        self._epochs: dict[int, _Epoch] = {}
        self._ends: list[int] = []  # of the committed batches
        self._digests: list[bytes] = []  # after each of them, computed on demand
        self.acknowledged = 0  # the end of what was acknowledged to clients

    @property
    def frontier(self) -> int:
        """The offset below which everything is committed."""
        return self.committed[-1].end if self.committed else 0

    @property
    def in_force(self) -> InForce:
        """What is in effect according to what is committed."""
        return self.committed[-1].in_force if self.committed else self.initial

    def appended(
        self, node: int, data: bytes | memoryview, epoch: int, *, leads: bool = False
    ) -> None:
        """A node in this epoch wrote batches at its log's end. S6, S13, S16."""
        log = self.logs[node]
        batches = log.batches
        previous = batches[-1] if batches else None
        for base, end, batch_epoch, raw in split(data):
            if base != (previous.end if previous else 0) or end <= base:
                raise Violation("S13", f"{node} appends {base}-{end} to a log ending at {log.end}")
            if batch_epoch < (previous.epoch if previous else 0) or batch_epoch > epoch:
                raise Violation(
                    "S13", f"{node} in epoch {epoch} appends epoch {batch_epoch} at {base}"
                )
            batch = self._same(node, (base, end, batch_epoch), raw, previous)
            if leads and batch.in_force is not log.in_force:
                self._check_change(node, batch)
            batches.append(batch)
            previous = batch

    def truncating(self, node: int, end: int, epoch: int, leader_epoch: int | None) -> None:
        """A node in this epoch truncates its log on behalf of a leader of that epoch (None: no
        leader). S11."""
        log = self.logs[node]
        if end < log.high_watermark:
            raise Violation("S11", f"{node} cuts to {end} below its {log.high_watermark}")
        if leader_epoch != epoch:
            raise Violation("S11", f"{node} in epoch {epoch} cuts by order of {leader_epoch}")
        batches = log.batches
        keep = len(batches)
        while keep and batches[keep - 1].base >= end:
            keep -= 1
            self._check_droppable(node, keep, epoch)
        if keep and batches[keep - 1].end > end:
            raise Violation("S13", f"{node} cuts at {end}, inside of {batches[keep - 1].base}")
        log.durable = min(log.durable, keep)
        log.verified = min(log.verified, keep)

    def truncated(self, node: int, end: int, *, is_durable: bool) -> None:
        """The log is truncated; if durably, the rest is durable too. S11."""
        log = self.logs[node]
        if not is_durable:
            raise Violation("S11", f"{node} cuts to {end}, and a power loss would undo that")
        batches = log.batches
        while batches and batches[-1].base >= end:
            batches.pop()
        log.durable = len(batches)

    def flushed(self, node: int, count: int) -> None:
        """The first batches of a node's log are durable."""
        log = self.logs[node]
        if count > log.durable:
            log.durable = count

    def advanced(self, node: int, offset: int, leader_epoch: int | None) -> None:
        """A node has this high watermark; with an epoch, it leads that epoch. S7-S10."""
        log = self.logs[node]
        if offset < log.high_watermark:
            raise Violation("S8", f"{node} lowers high watermark {log.high_watermark}, {offset}")
        if offset > log.end:
            raise Violation("S8", f"{node} has high watermark {offset}, log end {log.end}")
        log.high_watermark = offset
        batches = log.batches
        index = log.verified
        committed = self.committed
        while index < len(batches) and batches[index].end <= offset:
            if index < len(committed):
                if batches[index] is not committed[index]:
                    raise Violation(
                        "S7",
                        f"{node} commits other bytes at {batches[index].base}",
                        f"committed: {describe.batch(committed[index].data)}",
                        f"at {node}: {describe.batch(batches[index].data)}",
                    )
            elif leader_epoch is None:
                raise Violation("S8", f"{node} knows {offset}, committed is {self.frontier}")
            index += 1
        if index and batches[index - 1].end < offset:
            raise Violation("S8", f"{node} has high watermark {offset} inside a batch")
        log.verified = index
        if leader_epoch is not None and index > len(committed):
            self._commit(node, index, leader_epoch)

    def elected(self, node: int, epoch: int) -> None:
        """A node leads this epoch. S5: it has all that was committed in older ones."""
        index = len(self.committed) - 1
        while index >= 0 and self.commit_epochs[index] >= epoch:
            index -= 1
        batches = self.logs[node].batches
        if index >= 0 and (len(batches) <= index or batches[index] is not self.committed[index]):
            raise Violation(
                "S5",
                f"{node} leads epoch {epoch} without offset {self.committed[index].base}",
                f"committed: {describe.batch(self.committed[index].data)}",
                f"its log ends with (epoch, offset) {self.logs[node].last}",
            )

    def acked(self, offset: int, epoch: int, *, count: int = 1, after: int = 0) -> None:
        """A client's records were acknowledged at this offset. S12; S21: not below what had been
        acknowledged when the client sent the request."""
        if offset < after:
            raise Violation("S21", f"{offset} was acknowledged, asked for after {after} was")
        self.acknowledged = max(self.acknowledged, offset + count)
        batch = self.committed_at(offset)
        if batch is None or batch.epoch != epoch:
            found = f"epoch {batch.epoch}" if batch else "nothing"
            raise Violation("S12", f"({epoch}, {offset}) was acknowledged, committed is {found}")

    def delivered(self, start: int, end: int, data: bytes) -> int:
        """A state machine got these bytes as committed; returns where they end. S7, S12."""
        for base, batch_end, _, raw in split(data) if data else ():
            batch = self.committed_at(base)
            if batch is None or batch.base != base or batch.data != raw or batch_end > end:
                raise Violation("S7", f"a listener read other bytes than were committed at {base}")
            if base != start:
                raise Violation("S7", f"a listener expected {start} and got {base}")
            start = batch_end
        if not data:
            raise Violation("S7", f"a listener got nothing for {start}-{end}")
        return start

    def restarted(
        self, node: int, found: list[bytes], *, is_durable: bool, start: int = 0
    ) -> None:
        """A node reopened its log, which starts here with these batches. S9, S12: no durable one is
        missing, and none appears that was never written."""
        log = self.logs[node]
        prefix = self._prefix(node, start) if start else []
        skipped = len(prefix)
        was = log.batches[:skipped]
        if prefix and (len(was) < skipped or was[-1] is not prefix[-1]):
            # A snapshot replaced the log, perhaps after a crash while that happened.
            log.batches[:] = prefix
            log.durable = 0
        for index, raw in enumerate(found, skipped):
            if index >= len(log.batches) or log.batches[index].data != raw:
                raise Violation("S13", f"{node} found a batch that it did not write, {index}th")
        count = skipped + len(found)
        if count < log.durable:
            lost = log.batches[count].base
            raise Violation("S12", f"{node} lost what was durable, from offset {lost} on")
        if not is_durable:
            raise Violation("S9", f"{node} continues with a log that is not durable")
        del log.batches[count:]
        log.durable = count
        log.start = start
        log.verified = 0
        log.high_watermark = -1

    def reset(self, node: int, end: int, epoch: int) -> None:
        """A node resets its log to a snapshot that ends here. S11, S14: the snapshot holds what is
        committed, and nothing committed is lost."""
        log = self.logs[node]
        prefix = self._prefix(node, end)
        if prefix[-1].epoch != epoch:
            raise Violation("S14", f"{node} has snapshot {end}-{epoch} of epoch {prefix[-1].epoch}")
        for index in range(len(prefix), len(log.batches)):
            if index < len(self.committed) and log.batches[index] is self.committed[index]:
                lost = log.batches[index].base
                raise Violation("S11", f"{node} begins again at {end} and loses committed {lost}")
        log.batches[:] = prefix
        log.durable = log.verified = len(prefix)
        log.start = end

    def started(self, node: int, start: int) -> None:
        """A node's log now starts here. S14: everything below is committed, and known to be."""
        log = self.logs[node]
        if start == log.start:
            return
        if not log.start < start <= log.high_watermark:
            found = f"from {log.start}, high watermark {log.high_watermark}"
            raise Violation("S14", f"{node} lets its log start at {start} {found}")
        self._prefix(node, start)
        log.start = start

    def digest_at(self, offset: int) -> bytes:
        """Return the digest of a state machine that has applied all committed batches below an
        offset. S14."""
        index = bisect_left(self._ends, offset)
        if not offset:
            return b""
        if index == len(self._ends) or self._ends[index] != offset:
            raise Violation("S14", f"a state machine is at {offset}, which is inside a batch")
        digests = self._digests
        while len(digests) <= index:
            before = digests[-1] if digests else b""
            digests.append(digest(before, self.committed[len(digests)].data))
        return digests[index]

    def in_force_at(self, offset: int) -> InForce:
        """Return what is in effect according to all that is committed below an offset."""
        index = bisect_right(self._ends, offset)
        return self.committed[index - 1].in_force if index else self.initial

    def forget(self, node: int, key: Key, initial: InForce) -> None:
        """A node has an empty disk, and so is another replica, with these voters."""
        self.lost.append(self.logs[node])
        self.logs[node] = ReplicaLog(key, initial)

    def committed_at(self, offset: int) -> Batch | None:
        """Return the committed batch that contains an offset."""
        index = bisect_right(self._ends, offset)
        return self.committed[index] if index < len(self._ends) else None

    def _prefix(self, node: int, end: int) -> list[Batch]:
        """Return the committed batches below an offset. S14: it is the end of one of them."""
        index = bisect_left(self._ends, end)
        if index == len(self._ends) or self._ends[index] != end:
            raise Violation("S14", f"{node} has a snapshot up to {end}, where no commit ends")
        return self.committed[: index + 1]

    def _same(
        self, node: int, where: tuple[int, int, int], data: bytes, previous: Batch | None
    ) -> Batch:
        """Return the batch of this epoch and offset that others have; it must be identical."""
        base, end, number = where
        epoch = self._epochs.get(number)
        if epoch is None:
            epoch = self._epochs[number] = _Epoch(base)
        known = epoch.batches.get(base)
        if known is None:
            if base != epoch.end:
                raise Violation("S13", f"{node} has {base} of epoch {number}, known to {epoch.end}")
            batch = epoch.batches[base] = Batch.read(where, data, previous, self.initial)
            epoch.end = end
            return batch
        if known.data != data:
            raise Violation(
                "S13",
                f"{node} has other bytes at ({number}, {base})",
                f"written before: {describe.batch(known.data)}",
                f"at {node}: {describe.batch(data)}",
            )
        if known.previous is not previous:
            raise Violation("S6", f"{node} has another log below ({number}, {base})")
        return known

    def _check_change(self, node: int, batch: Batch) -> None:
        mark = self.logs[node].high_watermark
        has_committed = self._epochs[batch.epoch].first_end <= mark
        check_change(node, batch.in_force, high_watermark=mark, has_committed=has_committed)

    def _check_droppable(self, node: int, index: int, epoch: int) -> None:
        if index < len(self.committed) and self.commit_epochs[index] <= epoch:
            batch = self.logs[node].batches[index]
            if batch is self.committed[index]:
                raise Violation("S11", f"{node} in epoch {epoch} cuts committed {batch.base}")

    def _commit(self, node: int, count: int, epoch: int) -> None:
        batches = self.logs[node].batches
        last = batches[count - 1]
        if last.epoch != epoch:
            raise Violation(
                "S10",
                f"{node} of epoch {epoch} commits {last.base} of epoch {last.epoch} alone",
                f"leader {node} of epoch {epoch}",
                f"last committed batch: {describe.batch(last.data)}",
            )
        voters = self.logs[node].in_force.voters
        # A disk that was replaced since then has acknowledged what it held to the leader.
        logs = (*self.logs.values(), *self.lost)
        keys = [log.key for log in logs if _has_durably(log, count, last)]
        holding = members(voters, keys)
        if 2 * len(holding) <= len(voters):
            raise Violation(
                "S9",
                f"{node} commits up to {last.end}, durable on {describe.voters(holding)} only",
                f"last committed batch: {describe.batch(last.data)}",
                f"voters in force at {node}: {describe.voters(voters)}",
            )
        new = batches[len(self.committed) : count]
        self.committed += new
        self.commit_epochs += [epoch] * len(new)
        self._ends += [batch.end for batch in new]


def _has_durably(log: ReplicaLog, count: int, last: Batch) -> bool:
    return log.durable >= count and log.batches[count - 1] is last
