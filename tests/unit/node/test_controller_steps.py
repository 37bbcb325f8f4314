"""What an active controller decides, without a quorum."""

from __future__ import annotations

from kraftwire.messages import broker_registration_request as schema
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.node import controller_steps as steps
from kraftwire.node.image import METADATA_VERSION, MetadataImage
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.node_stub import CLUSTER_ID, batch_of

LEVEL = (FeatureLevelRecord(name=METADATA_VERSION, feature_level=30), 0)
DIRECTORY = bytes(15) + b"\x09"


def image_of(*records: steps.VersionedRecord) -> MetadataImage:
    """An image after some records."""
    image = MetadataImage()
    image.replay(batch_of([LEVEL, *records], 0))
    return image


def registration(**more: object) -> BrokerRegistrationRequest:
    """A broker's registration as our own nodes send it."""
    levels = schema.Feature(
        name=METADATA_VERSION, min_supported_version=7, max_supported_version=30
    )
    values: dict[str, object] = {
        "broker_id": 7,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": bytes(15) + b"\x01",
        "listeners": [schema.Listener(name="PLAINTEXT", host="h", port=9092)],
        "features": [levels],
        "log_dirs": [DIRECTORY],
    }
    return BrokerRegistrationRequest(**(values | more))  # type: ignore[arg-type]


def register(
    image: MetadataImage, request: BrokerRegistrationRequest, sessions: steps.Sessions | None = None
) -> steps.StepResult:
    """Register at time 1000, with the next record at the image's end."""
    return steps.register_broker(
        image,
        sessions or steps.Sessions(9000),
        request,
        cluster_id=CLUSTER_ID,
        next_offset=image.next_offset,
        now_ms=1000,
    )


def registered(image: MetadataImage, sessions: steps.Sessions, *, is_fenced: bool = False) -> int:
    """Register broker 7 and unfence it by a heartbeat; returns its epoch."""
    result = register(image, registration(), sessions)
    offset = image.next_offset
    image.replay(batch_of(result.records, offset))
    if not is_fenced:
        beat = heartbeat(image, sessions, epoch=offset, offset=offset)
        image.replay(batch_of(beat.records, image.next_offset))
    return offset


def heartbeat(
    image: MetadataImage, sessions: steps.Sessions, *, epoch: int, offset: int, **more: bool
) -> steps.StepResult:
    """A heartbeat of broker 7 at time 1000."""
    request = BrokerHeartbeatRequest(
        broker_id=7,
        broker_epoch=epoch,
        current_metadata_offset=offset,
        **more,  # type: ignore[arg-type]
    )
    return steps.heartbeat(image, sessions, request, 1000)


def error_of(result: steps.StepResult) -> int:
    """The answer's error code."""
    code: int = result.response.error_code  # type: ignore[union-attr]
    return code


def test_the_bootstrap_records_come_in_one_transaction() -> None:
    """As Kafka's first leader does: a reader sees all levels or none."""
    records = steps.activate(MetadataImage(), [LEVEL], "id")
    names = [record.NAME for record, _ in records]
    assert names == [
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "ConfigRecord",
        "EndTransactionRecord",
    ]


def test_eligible_leader_replicas_bring_their_configuration_along() -> None:
    """A Java controller treats the feature without min.insync.replicas as a fault."""
    elr = (FeatureLevelRecord(name=steps.ELR_VERSION, feature_level=1), 0)
    records = steps.activate(MetadataImage(), [LEVEL, elr], None)
    configs = [record for record, _ in records if record.NAME == "ConfigRecord"]
    assert [(c.name, c.value) for c in configs] == [("min.insync.replicas", "1")]  # type: ignore[attr-defined]


def test_a_half_written_bootstrap_is_aborted_and_redone() -> None:
    """Otherwise a cluster whose first leader died in the middle stays without levels for ever
    (KAFKA-20839)."""
    image = MetadataImage()
    image.replay(batch_of([(BeginTransactionRecord(name="Bootstrap records"), 0), LEVEL], 1))
    names = [record.NAME for record, _ in steps.activate(image, [LEVEL], None)]
    assert names == [
        "AbortTransactionRecord",
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "EndTransactionRecord",
    ]


def test_a_log_with_levels_needs_nothing_more() -> None:
    """A second leader must not write the bootstrap records again."""
    assert steps.activate(image_of(), [LEVEL], None) == []


def test_levels_without_transactions_are_written_bare() -> None:
    """Below 3.6-IV1 no reader supports transactions."""
    old = (FeatureLevelRecord(name=METADATA_VERSION, feature_level=12), 0)
    assert steps.activate(MetadataImage(), [old], None) == [old]


def test_a_brokers_epoch_is_the_offset_of_its_record() -> None:
    """Brokers wait until they have read that offset."""
    image = image_of()
    result = register(image, registration())
    assert result.response == BrokerRegistrationResponse(broker_epoch=1)
    assert result.base_offset == 1
    record, version = result.records[0]
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.log_dirs) == (1, True, [DIRECTORY])
    assert version == 4


def test_the_record_of_a_broker_is_as_old_as_the_level() -> None:
    """A Java node of that level would refuse to read a newer one."""
    for level, version in ((29, 3), (17, 3), (16, 2), (7, 1)):
        image = MetadataImage()
        record = (FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), 0)
        image.replay(batch_of([record], 0))
        assert register(image, registration()).records[0][1] == version


def test_registrations_that_cannot_be_right_are_refused() -> None:
    """The codes are those that Kafka's brokers know."""
    image = image_of()
    cases = [
        (registration(cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (registration(log_dirs=[]), ErrorCode.INVALID_REGISTRATION),
        (registration(log_dirs=[DIRECTORY, DIRECTORY]), ErrorCode.INVALID_REGISTRATION),
        (registration(is_migrating_zk_broker=True), ErrorCode.INVALID_REGISTRATION),
        (registration(features=[]), ErrorCode.UNSUPPORTED_VERSION),
    ]
    assert [error_of(register(image, request)) for request, _ in cases] == [c for _, c in cases]


def test_a_second_process_with_a_live_brokers_id_is_refused() -> None:
    """Two brokers with one id would fence each other for ever."""
    image, sessions = image_of(), steps.Sessions(9000)
    registered(image, sessions)
    other = registration(incarnation_id=bytes(15) + b"\x02")
    assert error_of(register(image, other, sessions)) == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_fenced_broker_may_come_back_as_another_process() -> None:
    """A restart is a new incarnation with a new epoch."""
    image, sessions = image_of(), steps.Sessions(9000)
    first = registered(image, sessions, is_fenced=True)
    result = register(image, registration(incarnation_id=bytes(15) + b"\x02"), sessions)
    assert result.response == BrokerRegistrationResponse(broker_epoch=first + 1)


def test_the_same_process_keeps_its_epoch() -> None:
    """The answer to it may have been lost; it is the same broker."""
    image, sessions = image_of(), steps.Sessions(9000)
    epoch = registered(image, sessions)
    result = register(image, registration(), sessions)
    record = result.records[0][0]
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced) == (epoch, False)


def test_a_broker_is_unfenced_once_it_has_read_its_registration() -> None:
    """Before that, it would lead with an older picture of the cluster."""
    image, sessions = image_of(), steps.Sessions(9000)
    epoch = registered(image, sessions, is_fenced=True)
    late = heartbeat(image, sessions, epoch=epoch, offset=epoch - 1)
    assert (late.response.is_fenced, late.records) == (True, [])  # type: ignore[union-attr]
    result = heartbeat(image, sessions, epoch=epoch, offset=epoch)
    change = BrokerRegistrationChangeRecord(broker_id=7, broker_epoch=epoch, fenced=-1)
    assert result.records == [(change, 0)]
    assert not result.response.is_fenced  # type: ignore[union-attr]


def test_a_heartbeat_of_another_epoch_is_stale() -> None:
    """A broker that was registered again must learn of it."""
    image, sessions = image_of(), steps.Sessions(9000)
    epoch = registered(image, sessions)
    result = heartbeat(image, sessions, epoch=epoch + 1, offset=9)
    assert error_of(result) == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_wants_to_stop_is_fenced_and_let_go() -> None:
    """It leads nothing, so there is nothing to wait for."""
    image, sessions = image_of(), steps.Sessions(9000)
    epoch = registered(image, sessions)
    result = heartbeat(image, sessions, epoch=epoch, offset=9, want_shut_down=True)
    record, version = result.records[0]
    assert isinstance(record, BrokerRegistrationChangeRecord)
    assert (record.fenced, record.in_controlled_shutdown, version) == (1, 1, 1)
    assert result.response.should_shut_down  # type: ignore[union-attr]


def test_a_silent_broker_is_fenced_when_its_session_ends() -> None:
    """Clients must not be sent to a node that is gone."""
    image, sessions = image_of(), steps.Sessions(9000)
    epoch = registered(image, sessions)
    assert sessions.next_expiry_ms(image) == 10_000
    assert steps.expire(image, sessions, 9999) == []
    change = BrokerRegistrationChangeRecord(broker_id=7, broker_epoch=epoch, fenced=1)
    assert steps.expire(image, sessions, 10_000) == [(change, 0)]


def test_a_new_controller_gives_every_broker_a_fresh_session() -> None:
    """A change of the leader must not fence the whole cluster."""
    image = image_of()
    registered(image, steps.Sessions(9000))
    sessions = steps.Sessions(9000)
    sessions.renew_all(image, 50_000)
    assert steps.expire(image, sessions, 58_999) == []


def test_a_controller_that_is_already_registered_writes_nothing() -> None:
    """Controllers repeat themselves whenever an answer is lost."""
    image = image_of()
    request = ControllerRegistrationRequest(controller_id=3, incarnation_id=bytes(15) + b"\x05")
    result = steps.register_controller(image, request)
    image.replay(batch_of(result.records, image.next_offset))
    assert steps.register_controller(image, request).records == ()


def test_controllers_are_not_registered_below_their_level() -> None:
    """RegisterControllerRecord exists from 3.7-IV0 on."""
    request = ControllerRegistrationRequest(controller_id=3)
    result = steps.register_controller(MetadataImage(), request)
    assert error_of(result) == ErrorCode.UNSUPPORTED_VERSION


def test_only_a_registered_broker_can_be_unregistered() -> None:
    """An operator's typing error must not look like success."""
    image, sessions = image_of(), steps.Sessions(9000)
    registered(image, sessions)
    assert len(steps.unregister_broker(image, UnregisterBrokerRequest(broker_id=7)).records) == 1
    result = steps.unregister_broker(image, UnregisterBrokerRequest(broker_id=8))
    assert error_of(result) == ErrorCode.BROKER_ID_NOT_REGISTERED
