"""Names, addresses and voter sets of the nodes in tests of the Raft core."""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.histories import voters_record
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.control import ControlType
from tests.support.raft_disk import Control

LISTENER = "CONTROLLER"
SOFTWARE = "kraftwire"
JAVA_FEATURES = ("kraft.version", "metadata.version", "group.version", "transaction.version")
FEATURES = (*JAVA_FEATURES, "kraftwire.version")


def directory_id(node_id: int) -> bytes:
    """The directory id of a node in these clusters."""
    return bytes(14) + bytes((1, node_id))


def endpoint(node_id: int) -> Endpoint:
    """Where a node of these clusters can be reached."""
    return Endpoint(LISTENER, f"node{node_id}", 9000 + node_id)


def voter_set(ids: Sequence[int]) -> VoterSet:
    """A static voter set: no directory ids."""
    return VoterSet.of(*(Voter(ReplicaKey(one), (endpoint(one),)) for one in ids))


def voter(node_id: int, directory: bytes | None = None) -> Voter:
    """A voter as the log holds it from kraft.version 1 on."""
    key = ReplicaKey(node_id, directory_id(node_id) if directory is None else directory)
    return Voter(key, (endpoint(node_id),), 0, 1)


def dynamic_set(ids: Sequence[int]) -> VoterSet:
    """The set of such voters."""
    return VoterSet.of(*map(voter, ids))


def voters_control(voters: VoterSet) -> Control:
    """The control records that state kraft.version 1 and these voters."""
    version = KRaftVersionRecord(version=0, kraft_version=1)
    return [
        (ControlType.KRAFT_VERSION, version),
        (ControlType.KRAFT_VOTERS, voters_record(voters)),
    ]


def features(
    names: Sequence[str] = FEATURES, kraft: tuple[int, int] = (0, 1)
) -> ApiVersionsResponse:
    """The answer to ApiVersions of a node with these features and this range of kraft.version."""
    ranges = {"kraft.version": kraft, "kraftwire.version": (1, 1)}
    found = []
    for name in names:
        low, high = ranges.get(name, (7, 30))
        found.append(SupportedFeatureKey(name=name, min_version=low, max_version=high))
    return ApiVersionsResponse(supported_features=found)
