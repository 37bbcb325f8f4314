"""UpdateFeatures: which levels may be finalized, and in which form the answer comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.controller.image import METADATA_VERSION
from kraftwire.controller.versions import KRAFT_VERSION
from kraftwire.errors import ApiError
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.register_broker_record import BrokerFeature, RegisterBrokerRecord
from kraftwire.messages.register_controller_record import (
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftwire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftwire.messages.update_features_response import UpdateFeaturesResponse
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.stub import StubNode, answer_of, control_batch, request_of

pytestmark = pytest.mark.trio

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def _node(level: int = 25) -> StubNode:
    """The leader of three, with all controllers registered and a level of metadata.version."""
    node = StubNode()
    features = [
        ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, low, high in ((METADATA_VERSION, 7, 30), (KRAFT_VERSION, 0, 1))
    ]
    records: list[Any] = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)]
    records += [
        RegisterControllerRecord(controller_id=number, features=features) for number in (1, 2, 3)
    ]
    node.commit_records(*((record, 0) for record in records))
    return node


@asynccontextmanager
async def _active(node: StubNode) -> AsyncIterator[StubNode]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        node.commit(control_batch(node.raft.end_offset))
        node.controller.leadership(node.key.id, 1, node.raft.end_offset)
        await trio.testing.wait_all_tasks_blocked()
        yield node
        nursery.cancel_scope.cancel()


async def _update(
    node: StubNode, *updates: tuple[str, int, int], version: int = 2, is_dry: bool = False
) -> UpdateFeaturesResponse:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        validate_only=is_dry,
    )
    answer: UpdateFeaturesResponse = await answer_of(
        node, request_of(request, version, to="peer")
    )
    return answer


async def test_a_later_metadata_version_is_finalized() -> None:
    """The active controller writes a record to the log."""
    async with _active(_node()) as node:
        assert (await _update(node, (METADATA_VERSION, 30, UPGRADE))).error_code == 0
        assert node.image.metadata_version == 30


async def test_an_update_is_checked_again_when_its_turn_comes() -> None:
    """Another one may have come first: a level without loss may be one with loss now."""
    async with _active(_node()) as node:
        codes: dict[int, int] = {}

        async def update(level: int) -> None:
            codes[level] = (await _update(node, (METADATA_VERSION, level, UPGRADE))).error_code

        async with trio.open_nursery() as nursery:
            for level in (30, 25):
                nursery.start_soon(update, level)
                await trio.lowlevel.checkpoint()
        assert codes == {30: 0, 25: ErrorCode.INVALID_UPDATE_VERSION}
        assert node.image.metadata_version == 30


async def test_a_level_that_is_already_finalized_changes_nothing() -> None:
    """Nothing is written for it."""
    async with _active(_node()) as node:
        end = node.raft.end_offset
        assert (await _update(node, (METADATA_VERSION, 25, UPGRADE))).error_code == 0
        assert node.raft.end_offset == end


async def test_kraft_version_is_checked_by_the_core_and_then_raised() -> None:
    """It is written as a control record, not as a metadata record."""
    node = _node()
    assert (await _update(node, (KRAFT_VERSION, 1, UPGRADE))).error_code == 0
    assert node.upgrades == [(1, True), (1, False)]
    assert node.log_records().count("FeatureLevelRecord") == 1


async def test_validating_changes_nothing() -> None:
    """Tools do this before they change anything."""
    node = _node()
    updates = ((KRAFT_VERSION, 1, UPGRADE), (METADATA_VERSION, 30, UPGRADE))
    assert (await _update(node, *updates, is_dry=True)).error_code == 0
    assert node.upgrades == [(1, True)]
    assert node.image.metadata_version == 25


async def test_all_happen_or_none() -> None:
    """If the core refuses, the other feature stays unchanged."""
    async with _active(_node()) as node:
        node.upgrade_refusal = ApiError(ErrorCode.INVALID_UPDATE_VERSION, "voter 3 is silent")
        answer = await _update(node, (METADATA_VERSION, 30, UPGRADE), (KRAFT_VERSION, 1, UPGRADE))
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.error_message == "voter 3 is silent"
        assert node.image.metadata_version == 25


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ((METADATA_VERSION, 30, 0), "upgrade type 0 is unknown"),
        ((METADATA_VERSION, -1, UPGRADE), "cannot be negative"),
        ((METADATA_VERSION, 31, UPGRADE), "supports levels 7 to 30"),
        ((METADATA_VERSION, 30, SAFE), "a downgrade was requested"),
        ((METADATA_VERSION, 24, UPGRADE), "an upgrade was requested"),
        ((METADATA_VERSION, 17, SAFE), "records of level 23 would be lost"),
        ((METADATA_VERSION, 17, UNSAFE), "records of level 23 would be lost"),
        ((KRAFT_VERSION, 2, UPGRADE), "supports levels 0 to 1"),
        ((KRAFT_VERSION, 0, SAFE), "never be downgraded"),
        (("unknown.version", 1, UPGRADE), "controller 1 does not know this feature"),
    ],
)
async def test_a_wrong_update_is_refused_for_good(
    update: tuple[str, int, int], reason: str
) -> None:
    """It gets a code after which no tool retries, and the reason."""
    async with _active(_node()) as node:
        node.raft.kraft_version = 1
        answer = await _update(node, update)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert reason in (answer.error_message or "")
        assert node.upgrades == []


async def test_a_downgrade_that_loses_no_records_is_done() -> None:
    """4.0-IV3 has no record that 4.0-IV2 lacks."""
    async with _active(_node()) as node:
        assert (await _update(node, (METADATA_VERSION, 24, SAFE))).error_code == 0
        assert node.image.metadata_version == 24


async def test_a_node_that_does_not_support_a_level_prevents_it() -> None:
    """It would stop at the record."""
    node = _node()
    feature = BrokerFeature(
        name=METADATA_VERSION, min_supported_version=7, max_supported_version=27
    )
    broker = RegisterBrokerRecord(broker_id=7, broker_epoch=9, features=[feature])
    node.commit_records((broker, 3))
    answer = await _update(node, (METADATA_VERSION, 30, UPGRADE))
    assert "broker 7 supports levels 7 to 27" in (answer.error_message or "")


async def test_a_configured_controller_that_has_not_registered_prevents_it() -> None:
    """What it supports is unknown."""
    node = _node()
    node.config = replace(node.config, voters=node.raft.voters)
    del node.image.controllers[3]
    answer = await _update(node, (KRAFT_VERSION, 1, UPGRADE))
    assert "controller 3 has not registered" in (answer.error_message or "")


async def test_a_node_that_does_not_lead_refuses_peers_and_forwards_for_clients() -> None:
    """Kafka's tools may connect to any broker."""
    node = _node()
    node.raft.leader_id, node.raft.role = 2, "follower"
    answer = await _update(node, (KRAFT_VERSION, 1, UPGRADE))
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    node.forward_answer = UpdateFeaturesResponse(error_message="from the leader")
    request = UpdateFeaturesRequest()
    assert await answer_of(node, request_of(request, 2)) == node.forward_answer
    assert node.forwarded == [request]


async def test_a_leadership_that_ends_is_reported_as_another_controller() -> None:
    """Tools try the next one only after that code."""
    node = _node()
    node.upgrade_refusal = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "leads no more")
    answer = await _update(node, (KRAFT_VERSION, 1, UPGRADE))
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


async def test_results_come_with_the_versions_that_have_them() -> None:
    """Version 2 has one result for all of them (KIP-1022)."""
    for version, count in ((0, 1), (1, 1), (2, 0)):
        answer = await _update(_node(), (KRAFT_VERSION, 1, UPGRADE), version=version)
        assert (answer.error_code, answer.error_message) == (0, None)
        assert [(one.feature, one.error_code) for one in answer.results] == [
            (KRAFT_VERSION, 0)
        ] * count
        answer = await _update(_node(), ("nonsense", 1, UPGRADE), version=version)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.results == []
