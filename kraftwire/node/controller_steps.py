"""Decisions of an active controller: pure functions of image, sessions, request and time.

They cover registration, heartbeats and fencing, and the version of each record by level of
metadata.version. `controller` does the writing and waiting.

Source: Kafka's `ClusterControlManager`, `BrokerHeartbeatManager`, `ActivationRecordsGenerator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kraftwire.messages.abort_transaction_record import AbortTransactionRecord
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.controller_registration_response import ControllerRegistrationResponse
from kraftwire.messages.end_transaction_record import EndTransactionRecord
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraftwire.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftwire.node.image import (
    BROKER_RESOURCE,
    CLUSTER_ID_CONFIG,
    METADATA_VERSION,
    BrokerImage,
    ControllerImage,
    MetadataImage,
)
from kraftwire.node.image.versions import (
    WITH_CONTROLLERS,
    WITH_CORDONED,
    WITH_DIRECTORIES,
    WITH_TRANSACTIONS,
    record_version,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.message import Message

# A record and the version to write it in.
VersionedRecord = tuple[Message, int]

ELR_VERSION = "eligible.leader.replicas.version"
_MIN_INSYNC_REPLICAS = "min.insync.replicas"

_FENCE = 1
_UNFENCE = -1
_SHUTS_DOWN = 1


@dataclass(slots=True)
class StepResult:
    """The outcome of a request: records to write first, then the answer.

    `base_offset` is the offset that the first record has to get, None if it may be any.
    """

    response: Message | None = None
    records: Sequence[VersionedRecord] = ()
    base_offset: int | None = None


@dataclass(slots=True)
class Sessions:
    """The sessions of brokers: their last heartbeats while this controller is active.

    Units: milliseconds.
    """

    timeout_ms: int
    last_ms: dict[int, int] = field(default_factory=dict)

    def renew_all(self, image: MetadataImage, now_ms: int) -> None:
        """Give every unfenced broker a fresh session: a change of controller must not fence a
        cluster."""
        self.last_ms = {broker.id: now_ms for broker in image.alive_brokers}

    def touch(self, broker_id: int, now_ms: int) -> None:
        """Record a broker's heartbeat."""
        self.last_ms[broker_id] = now_ms

    def is_live(self, broker: BrokerImage, now_ms: int) -> bool:
        """Return whether a broker is unfenced and its session has not expired."""
        last = self.last_ms.get(broker.id)
        return not broker.is_fenced and last is not None and now_ms - last < self.timeout_ms

    def next_expiry_ms(self, image: MetadataImage) -> int | None:
        """Return when the first session expires."""
        times = [self.last_ms.get(broker.id, 0) for broker in image.alive_brokers]
        return min(times) + self.timeout_ms if times else None


def activate(
    image: MetadataImage, bootstrap: Sequence[VersionedRecord], cluster_id: str | None
) -> list[VersionedRecord]:
    """Return what a new active controller writes before anything else.

    `cluster_id` is None if the log does not hold it. An open transaction is aborted; an image
    without metadata.version gets the bootstrap records in a separate transaction, independent of
    what an earlier attempt wrote (KAFKA-20839).
    """
    records: list[VersionedRecord] = []
    if image.transaction_offset >= 0:
        reason = "a new controller cannot continue it"
        records.append((AbortTransactionRecord(reason=reason), 0))
    configs = image.configs.get((BROKER_RESOURCE, ""), {})
    more: list[VersionedRecord] = []
    if cluster_id is not None and CLUSTER_ID_CONFIG not in configs:
        more.append((_default_config(CLUSTER_ID_CONFIG, cluster_id), 0))
    if image.metadata_version is not None:
        return records + more
    levels = _levels(bootstrap)
    if levels.get(ELR_VERSION) and _MIN_INSYNC_REPLICAS not in configs:
        more.insert(0, (_default_config(_MIN_INSYNC_REPLICAS, "1"), 0))
    inner = [*bootstrap, *more]
    if levels.get(METADATA_VERSION, 0) >= WITH_TRANSACTIONS:
        begin = BeginTransactionRecord(name="Bootstrap records")
        inner = [(begin, 0), *inner, (EndTransactionRecord(), 0)]
    return records + inner


def _levels(bootstrap: Sequence[VersionedRecord]) -> dict[str, int]:
    records = (record for record, _ in bootstrap)
    return {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}


def _default_config(name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=name, value=value)


def register_controller(image: MetadataImage, request: ControllerRegistrationRequest) -> StepResult:
    """Register a controller; an unchanged registration writes nothing."""
    if (image.metadata_version or 0) < WITH_CONTROLLERS:
        text = f"metadata.version {image.metadata_version} has no controller registrations"
        code = ErrorCode.UNSUPPORTED_VERSION
        return StepResult(ControllerRegistrationResponse(error_code=code, error_message=text))
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=[
            ControllerEndpoint(
                name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
            )
            for e in request.listeners
        ],
        features=[
            ControllerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ],
    )
    known = image.controllers.get(request.controller_id)
    response = ControllerRegistrationResponse()
    if known == ControllerImage.of(record):
        return StepResult(response)
    return StepResult(response, [(record, 0)])


def register_broker(
    image: MetadataImage,
    sessions: Sessions,
    request: BrokerRegistrationRequest,
    *,
    cluster_id: str | None,
    next_offset: int,
    now_ms: int,
) -> StepResult:
    """Register a broker, fenced until its heartbeats report an offset past the record.

    Its epoch is the record's offset, unless the same process registers again. Differs from Kafka: a
    finalized feature that the broker does not name is ignored, apart from metadata.version, because
    it concerns topics and groups, and there are none.
    """
    known = image.brokers.get(request.broker_id)
    error = _registration_error(image, request, cluster_id)
    if known is not None and known.incarnation_id != request.incarnation_id:
        if sessions.is_live(known, now_ms) and not known.in_controlled_shutdown:
            error = error or ErrorCode.DUPLICATE_BROKER_REGISTRATION
        known = None
    if error:
        return StepResult(BrokerRegistrationResponse(error_code=error, broker_epoch=-1))
    epoch = next_offset if known is None else known.epoch
    level = image.metadata_version or 0
    version = record_version(RegisterBrokerRecord.NAME, level)
    record = _broker_record(request, epoch, version)
    if known is not None:
        record.fenced = known.is_fenced
        record.in_controlled_shutdown = known.in_controlled_shutdown
    base_offset = next_offset if known is None else None
    response = BrokerRegistrationResponse(broker_epoch=epoch)
    return StepResult(response, [(record, version)], base_offset)


def _registration_error(
    image: MetadataImage, request: BrokerRegistrationRequest, cluster_id: str | None
) -> ErrorCode:
    if cluster_id is not None and request.cluster_id != cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if request.is_migrating_zk_broker or not _has_directories(image, request):
        return ErrorCode.INVALID_REGISTRATION
    ranges = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
    ranges.setdefault(METADATA_VERSION, (0, 0))
    for name, level in image.features.items():
        low, high = ranges.get(name, (level, level))
        if not low <= level <= high:
            return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def _has_directories(image: MetadataImage, request: BrokerRegistrationRequest) -> bool:
    """Return whether the log directories are given, each once, and belong to no other broker."""
    if (image.metadata_version or 0) < WITH_DIRECTORIES:
        return True
    own = request.log_dirs
    others = (b for b in image.brokers.values() if b.id != request.broker_id)
    taken = {directory for broker in others for directory in broker.log_dirs}
    if not own or len(set(own)) < len(own) or ZERO_UUID in own:
        return False
    return taken.isdisjoint(own)


def _broker_record(
    request: BrokerRegistrationRequest, epoch: int, version: int
) -> RegisterBrokerRecord:
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            BrokerEndpoint(
                name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
            )
            for e in request.listeners
        ],
        features=[
            BrokerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ],
        rack=request.rack,
        fenced=True,
    )
    if version >= 3:
        record.log_dirs = sorted(request.log_dirs)
    return record


def heartbeat(
    image: MetadataImage, sessions: Sessions, request: BrokerHeartbeatRequest, now_ms: int
) -> StepResult:
    """Record a broker's heartbeat, and fence it, unfence it or let it shut down.

    A broker here leads nothing, so one that wants to shut down may do so at once.
    """
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return StepResult(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    sessions.touch(broker.id, now_ms)
    is_caught_up = request.current_metadata_offset >= broker.offset
    is_fenced = broker.is_fenced
    if request.want_fence or request.want_shut_down:
        is_fenced = True
    elif is_caught_up:
        is_fenced = False
    response = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up, is_fenced=is_fenced, should_shut_down=request.want_shut_down
    )
    return StepResult(response, _changes(image, broker, request, is_fenced=is_fenced))


def _changes(
    image: MetadataImage, broker: BrokerImage, request: BrokerHeartbeatRequest, *, is_fenced: bool
) -> list[VersionedRecord]:
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    version = 0
    if is_fenced != broker.is_fenced:
        record.fenced = _FENCE if is_fenced else _UNFENCE
    if request.want_shut_down and not broker.in_controlled_shutdown:
        record.in_controlled_shutdown = _SHUTS_DOWN
        version = 1
    cordoned, known = request.cordoned_log_dirs, broker.cordoned_log_dirs
    has_cordoned = cordoned is not None and (image.metadata_version or 0) >= WITH_CORDONED
    if has_cordoned and (known is None or set(cordoned or ()) != set(known)):
        record.cordoned_log_dirs = list(cordoned or ())
        version = 3
    is_change = version or record.fenced
    return [(record, version)] if is_change else []


def expire(image: MetadataImage, sessions: Sessions, now_ms: int) -> list[VersionedRecord]:
    """Fence the brokers whose sessions have expired."""
    return [
        (
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE
            ),
            0,
        )
        for broker in image.alive_brokers
        if not sessions.is_live(broker, now_ms)
    ]


def unregister_broker(image: MetadataImage, request: UnregisterBrokerRequest) -> StepResult:
    """Remove a broker's registration."""
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        text = f"broker {request.broker_id} is not registered"
        code = ErrorCode.BROKER_ID_NOT_REGISTERED
        return StepResult(UnregisterBrokerResponse(error_code=code, error_message=text))
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return StepResult(UnregisterBrokerResponse(), [(record, 0)])
