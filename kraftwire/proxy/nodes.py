"""The nodes behind a proxy: where each is, and the address here that stands for it."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.protocol.endpoint import Address
from kraftwire.proxy.addresses import Node


class NodeTable:
    """The nodes that answers have named, each with an address here that it keeps.

    `open_listener` makes the address of a new node.
    """

    def __init__(self, open_listener: Callable[[Node], Address]) -> None:
        self._open_listener = open_listener
        self._here: dict[Node, Address] = {}
        self._upstream: dict[Node, Address] = {}

    def find_here(self, node: Node, upstream: Address) -> Address:
        """Return the address here of a node, and note where it is now."""
        self._upstream[node] = upstream
        here = self._here.get(node)
        if here is None:
            here = self._here[node] = self._open_listener(node)
        return here

    def upstream(self, node: Node) -> Address:
        """Return where a node is. Raises: KeyError if no answer has named it."""
        return self._upstream[node]
