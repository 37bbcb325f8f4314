"""What an active controller decides about brokers and controllers, without a quorum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, ValuesView

import pytest

from kraftwire.controller import brokers
from kraftwire.controller.activation import activate
from kraftwire.controller.cluster import Cluster
from kraftwire.controller.controllers import register_controller, unregister_controller
from kraftwire.controller.image import (
    CLUSTER_ID_CONFIG,
    METADATA_VERSION,
    BrokerImage,
    MetadataImage,
)
from kraftwire.controller.partition_changes import Target, change_partition, changes_for_broker
from kraftwire.controller.registrations import REGISTRATION_ENTRIES_MAX
from kraftwire.controller.sessions import Sessions
from kraftwire.controller.step import StepResult, VersionedRecord
from kraftwire.controller.versions import ELR_VERSION
from kraftwire.messages import broker_registration_request as schema
from kraftwire.messages import controller_registration_request as controller_schema
from kraftwire.messages.begin_transaction_record import BeginTransactionRecord
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.broker_registration_response import BrokerRegistrationResponse
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.register_broker_record import RegisterBrokerRecord
from kraftwire.messages.register_controller_record import RegisterControllerRecord
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.messages.unregister_controller_request import UnregisterControllerRequest
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.controlled_cluster import ControlledCluster
from tests.support.nodes.stub import CLUSTER_ID, batch_of

LEVEL = (FeatureLevelRecord(name=METADATA_VERSION, feature_level=30), 0)
DIRECTORY = bytes(15) + b"\xc9"


def image_of(*records: VersionedRecord) -> MetadataImage:
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
    image: MetadataImage, request: BrokerRegistrationRequest, sessions: Sessions | None = None
) -> StepResult:
    """Register at time 1000, with the next record at the image's end."""
    return brokers.register_broker(
        Cluster(image),
        sessions or Sessions(9000),
        request,
        4,
        cluster_id=CLUSTER_ID,
        next_offset=image.next_offset,
        now_ms=1000,
    )


def registered(image: MetadataImage, sessions: Sessions, *, is_fenced: bool = False) -> int:
    """Register broker 7 and unfence it by a heartbeat; returns its epoch."""
    result = register(image, registration(), sessions)
    offset = image.next_offset
    image.replay(batch_of(result.records, offset))
    if not is_fenced:
        beat = heartbeat(image, sessions, epoch=offset, offset=offset)
        image.replay(batch_of(beat.records, image.next_offset))
    return offset


def heartbeat(
    image: MetadataImage, sessions: Sessions, *, epoch: int, offset: int, **more: object
) -> StepResult:
    """A heartbeat of broker 7 at time 1000."""
    request = BrokerHeartbeatRequest(
        broker_id=7,
        broker_epoch=epoch,
        current_metadata_offset=offset,
        **more,  # type: ignore[arg-type]
    )
    return brokers.heartbeat(
        Cluster(image), sessions, request, next_offset=image.next_offset, now_ms=1000
    )


def unregistered(image: MetadataImage, broker_id: int) -> StepResult:
    """Remove a registration."""
    request = UnregisterBrokerRequest(broker_id=broker_id)
    return brokers.unregister_broker(Cluster(image), request)


def fenced(image: MetadataImage, sessions: Sessions, now_ms: int) -> Sequence[VersionedRecord]:
    """What is written for a session that has expired."""
    return brokers.fence_expired(Cluster(image), sessions, now_ms).records


def error_of(result: StepResult) -> int:
    """The answer's error code."""
    code: int = result.response.error_code  # type: ignore[union-attr]
    return code


def test_the_bootstrap_records_come_in_one_transaction() -> None:
    """As Kafka's first leader does: a reader sees all levels or none."""
    records = activate(MetadataImage(), [LEVEL], {CLUSTER_ID_CONFIG: "id"})
    names = [record.NAME for record, _ in records]
    assert names == [
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "ConfigRecord",
        "EndTransactionRecord",
    ]


def test_eligible_leader_replicas_bring_their_configuration_along() -> None:
    """A Java controller treats the feature without min.insync.replicas as a fault."""
    elr = (FeatureLevelRecord(name=ELR_VERSION, feature_level=1), 0)
    for given, value in (((), "1"), (("2",), "2")):
        records = activate(MetadataImage(), [LEVEL, elr], {}, *given)
        configs = [record for record, _ in records if record.NAME == "ConfigRecord"]
        assert [(c.name, c.value) for c in configs] == [("min.insync.replicas", value)]  # type: ignore[attr-defined]


def test_a_half_written_bootstrap_is_aborted_and_redone() -> None:
    """Otherwise a cluster whose first leader died in the middle stays without levels for ever
    (KAFKA-20839)."""
    image = MetadataImage()
    image.replay(batch_of([(BeginTransactionRecord(name="Bootstrap records"), 0), LEVEL], 1))
    names = [record.NAME for record, _ in activate(image, [LEVEL], {})]
    assert names == [
        "AbortTransactionRecord",
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "EndTransactionRecord",
    ]


def test_a_log_with_levels_needs_nothing_more() -> None:
    """A second leader must not write the bootstrap records again."""
    assert activate(image_of(), [LEVEL], {}) == []


def test_levels_without_transactions_are_written_bare() -> None:
    """Below 3.6-IV1 no reader supports transactions."""
    old = (FeatureLevelRecord(name=METADATA_VERSION, feature_level=12), 0)
    assert activate(MetadataImage(), [old], {}) == [old]


def test_a_brokers_epoch_is_the_offset_of_its_record() -> None:
    """Brokers wait until they have read that offset."""
    image = image_of()
    result = register(image, registration())
    assert result.response == BrokerRegistrationResponse(broker_epoch=1)
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
    """The codes are those of Kafka (C-REG-1)."""
    image = image_of()
    cases = [
        (registration(cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (registration(log_dirs=[]), ErrorCode.INVALID_REGISTRATION),
        (registration(log_dirs=[DIRECTORY, DIRECTORY]), ErrorCode.INVALID_REGISTRATION),
        (registration(log_dirs=[bytes(15) + b"\x02"]), ErrorCode.INVALID_REGISTRATION),
        (registration(is_migrating_zk_broker=True), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (registration(features=[]), ErrorCode.INVALID_REGISTRATION),
    ]
    assert [error_of(register(image, request)) for request, _ in cases] == [c for _, c in cases]


def test_nobody_registers_more_than_a_server_can_have() -> None:
    """Entries stay in the log and in the memory of every node for good (R-SRV-7)."""
    image, most = image_of(), REGISTRATION_ENTRIES_MAX
    directories = [n.to_bytes(16, "big") for n in range(200, 201 + most)]
    listeners = [schema.Listener(name=f"L{n}", host="h", port=n) for n in range(most + 1)]
    features = [schema.Feature(name=f"f{n}") for n in range(most + 1)]
    assert error_of(register(image, registration(log_dirs=directories[:most]))) == ErrorCode.NONE
    assert error_of(register(image, registration(listeners=listeners[:most]))) == ErrorCode.NONE
    for more in ({"log_dirs": directories}, {"listeners": listeners}, {"features": features}):
        assert error_of(register(image, registration(**more))) == ErrorCode.INVALID_REQUEST
    controllers = [
        controller_schema.Listener(name=f"L{n}", host="h", port=n) for n in range(most + 1)
    ]
    request = ControllerRegistrationRequest(controller_id=3, listeners=controllers)
    assert error_of(register_controller(image, request)) == ErrorCode.INVALID_REQUEST


def test_the_record_of_a_registration_is_bounded() -> None:
    """A few names of the longest kind would take as much as thousands of entries (R-SRV-7)."""
    image, host = image_of(), "h" * 32_000
    hosts = [schema.Listener(name=name, host=host, port=1) for name in ("A", "B", "C")]
    assert error_of(register(image, registration(listeners=hosts[:2]))) == ErrorCode.NONE
    assert error_of(register(image, registration(listeners=hosts))) == ErrorCode.INVALID_REQUEST
    listeners = [controller_schema.Listener(name=n, host=host, port=1) for n in ("A", "B", "C")]
    request = ControllerRegistrationRequest(controller_id=3, listeners=listeners)
    assert error_of(register_controller(image, request)) == ErrorCode.INVALID_REQUEST


def test_a_heartbeat_cordons_no_more_directories_than_there_can_be() -> None:
    """Its directories are written as well (R-SRV-7)."""
    image, sessions = image_of(), Sessions(9000)
    epoch = registered(image, sessions)
    cordoned = [n.to_bytes(16, "big") for n in range(1, REGISTRATION_ENTRIES_MAX + 2)]
    result = heartbeat(image, sessions, epoch=epoch, offset=9, cordoned_log_dirs=cordoned)
    assert error_of(result) == ErrorCode.INVALID_REQUEST


def test_a_directory_belongs_to_one_broker_until_that_one_leaves_it() -> None:
    """A disk that moved may be registered again once its broker has left it (R-SRV-7)."""
    image, other = image_of(), bytes(15) + b"\xca"
    registered(image, Sessions(9000), is_fenced=True)
    thief = registration(broker_id=8)
    assert error_of(register(image, thief)) == ErrorCode.INVALID_REGISTRATION
    moved = register(image, registration(log_dirs=[other]))
    image.replay(batch_of(moved.records, image.next_offset))
    assert error_of(register(image, thief)) == ErrorCode.NONE
    assert error_of(register(image, registration(broker_id=8, log_dirs=[other]))) != ErrorCode.NONE
    gone = unregistered(image, 7)
    image.replay(batch_of(gone.records, image.next_offset))
    assert image.directories == {}


class _Counted(dict[int, BrokerImage]):
    """Registered brokers that count how many of them are looked at."""

    looks = 0

    def __getitem__(self, key: int) -> BrokerImage:
        self.looks += 1
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[int]:
        self.looks += len(self)
        return super().__iter__()

    def values(self) -> ValuesView[BrokerImage]:
        self.looks += len(self)
        return super().values()


@pytest.mark.parametrize("count", [10, 1000])
def test_nothing_that_happens_often_looks_at_every_broker(count: int) -> None:
    """Else a crowd of registered brokers slows down each later commit for good (SEC-WORK)."""
    image, sessions = image_of(), Sessions(9000)
    for n in range(100, 100 + count):
        request = registration(broker_id=n, log_dirs=[(1000 + n).to_bytes(16, "big")])
        image.replay(batch_of(register(image, request, sessions).records, image.next_offset))
    state = image._state
    known = state.brokers = _Counted(state.brokers)
    registered(image, sessions)
    assert image.alive_brokers
    assert not fenced(image, sessions, 9_999)
    assert sessions.next_expiry_ms() == 10_000
    assert known.looks < 10


def test_a_second_process_with_a_live_brokers_id_is_refused() -> None:
    """Two brokers with one id would fence each other for ever."""
    image, sessions = image_of(), Sessions(9000)
    registered(image, sessions)
    other = registration(incarnation_id=bytes(15) + b"\x02")
    assert error_of(register(image, other, sessions)) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    # Before anything else that is wrong with it (C-REG-1).
    other.features = []
    assert error_of(register(image, other, sessions)) == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_fenced_broker_may_come_back_as_another_process() -> None:
    """A restart is a new incarnation with a new epoch."""
    image, sessions = image_of(), Sessions(9000)
    first = registered(image, sessions, is_fenced=True)
    result = register(image, registration(incarnation_id=bytes(15) + b"\x02"), sessions)
    assert result.response == BrokerRegistrationResponse(broker_epoch=first + 1)


def test_a_broker_that_is_not_unfenced_yet_keeps_its_id_while_it_sends_heartbeats() -> None:
    """A second process would take it away, and neither would ever be ready (C-REG-8)."""
    image, sessions = image_of(), Sessions(9000)
    epoch = registered(image, sessions, is_fenced=True)
    other = registration(incarnation_id=bytes(15) + b"\x02")
    heartbeat(image, sessions, epoch=epoch, offset=epoch - 1)
    assert error_of(register(image, other, sessions)) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    # The session is that of one process: the next one has none before its first heartbeat.
    image.replay(batch_of(register(image, other, Sessions(9000)).records, image.next_offset))
    assert not error_of(register(image, registration(), sessions))


@pytest.mark.parametrize("in_shutdown", [False, True])
def test_a_process_that_is_stopping_keeps_its_id_until_it_may_go(in_shutdown: bool) -> None:
    """It leads partitions still; afterwards its next process need not wait (C-REG-8)."""
    image, sessions = image_of(), Sessions(9000)
    epoch = registered(image, sessions)
    if in_shutdown:
        change = BrokerRegistrationChangeRecord(
            broker_id=7, broker_epoch=epoch, in_controlled_shutdown=1
        )
        image.replay(batch_of([(change, 1)], image.next_offset))
    other = registration(incarnation_id=bytes(15) + b"\x02")
    assert error_of(register(image, other, sessions)) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    last = heartbeat(image, sessions, epoch=epoch, offset=9, want_shut_down=True)
    image.replay(batch_of(last.records, image.next_offset))
    assert last.on_committed is not None
    last.on_committed()
    assert not error_of(register(image, other, sessions))


def test_the_same_process_keeps_its_epoch() -> None:
    """The answer to it may have been lost; it is the same broker."""
    image, sessions = image_of(), Sessions(9000)
    epoch = registered(image, sessions)
    result = register(image, registration(), sessions)
    record = result.records[0][0]
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced) == (epoch, False)


def test_a_broker_is_unfenced_once_it_has_read_its_registration() -> None:
    """Before that, it would lead with an older picture of the cluster."""
    image, sessions = image_of(), Sessions(9000)
    epoch = registered(image, sessions, is_fenced=True)
    late = heartbeat(image, sessions, epoch=epoch, offset=epoch - 1)
    assert (late.response.is_fenced, late.records) == (True, [])  # type: ignore[union-attr]
    result = heartbeat(image, sessions, epoch=epoch, offset=epoch)
    change = BrokerRegistrationChangeRecord(broker_id=7, broker_epoch=epoch, fenced=-1)
    assert result.records == [(change, 0)]
    assert not result.response.is_fenced  # type: ignore[union-attr]


def test_a_heartbeat_of_another_epoch_is_stale() -> None:
    """A broker that was registered again must learn of it."""
    image, sessions = image_of(), Sessions(9000)
    epoch = registered(image, sessions)
    result = heartbeat(image, sessions, epoch=epoch + 1, offset=9)
    assert error_of(result) == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_wants_to_stop_is_fenced_and_let_go() -> None:
    """It leads nothing, so there is nothing to wait for (C-HB-6, C-FEN-1)."""
    image, sessions = image_of(), Sessions(9000)
    epoch = registered(image, sessions)
    result = heartbeat(image, sessions, epoch=epoch, offset=9, want_shut_down=True)
    record, version = result.records[0]
    assert isinstance(record, BrokerRegistrationChangeRecord)
    assert (record.fenced, record.in_controlled_shutdown, version) == (1, 0, 0)
    assert result.response.should_shut_down  # type: ignore[union-attr]


def test_a_silent_broker_is_fenced_when_its_session_ends() -> None:
    """Clients must not be sent to a node that is gone."""
    image, sessions = image_of(), Sessions(9000)
    epoch = registered(image, sessions)
    assert sessions.next_expiry_ms() == 10_000
    assert not fenced(image, sessions, 9999)
    change = BrokerRegistrationChangeRecord(broker_id=7, broker_epoch=epoch, fenced=1)
    assert fenced(image, sessions, 10_000) == [(change, 0)]


def test_sessions_end_in_the_order_of_the_last_heartbeats() -> None:
    """A broker that goes on sending them is not among those that have fallen silent."""
    image, sessions = image_of(), Sessions(9000)
    ids = (7, 8, 9)
    for n in ids:
        request = registration(broker_id=n, log_dirs=[(1000 + n).to_bytes(16, "big")])
        result = register(image, request, sessions)
        image.replay(batch_of(result.records, image.next_offset))
        unfenced = BrokerRegistrationChangeRecord(
            broker_id=n, broker_epoch=image.next_offset - 1, fenced=-1
        )
        image.replay(batch_of([(unfenced, 0)], image.next_offset))
    for n, now_ms in ((9, 0), (7, 1), (8, 2), (9, 3)):
        sessions.touch(image.brokers[n], now_ms)
    expired = [broker.id for broker in sessions.expired(image, 9_002)]
    assert (expired, sessions.next_expiry_ms()) == ([7, 8], 9_001)
    # Those that are fenced or gone meanwhile are forgotten.
    for n in expired:
        gone = unregistered(image, n)
        image.replay(batch_of(gone.records, image.next_offset))
    assert sessions.expired(image, 9_002) == []
    assert sessions.next_expiry_ms() == 9_003


def test_a_new_controller_gives_every_broker_a_fresh_session() -> None:
    """A change of the leader must not fence the whole cluster."""
    image = image_of()
    registered(image, Sessions(9000))
    sessions = Sessions(9000)
    sessions.renew_all(image, 50_000)
    assert not fenced(image, sessions, 58_999)


def test_a_controller_that_is_already_registered_writes_nothing() -> None:
    """Controllers repeat themselves whenever an answer is lost."""
    image = image_of()
    request = ControllerRegistrationRequest(controller_id=3, incarnation_id=bytes(15) + b"\x05")
    result = register_controller(image, request)
    image.replay(batch_of(result.records, image.next_offset))
    assert register_controller(image, request).records == ()


def test_controllers_are_not_registered_below_their_level() -> None:
    """RegisterControllerRecord exists from 3.7-IV0 on."""
    request = ControllerRegistrationRequest(controller_id=3)
    result = register_controller(MetadataImage(), request)
    assert error_of(result) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("level", "controller_id", "code"),
    [
        (33, 3, 0),
        (33, 9, ErrorCode.CONTROLLER_ID_NOT_REGISTERED),
        (33, 4, ErrorCode.INVALID_REQUEST),
        (33, 1, ErrorCode.INVALID_REQUEST),
        (32, 1, ErrorCode.INVALID_REQUEST),
        (32, 9, ErrorCode.UNSUPPORTED_VERSION),
        (32, 3, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_controllers_are_unregistered(level: int, controller_id: int, code: int) -> None:
    """Only those that are no voters any more: 1 is the active one, 4 another voter (C-CREG-2)."""
    image = MetadataImage()
    known = [(RegisterControllerRecord(controller_id=id), 0) for id in (1, 3, 4)]
    feature = (FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), 0)
    image.replay(batch_of([feature, *known], 0))
    request = UnregisterControllerRequest(controller_id=controller_id)
    result = unregister_controller(Cluster(image, node_id=1), request, {1, 4})
    assert error_of(result) == code
    assert bool(result.records) == (code == 0)
    if result.records:
        image.replay(batch_of(result.records, image.next_offset))
    assert (3 in image.controllers) == bool(code)


def test_only_a_registered_broker_can_be_unregistered() -> None:
    """An operator's typing error must not look like success."""
    image, sessions = image_of(), Sessions(9000)
    registered(image, sessions)
    assert len(unregistered(image, 7).records) == 1
    result = unregistered(image, 8)
    assert error_of(result) == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_comes_back_does_not_lead_from_a_directory_that_it_lost() -> None:
    """Its heartbeat unfences it and reports the directory, whose replica then could not serve
    (C-DIR-1, C-DIR-3)."""
    cluster = ControlledCluster(has_elr=False)
    gone, kept = (number.to_bytes(16, "big") for number in (201, 202))
    sessions = Sessions(9000)
    request = registration(log_dirs=[gone, kept])
    cluster.do(register(cluster.image, request, sessions))
    cluster.fence(7, is_fenced=False)
    keys = [(cluster.topic(name, [7]), 0) for name in ("lost", "served")]
    for key, directory in zip(keys, (gone, kept), strict=True):
        target = Target(directories={7: directory})
        record = change_partition(cluster.view, key, target)
        assert record is not None
        cluster.replay([record])
    cluster.replay(changes_for_broker(cluster.view, keys, removed=7))
    cluster.fence(7)
    back = BrokerHeartbeatRequest(
        broker_id=7,
        broker_epoch=cluster.image.brokers[7].epoch,
        current_metadata_offset=cluster.image.highest_offset,
        offline_log_dirs=[gone],
    )
    cluster.do(
        brokers.heartbeat(
            cluster.view, sessions, back, next_offset=cluster.image.next_offset, now_ms=2000
        )
    )
    assert [cluster.partition(key).leader for key in keys] == [-1, 7]


def test_a_broker_with_many_partitions_goes_and_comes_in_pieces() -> None:
    """100,000 partitions took seconds in which the controller did nothing else (SEC-WORK)."""
    count, sessions = 50, Sessions(9000)
    cluster = ControlledCluster(brokers=(1, 2))
    cluster.topic("t", *[[1, 2]] * count)
    epoch = cluster.image.brokers[1].epoch
    beat = BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=epoch, current_metadata_offset=1 << 40, want_fence=True
    )
    sessions.touch(cluster.image.brokers[1], 0)
    features = [
        schema.Feature(name=name, min_supported_version=0, max_supported_version=level)
        for name, level in cluster.image.features.items()
    ]
    divided = {
        "register": brokers.register_broker.in_pieces(
            cluster.view,
            Sessions(9000),
            registration(broker_id=1, incarnation_id=bytes(15) + b"\x09", features=features),
            4,
            cluster_id=CLUSTER_ID,
            next_offset=1000,
            now_ms=1 << 40,
        ),
        "heartbeat": brokers.heartbeat.in_pieces(
            cluster.view, sessions, beat, next_offset=1000, now_ms=1
        ),
        "expire": brokers.fence_expired.in_pieces(cluster.view, sessions, 1 << 40),
        "unregister": brokers.unregister_broker.in_pieces(
            cluster.view, UnregisterBrokerRequest(broker_id=1)
        ),
    }
    pauses = {name: sum(1 for _ in pieces) for name, pieces in divided.items()}
    assert pauses == dict.fromkeys(divided, count)
