"""What counts where two things are wrong at once, and what a heartbeat leads to in every state."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from kraftwire.controller.image import METADATA_VERSION
from kraftwire.controller.sessions import Sessions
from kraftwire.messages.broker_registration_request import Feature
from kraftwire.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.controlled_cluster import ControlledCluster
from tests.unit.controller.test_brokers import (
    error_of,
    image_of,
    register,
    registered,
    registration,
)
from tests.unit.controller.test_leadership import alter, beat

Fault = tuple[dict[str, Any], ErrorCode]


def pairs(*faults: Fault) -> list[Fault]:
    """Two faults that can be in one request, and the code of the one that is looked for first."""
    return [
        (first | second, code)
        for (first, code), (second, _) in combinations(faults, 2)
        if not first.keys() & second.keys()
    ]


@pytest.mark.parametrize(
    ("wrong", "code"),
    pairs(
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"incarnation_id": bytes(15) + b"\x02"}, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"features": [Feature(name="x", min_supported_version=1)]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
    ),
)
def test_the_first_fault_of_a_registration_counts(wrong: dict[str, Any], code: ErrorCode) -> None:
    """In the order of C-REG-1."""
    image, sessions = image_of(), Sessions(9000)
    registered(image, sessions)
    assert error_of(register(image, registration(**wrong), sessions)) == code


def test_a_level_out_of_range_counts_before_a_missing_one() -> None:
    """Without metadata.version, too (C-REG-1)."""
    image = image_of()
    early = Feature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=29)
    for features in ([early], [Feature(name="x", min_supported_version=1)]):
        answer = register(image, registration(features=features))
        assert error_of(answer) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("wrong", "code"),
    pairs(
        ({"partition_index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"sender": 2}, ErrorCode.INVALID_REQUEST),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": (1, 2, 2)}, ErrorCode.INVALID_REQUEST),
        ({"isr": (2,)}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"isr": (1, 3)}, ErrorCode.INELIGIBLE_REPLICA),
    ),
)
def test_the_first_fault_of_a_leaders_report_counts(wrong: dict[str, Any], code: ErrorCode) -> None:
    """In the order of C-ISR-2: epochs come before what is reported."""
    cluster = ControlledCluster(brokers=(1, 2, 3))
    topic_id = cluster.topic("t", [1, 2, 3])
    cluster.fence(3)
    isr = wrong.pop("isr", (1, 2))
    assert alter(cluster, topic_id, *isr, **wrong).error_code == code


@pytest.mark.parametrize(
    ("wrong", "code"),
    pairs(
        ({"name": "a_b"}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"name": "no blanks"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "a.b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"configs": [CreatableTopicConfig(name="no.such.key")]}, ErrorCode.INVALID_CONFIG),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
    ),
)
def test_the_first_fault_of_a_new_topic_counts(wrong: dict[str, Any], code: ErrorCode) -> None:
    """Its name, its configuration, its replicas (C-TOP-3, C-TOP-4)."""
    cluster = ControlledCluster(brokers=(1,))
    cluster.topic("a_b", [1])
    values = {"name": "t", "num_partitions": 1, "replication_factor": 1} | wrong
    (result,) = cluster.do(cluster.create(CreatableTopic(**values))).topics
    assert result.error_code == code


FENCED, UNFENCED, LEAVING, GONE = "fenced", "unfenced", "leaving", "gone"


def _next(state: str, beat: dict[str, bool], *, leads: bool, is_read: bool) -> str:
    """The table of C-HB-6. `is_read` is whether all brokers have read the shutdown, or this one its
    registration."""
    if state == LEAVING:
        return GONE if is_read and not leads else LEAVING
    if beat["want_shut_down"]:
        stays = state == UNFENCED and leads and not beat["want_fence"]
        return LEAVING if stays else GONE
    if beat["want_fence"] or (state == FENCED and not is_read):
        return FENCED
    return UNFENCED


@pytest.mark.parametrize("state", [FENCED, UNFENCED, LEAVING])
@pytest.mark.parametrize("flags", list(product([False, True], repeat=4)))
def test_what_a_heartbeat_leads_to(state: str, flags: tuple[bool, ...]) -> None:
    """Every state with every heartbeat (C-HB-6)."""
    want_fence, want_shut_down, leads, is_read = flags
    leads = leads and state != FENCED
    cluster, sessions = ControlledCluster(brokers=(1, 2)), Sessions(9000)
    if leads:
        cluster.topic("t", [1])
    epoch = cluster.image.brokers[1].offset
    if state == FENCED:
        cluster.fence(1)
    if state == LEAVING:
        sessions.shutdown_offsets[1] = 100
        sessions.offsets[2] = 100 if is_read else 99
    wants = {"want_fence": want_fence, "want_shut_down": want_shut_down}
    read = epoch if is_read or state != FENCED else epoch - 1
    answer = beat(cluster, sessions, 1, current_metadata_offset=read, **wants)
    expected = _next(state, wants, leads=leads, is_read=is_read)
    assert (answer.is_fenced, answer.should_shut_down) == (
        expected in (FENCED, GONE), expected == GONE
    )  # fmt: skip
    assert (1 in sessions.shutdown_offsets) is (expected == LEAVING)
    assert cluster.image.brokers[1].is_fenced is (expected in (FENCED, GONE))


def test_a_shutdown_goes_on_under_another_controller() -> None:
    """That one knows only what the log says: the registration is not written again (C-FEN-3)."""
    cluster = ControlledCluster(brokers=(1, 2))
    cluster.topic("t", [1, 2])
    beat(cluster, Sessions(9000), 1, want_shut_down=True)
    assert cluster.image.brokers[1].in_controlled_shutdown
    sessions, before = Sessions(9000), cluster.image.next_offset
    sessions.renew_all(cluster.image, 0)
    answer = beat(cluster, sessions, 1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert cluster.image.next_offset == before + 1, "fenced, and nothing else"


def test_cordoned_directories_are_compared_as_a_set() -> None:
    """The first report is written even if it is empty; after that what differs (C-DIR-5)."""
    cluster, sessions = ControlledCluster(brokers=(1,)), Sessions(9000)
    one, two = bytes(15) + b"\xfe", bytes(15) + b"\xff"
    written = []
    for directories in (None, [], [], [one, two], [two, one], None, [one]):
        before = cluster.image.next_offset
        beat(cluster, sessions, 1, cordoned_log_dirs=directories)
        written.append(cluster.image.next_offset - before)
    assert written == [0, 1, 0, 1, 0, 0, 1]
