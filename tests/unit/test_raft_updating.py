"""Requests to change the voter set, at a leader that changes none."""

from __future__ import annotations

from typing import cast

import pytest

from kraftwire.messages.kraft_version_record import KRaftVersionRecord
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.batches import control_batch, leader_change
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.histories import voters_record
from kraftwire.records.control import ControlType
from tests.support.raft_cluster import Cluster, directory_id


@pytest.mark.parametrize(("is_dynamic", "text"), [(False, "it stays"), (True, "Java controller")])
def test_a_refused_change_says_why(is_dynamic: bool, text: str) -> None:
    """R-REM-1: at kraft.version 0 nobody can, at 1 another leader could."""
    cluster = Cluster([1])
    if is_dynamic:
        records = [
            leader_change(1, [1], [1]),
            (ControlType.KRAFT_VERSION, KRaftVersionRecord(version=0, kraft_version=1)),
            (ControlType.KRAFT_VOTERS, voters_record(cluster.config(1).voters)),
        ]
        disk = cluster.disks[1]
        disk.append(control_batch(0, 1, 1000, records))
        disk.flush(3)
        disk.election = ElectionState(1, 1)
    cluster.start(1)
    assert cluster.run_until(lambda: cluster.core(1).high_watermark > 0)
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=1, voter_directory_id=directory_id(1)
    )
    answer = cast("RemoveRaftVoterResponse", cluster.ask(1, request))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert text in (answer.error_message or "")
