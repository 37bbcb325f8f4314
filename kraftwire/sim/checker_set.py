"""All checkers of one quorum, and what each node itself believes compared with them."""

from __future__ import annotations

from collections.abc import Mapping

from kraftwire.raft.view import RaftView
from kraftwire.replica.storage import Storage
from kraftwire.sim import describe
from kraftwire.sim.check_elections import ElectionChecks
from kraftwire.sim.check_logs import LogChecks
from kraftwire.sim.check_messages import MessageChecks
from kraftwire.sim.invariants import Violation
from kraftwire.sim.replica_log import ReplicaLog
from kraftwire.sim.state_machine import check_snapshot
from kraftwire.sim.voters import InForce, Key, Voters, read_control


class CheckerSet:
    """The records of one quorum: `election_checks` of its elections, `log_checks` of its logs."""

    def __init__(self, initial: InForce, replicas: Mapping[int, ReplicaLog]) -> None:
        """`initial` is in effect before anything is written."""
        self.election_checks = ElectionChecks(
            {member[0] for member in initial.voters},
            {node: log.key for node, log in replicas.items()},
        )
        self.log_checks = LogChecks(initial, replicas)
        self.checks = MessageChecks(self.election_checks, self.log_checks)

    def appended(
        self, node: int, data: bytes | memoryview, epoch: int, *, leads: bool
    ) -> bool:
        """A node wrote batches; returns whether that changed its voter set."""
        log = self.log_checks.logs[node]
        before = log.in_force
        self.log_checks.appended(node, data, epoch, leads=leads)
        now = log.in_force
        if now is before:
            return False
        self.election_checks.voters.update(member[0] for member in now.voters)
        return now.voters != before.voters

    def forget(self, node: int, key: Key, initial: InForce) -> None:
        """A node's disk was replaced by an empty one, which makes it another replica; `initial`
        are its voters."""
        self.log_checks.forget(node, key, initial)
        self.election_checks.forget(node, key)

    def believes(self, node: int, core: RaftView) -> None:
        """Check a node that has handled an event. S16: its voters and version are those of its log.
        """
        in_force = self.log_checks.logs[node].in_force
        if core.kraft_version != in_force.version:
            raise Violation(
                "S16",
                f"{node} believes kraft.version {core.kraft_version}, it is {in_force.version}",
            )
        found = tuple((one.key.id, one.key.directory_id) for one in core.voters)
        if found != in_force.voters:
            raise Violation(
                "S16",
                f"{node} believes in other voters than its log states",
                f"believed: {describe.voters(found)}",
                f"in force: {describe.voters(in_force.voters)}",
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
        check_snapshot(node, newest.offset, values, self.log_checks)
        control = next(one.control for one in storage.snapshots.stored() if one.id == newest)
        voters, version, _ = read_control(control)
        check_control(node, newest.offset, (voters, version or 0), self.log_checks)


def check_control(
    node: int, offset: int, found: tuple[Voters | None, int], log_checks: LogChecks
) -> None:
    """A snapshot has these voters and this version. S16: they are in effect at its end."""
    in_force = log_checks.in_force_at(offset)
    voters = in_force.voters if in_force.version else None
    if found != (voters, in_force.version):
        raise Violation(
            "S16",
            f"a snapshot of {node} up to {offset} does not carry the voters in force",
            f"stated: {describe.voters(found[0] or ())}, kraft.version {found[1]}",
            f"in force: {describe.voters(voters or ())}, kraft.version {in_force.version}",
        )
