"""UpdateFeatures at a Java controller and at ours: the same codes for the same requests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.testing.ports import free_ports
from tests.support.kafka.mixed_quorum import wait_until
from tests.support.kafka.process import KafkaNode, kafka_uuid
from tests.support.nodes.process import NodeProcess, ask

UPGRADE, SAFE, UNSAFE = 1, 2, 3
KRAFT, METADATA = "kraft.version", "metadata.version"

# Updates of one request each, in this order: the last ones change something.
REQUESTS: list[list[tuple[str, int, int]]] = [
    [],
    [(METADATA, 25, UPGRADE)],
    [(METADATA, 30, 0)],
    [(METADATA, 30, 4)],
    [(METADATA, -1, UPGRADE)],
    [(METADATA, 6, UNSAFE)],
    [(METADATA, 99, UPGRADE)],
    [(METADATA, 30, SAFE)],
    [(METADATA, 24, UPGRADE)],
    [(METADATA, 17, SAFE)],
    [(METADATA, 17, UNSAFE)],
    [(KRAFT, 2, UPGRADE)],
    [(KRAFT, -1, UPGRADE)],
    [(KRAFT, 0, UPGRADE)],
    [(KRAFT, 1, SAFE)],
    [("nonsense", 1, UPGRADE)],
    [(METADATA, 30, UPGRADE), ("nonsense", 1, UPGRADE)],
    [(METADATA, 24, SAFE)],
    [(METADATA, 30, UPGRADE)],
    [(METADATA, 30, UPGRADE)],
    [(METADATA, 29, SAFE)],
    [(KRAFT, 1, UPGRADE)],
    [(KRAFT, 1, UPGRADE)],
    [(KRAFT, 0, SAFE)],
    [(KRAFT, 0, UPGRADE)],
]


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """A Java controller and one of ours, each the only voter of its own static quorum."""
    found = dict(zip(("java", "ours"), free_ports(2), strict=True))
    with contextlib.ExitStack() as stack:
        for kind, port in found.items():
            voters = {"controller.quorum.voters": f"1@127.0.0.1:{port}"}
            folder = tmp_path_factory.mktemp(kind)
            node = KafkaNode(1, folder, {"CONTROLLER": port}, voters)
            node.format(kafka_uuid(), "--release-version", "4.0-IV3")
            if kind == "java":
                stack.callback(node.kill)
                node.start()
                node.wait_ready()
            else:
                process = NodeProcess(folder / "server.properties")
                stack.callback(process.close)
                stack.callback(process.kill)
                process.wait_for("event=controller-registered")
        yield found


def _ask(port: int, updates: list[tuple[str, int, int]], version: int, **more: Any) -> Any:
    keys = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=keys, **more)
    return ask(port, request, version)


def _codes(port: int, updates: list[tuple[str, int, int]], version: int, **more: Any) -> Any:
    """The part of an answer that is compared: the error texts are our own."""
    answer = _ask(port, updates, version, **more)
    has_text = answer.error_message is not None
    return answer.error_code, has_text, [(one.feature, one.error_code) for one in answer.results]


def _is_settled(port: int) -> bool:
    """Whether the voter has reported what it supports, which an upgrade requires."""
    answer = _ask(port, [(KRAFT, 1, UPGRADE)], 2, validate_only=True)
    return bool(answer.error_code == ErrorCode.NONE)


def test_both_answer_alike(ports: dict[str, int]) -> None:
    """Kafka's tools decide by the codes whether to retry."""
    for port in ports.values():
        wait_until(lambda port=port: _is_settled(port), "a voter that has reported its versions")
    differing = []
    for updates in REQUESTS:
        for version, more in ((2, {"validate_only": True}), (1, {"validate_only": True}), (2, {})):
            found = {
                kind: _codes(port, updates, version, **more) for kind, port in ports.items()
            }
            if found["java"] != found["ours"]:
                differing.append((updates, version, more, found))
    assert differing == []


def test_both_announce_the_same_levels(ports: dict[str, int]) -> None:
    """kafka-features lists them; ours says besides what it is."""
    found = {}
    for kind, port in ports.items():
        request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        answer: Any = ask(port, request, 4)
        found[kind] = {
            one.name: (one.min_version, one.max_version) for one in answer.supported_features
        }
    assert found["ours"].pop("kraftwire.version") == (1, 1)
    assert found["ours"] == found["java"]
