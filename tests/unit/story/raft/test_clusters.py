"""Two clusters in one capture, or two log directories: one story each, and nothing in between."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from kraftwire.capture.framing.frames import Ending
from kraftwire.cli.main import main
from kraftwire.inspect.stories.raft import write_story
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest, Listener
from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.story.raft.clusters import Clusters
from kraftwire.wire.message import Message
from tests.support.captures.frames import frame_at

_CONTROLLER = Path("tests/golden/logs/controller")


def _add(
    clusters: Clusters, time: float, server: str, body: Message, *, requested: Message | None = None
) -> None:
    frame = frame_at(
        time, f"10.0.0.9:5-{server}", body.API_KEY, is_request=requested is None, correlation_id=1
    )
    clusters.on_frame(frame, body, requested)


def _vote(cluster: str | None, candidate: int, *, epoch: int = 1) -> VoteRequest:
    requested = PartitionData(replica_id=candidate, replica_epoch=epoch)
    return VoteRequest(cluster_id=cluster, topics=[TopicData(partitions=[requested])])


def _votes(clusters: Clusters) -> dict[str | None, list[int | None]]:
    """The epochs of the votes in each story."""
    return {
        story.cluster: [event.epoch for event in story.events if event.kind == "vote"]
        for story in clusters.stories()
    }


def test_each_cluster_has_a_story() -> None:
    """Node 1 of one cluster is not node 1 of the other."""
    clusters = Clusters()
    for epoch in (1, 2):
        _add(clusters, epoch, "a:1", _vote("A", 1, epoch=epoch))
        _add(clusters, epoch, "b:1", _vote("B", 1, epoch=10 * epoch))
    assert _votes(clusters) == {"A": [1, 2], "B": [10, 20]}


def test_a_frame_without_an_id_follows_its_server() -> None:
    """A broker's heartbeats name no cluster, but the controller that gets them is of one."""
    clusters = Clusters()
    _add(clusters, 1, "a:1", _vote("A", 1))
    listener = Listener(name="PLAIN", host="broker", port=9092)
    registration = BrokerRegistrationRequest(broker_id=7, cluster_id="B", listeners=[listener])
    _add(clusters, 2, "b:1", registration)
    _add(clusters, 3, "b:1", BrokerHeartbeatRequest(broker_id=8))
    _add(clusters, 4, "broker:9092", _vote(None, 2, epoch=5))
    clusters.on_ending(Ending("c:1-broker:9092", 5_000_000_000, True, False))
    first, second = clusters.stories()
    assert (first.labels, second.labels) == ({}, {7: "broker", 8: "broker"})
    assert _votes(clusters) == {"A": [1], "B": [5]}


def test_a_frame_that_fits_several_clusters_belongs_to_none() -> None:
    """A history that may be wrong is worse than none."""
    clusters = Clusters()
    _add(clusters, 1, "a:1", _vote("A", 1))
    _add(clusters, 2, "b:1", _vote("B", 1))
    _add(clusters, 3, "c:1", _vote(None, 1, epoch=7))
    assert _votes(clusters) == {"A": [1], "B": [1]}


def test_frames_from_before_the_first_id_are_of_the_only_cluster() -> None:
    """The first frames of a capture rarely carry the id."""
    clusters = Clusters()
    _add(clusters, 1, "a:1", _vote(None, 1, epoch=1))
    _add(clusters, 2, "a:2", _vote("A", 1, epoch=2))
    _add(clusters, 3, "a:3", _vote(None, 1, epoch=3))
    assert _votes(clusters) == {"A": [1, 2, 3]}


def test_a_misdirected_request_does_not_change_the_servers_cluster() -> None:
    """A node with another cluster's addresses is refused; the server stays what it is."""
    clusters = Clusters()
    _add(clusters, 1, "a:1", _vote("A", 1))
    stray = _vote("B", 1, epoch=9)
    _add(clusters, 2, "a:1", stray)
    refusal = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    _add(clusters, 3, "a:1", refusal, requested=stray)
    _add(clusters, 4, "a:1", _vote(None, 1, epoch=2))
    assert _votes(clusters) == {"A": [1, 2], "B": [9]}


def test_a_capture_full_of_ids_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each history takes memory, and senders choose the ids."""
    monkeypatch.setattr("kraftwire.story.raft.clusters.RAFT_CLUSTER_COUNT_MAX", 3)
    clusters = Clusters()
    for number in range(10):
        _add(clusters, number, "a:1", _vote(f"cluster {number}", 1, epoch=number))
    assert len(list(clusters.stories())) == 3


def test_the_cluster_is_in_the_heading_of_each_story() -> None:
    """Without it readers could not tell them apart; for a single cluster it would be noise."""
    clusters = Clusters()
    _add(clusters, 1, "a:1", _vote("A", 1))
    out = io.StringIO()
    for story in clusters.stories():
        write_story(story, out, is_one_of_many=True)
    assert out.getvalue().startswith("Raft timeline of cluster A: ")


def test_log_directories_of_two_clusters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """meta.properties says which is which."""
    for name in ("one", "two"):
        shutil.copytree(_CONTROLLER, tmp_path / name)
    properties = tmp_path / "two" / "meta.properties"
    text = properties.read_text()
    cluster = next(line for line in text.splitlines() if line.startswith("cluster.id="))
    properties.write_text(text.replace(cluster, "cluster.id=AnotherCluster"))
    assert main(["story", "raft", str(tmp_path), "--json", "-q"]) == 0
    stories = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    known = cluster.removeprefix("cluster.id=")
    assert [each["cluster"] for each in stories] == [known, "AnotherCluster"]
    assert stories[0]["log"] == stories[1]["log"]
    assert main(["story", "raft", str(tmp_path / "one"), "-q"]) == 0
    assert capsys.readouterr().out.startswith("Raft timeline: ")
