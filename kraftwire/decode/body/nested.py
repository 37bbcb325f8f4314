"""What is inside fields of type bytes: group metadata, envelopes, SASL tokens."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kraftwire import messages
from kraftwire.decode.body.findings import Finding, finding_of
from kraftwire.decode.body.sasl_tokens import sasl_token
from kraftwire.decode.body.secrets import holds_secrets
from kraftwire.errors import WireError
from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import decode_bounded

CONSUMER = "consumer"
_SUBSCRIPTION = "ConsumerProtocolSubscription"
_ASSIGNMENT = "ConsumerProtocolAssignment"
_PRINCIPAL = "DefaultPrincipalData"
_VERSION = struct.Struct(">h")
_ADDRESS_SIZES = (4, 16)


@dataclass(frozen=True, slots=True)
class MessageContext:
    """What is known about a message, apart from the message itself.

    `protocol_type` is that of the group, None if no frame has named it; `mechanism` that of
    the connection. `data` is the payload that the fields are slices of.
    """

    data: bytes
    mechanism: str | None = None
    protocol_type: str | None = None
    show_secrets: bool = False

    def offset_of(self, value: bytes) -> int | None:
        """Where the value stands in the payload."""
        found = self.data.find(value)
        return found if found >= 0 else None


@dataclass(slots=True)
class Nested:
    """The messages and values found inside a message, other than requests and responses."""

    objects: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def nested_in(message: Message, context: MessageContext) -> Nested:
    """Return what is inside a message's fields of type bytes."""
    found = Nested()
    reader = _READERS.get(message.NAME)
    if reader is not None:
        reader(message, context, found)
    return found


def _join_request(message: Any, context: MessageContext, found: Nested) -> None:
    values = ((f"protocols[{i}].metadata", p.metadata) for i, p in enumerate(message.protocols))
    _group_data(_SUBSCRIPTION, message.protocol_type, values, context, found)


def _join_response(message: Any, context: MessageContext, found: Nested) -> None:
    values = ((f"members[{i}].metadata", m.metadata) for i, m in enumerate(message.members))
    _group_data(_SUBSCRIPTION, message.protocol_type, values, context, found)


def _sync_request(message: Any, context: MessageContext, found: Nested) -> None:
    values = (
        (f"assignments[{i}].assignment", a.assignment) for i, a in enumerate(message.assignments)
    )
    _group_data(_ASSIGNMENT, message.protocol_type, values, context, found)


def _sync_response(message: Any, context: MessageContext, found: Nested) -> None:
    values = iter([("assignment", message.assignment)])
    _group_data(_ASSIGNMENT, message.protocol_type, values, context, found)


def _described_groups(message: Any, context: MessageContext, found: Nested) -> None:
    for i, group in enumerate(message.groups):
        for j, member in enumerate(group.members):
            path = f"groups[{i}].members[{j}]"
            metadata = iter([(f"{path}.memberMetadata", member.member_metadata)])
            assignment = iter([(f"{path}.memberAssignment", member.member_assignment)])
            _group_data(_SUBSCRIPTION, group.protocol_type, metadata, context, found)
            _group_data(_ASSIGNMENT, group.protocol_type, assignment, context, found)


def _group_data(
    name: str,
    protocol_type: str | None,
    values: Iterator[tuple[str, bytes]],
    context: MessageContext,
    found: Nested,
) -> None:
    """Decode metadata or assignments of group members, if the protocol is that of consumers."""
    known = protocol_type or context.protocol_type
    if known not in (CONSUMER, None):
        return
    for path, value in values:
        if value:
            _versioned(name, path, value, context, found, is_certain=known == CONSUMER)


def _versioned(
    name: str, path: str, value: bytes, context: MessageContext, found: Nested, *, is_certain: bool
) -> None:
    """Decode a message after its version; unless `is_certain`, failing is not a finding."""
    cls = messages.find(name)
    try:
        if len(value) < _VERSION.size:
            raise WireError("too short for a version", expected="2 bytes", found=str(len(value)))
        (version,) = _VERSION.unpack_from(value)
        # As in Kafka, a later version is read as the latest that is known.
        schema = min(version, cls.VERSIONS.high)
        if schema not in cls.VERSIONS:
            raise WireError("unknown version", expected=str(cls.VERSIONS), found=str(version))
        message, end = decode_bounded(cls, value, schema, _VERSION.size)
    except WireError as error:
        if is_certain:
            at = context.offset_of(value) or 0
            found.findings.append(
                finding_of(error, "nested-undecoded", rest=value, at=at, within=path)
            )
        return
    left = len(value) - end
    if left and not is_certain:
        return
    if left:
        detail = f"{left} bytes are left after {name} v{schema}"
        found.findings.append(Finding("nested-undecoded", None, path, detail, value[end:]))
    found.objects[path] = {"type": name, "version": version, "data": message.to_json(schema)}


def _sasl(message: Any, context: MessageContext, found: Nested) -> None:
    if context.mechanism is None:
        return
    token = sasl_token(
        context.mechanism,
        message.auth_bytes,
        is_request=message.KIND == "request",
        show_secrets=context.show_secrets,
    )
    if token is not None:
        found.objects["authBytes"] = token


def _envelope_request(message: Any, context: MessageContext, found: Nested) -> None:
    if message.request_principal:
        _versioned(
            _PRINCIPAL,
            "requestPrincipal",
            message.request_principal,
            context,
            found,
            is_certain=False,
        )
    if len(message.client_host_address) in _ADDRESS_SIZES:
        # Slow to import, and envelopes are rare.
        from ipaddress import ip_address

        address = str(ip_address(message.client_host_address))
        found.objects["clientHostAddress"] = {"address": address}


_READERS: dict[str, Callable[[Any, MessageContext, Nested], None]] = {
    "DescribeGroupsResponse": _described_groups,
    "EnvelopeRequest": _envelope_request,
    "JoinGroupRequest": _join_request,
    "JoinGroupResponse": _join_response,
    "SaslAuthenticateRequest": _sasl,
    "SaslAuthenticateResponse": _sasl,
    "SyncGroupRequest": _sync_request,
    "SyncGroupResponse": _sync_response,
}

# The fields with a request or response in them, by the name of the message.
CARRIED = {"EnvelopeRequest": "requestData", "EnvelopeResponse": "responseData"}
# Messages with something nested in a field.
HAS_NESTED = frozenset(_READERS) | frozenset(CARRIED)


def is_plain(name: str) -> bool:
    """Whether messages of this name have nothing nested in them, and no field with a secret."""
    return name not in HAS_NESTED and not holds_secrets(name)
