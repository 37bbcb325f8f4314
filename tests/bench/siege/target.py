"""What an attacker knows of the quorum that it attacks."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """A quorum. `ports` by node id as text, as JSON has it; `descriptors` is the limit of each
    node. `login` are the client properties by which everybody logs in, `folder` has the stores."""

    ports: dict[str, int]
    leader_id: int
    epoch: int
    cluster_id: str
    descriptors: int
    login: dict[str, str] = field(default_factory=dict)
    folder: str = ""

    @property
    def leader_port(self) -> int:
        """Where the leader listens."""
        return self.ports[str(self.leader_id)]

    @property
    def follower_id(self) -> int:
        """A voter that does not lead."""
        return next(int(one) for one in self.ports if int(one) != self.leader_id)
