"""What a core knows about the voters' implementations, and how much of that it keeps."""

from __future__ import annotations

from kraftwire.raft.events import FeaturesHeard
from kraftwire.raft.values import Destination
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from tests.support.raft.lone import Lone
from tests.support.raft.messages import directory_id, endpoint, fetch

OURS = frozenset({"kraftwire.version 1-1"})
THEIRS = frozenset({"kraft.version 0-1", "metadata.version 7-30"})


def _heard(node: Lone, voter: int, features: frozenset[str], directory: bytes = bytes(16)) -> None:
    node.handle(FeaturesHeard(Destination(voter, f"node{voter}", 9000, directory), features))


def test_a_voter_with_other_features_is_another_implementation() -> None:
    """A voter that only answers is known by its connection."""
    node = Lone(features=OURS)
    _heard(node, 2, THEIRS)
    _heard(node, 3, OURS | THEIRS | {"another.version 0-1"})
    assert node.core.foreign_voters == {2}
    _heard(node, 2, OURS)
    assert node.core.foreign_voters == frozenset()


def test_only_voters_are_remembered() -> None:
    """Ids are easily invented: an observer's, a bootstrap server's, another directory's."""
    node = Lone(features=OURS)
    node.lead()
    for replica in range(4, 200):
        _heard(node, replica, THEIRS)
        node.request(fetch(replica, 0, 0, node.core.epoch), software="apache-kafka-java")
    _heard(node, -2, THEIRS)
    assert node.core.foreign_voters == frozenset()


def test_another_directory_with_a_voters_id_is_another_replica() -> None:
    """A wiped node comes back as an observer with its old id."""
    voters = VoterSet.of(
        *(Voter(ReplicaKey(n, directory_id(n)), (endpoint(n),)) for n in (1, 2, 3))
    )
    node = Lone(voters=voters, features=OURS)
    _heard(node, 2, THEIRS, directory_id(7))
    assert node.core.foreign_voters == frozenset()
    _heard(node, 2, THEIRS, directory_id(2))
    assert node.core.foreign_voters == {2}
