"""All checkers of a cluster, and the facts that each node is compared with."""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.raft.view import RaftView
from kraftwire.replica.storage import Storage
from kraftwire.sim import words
from kraftwire.sim.ballots import Ballots
from kraftwire.sim.facts import MessageChecks
from kraftwire.sim.histories import Histories
from kraftwire.sim.logs import ReplicaLog
from kraftwire.sim.snapshots import check_snapshot
from kraftwire.sim.violation import Violation
from kraftwire.sim.voters import InForce, Key, Voters, read_control


class Books:
    """The records of one quorum: `ballots` of its elections, `histories` of its logs."""

    def __init__(self, initial: InForce, replicas: Mapping[int, ReplicaLog]) -> None:
        """`initial` is in effect before anything is written."""
        self.ballots = Ballots(
            {member[0] for member in initial.voters},
            {node: log.key for node, log in replicas.items()},
        )
        self.histories = Histories(initial, replicas)
        self.checks = MessageChecks(self.ballots, self.histories)

    def appended(
        self, node: int, data: bytes | memoryview, epoch: int, *, leads: bool
    ) -> bool:
        """A node wrote batches; returns whether that changed its voter set."""
        log = self.histories.logs[node]
        before = log.force
        self.histories.appended(node, data, epoch, leads=leads)
        now = log.force
        if now is before:
            return False
        self.ballots.voters.update(member[0] for member in now.voters)
        return now.voters != before.voters

    def forget(self, node: int, key: Key, told: InForce) -> None:
        """A node's disk was replaced by an empty one, which makes it another replica; `told` is in
        force at it."""
        self.histories.forget(node, key, told)
        self.ballots.forget(node, key)

    def believes(self, node: int, core: RaftView) -> None:
        """Check a node that has handled an event. S16: its voters and version are those of its log.
        """
        force = self.histories.logs[node].force
        if core.kraft_version != force.version:
            raise Violation(
                "S16", f"{node} believes kraft.version {core.kraft_version}, it is {force.version}"
            )
        found = tuple((one.key.id, one.key.directory_id) for one in core.voters)
        if found != force.voters:
            raise Violation(
                "S16",
                f"{node} believes in other voters than its log states",
                f"believed: {words.voters(found)}",
                f"in force: {words.voters(force.voters)}",
            )

    def check_newest(self, node: int, storage: Storage) -> None:
        """Check the newest snapshot of a node: it holds what was committed up to its end, with the
        voter set there. S14, S16."""
        newest = storage.snapshots.newest
        if newest is None:
            return
        reader = storage.snapshots.reader(newest)
        values = [record.value or b"" for batch in reader for record in batch.records()]
        reader.close()
        check_snapshot(node, newest.offset, values, self.histories)
        control = next(one.control for one in storage.snapshots.stored() if one.id == newest)
        voters, version, _ = read_control(control)
        check_control(node, newest.offset, (voters, version or 0), self.histories)


def check_control(
    node: int, offset: int, found: tuple[Voters | None, int], histories: Histories
) -> None:
    """A snapshot has these voters and this version. S16: they are in effect at its end."""
    force = histories.force_at(offset)
    voters = force.voters if force.version else None
    if found != (voters, force.version):
        raise Violation(
            "S16",
            f"a snapshot of {node} up to {offset} does not carry the voters in force",
            f"stated: {words.voters(found[0] or ())}, kraft.version {found[1]}",
            f"in force: {words.voters(voters or ())}, kraft.version {force.version}",
        )
