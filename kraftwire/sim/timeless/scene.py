"""Describes the state of a timeless cluster's nodes: what each has stored, and its log."""

from __future__ import annotations

from kraftwire.sim import words
from kraftwire.sim.timeless.book import Book
from kraftwire.sim.timeless.shelves import Shelf
from kraftwire.sim.timeless.world import World

__all__ = ["sides", "standing"]


def sides(book: Book, at_odds: frozenset[int], *, is_of_elections: bool) -> list[str]:
    """Describe what these nodes disagree about.

    That is their votes, or the ends of their logs, with the end of what is committed.
    """
    shelves = [book.shelves[node] for node in sorted(book.shelves) if node in at_odds]
    if is_of_elections:
        epochs = {shelf.stored.epoch for shelf in shelves}
        voting = [book.shelves[node] for node in sorted(book.shelves)]
        return [_vote(shelf) for shelf in voting if shelf.stored.epoch in epochs]
    told = [
        f"node {words.replica(*shelf.key)}: last batch {words.batch(shelf.log[-1].data)}"
        for shelf in shelves
        if shelf.log
    ]
    return [*told, f"committed: {_committed(book)}"]


def _vote(shelf: Shelf) -> str:
    stored, (node, directory_id) = shelf.stored, shelf.key
    if stored.leader_id == node:
        # A leader has voted for itself, but need not store that.
        return words.vote(node, stored.epoch, node, directory_id, directory_id)
    if stored.voted is None:
        return words.vote(node, stored.epoch, -1, own_id=directory_id)
    given = stored.voted
    return words.vote(node, stored.epoch, given.id, given.directory_id, directory_id)


def standing(world: World, at_odds: frozenset[int]) -> list[str]:
    """Return a line for each node and one for what is committed. Order: the nodes at odds first."""
    shelves = world.book.shelves
    nodes = sorted(shelves, key=lambda node: (node not in at_odds, node))
    rows = [_row(world, shelves[node]) for node in nodes]
    return [*words.table(rows), f"committed: {_committed(world.book)}"]


def _row(world: World, shelf: Shelf) -> tuple[str, ...]:
    node = shelf.key[0]
    running = world.nodes.get(node)
    return (
        f"{node}:",
        f"{running.core.role} in epoch {running.core.epoch}" if running else "down",
        f"stored {words.stored(shelf.stored)}",
        f"log end {words.position(shelf.end, shelf.last_epoch)}",
        f"durable to {shelf.durable}",
        words.high_watermark(shelf.high_watermark),
        f"voters {words.voters(shelf.voters)}",
    )


def _committed(book: Book) -> str:
    committed = book.history.committed
    return words.committed(book.history.frontier, committed[-1].data if committed else None)
