"""The story of topics: changes, traffic, clients, leaders, offsets."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kraftwire.cli.main import main
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.render.topics import story as story_module
from kraftwire.decode.render.topics.writer import TopicsJsonWriter
from kraftwire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftwire.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.frames_made import FrameMaker

GROUPS = Path(__file__).resolve().parents[2] / "golden" / "captures" / "groups.pcapng.xz"


def _recorded(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["decode", str(GROUPS), "--topics", "-q", *options]) == 0
    return capsys.readouterr().out


def _written(frames: list[Frame], *, show_secrets: bool = False) -> dict[str, Any]:
    stream = io.StringIO()
    settings = Settings()
    writer = TopicsJsonWriter(stream, topics=settings.topics, show_secrets=show_secrets)
    decoder = FrameDecoder(settings)
    for frame in frames:
        writer.frame(decoder.decode(frame))
    writer.finish()
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def test_traffic_is_counted_by_topic_and_client(capsys: pytest.CaptureFixture[str]) -> None:
    """Forty orders of the shop and one of the till; four and three payments."""
    topics = {each["topic"]: each for each in json.loads(_recorded(capsys, "--json"))["topics"]}
    orders = topics["orders"]
    assert orders["producedRecords"] == 41
    assert orders["producedBy"].keys() == {"shop", "till"}
    assert sum(orders["producedBy"].values()) == orders["producedBytes"]
    assert topics["payments"]["producedRecords"] == 7
    ends = [each["end"] for each in orders["partitions"]]
    assert ends == [12, 10, 10, 10]
    assert {each["leader"] for each in orders["partitions"]} == {1}


def test_only_topics_that_are_wanted_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A Metadata answer that names a wanted topic may name all others as well."""
    found = json.loads(_recorded(capsys, "--json", "--topic", "ord*"))
    assert [each["topic"] for each in found["topics"]] == ["orders"]
    assert {each["topic"] for each in found["events"]} == {"orders"}
    assert found["topics"][0]["producedRecords"] == 41
    found = json.loads(_recorded(capsys, "--json", "--topic", "orders", "--partition", "0"))
    assert [each["topic"] for each in found["topics"]] == ["orders"]
    found = json.loads(_recorded(capsys, "--json", "--topic", "!orders"))
    assert "orders" not in [each["topic"] for each in found["topics"]]


def test_text_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Long names of clients continue in the next line of their cell."""
    text = _recorded(capsys)
    assert max(map(len, text.splitlines())) <= 80
    assert "orders    is created (4 partitions) (by adminclient-1)" in text


def _metadata(maker: FrameMaker, name: str, leader: int, epoch: int) -> list[Frame]:
    part = MetadataResponsePartition(partition_index=2, leader_id=leader, leader_epoch=epoch)
    topic = MetadataResponseTopic(name=name, topic_id=bytes([1] * 16), partitions=[part])
    return [maker.request(MetadataRequest(), 12), maker.response(MetadataResponse(topics=[topic]))]


def test_a_new_leader_is_news_and_an_old_answer_is_not() -> None:
    """A broker that lags still names the leader of an epoch that is over."""
    maker = FrameMaker()
    frames = _metadata(maker, "t", 1, 5) + _metadata(maker, "t", 1, 5)
    frames += _metadata(maker, "t", 3, 6) + _metadata(maker, "t", 1, 5)
    frames += _metadata(maker, "t", -1, 7) + _metadata(maker, "t", 3, 8)
    found = _written(frames)
    assert [each["text"] for each in found["events"]] == [
        "partition 2 is led by 3 (before by 1, epoch 6)"
    ]
    (partition,) = found["topics"][0]["partitions"]
    assert (partition["leader"], partition["leaderEpoch"]) == (3, 8)


def test_secret_settings_stay_hidden() -> None:
    """A story quotes settings, and some hold passwords."""
    maker = FrameMaker()
    configs = [
        AlterableConfig(name="some.password", value="hunter2"),
        AlterableConfig(name="retention.ms", value="7"),
        AlterableConfig(name="cleanup.policy", config_operation=1, value=None),
    ]
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=configs)
    frames = [
        maker.request(IncrementalAlterConfigsRequest(resources=[resource]), 1),
        maker.response(
            IncrementalAlterConfigsResponse(
                responses=[AlterConfigsResourceResponse(resource_type=2, resource_name="t")]
            )
        ),
    ]
    (event,) = _written(frames)["events"]
    assert event["text"] == (
        "is configured: some.password=[redacted], retention.ms=7, cleanup.policy is reset "
        "(by tester)"
    )
    assert "hunter2" in _written(frames, show_secrets=True)["events"][0]["text"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with a million topics must not fill the memory."""
    monkeypatch.setattr(story_module, "TOPICS_MAX", 3)
    monkeypatch.setattr(story_module, "TOPIC_PARTITIONS_MAX", 2)
    maker = FrameMaker()
    found = _written([f for n in range(9) for f in _metadata(maker, f"t{n}", 1, 1)])
    assert len(found["topics"]) == 3
    assert sum(len(each["partitions"]) for each in found["topics"]) == 2


def test_empty_results_are_not_mentioned() -> None:
    """There is no table without rows."""
    assert _written([])["topics"] == []
