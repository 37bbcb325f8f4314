"""Fields that Kafka renamed: the current name is printed, both are read, the bytes are the same."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kraftwire.errors import UsageError, WireError
from kraftwire.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kraftwire.messages.txn_offset_commit_request import TxnOffsetCommitRequest

BOTH = "generation_id_or_member_epoch and generation_id name the same field"


def test_a_constructor_takes_either_name() -> None:
    """Programs that were written for the former name go on."""
    former = TxnOffsetCommitRequest(group_id="g", generation_id=7)
    current = TxnOffsetCommitRequest(group_id="g", generation_id_or_member_epoch=7)
    assert former == current
    assert (former.generation_id, former.generation_id_or_member_epoch) == (7, 7)
    assert TxnOffsetCommitRequest().generation_id == -1


def test_both_names_are_one_attribute() -> None:
    """Whatever is set under one name is what the other shows, and what is written."""
    request = TxnOffsetCommitRequest()
    request.generation_id = 5
    assert request.generation_id_or_member_epoch == 5
    request.generation_id_or_member_epoch = 6
    assert copy.deepcopy(request).generation_id == 6
    assert TxnOffsetCommitRequest.decode(request.encode(5), 5)[0].generation_id == 6
    assert "generation_id=" not in repr(request)


@pytest.mark.parametrize("second", [3, -1])
def test_both_names_for_a_constructor_are_refused(second: int) -> None:
    """Even where they agree, or one is the default: the caller meant something else."""
    with pytest.raises(UsageError, match=BOTH):
        TxnOffsetCommitRequest(generation_id=3, generation_id_or_member_epoch=second)


def test_json_is_read_under_either_name_and_printed_under_the_current_one() -> None:
    """As Kafka's converter of the current release prints it."""
    printed = TxnOffsetCommitRequest(generation_id=7).to_json(3)
    assert printed["generationIdOrMemberEpoch"] == 7
    assert "generationId" not in printed
    given = {**printed, "generationId": 7}
    del given["generationIdOrMemberEpoch"]
    assert TxnOffsetCommitRequest.from_json(given, 3) == TxnOffsetCommitRequest(generation_id=7)


def test_json_with_both_names_is_refused() -> None:
    """One of the two values would be lost."""
    given = {**TxnOffsetCommitRequest().to_json(3), "generationId": -1}
    match = "generationIdOrMemberEpoch and generationId name the same field"
    with pytest.raises(WireError, match=match):
        TxnOffsetCommitRequest.from_json(given, 3)


def test_a_version_without_the_field_refuses_either_name() -> None:
    """The error is that of the version, not that of an unknown key."""
    given = TxnOffsetCommitRequest().to_json(2)
    for name in ("generationId", "generationIdOrMemberEpoch"):
        with pytest.raises(WireError, match="version 2 cannot carry the field"):
            TxnOffsetCommitRequest.from_json({**given, name: 1}, 2)


def _response(version: int, **changes: Any) -> dict[str, Any]:
    printed = StreamsGroupHeartbeatResponse().to_json(version)
    return {key: value for key, value in (printed | changes).items() if value is not ...}


def test_a_name_that_another_field_has_by_now_means_that_one_where_it_is_carried() -> None:
    """Version 0 has the lag in 32 bits, under a name that version 1 has for 64 bits."""
    old = _response(0, acceptableRecoveryLagLegacy=..., acceptableRecoveryLag=9)
    read = StreamsGroupHeartbeatResponse.from_json(old, 0)
    assert (read.acceptable_recovery_lag_legacy, read.acceptable_recovery_lag) == (9, -1)
    assert read.to_json(0)["acceptableRecoveryLagLegacy"] == 9
    new = _response(1, acceptableRecoveryLag=2**40)
    read = StreamsGroupHeartbeatResponse.from_json(new, 1)
    assert (read.acceptable_recovery_lag_legacy, read.acceptable_recovery_lag) == (0, 2**40)
    with pytest.raises(WireError, match="acceptableRecoveryLagLegacy and acceptableRecoveryLag"):
        StreamsGroupHeartbeatResponse.from_json(_response(0, acceptableRecoveryLag=9), 0)
