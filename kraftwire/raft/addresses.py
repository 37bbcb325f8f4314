"""Addresses of voters, of the leader, and of the nodes that may know the leader.

They follow from the current voter set and role and are computed once for each voter set.

Source: R-NET-5, R-START-4.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.config import RaftConfig
from kraftwire.raft.roles import Role
from kraftwire.raft.values import Destination
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.wire.fast import ZERO_UUID

_BOOTSTRAP_ID = -2


class Addresses:
    """The destinations of one replica's requests, under the first controller listener."""

    __slots__ = ("_bootstrap", "_destinations", "_leader", "_role", "_voters", "config")

    def __init__(self, config: RaftConfig) -> None:
        self.config = config
        self._voters: VoterSet | None = None  # the set that the addresses below were computed for
        self._destinations: dict[ReplicaKey, Destination | None] = {}
        self._bootstrap: Sequence[Destination] = ()
        self._role: Role | None = None  # the role that the leader's address was computed for
        self._leader: Destination | None = None

    def voter(self, voters: VoterSet, key: ReplicaKey) -> Destination | None:
        """Return the address of a voter; None for one that has no such listener, or is none."""
        if voters is not self._voters:
            self._look(voters)
        return self._destinations.get(key)

    def bootstrap(self, voters: VoterSet) -> Sequence[Destination]:
        """Return the nodes to ask while no leader is known (R-START-4), without this one."""
        if voters is not self._voters:
            self._look(voters)
        return self._bootstrap

    def leader(self, voters: VoterSet, role: Role) -> Destination | None:
        """Return the address of the leader that a role knows."""
        if voters is not self._voters:
            self._look(voters)
        if role is not self._role:
            self._role, self._leader = role, self._leader_of(voters, role)
        return self._leader

    def _look(self, voters: VoterSet) -> None:
        self._voters, self._role = voters, None
        listener = self.config.listener
        self._destinations = {
            one.key: _destination(one.endpoint(listener), one.key) for one in voters
        }
        self._bootstrap = self._servers()

    def _servers(self) -> list[Destination]:
        config = self.config
        if config.bootstrap_servers:
            own = {(at.host, at.port) for at in config.endpoints}
            return [
                Destination(_BOOTSTRAP_ID - place, at.host, at.port)
                for place, at in enumerate(config.bootstrap_servers)
                if (at.host, at.port) not in own
            ]
        found = self._destinations.values()
        return [one for one in found if one is not None and one.id != config.key.id]

    def _leader_of(self, voters: VoterSet, role: Role) -> Destination | None:
        for endpoint in role.leader_endpoints:
            if endpoint.listener == self.config.listener:
                voter = voters.get(role.leader_id)
                directory_id = voter.key.directory_id if voter else ZERO_UUID
                return Destination(role.leader_id, endpoint.host, endpoint.port, directory_id)
        return None


def _destination(endpoint: Endpoint | None, key: ReplicaKey) -> Destination | None:
    """Return the destination of a replica, if its address is known."""
    if endpoint is None:
        return None
    return Destination(key.id, endpoint.host, endpoint.port, key.directory_id)
