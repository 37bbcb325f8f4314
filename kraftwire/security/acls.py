"""Access control: StandardAuthorizer's decisions over an index of ACLs.

Rules SEC-A1 to SEC-A3, SEC-A16. Source: `StandardAuthorizerData`, `StandardAcl`. ACLs are
arranged by what they grant to whom: a decision looks up the caller and everybody, then the
caller's address, ``*`` and the ranges that the address is in, and then asks whether any of their
patterns is the name, ``*`` or a prefix of the name. It costs microseconds however many ACLs there
are, and however many prefixes begin with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from kraftwire.errors import UsageError
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.security.host_ranges import HostRange, host_address, host_range
from kraftwire.security.principal import Principal, parse_principal

CLUSTER_NAME = "kafka-cluster"
WILDCARD = "*"


class ResourceType:
    """Kinds of resources, with the numbers of Kafka's records and requests."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7
    NAMES = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN",
             "USER")  # fmt: skip


class Operation:
    """Operations, with the numbers of Kafka's records and requests."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15
    NAMES = ("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE",
             "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE",
             "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT")  # fmt: skip


# In place of a set of bits, where a request does not ask for it.
OPERATIONS_UNKNOWN = -(1 << 31)

LITERAL = 3
PREFIXED = 4
DENY = 2
ALLOW = 3

# An ACL that allows one of the values allows the key, too; one that denies it denies nothing else
# (SEC-A3).
_IMPLIED = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
_OPERATIONS = range(len(Operation.NAMES))
_DENYING = [(one, Operation.ALL) for one in _OPERATIONS]
_ALLOWING = [(*_DENYING[one], *_IMPLIED.get(one, ())) for one in _OPERATIONS]

# The operations that exist for a kind of resource (SEC-A14).
_SUPPORTED_OPERATIONS = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}

_EVERYBODY = ("User", WILDCARD)


@dataclass(frozen=True, slots=True)
class Acl:
    """One ACL, with the numbers of its record."""

    resource_type: int
    resource_name: str
    pattern: int
    principal: Principal
    host: str
    operation: int
    permission: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> Acl:
        """Return the ACL of a record. Raises: UsageError for a principal without a colon."""
        kind, colon, name = record.principal.partition(":")
        if not colon:
            text = f"{record.principal!r:.300} is no principal: expected Type:name"
            raise UsageError(f"{text}, such as User:alice")
        return cls(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            Principal(kind, name),
            record.host,
            record.operation,
            record.permission_type,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an operation is allowed, and the rule that decided, for the audit log (SEC-A7)."""

    is_allowed: bool
    rule: str


_SUPER_USER = Decision(True, "SuperUser")
_DEFAULT_ALLOW = Decision(True, "DefaultAllow")
_DEFAULT_DENY = Decision(False, "DefaultDeny")

# Kind of resource, permission, operation, type and name of the principal.
_Grant = tuple[int, int, int, str, str]
# The host of an ACL: a text, or a range, which equals the tuple of its values.
_Host = str | tuple[int, int, int]
_Key = TypeVar("_Key")


class _NamePatterns:
    """Patterns of names, each with the count of its ACLs.

    `lengths` counts the prefixes of each length, which are few: an addition and a removal cost the
    same however many prefixes there are, and however they begin with each other.
    """

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, int] = {}
        self.prefixed: dict[str, int] = {}
        self.lengths: dict[int, int] = {}

    def count_acl(self, acl: Acl, change: int) -> None:
        """Change the count of a pattern by one."""
        name = acl.resource_name
        # All other patterns match as prefixes, in Kafka too.
        if acl.pattern == LITERAL:
            _add_to_count(self.literal, name, change)
            return
        _add_to_count(self.prefixed, name, change)
        _add_to_count(self.lengths, len(name), change)

    def matching_pattern(self, name: str, *, can_allow: bool = False) -> str:
        """Return a pattern that a name matches, for the audit log; empty if there is none.

        Kafka's search passes over `*` for names that begin with it, which counts where it would
        allow something (SEC-A2).
        """
        if name in self.literal:
            return f"LITERAL:{name}"
        if WILDCARD in self.literal and not (can_allow and name.startswith(WILDCARD)):
            return f"LITERAL:{WILDCARD}"
        for length in self.lengths:
            if name[:length] in self.prefixed:
                return f"PREFIXED:{name[:length]}"
        return ""


def _add_to_count(counts: dict[_Key, int], key: _Key, change: int) -> None:
    """Add to a count, which is removed at 0."""
    counts[key] = counts.get(key, 0) + change
    if not counts[key]:
        del counts[key]


_NOTHING = _NamePatterns()


class AclIndex:
    """All ACLs of a cluster, by id, and arranged for decisions."""

    def __init__(self) -> None:
        self._by_id: dict[bytes, Acl] = {}
        self._by_grant: dict[_Grant, dict[_Host, _NamePatterns]] = {}
        self._by_type: dict[int, _NamePatterns] = {}
        # The ACLs for ranges, which several texts may name, and how often each length occurs.
        self._ranged: dict[Acl, int] = {}
        self._lengths: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def has(self, acl: Acl) -> bool:
        """Return whether there is an ACL that says the same."""
        host = _host(acl)
        if isinstance(host, HostRange):
            return acl in self._ranged
        names = self._by_grant.get(_grant(acl), {}).get(host, _NOTHING)
        return acl.resource_name in (names.literal if acl.pattern == LITERAL else names.prefixed)

    def add(self, acl_id: bytes, acl: Acl) -> None:
        """Add an ACL; one with the same id is replaced."""
        self.remove(acl_id)
        self._by_id[acl_id] = acl
        host = _host(acl)
        patterns = self._by_grant.setdefault(_grant(acl), {}).setdefault(host, _NamePatterns())
        patterns.count_acl(acl, 1)
        self._by_type.setdefault(acl.resource_type, _NamePatterns()).count_acl(acl, 1)
        self._count_range(acl, host, 1)

    def remove(self, acl_id: bytes) -> bool:
        """Remove an ACL; returns whether there was one."""
        acl = self._by_id.pop(acl_id, None)
        if acl is None:
            return False
        self._by_type[acl.resource_type].count_acl(acl, -1)
        grant, host = _grant(acl), _host(acl)
        hosts = self._by_grant[grant]
        names = hosts[host]
        names.count_acl(acl, -1)
        if not names.literal and not names.prefixed:
            del hosts[host]
        if not hosts:
            del self._by_grant[grant]
        self._count_range(acl, host, -1)
        return True

    def _count_range(self, acl: Acl, host: _Host, change: int) -> None:
        if isinstance(host, HostRange):
            _add_to_count(self._ranged, acl, change)
            _add_to_count(self._lengths, (host.kind, host.length), change)

    def items(self) -> Collection[tuple[bytes, Acl]]:
        """All ACLs with their ids."""
        return self._by_id.items()

    def find_decision(
        self, principal: Principal, host: str, operation: int, resource: tuple[int, str]
    ) -> Decision | None:
        """Return the decision of the ACLs; None if no ACL concerns the resource (SEC-A2).

        `host` is an address as Java writes it (`principal.host_text`); `resource` a kind and name.
        """
        kind, name = resource
        hosts = self._hosts(host)
        for permission, operations in ((DENY, _DENYING), (ALLOW, _ALLOWING)):
            for one in operations[operation]:
                for who in ((principal.type, principal.name), _EVERYBODY):
                    granted = self._by_grant.get((kind, permission, one, *who), {})
                    for where in hosts if granted else ():
                        names = granted.get(where)
                        can_allow = permission == ALLOW
                        found = names and names.matching_pattern(name, can_allow=can_allow)
                        if found:
                            rule = f"{':'.join(who)} {_name(Operation.NAMES, one)} from "
                            rule += where if isinstance(where, str) else str(HostRange(*where))
                            verb = "ALLOW" if can_allow else "DENY"
                            return Decision(can_allow, f"{verb} {rule} {found}")
        names = self._by_type.get(kind)
        return _DEFAULT_DENY if names and names.matching_pattern(name) else None

    def _hosts(self, host: str) -> list[_Host]:
        """Return the hosts of ACLs that concern a caller: at most one for each length in use."""
        hosts: list[_Host] = [host, WILDCARD]
        address = host_address(host) if self._lengths else None
        if address is not None:
            hosts += [address.within(size) for kind, size in self._lengths if kind == address.kind]
        return hosts


def _host(acl: Acl) -> _Host:
    return host_range(acl.host) or acl.host


def _grant(acl: Acl) -> _Grant:
    principal = acl.principal
    kind, permission = acl.resource_type, ALLOW if acl.permission == ALLOW else DENY
    return kind, permission, acl.operation, principal.type, principal.name


class Authorizer:
    """Decides who may do what, as `StandardAuthorizer` does.

    `acls` returns those that are committed; None until they are loaded: then super users alone are
    served, and all others have to try again (SEC-A4).
    """

    def __init__(
        self,
        super_users: frozenset[str],
        acls: Callable[[], AclIndex | None],
        *,
        allow_if_no_acl: bool = False,
    ) -> None:
        self._super_users = super_users
        self._acls = acls
        self._default = _DEFAULT_ALLOW if allow_if_no_acl else _DEFAULT_DENY

    def authorize(
        self, principal: Principal, host: str, operation: int, resource: tuple[int, str]
    ) -> Decision | None:
        """Return whether a caller may do something; None while the ACLs are not there yet."""
        if str(principal) in self._super_users:
            return _SUPER_USER
        acls = self._acls()
        if acls is None:
            return None
        return acls.find_decision(principal, host, operation, resource) or self._default

    def allowed_operations(self, principal: Principal, host: str, resource: tuple[int, str]) -> int:
        """Return what a caller may do with a resource, a bit for each operation (SEC-A14)."""
        bits = 0
        for operation in _SUPPORTED_OPERATIONS.get(resource[0], ()):
            decision = self.authorize(principal, host, operation, resource)
            bits |= (decision is not None and decision.is_allowed) << operation
        return bits


def parse_super_users(text: str) -> frozenset[str]:
    """Read `super.users`: principals separated by semicolons.

    Raises: UsageError for one without a type.
    """
    users = [part.strip() for part in text.split(";")]
    for user in filter(None, users):
        parse_principal(user)
    return frozenset(filter(None, users))


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)
