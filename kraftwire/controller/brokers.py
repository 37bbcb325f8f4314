"""Brokers: registration, heartbeats, fencing, controlled shutdown, log directories.

Rules: C-REG, C-HB, C-FEN, C-DIR. Source: Kafka's `ClusterControlManager`, `BrokerHeartbeatManager`
and `ReplicationControlManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum, auto

from kraftwire.controller.cluster import RESERVED_DIRECTORIES, Cluster
from kraftwire.controller.image import BrokerImage, MetadataImage
from kraftwire.controller.image.topics import PartitionKey
from kraftwire.controller.partition_changes import changes_for_broker
from kraftwire.controller.registrations import is_excessive, is_too_long, repeated
from kraftwire.controller.sessions import Sessions
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.controller.versions import (
    METADATA_VERSION,
    WITH_CORDONED,
    WITH_DIRECTORIES,
    record_version,
)
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraftwire.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftwire.pieces import Divided, Pieces
from kraftwire.protocol.error_codes import ErrorCode

_FENCE = 1
_UNFENCE = -1
_SHUTS_DOWN = 1
# The first version of the request that names the epoch before a clean stop.
_WITH_PREVIOUS_EPOCH = 3
# Versions of a change of a registration, by its content.
_WITH_SHUTDOWN, _WITH_LOG_DIRS, _WITH_CORDONED_DIRS = 1, 2, 3


class _State(Enum):
    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


@Divided
def register_broker(
    cluster: Cluster,
    sessions: Sessions,
    request: BrokerRegistrationRequest,
    version: int,
    *,
    cluster_id: str | None,
    next_offset: int,
    now_ms: int,
) -> Pieces[StepResult]:
    """Register a broker, fenced until its heartbeats report an offset past the record.

    Its epoch is the offset of the first record written, unless the same process registers again
    (C-REG-3, C-REG-4).
    """
    known = cluster.image.brokers.get(request.broker_id)
    is_new = known is None or known.incarnation_id != request.incarnation_id
    is_taken = known is not None and is_new and sessions.is_live(known, now_ms)
    error = _registration_error(cluster, request, cluster_id, is_taken=is_taken)
    if error:
        return StepResult(BrokerRegistrationResponse(error_code=error, broker_epoch=-1))
    epoch = next_offset if known is None or is_new else known.epoch
    record_in = record_version(RegisterBrokerRecord.NAME, cluster.level)
    record = _broker_record(request, epoch, record_in)
    records: list[VersionedRecord] = []
    if known is None or is_new:
        is_clean = (
            known is not None
            and version >= _WITH_PREVIOUS_EPOCH
            and request.previous_broker_epoch == known.epoch
        )
        records = yield from _out_of_sync(cluster, request.broker_id, is_clean=is_clean)
    else:
        record.fenced = known.is_fenced
        record.in_controlled_shutdown = known.in_controlled_shutdown
    if is_too_long(record, record_in):
        code = ErrorCode.INVALID_REQUEST
        return StepResult(BrokerRegistrationResponse(error_code=code, broker_epoch=-1))
    return StepResult(
        BrokerRegistrationResponse(broker_epoch=epoch),
        [*records, (record, record_in)],
        lambda: sessions.forget_shutdown(request.broker_id),
    )


def _out_of_sync(
    cluster: Cluster, broker_id: int, *, is_clean: bool
) -> Pieces[list[VersionedRecord]]:
    """Return the changes that remove a broker that starts again from the in-sync replicas, and
    after an unclean stop from the eligible ones (C-REG-5)."""
    topics = cluster.image.topics
    if is_clean or not cluster.has_elr:
        return changes_for_broker.in_pieces(cluster, topics.in_isr(broker_id), removed=broker_id)
    keys = [*topics.in_isr(broker_id), *topics.in_elr(broker_id)]
    return changes_for_broker.in_pieces(cluster, keys, unclean=broker_id)


def _registration_error(
    cluster: Cluster,
    request: BrokerRegistrationRequest,
    cluster_id: str | None,
    *,
    is_taken: bool,
) -> ErrorCode:
    """Check a registration in Kafka's order (C-REG-1)."""
    if cluster_id is not None and request.cluster_id != cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if is_taken:
        return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if is_excessive(request.log_dirs, request.listeners, request.features):
        return ErrorCode.INVALID_REQUEST
    if request.is_migrating_zk_broker:
        return ErrorCode.BROKER_ID_NOT_REGISTERED
    if not _has_directories(cluster, request):
        return ErrorCode.INVALID_REGISTRATION
    levels = cluster.image.features
    ranges = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
    for name, (low, high) in ranges.items():
        if not low <= levels.get(name, 0) <= high:
            return ErrorCode.UNSUPPORTED_VERSION
    if METADATA_VERSION not in ranges:
        return ErrorCode.INVALID_REGISTRATION
    return ErrorCode.UNSUPPORTED_VERSION if levels.keys() - ranges.keys() else ErrorCode.NONE


def _has_directories(cluster: Cluster, request: BrokerRegistrationRequest) -> bool:
    """Return whether the log directories are given, each once, and belong to no other broker."""
    if cluster.level < WITH_DIRECTORIES:
        return True
    own, owners, broker_id = request.log_dirs, cluster.image.directories, request.broker_id
    if not own or len(set(own)) < len(own) or min(own) < RESERVED_DIRECTORIES:
        return False
    return all(owners.get(directory, broker_id) == broker_id for directory in own)


def _broker_record(
    request: BrokerRegistrationRequest, epoch: int, version: int
) -> RegisterBrokerRecord:
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=repeated(BrokerEndpoint, request.listeners),
        features=repeated(BrokerFeature, request.features),
        rack=request.rack,
        fenced=True,
    )
    if version >= 3:
        record.log_dirs = sorted(request.log_dirs)
    return record


@Divided
def heartbeat(
    cluster: Cluster,
    sessions: Sessions,
    request: BrokerHeartbeatRequest,
    *,
    next_offset: int,
    now_ms: int,
) -> Pieces[StepResult]:
    """Record a broker's heartbeat, and fence it, unfence it or let it shut down (C-HB-6)."""
    broker = cluster.image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return StepResult(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    if is_excessive(request.cordoned_log_dirs, request.offline_log_dirs):
        return StepResult(BrokerHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST))
    sessions.touch(broker, now_ms)
    is_caught_up = request.current_metadata_offset >= broker.offset
    state = _broker_state(sessions, broker)
    wanted = _next_state(cluster, sessions, broker, request, state)
    records = yield from _state_records(
        cluster, broker, state, wanted, request.offline_log_dirs
    )
    records += yield from _directory_records(cluster, broker, request)
    is_fenced = wanted in (_State.FENCED, _State.SHUTDOWN_NOW)
    last_offset = next_offset + len(records) - 1

    def commit() -> None:
        sessions.offsets[broker.id] = request.current_metadata_offset
        if is_fenced:
            sessions.shutdown_offsets.pop(broker.id, None)
            if wanted is _State.SHUTDOWN_NOW:
                # Differs from Kafka: the broker's next process need not wait (C-REG-8).
                sessions.end(broker)
        elif wanted is _State.CONTROLLED_SHUTDOWN:
            sessions.shutdown_offsets.setdefault(broker.id, last_offset)

    response = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up,
        is_fenced=is_fenced,
        should_shut_down=wanted is _State.SHUTDOWN_NOW,
    )
    return StepResult(response, records, commit)


def renew_session(
    image: MetadataImage, sessions: Sessions, request: BrokerHeartbeatRequest, now_ms: int
) -> None:
    """Renew a broker's session for a heartbeat that waits, or has waited too long to be decided on
    (C-HB-2, C-DL-2)."""
    broker = image.brokers.get(request.broker_id)
    if broker is not None and broker.epoch == request.broker_epoch:
        sessions.touch(broker, now_ms)
        sessions.offsets[broker.id] = request.current_metadata_offset


def _broker_state(sessions: Sessions, broker: BrokerImage) -> _State:
    if broker.id in sessions.shutdown_offsets:
        return _State.CONTROLLED_SHUTDOWN
    return _State.FENCED if broker.is_fenced else _State.UNFENCED


def _next_state(
    cluster: Cluster,
    sessions: Sessions,
    broker: BrokerImage,
    request: BrokerHeartbeatRequest,
    state: _State,
) -> _State:
    leads = cluster.image.topics.leads_any(broker.id)
    if state is _State.CONTROLLED_SHUTDOWN:
        lowest = sessions.lowest_offset(cluster.image)
        is_known = lowest is None or sessions.shutdown_offsets[broker.id] <= lowest
        return _State.SHUTDOWN_NOW if is_known and not leads else state
    if request.want_shut_down:
        is_busy = state is _State.UNFENCED and leads and not request.want_fence
        return _State.CONTROLLED_SHUTDOWN if is_busy else _State.SHUTDOWN_NOW
    if request.want_fence:
        return _State.FENCED
    if state is _State.FENCED and request.current_metadata_offset < broker.offset:
        return _State.FENCED
    return _State.UNFENCED


def _state_records(
    cluster: Cluster,
    broker: BrokerImage,
    state: _State,
    wanted: _State,
    offline: Collection[bytes] = (),
) -> Pieces[list[VersionedRecord]]:
    """Return the records of a broker's new state; `offline` directories are lost with it."""
    topics = cluster.image.topics
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    if wanted is state or (broker.is_fenced and wanted is not _State.UNFENCED):
        # Differs from Kafka, which fences a fenced broker again when it stops (C-HB-7).
        return []
    if wanted is _State.UNFENCED:
        change.fenced = _UNFENCE
        # Its directories go with the same heartbeat: a replica there cannot lead.
        lost = _partitions_in(cluster, topics.without_leader, broker.id, offline)
        keys = sorted(topics.without_leader.difference(lost), key=topics.order)
        gained = yield from changes_for_broker.in_pieces(cluster, keys, added=broker.id)
        return [(change, 0), *gained]
    keys = topics.in_isr(broker.id)
    moved = yield from changes_for_broker.in_pieces(cluster, keys, removed=broker.id)
    if wanted is _State.CONTROLLED_SHUTDOWN:
        change.in_controlled_shutdown = _SHUTS_DOWN
        return moved if broker.in_controlled_shutdown else [(change, _WITH_SHUTDOWN), *moved]
    change.fenced = _FENCE
    return [*moved, (change, 0)]


def _directory_records(
    cluster: Cluster, broker: BrokerImage, request: BrokerHeartbeatRequest
) -> Pieces[list[VersionedRecord]]:
    """Return the records of a broker's offline and cordoned directories (C-DIR-3, C-DIR-5)."""
    records: list[VersionedRecord] = []
    offline = set(request.offline_log_dirs) & set(broker.log_dirs)
    remaining = [directory for directory in broker.log_dirs if directory not in offline]
    # A record without directories changes none: once all are offline, each heartbeat writes one.
    if cluster.level >= WITH_DIRECTORIES and offline:
        # Differs from Kafka, which looks at the other replicas there as well (C-DIR-3).
        keys = _partitions_in(cluster, cluster.image.topics.in_isr(broker.id), broker.id, offline)
        records += yield from changes_for_broker.in_pieces(cluster, keys, removed=broker.id)
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
        )
        records.append((change, _WITH_LOG_DIRS))
    cordoned, known = request.cordoned_log_dirs, broker.cordoned_log_dirs
    is_changed = cordoned is not None and (known is None or set(cordoned) != set(known))
    if cluster.level >= WITH_CORDONED and is_changed:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            cordoned_log_dirs=list(cordoned or ()),
        )
        records.append((change, _WITH_CORDONED_DIRS))
    return records


def _partitions_in(
    cluster: Cluster,
    keys: Iterable[PartitionKey],
    broker_id: int,
    directories: Collection[bytes],
) -> list[PartitionKey]:
    """Return the partitions whose replica on a broker is in one of its directories."""
    found = []
    for key in keys if directories else ():
        partition = cluster.image.topics.partition(key)
        assert partition is not None
        where = dict(zip(partition.replicas, partition.directories, strict=False))
        if where.get(broker_id) in directories:
            found.append(key)
    return found


@Divided
def fence_expired(cluster: Cluster, sessions: Sessions, now_ms: int) -> Pieces[StepResult]:
    """Fence the first of the brokers whose sessions have expired (C-HB-11)."""
    found = sessions.expired(cluster.image, now_ms)[:1]
    records: list[VersionedRecord] = []
    for broker in found:
        records += yield from _state_records(
            cluster, broker, _State.UNFENCED, _State.FENCED
        )

    def commit() -> None:
        for broker in found:
            sessions.end(broker)
            sessions.forget_shutdown(broker.id)

    return StepResult(None, records, commit)


@Divided
def unregister_broker(
    cluster: Cluster, request: UnregisterBrokerRequest
) -> Pieces[StepResult]:
    """Remove a broker's registration; its replicas stay, out of sync (C-FEN-5)."""
    broker = cluster.image.brokers.get(request.broker_id)
    if broker is None:
        text = f"broker {request.broker_id} is not registered"
        code = ErrorCode.BROKER_ID_NOT_REGISTERED
        return StepResult(UnregisterBrokerResponse(error_code=code, error_message=text))
    topics = cluster.image.topics
    keys = [*topics.in_isr(broker.id), *topics.in_elr(broker.id)]
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    records = yield from changes_for_broker.in_pieces(cluster, keys, removed=broker.id)
    return StepResult(UnregisterBrokerResponse(), [*records, (record, 0)])
