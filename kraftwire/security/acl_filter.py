"""Filters of ACLs, as DescribeAcls and DeleteAcls carry them.

Source: Kafka's `ResourcePatternFilter` and `AccessControlEntryFilter`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
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

    def names(self, lengths: Collection[int]) -> list[str] | None:
        """Return the names of resources that can pass, of these lengths; None for any."""
        name = self.name
        if name is None or self.pattern != _MATCH:
            return None if name is None else [name]
        starts = [name[:length] for length in lengths if length <= len(name)]
        return list(dict.fromkeys((*starts, WILDCARD)))

    def passes(self, acl: Acl) -> bool:
        """Return whether an ACL passes."""
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and (self.host is None or self.host == acl.host)
            and self._fits(acl)
            and (self.principal is None or self.principal == str(acl.principal))
        )

    def _fits(self, acl: Acl) -> bool:
        if self.pattern not in (ANY, _MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern != _MATCH:
            return self.name == acl.resource_name
        if acl.pattern == LITERAL:
            return acl.resource_name in (self.name, WILDCARD)
        return self.name.startswith(acl.resource_name)
