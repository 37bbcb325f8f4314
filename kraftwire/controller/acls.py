"""CreateAcls and DeleteAcls: bindings and filters, each with a result of its own. Rules: C-ACL.

Source: Kafka's `AclControlManager`; `AclApis` for the checks that come first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.controller.versions import METADATA_VERSION, WITH_HOST_RANGES
from kraftwire.errors import ApiError, UsageError
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftwire.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from kraftwire.messages.delete_acls_request import DeleteAclsRequest
from kraftwire.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from kraftwire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.acl_filter import ANY, UNKNOWN_FILTER, AclFilter
from kraftwire.security.acls import (
    ALLOW,
    CLUSTER_NAME,
    DENY,
    LITERAL,
    PREFIXED,
    Acl,
    AclIndex,
    Operation,
    ResourceType,
)
from kraftwire.security.host_ranges import is_range, parse_range

# So many ACLs are deleted by one request at most.
REMOVED_MAX = 10_000
# So many ACLs are looked at for the filters of one request: a fifth of a second, in turns. Filters
# that name a resource look at the ACLs of that name alone.
LOOKED_AT_MAX = 500_000


@Divided
def create_acls(
    cluster: Cluster,
    request: CreateAclsRequest,
    *,
    new_id: Callable[[], bytes],
    has_interface: Callable[[str], bool],
) -> Pieces[StepResult]:
    """Create the ACLs that are valid and do not exist yet; `new_id` makes their ids.

    `has_interface` is whether this machine has an interface of a name (SEC-A16).
    """
    response = CreateAclsResponse()
    records: list[VersionedRecord] = []
    created: set[Acl] = set()
    level = cluster.image.metadata_version or 0
    for creation in request.creations:
        yield
        result = AclCreationResult(error_message=None)
        response.results.append(result)
        try:
            acl, record = _checked_acl(creation, level, has_interface)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.detail
            continue
        if acl not in created and not cluster.image.acls.has(acl):
            created.add(acl)
            record.id = new_id()
            records.append((record, 0))
    return StepResult(response, records)


@Divided
def delete_acls(cluster: Cluster, request: DeleteAclsRequest) -> Pieces[StepResult]:
    """Delete the ACLs that match a filter; the result of each filter lists all of its matches.

    Raises: ApiError INVALID_REQUEST if they are more than one request may remove or look at.
    """
    response = DeleteAclsResponse()
    removed: dict[bytes, None] = {}
    search = _Search(cluster.image.acls, is_arranged=len(request.filters) > 1)
    for each in request.filters:
        yield
        result = DeleteAclsFilterResult(error_message=None)
        response.filter_results.append(result)
        wanted = AclFilter.of(each)
        if not wanted.is_known:
            result.error_code, result.error_message = ErrorCode.INVALID_REQUEST, UNKNOWN_FILTER
            continue
        found = search.passing(wanted)
        removed |= dict.fromkeys(acl_id for acl_id, _ in found)
        if len(removed) > REMOVED_MAX:
            text = f"the filters name more than {REMOVED_MAX} ACLs, which is too many for a request"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        result.matching_acls = [_shown(acl) for _, acl in found]
    records = [(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in removed]
    return StepResult(response, records)


class _Search:
    """Looks for what passes the filters of one request, by the names of resources where it can."""

    def __init__(self, acls: AclIndex, *, is_arranged: bool) -> None:
        """Arrange them by name where a filter has one; worth while for several filters."""
        self._all = list(acls.items())
        self._is_arranged = is_arranged
        self._looked_at = 0

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[bytes, Acl]]]:
        found: dict[str, list[tuple[bytes, Acl]]] = {}
        for one in self._all:
            found.setdefault(one[1].resource_name, []).append(one)
        return found

    @cached_property
    def _lengths(self) -> set[int]:
        return {len(name) for name in self._by_name}

    def passing(self, wanted: AclFilter) -> list[tuple[bytes, Acl]]:
        """Return the ACLs that pass, with their ids. Raises: ApiError INVALID_REQUEST."""
        found = self._all
        if self._is_arranged and wanted.name is not None:
            names = wanted.names(self._lengths)
            found = [one for name in names for one in self._by_name.get(name, ())]
        # The first one may look at all of them, however many there are.
        if self._looked_at and self._looked_at + len(found) > LOOKED_AT_MAX:
            text = f"the filters look at more than {LOOKED_AT_MAX} ACLs: send fewer in a request"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        self._looked_at += len(found)
        return wanted.passing(found)


def _checked_acl(
    creation: AclCreation, level: int, has_interface: Callable[[str], bool]
) -> tuple[Acl, AccessControlEntryRecord]:
    """Return a new ACL and its record, at a level of metadata.version.

    Raises: ApiError INVALID_REQUEST (C-ACL-1, C-ACL-2), UNSUPPORTED_VERSION (C-ACL-4).
    """
    record = AccessControlEntryRecord(
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )
    wrong = _acl_problem(record)
    try:
        acl = Acl.of(record)
    except UsageError as error:
        wrong = wrong or str(error)
    if wrong:
        raise ApiError(ErrorCode.INVALID_REQUEST, wrong)
    _check_host(acl.host, level, has_interface)
    return acl, record


def _acl_problem(record: AccessControlEntryRecord) -> str:
    """Return why an ACL is invalid, apart from its principal; empty if it is valid."""
    name = record.resource_name
    if record.resource_type == ResourceType.CLUSTER and name != CLUSTER_NAME:
        return f"the cluster is named {CLUSTER_NAME} in ACLs"
    if not name:
        return "the name of the resource is empty"
    if not ANY < record.resource_type < len(ResourceType.NAMES):
        return f"{record.resource_type} is no type of a resource"
    if record.pattern_type not in (LITERAL, PREFIXED):
        return f"{record.pattern_type} is no type of a pattern: expected literal or prefixed"
    if not ANY < record.operation < len(Operation.NAMES):
        return f"{record.operation} is no operation"
    if record.permission_type not in (ALLOW, DENY):
        return f"{record.permission_type} is no permission: expected allow or deny"
    return ""


def _check_host(host: str, level: int, has_interface: Callable[[str], bool]) -> None:
    """Check the host of a new ACL. Raises: ApiError INVALID_REQUEST, UNSUPPORTED_VERSION."""
    if not host:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the host is empty: expected an address or *")
    if not is_range(host):
        return
    if level < WITH_HOST_RANGES:
        text = f"{METADATA_VERSION} {WITH_HOST_RANGES} (4.4-IV1), which is {level}"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"a range as the host of an ACL needs {text}")
    try:
        parse_range(host, has_interface)
    except UsageError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error


def _shown(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern,
        principal=str(acl.principal),
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
