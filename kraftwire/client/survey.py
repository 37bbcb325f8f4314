"""The answer of each known node of a cluster, for calls that find no leader.

Every controller answers a Fetch of the metadata log with the epoch and the leader that it knows;
only the leader answers it without an error. Brokers are only connected to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import trio

from kraftwire.client.cluster import ClusterConnections, error_detail
from kraftwire.client.requests import is_led, known_leader, log_request
from kraftwire.client.results import NodeInfo
from kraftwire.errors import ApiError, SecurityError, WireError
from kraftwire.protocol.endpoint import Address, address_text

# A node that runs answers in milliseconds.
_SECONDS = 2.0
_NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class NodeState:
    """The state of the node at one address: the epoch and leader that it knows, and whether it is
    that leader; or the `problem` instead.

    `node_id` is who advertises the address, None for one that only the caller has given;
    `leader_id` is None if the node knows none.
    """

    address: Address
    node_id: int | None
    epoch: int | None = None
    leader_id: int | None = None
    leads: bool = False
    problem: str | None = None

    @property
    def name(self) -> str:
        """The node as texts name it."""
        where = address_text(self.address)
        return where if self.node_id is None else f"node {self.node_id} ({where})"


async def survey(cluster: ClusterConnections) -> list[NodeState]:
    """Query all known nodes at once. Order: that of the addresses."""
    found: dict[Address, NodeState] = {}

    async def query(address: Address, node_id: int | None) -> None:
        with trio.move_on_after(_SECONDS):
            try:
                found[address] = await _query(cluster, address, node_id)
            except (ApiError, SecurityError, WireError) as error:
                text = error_detail(error) if isinstance(error, ApiError) else str(error)
                text = text.removeprefix(f"{address_text(address)}: ")
                found[address] = NodeState(address, node_id, problem=text)

    ids = cluster.known_ids()
    async with trio.open_nursery() as nursery:
        for address, node_id in ids.items():
            nursery.start_soon(query, address, node_id)
    silent = f"no answer within {_SECONDS:.3g} s"
    return [
        found.get(address) or NodeState(address, node_id, problem=silent)
        for address, node_id in ids.items()
    ]


async def _query(cluster: ClusterConnections, address: Address, node_id: int | None) -> NodeState:
    node = NodeInfo(-1 if node_id is None else node_id, *address)
    if not cluster.settings.is_controllers:
        await cluster.connect(node)
        return NodeState(address, node_id)
    epoch, leader_id = known_leader(
        await cluster.request(node, log_request(_NO_EPOCH), _SECONDS)
    )
    # Only a request in the present epoch is answered differently by the leader.
    leads = leader_id is not None and is_led(
        await cluster.request(node, log_request(epoch), _SECONDS)
    )
    return NodeState(address, node_id, epoch, leader_id, leads)


def survey_text(states: Sequence[NodeState]) -> str | None:
    """Return a sentence: whom the nodes of a quorum take for its leader, and who does not answer.

    None if nobody answers, or the leader does where it advertises to.
    """
    answering = [state for state in states if state.problem is None]
    if not answering:
        return None
    newest = max(state.epoch or 0 for state in answering)
    leads = [state for state in answering if state.leads and state.epoch == newest]
    named = [state for state in answering if state.leader_id is not None and state.epoch == newest]
    if not named:
        return _no_leader_text(states)
    witness = (leads or named)[0]
    advertised = [state for state in states if state.node_id == witness.leader_id]
    if any(state.leads for state in advertised):
        return None
    verb = "leads the quorum as" if witness.leads else "names as the leader"
    start = f"{witness.name} answers and {verb} node {witness.leader_id}, in epoch {newest}"
    return f"{start}; {_unreachable_leader_text(advertised, is_certain=witness.leads)}"


def _unreachable_leader_text(advertised: Sequence[NodeState], *, is_certain: bool) -> str:
    """Return why a known leader cannot be reached."""
    if not advertised:
        return "no address of that node is known: check its advertised.listeners"
    state = advertised[0]
    problem = state.problem or "another node answers there"
    advice = "check" if is_certain or state.problem is None else "if it runs, check"
    where = f"its advertised address {address_text(state.address)}: {problem}"
    return f"{where}: {advice} advertised.listeners of node {state.node_id}"


def _no_leader_text(states: Sequence[NodeState]) -> str:
    parts = [
        f"{state.name} answers, in epoch {state.epoch} without a leader"
        if state.leader_id is None
        else f"{state.name} answers, still in epoch {state.epoch} of node {state.leader_id}"
        for state in states
        if state.problem is None
    ]
    parts += _problems(states)
    # An address that nobody advertises may be that of any of the others.
    if len(states) > 1 and all(state.node_id is not None for state in states):
        parts.append(f"{len(states) // 2 + 1} of {len(states)} voters are needed")
    return f"there is no leader: {'; '.join(parts)}"


def brokers_text(states: Sequence[NodeState]) -> str | None:
    """Return a sentence: brokers answer, but none at its advertised address; None if nobody
    answers, or one does there."""
    given = [state for state in states if state.node_id is None and state.problem is None]
    advertised = [state for state in states if state.node_id is not None]
    if not given or not advertised or any(state.problem is None for state in advertised):
        return None
    names = _listed(given)
    verb = "answers and names" if len(given) == 1 else "answer and name"
    problems = "; ".join(_problems(advertised))
    start = f"{names} {verb} brokers at addresses that do not"
    return f"{start}: {problems}: check advertised.listeners"


def problems_text(states: Iterable[NodeState]) -> str:
    """Return why nodes do not answer; empty if all do."""
    return "; ".join(_problems(states))


def _problems(states: Iterable[NodeState]) -> list[str]:
    by_problem: dict[str, list[NodeState]] = {}
    for state in states:
        if state.problem is not None:
            by_problem.setdefault(state.problem, []).append(state)
    return [f"{_listed(each)}: {problem}" for problem, each in by_problem.items()]


def _listed(states: Iterable[NodeState]) -> str:
    *first, last = [state.name for state in states]
    return f"{', '.join(first)} and {last}" if first else last
