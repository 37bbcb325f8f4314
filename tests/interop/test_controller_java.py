"""The active controller and Kafka's, in the same cluster of simulated brokers.

A seeded script registers, fences, stops and restarts brokers, creates, changes and moves topics,
elects leaders and changes configurations. Both controllers answer and write the same, but for the
differences that `tests/support/controller_script.py` names. Another one is that of administrators.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.testing.ports import free_ports
from tests.support import described_script
from tests.support.administration_script import java_trace, our_trace
from tests.support.controller_script import Tools, compare

SEED, STEPS, REQUESTS = 12, 150, 300


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    """The scripts, with Kafka's own schemas."""
    return Tools(tmp_path_factory.mktemp("tools"))


def test_a_script_has_the_same_answers_and_records(tools: Tools, tmp_path: Path) -> None:
    """Brokers and clients of Kafka rely on what its controller does."""
    print(f"seed {SEED}, {STEPS} steps")
    (port,) = free_ports(1)
    java = tools.java_trace(tmp_path / "java", port, SEED, STEPS)
    comparison = compare(tools, java)
    print(f"{comparison.requests} requests, {comparison.records} records, {comparison.known}")
    assert comparison.differences == []
    assert comparison.requests > STEPS / 2
    assert comparison.records > STEPS / 2


def test_administrators_get_the_same_answers_and_records(tools: Tools, tmp_path: Path) -> None:
    """They change ACLs, users of SCRAM, quotas, configurations of groups and client metrics, and
    delegation tokens (C-ACL, C-SCR, C-CQ, C-CFG, C-TOK)."""
    print(f"seed {SEED}, {REQUESTS} requests")
    (port,) = free_ports(1)
    java = java_trace(tools, tmp_path / "java", port, SEED, REQUESTS)
    ours = our_trace(tools, SEED, REQUESTS)
    assert len(java) == len(ours) == REQUESTS
    for theirs, own in zip(java, ours, strict=True):
        assert theirs == own


def test_configurations_are_described_as_by_kafka(tools: Tools, tmp_path: Path) -> None:
    """Administrators see what counts, and where it is set (C-CFG-16)."""
    (port,) = free_ports(1)
    java = described_script.java_trace(tools, tmp_path / "java", port)
    for theirs, own in zip(java, described_script.our_trace(tools), strict=True):
        assert own == theirs
