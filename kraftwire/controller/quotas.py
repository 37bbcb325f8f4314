"""AlterClientQuotas: limits for users, client ids and addresses. Rules: C-CQ.

Source: Kafka's `ClientQuotaControlManager` and `QuotaConfig`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from kraftwire.controller.cluster import Cluster
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.errors import ApiError, UsageError
from kraftwire.messages import alter_client_quotas_response as answers
from kraftwire.messages import client_quota_record
from kraftwire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntryData
from kraftwire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kraftwire.messages.client_quota_record import ClientQuotaRecord
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.principal import host_text

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_INT_MAX, _LONG_MAX = float(2**31 - 1), float(2**63 - 1)
# Further from a whole number than this is a fraction.
_FRACTION = 1e-6

# The largest value of each key; None for one that may be a fraction.
_OF_CLIENTS: Mapping[str, float | None] = {
    "producer_byte_rate": _LONG_MAX,
    "consumer_byte_rate": _LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES: Mapping[str, float | None] = {"connection_creation_rate": _INT_MAX}


# The parts of an entity: pairs of type and name; a name of None stands for the default.
_Entity = frozenset[tuple[str, str | None]]


@Divided
def alter_quotas(cluster: Cluster, request: AlterClientQuotasRequest) -> Pieces[StepResult]:
    """Set and remove quotas; each entity succeeds or fails as a whole."""
    response = AlterClientQuotasResponse()
    records: list[VersionedRecord] = []
    times = Counter(_entity(entry) for entry in request.entries)
    for entity, entry in {_entity(entry): entry for entry in request.entries}.items():
        yield
        parts = [
            answers.EntityData(entity_type=kind, entity_name=name)
            for kind, name in _ordered_entity(entity)
        ]
        result = answers.EntryData(error_message=None, entity=parts)
        response.entries.append(result)
        try:
            if times[entity] > 1:
                raise _invalid_request("the request names this entity more than once")
            records += _quota_records(cluster, entity, entry)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.detail
    return StepResult(response, [] if request.validate_only else records)


def _entity(entry: EntryData) -> _Entity:
    """Return the entity of an entry; the last name of a type counts."""
    return frozenset({part.entity_type: part.entity_name for part in entry.entity}.items())


def _ordered_entity(entity: _Entity) -> list[tuple[str, str | None]]:
    """Return the parts of an entity in the order of Kafka's records."""
    return sorted(entity, key=lambda part: part[0])


def _quota_records(cluster: Cluster, entity: _Entity, entry: EntryData) -> list[VersionedRecord]:
    """Return the records of an entity's changes. Raises: ApiError INVALID_REQUEST."""
    values: dict[str, float | None] = {op.key: None if op.remove else op.value for op in entry.ops}
    if len(values) < len(entry.ops):
        raise _invalid_request("the request names a key of this entity more than once")
    maxima = _keys_of_entity(entity)
    records: list[VersionedRecord] = []
    for key, value in values.items():
        if value is not None:
            _check_value(maxima, key, value)
        if value == cluster.image.quota(entity, key):
            continue
        parts = [
            client_quota_record.EntityData(entity_type=kind, entity_name=name)
            for kind, name in _ordered_entity(entity)
        ]
        record = ClientQuotaRecord(
            entity=parts, key=key, value=value or 0.0, remove=value is None
        )
        records.append((record, 0))
    return records


def _keys_of_entity(entity: _Entity) -> Mapping[str, float | None]:
    """Return the keys of an entity, with the largest value of each.

    Raises: ApiError INVALID_REQUEST for an entity that cannot have quotas (C-CQ-1).
    """
    parts = dict(_ordered_entity(entity))
    if not parts:
        raise _invalid_request("the entity has no parts")
    for kind, name in parts.items():
        if kind not in (_USER, _CLIENT_ID, _IP):
            raise _invalid_request(f"{kind!r:.100} is no type of an entity")
        if name == "":
            raise _invalid_request(f"the name of the {kind} is empty")
    if _IP not in parts:
        return _OF_CLIENTS
    if len(parts) > 1:
        raise _invalid_request(f"an entity with {_IP} has no other parts")
    address = parts[_IP]
    try:
        if address is not None:
            host_text(address)
    except UsageError:
        raise _invalid_request(f"{address!r:.300} is no IP address") from None
    return _OF_ADDRESSES


def _check_value(maxima: Mapping[str, float | None], key: str, value: float) -> None:
    """Check the value of a key. Raises: ApiError INVALID_REQUEST (C-CQ-2)."""
    if key not in maxima:
        raise _invalid_request(f"{key!r:.100} is no key of this entity")
    if not math.isfinite(value) or value <= 0:
        raise _invalid_request(f"{key} is {value}: expected more than 0")
    largest = maxima[key]
    if largest is None:
        return
    if value > largest:
        raise _invalid_request(f"{key} is {value}: expected at most {largest:.0f}")
    if value % 1 > _FRACTION:
        raise _invalid_request(f"{key} is {value}: expected a whole number")


def _invalid_request(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
