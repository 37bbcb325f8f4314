"""CreateAcls and DeleteAcls (C-ACL)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from unittest import mock

import pytest

from kraftwire.controller import acls
from kraftwire.controller.acls import create_acls, delete_acls
from kraftwire.errors import ApiError
from kraftwire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftwire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.acl_filter import AclFilter
from kraftwire.security.acls import ALLOW, LITERAL, PREFIXED, Operation, ResourceType
from tests.support.nodes.controlled_cluster import ControlledCluster

ANY = 1


def acl(name: str = "t", **more: object) -> AclCreation:
    """An ACL that lets alice read a topic."""
    creation = AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal="User:alice",
        host="*",
        operation=Operation.READ,
        permission_type=ALLOW,
    )
    for key, value in more.items():
        setattr(creation, key, value)
    return creation


def passing(name: str | None = None, **more: object) -> DeleteAclsFilter:
    """A filter of all ACLs on topics of a name."""
    found = DeleteAclsFilter(
        resource_type_filter=ANY,
        resource_name_filter=name,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    for key, value in more.items():
        setattr(found, key, value)
    return found


class Cluster(ControlledCluster):
    """A cluster whose ACLs change."""

    def __init__(self, level: int = 33) -> None:
        super().__init__(level)
        self._numbers: Iterator[int] = count(1)

    def add(self, *creations: AclCreation) -> list[int]:
        """Create ACLs; returns the codes."""
        request = CreateAclsRequest(creations=list(creations))
        new_id = lambda: next(self._numbers).to_bytes(16, "big")  # noqa: E731
        has_interface = {"eth0"}.__contains__
        answer = self.do(
            create_acls(self.view, request, new_id=new_id, has_interface=has_interface)
        )
        return [one.error_code for one in answer.results]

    def remove(self, *filters: DeleteAclsFilter) -> list[tuple[int, list[str]]]:
        """Delete ACLs; returns codes and names of resources."""
        answer = self.do(delete_acls(self.view, DeleteAclsRequest(filters=list(filters))))
        return [
            (one.error_code, [acl.resource_name for acl in one.matching_acls])
            for one in answer.filter_results
        ]

    @property
    def names(self) -> list[str]:
        """The names of all resources with ACLs."""
        return [one.resource_name for _, one in self.image.acls.items()]


def test_an_acl_is_written_once() -> None:
    """One that is there, or that the request has twice, succeeds and writes nothing (C-ACL-2)."""
    cluster = Cluster()
    assert cluster.add(acl(), acl(), acl(resource_pattern_type=PREFIXED)) == [0, 0, 0]
    assert cluster.add(acl(), acl("u")) == [0, 0]
    assert cluster.names == ["t", "t", "u"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": ResourceType.CLUSTER},
        {"resource_name": ""},
        {"resource_type": ANY},
        {"resource_type": 99},
        {"resource_pattern_type": 2},
        {"operation": ANY},
        {"operation": 16},
        {"permission_type": ANY},
        {"principal": "alice"},
        {"host": ""},
    ],
)
def test_an_acl_that_cannot_be_right_is_refused_alone(wrong: dict[str, object]) -> None:
    """The others of the request are created (C-ACL-1, C-ACL-2)."""
    cluster = Cluster()
    assert cluster.add(acl(**wrong), acl("u")) == [ErrorCode.INVALID_REQUEST, 0]
    assert cluster.names == ["u"]


def test_zones_of_ranges_are_interfaces_of_the_active_controller() -> None:
    """A number is one whether or not there is such an interface; what the log has stays (C-ACL-4,
    SEC-A16)."""
    cluster = Cluster()
    zones = ("eth0", "1", "2147483647", "2147483648", "eth1", "51c:6819", "eth0 ", "eth0:1")
    wanted = [acl(host=f"a::1%{zone}/32") for zone in zones]
    assert cluster.add(*wanted) == [0, 0, 0, *[ErrorCode.INVALID_REQUEST] * 5]


def test_ranges_of_hosts_need_their_level() -> None:
    """Below metadata.version 32 brokers of Kafka 4.3 would not find them (C-ACL-4)."""
    wanted = [acl(host=host) for host in ("10.0.0.0/8", "fe80::/10", "1.2.3.4/33", "10.0.0.1")]
    assert Cluster(31).add(*wanted) == [ErrorCode.UNSUPPORTED_VERSION] * 3 + [0]
    cluster = Cluster(32)
    assert cluster.add(*wanted, acl(host="10.9.9.9/8")) == [0, 0, ErrorCode.INVALID_REQUEST, 0, 0]
    assert cluster.remove(passing(host_filter="10.0.0.0/8")) == [(0, ["t"])]
    hosts = [one.host for _, one in cluster.image.acls.items()]
    assert hosts == ["fe80::/10", "10.0.0.1", "10.9.9.9/8"]


def test_a_principal_without_a_name_can_be_listed_and_removed() -> None:
    """Kafka asks for a colon alone (C-ACL-2)."""
    cluster = Cluster()
    assert cluster.add(acl(principal="User:")) == [0]
    assert cluster.remove(passing(principal_filter="User:")) == [(0, ["t"])]
    assert cluster.names == []


def test_filters_list_what_they_remove() -> None:
    """Overlapping ones list the same; what is removed is removed once (C-ACL-3)."""
    cluster = Cluster()
    cluster.add(acl(), acl("u"), acl("v", operation=Operation.WRITE))
    reading = passing(operation=Operation.READ)
    unknown = passing(operation=0)
    assert cluster.remove(passing("u"), unknown, reading, passing("w")) == [
        (0, ["u"]),
        (ErrorCode.INVALID_REQUEST, []),
        (0, ["t", "u"]),
        (0, []),
    ]
    assert cluster.names == ["v"]


def test_too_many_are_not_removed_in_part() -> None:
    """A part would be missed in a long answer (C-ACL-3)."""
    cluster = Cluster()
    cluster.add(acl(), acl("u"), acl("v"))
    with mock.patch.object(acls, "REMOVED_MAX", 2):
        assert cluster.remove(passing("t"), passing("u")) == [(0, ["t"]), (0, ["u"])]
        cluster.add(acl(), acl("u"))
        with pytest.raises(ApiError) as raised:
            cluster.remove(passing())
    assert raised.value.code == ErrorCode.INVALID_REQUEST
    assert len(cluster.names) == 3


@pytest.mark.parametrize("pattern", [ANY, 2, LITERAL, PREFIXED])
@pytest.mark.parametrize("name", ["t.u", "t.", "", "*", "x", "t.uv"])
def test_a_name_finds_what_looking_at_all_finds(pattern: int, name: str) -> None:
    """Also the prefixes of a name, and what stands for all (C-ACL-3)."""
    cluster = Cluster()
    kinds = [(one, kind) for one in ("t", "t.", "t.u", "*", "u") for kind in (LITERAL, PREFIXED)]
    cluster.add(*(acl(one, resource_pattern_type=kind) for one, kind in kinds))
    wanted = passing(name, pattern_type_filter=pattern)
    expected = sorted(
        one.resource_name
        for _, one in cluster.image.acls.items()
        if AclFilter.of(wanted).passing([(b"", one)])
    )
    for code, found in cluster.remove(wanted, wanted):
        assert (code, sorted(found)) == (0, expected)


def test_filters_that_would_look_at_everything_again_and_again_are_refused() -> None:
    """Thousands of them, on a large cluster, would keep the node from anything else (C-ACL-3)."""
    cluster = Cluster()
    cluster.add(acl(), acl("u"))
    by_host = [passing(host_filter=f"10.0.0.{number}") for number in range(3)]
    with mock.patch.object(acls, "LOOKED_AT_MAX", 4):
        assert cluster.remove(*by_host[:2], *(passing("w") for _ in range(9))) == [(0, [])] * 11
        with pytest.raises(ApiError) as raised:
            cluster.remove(*by_host)
    assert raised.value.code == ErrorCode.INVALID_REQUEST
    with mock.patch.object(acls, "LOOKED_AT_MAX", 1):
        assert cluster.remove(by_host[0]) == [(0, [])]
