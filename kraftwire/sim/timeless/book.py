"""All checks of a timeless cluster: it receives facts and raises violations."""

from __future__ import annotations

from typing import Any

from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim import words
from kraftwire.sim.timeless import facts
from kraftwire.sim.timeless.cluster_history import ClusterHistory
from kraftwire.sim.timeless.logs import Logs
from kraftwire.sim.timeless.shelves import Shelf
from kraftwire.sim.timeless.votes import Votes
from kraftwire.sim.violation import Violation
from kraftwire.sim.voters import Key, Voters

__all__ = ["Book"]


class Book:
    """All facts about a cluster. `shelves` are by node, `away` those of lost disks."""

    __slots__ = ("away", "history", "logs", "shelves", "static", "votes")

    def __init__(self, static: Voters, history: ClusterHistory | None = None) -> None:
        """Start with a cluster whose configuration names these voters; none for a dynamic quorum.
        """
        self.static = static
        self.history = history or ClusterHistory()
        self.votes = Votes(self.history)
        self.logs = Logs(self.history)
        self.shelves: dict[int, Shelf] = {}
        self.away: list[Shelf] = []

    def see(self, node: int, seen: list[facts.Fact]) -> None:
        """Check what a node did, in order. Raises: Violation."""
        for fact in seen:
            kind = type(fact)
            if kind is facts.Settled:
                self._settled(node, fact)  # type: ignore[arg-type]
            elif kind is facts.Started:
                self._started(node, fact)  # type: ignore[arg-type]
            else:
                self._look(self.shelves[node], kind, fact)

    def _look(self, shelf: Shelf, kind: type, fact: Any) -> None:
        if kind is facts.Asked:
            self.votes.asked(shelf, fact.message)
        elif kind is facts.Answered:
            self.votes.answered(shelf, fact)
        elif kind is facts.Persisted:
            self.votes.persisted(shelf, fact)
        elif kind is facts.Advanced:
            last = self.logs.advanced(shelf, fact)
            if last is not None:
                holding = tuple([one.key for one in self.shelves.values() if one.is_durable(last)])
                self.history.commits_on(shelf.key[0], shelf.voters, holding)
        else:
            getattr(self.logs, _NAMES[kind])(shelf, fact)

    def _started(self, node: int, fact: facts.Started) -> None:
        key: Key = (node, fact.directory_id)
        shelf = self.shelves.get(node)
        if shelf is None or shelf.key != key:
            if shelf is not None:
                self.away = [*self.away, shelf]
            shelf = self.shelves[node] = Shelf(key, self.static)
            if fact.election.epoch or fact.entries:
                raise Violation("S12", f"the empty disk of {node} is not empty")
        elif fact.election != shelf.stored:
            raise Violation(
                "S2",
                f"{node} finds another quorum state than it stored",
                f"stored: {words.election(shelf.stored)}",
                f"found: {words.election(fact.election)}",
            )
        self.logs.started(shelf, fact)

    def _settled(self, node: int, fact: facts.Settled) -> None:
        shelf = self.shelves[node]
        self.votes.settled(shelf, fact)
        if fact.end != shelf.end:
            raise Violation("S13", f"{node} believes its log to end at {fact.end}, not {shelf.end}")
        if fact.high_watermark > max(shelf.high_watermark, shelf.start.offset):
            raise Violation(
                "S8", f"{node} answers with {fact.high_watermark}, known is {shelf.high_watermark}"
            )
        if fact.version != shelf.version:
            raise Violation(
                "S16", f"{node} believes kraft.version {fact.version}, in force is {shelf.version}"
            )
        theirs, ours = fact.voters, shelf.voters
        if not shelf.version:
            theirs, ours = tuple((k[0], b"") for k in theirs), tuple((k[0], b"") for k in ours)
        if theirs != ours:
            raise Violation(
                "S16",
                f"{node} takes other voters for those in force",
                f"in force: {words.voters(ours)}",
                f"node {node} believes: {words.voters(theirs)}",
            )

    def ends(self) -> list[OffsetAndEpoch]:
        """The end offsets of all logs."""
        return [OffsetAndEpoch(one.end, one.last_epoch) for one in self.shelves.values()]


_NAMES: dict[type, str] = {
    facts.Elected: "elected",
    facts.Appended: "appended",
    facts.Truncated: "truncated",
    facts.Flushed: "flushed",
    facts.Reset: "reset",
    facts.PrefixDropped: "prefix_dropped",
    facts.SnapshotStored: "snapshot_stored",
    facts.Delivered: "delivered",
    facts.Loaded: "loaded",
    facts.Told: "told",
    facts.Acked: "acked",
}
