"""What each controller of a quorum says when there is no leader: who answers, who does not.

Every node answers a Fetch of the metadata log with the epoch and the leader that it knows, whether
it leads or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import trio

from kraftwire.client.addresses import Address, address_text
from kraftwire.client.cluster import Cluster, error_detail
from kraftwire.client.requests import known_leader, log_request
from kraftwire.client.results import NodeInfo
from kraftwire.errors import ApiError, SecurityError, WireError

# A node that runs answers in milliseconds.
_SECONDS = 2.0
_NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class NodeState:
    """What one node says: the epoch and the leader that it knows, or the `problem` instead.

    `node_id` and `leader_id` are None where they are not known.
    """

    address: Address
    node_id: int | None
    epoch: int | None = None
    leader_id: int | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The node as texts name it."""
        where = address_text(self.address)
        return where if self.node_id is None else f"node {self.node_id} ({where})"


async def survey(cluster: Cluster) -> list[NodeState]:
    """Ask every known node at once. Order: that of the addresses."""
    found: dict[Address, NodeState] = {}

    async def ask(address: Address, node_id: int | None) -> None:
        node = NodeInfo(-1 if node_id is None else node_id, *address)
        with trio.move_on_after(_SECONDS):
            try:
                response = await cluster.request(node, log_request(_NO_EPOCH), _SECONDS)
                epoch, leader_id = known_leader(response)
                found[address] = NodeState(address, node_id, epoch, leader_id)
            except (ApiError, SecurityError, WireError) as error:
                text = error_detail(error) if isinstance(error, ApiError) else str(error)
                text = text.removeprefix(f"{address_text(address)}: ")
                found[address] = NodeState(address, node_id, problem=text)

    ids = cluster.known_ids()
    async with trio.open_nursery() as nursery:
        for address, node_id in ids.items():
            nursery.start_soon(ask, address, node_id)
    silent = f"no answer within {_SECONDS:.3g} s"
    return [
        found.get(address) or NodeState(address, node_id, problem=silent)
        for address, node_id in ids.items()
    ]


def survey_text(states: Sequence[NodeState]) -> str | None:
    """Say in one sentence who answers and who does not; None if nobody answers, or if some node
    knows a leader that answers too.
    """
    answering = [state for state in states if state.problem is None]
    if not answering:
        return None
    newest = max((state.epoch or 0 for state in answering), default=0)
    leaders = {state.leader_id for state in answering if state.epoch == newest} - {None}
    if leaders & {state.node_id for state in answering}:
        return None
    parts = [_answer(state) for state in answering]
    by_problem: dict[str, list[NodeState]] = {}
    for state in states:
        if state.problem is not None:
            by_problem.setdefault(state.problem, []).append(state)
    parts += [f"{_listed(each)}: {problem}" for problem, each in by_problem.items()]
    needed = len(states) // 2 + 1
    if len(states) > 1:
        parts.append(f"{needed} of {len(states)} voters are needed")
    return f"there is no leader: {'; '.join(parts)}"


def _answer(state: NodeState) -> str:
    if state.leader_id is None:
        return f"{state.name} answers, in epoch {state.epoch} without a leader"
    known = f"in epoch {state.epoch}, whose leader it takes to be node {state.leader_id}"
    return f"{state.name} answers, {known}"


def _listed(states: Iterable[NodeState]) -> str:
    *first, last = [state.name for state in states]
    return f"{', '.join(first)} and {last}" if first else last
