"""Filters of ACLs, as DescribeAcls and DeleteAcls carry them.

Source: Kafka's `ResourcePatternFilter` and `AccessControlEntryFilter`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from kraftwire.security.acls import LITERAL, PREFIXED, WILDCARD, Acl, Operation, ResourceType

if TYPE_CHECKING:
    from kraftwire.messages.delete_acls_request import DeleteAclsFilter
    from kraftwire.messages.describe_acls_request import DescribeAclsRequest

ANY = 1
# A pattern that would apply to a name, whatever its own kind.
_MATCH = 2
_PERMISSION_LAST = 3

UNKNOWN_FILTER = (
    "the filter has a kind of resource, pattern, operation or permission that is unknown"
)


@dataclass(frozen=True, slots=True)
class AclFilter:
    """What an ACL has to be; None and 1 stand for anything."""

    resource_type: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @classmethod
    def of(cls, request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
        """Return the filter of a request, or one of its filters."""
        return cls(
            request.resource_type_filter,
            request.resource_name_filter,
            request.pattern_type_filter,
            request.principal_filter,
            request.host_filter,
            request.operation,
            request.permission_type,
        )

    @property
    def is_known(self) -> bool:
        """Whether all numbers stand for something."""
        return (
            ANY <= self.resource_type < len(ResourceType.NAMES)
            and ANY <= self.pattern <= PREFIXED
            and ANY <= self.operation < len(Operation.NAMES)
            and ANY <= self.permission <= _PERMISSION_LAST
        )

    def names(self, lengths: Collection[int]) -> list[str]:
        """Return the names of resources that can pass, of these lengths. Order: it has a name."""
        name = self.name or ""
        if self.pattern != _MATCH:
            return [name]
        starts = [name[:length] for length in lengths if length <= len(name)]
        return list(dict.fromkeys((*starts, WILDCARD)))

    def passing(self, acls: Iterable[tuple[bytes, Acl]]) -> list[tuple[bytes, Acl]]:
        """Return the ACLs that pass, of pairs with their ids.

        What few have in common comes first, and what the filter leaves open is not looked at: there
        may be a hundred thousand.
        """
        found = list(acls)
        if self.principal is not None:
            kind, colon, name = self.principal.partition(":")
            found = [one for one in found if colon and one[1].principal.name == name]
            found = [one for one in found if one[1].principal.type == kind]
        is_match = self.pattern == _MATCH
        for value, anything, property_of in (
            (None if is_match else self.name, None, attrgetter("resource_name")),
            (self.host, None, attrgetter("host")),
            (self.operation, ANY, attrgetter("operation")),
            (self.resource_type, ANY, attrgetter("resource_type")),
            (ANY if is_match else self.pattern, ANY, attrgetter("pattern")),
            (self.permission, ANY, attrgetter("permission")),
        ):
            if value != anything:
                found = [one for one in found if property_of(one[1]) == value]
        if self.name is not None and is_match:
            found = [one for one in found if _applies(one[1], self.name)]
        return found


def _applies(acl: Acl, name: str) -> bool:
    """Return whether an ACL concerns a resource of a name."""
    if acl.pattern == LITERAL:
        return acl.resource_name in (name, WILDCARD)
    return name.startswith(acl.resource_name)
