"""The filters of `kraftwire decode`: which frames pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraftwire.cli.main import main
from kraftwire.decode.filters.frames import FrameFilter
from kraftwire.decode.filters.values import parse_time
from kraftwire.decode.options import FilterOptions
from kraftwire.errors import UsageError
from tests.support.captures.decoded import decode, golden

Captured = pytest.CaptureFixture[str]


def _shown(name: str, **options: Any) -> list[dict[str, Any]]:
    return decode(golden(name), options=FilterOptions(**options)).lines


@pytest.mark.parametrize(
    ("options", "apis"),
    [
        ({"api": ("Vote",)}, {"Vote"}),
        ({"api": ("vote", "54")}, {"Vote", "EndQuorumEpoch"}),
        ({"api": ("*QuorumEpoch",)}, {"BeginQuorumEpoch", "EndQuorumEpoch"}),
        ({"api": ("*Quorum*", "!Describe*")}, {"BeginQuorumEpoch", "EndQuorumEpoch"}),
        ({"api": ("Fetch",), "error": ("any",)}, {"Fetch"}),
    ],
)
def test_apis_are_chosen_by_name_key_and_pattern(options: dict[str, Any], apis: set[str]) -> None:
    """Requests and responses alike."""
    assert {line["apiName"] for line in _shown("quorum", **options)} == apis


def test_versions_are_chosen_by_number_and_range() -> None:
    """Clients of different ages talk to one server."""
    everything = {line["apiVersion"] for line in _shown("clients")}
    assert {line["apiVersion"] for line in _shown("clients", api_version=("3-5",))} == (
        everything & {3, 4, 5}
    )
    assert min(line["apiVersion"] for line in _shown("clients", api_version=("8+",))) >= 8
    assert all(line["apiVersion"] != 3 for line in _shown("clients", api_version=("^3",)))


def test_client_ids_are_known_on_responses_too() -> None:
    """The header of a response does not carry it."""
    lines = _shown("sasl", client_id=("sec-p*",))
    assert {line["direction"] for line in lines} == {"request", "response"}
    assert all(line["header"].get("clientId", "sec-prod") == "sec-prod" for line in lines)


@pytest.mark.parametrize("end", ["127.0.0.1:38018", "127.0.0.1:38018-127.0.0.1:23011", ":38018"])
def test_connections_are_chosen_by_either_end(end: str) -> None:
    """The client's port is enough to follow one client."""
    lines = _shown("sasl", connection=(end,))
    assert {line["connection"] for line in lines} == {"127.0.0.1:38018-127.0.0.1:23011"}


@pytest.mark.parametrize(
    "end",
    ["10.0.0.*", "127.0.0.1:9*", ":909[0-9]", "[::1]:9092", "[fe80::1]", "!:65535", "*:1-*:?"],
)
def test_patterns_of_connections_are_taken(end: str) -> None:
    """Only a pattern that cannot match anything is refused."""
    assert not FrameFilter(FilterOptions(connection=(end,))).passes_all


def test_topics_are_found_by_name_and_by_id() -> None:
    """Newer versions carry only ids; earlier frames gave their names."""
    fetches = _shown("quorum", topic=("__cluster_metadata",), api=("Fetch",))
    assert any(
        "topicId" in line["body"]["responses"][0]
        for line in fetches
        if line["direction"] == "response" and line["body"]["responses"]
    )
    assert not _shown("quorum", topic=("no-such-topic",))
    names = _shown("clients", topic=("comp-*",))
    assert names
    assert all("comp-" in json.dumps(line["body"]) for line in names)


def test_a_partition_of_either_frame_shows_the_exchange(capsys: Captured) -> None:
    """A request for metadata names topics, and only its response their partitions."""
    path = str(golden("clients"))
    found = {}
    for form in ("line", "jsonl"):
        main(["decode", path, "--api", "Metadata", "--partition", "0", "--format", form, "-q"])
        found[form] = capsys.readouterr().out.count("Metadata")
    assert found["line"] >= found["jsonl"] > 0


def test_a_partition_is_that_of_the_topic() -> None:
    """Not one with the same number in another topic of the same frame."""
    zero = _shown("clients", topic=("comp-*",), partition=("0",))
    assert zero
    assert not _shown("clients", topic=("comp-*",), partition=("77",))


def test_groups_are_found_in_bodies() -> None:
    """To follow one group's rebalances."""
    lines = _shown("clients", api=("JoinGroup",))
    group = next(line["body"]["groupId"] for line in lines if line["direction"] == "request")
    shown = _shown("clients", group=(group,))
    assert {"JoinGroup", "SyncGroup"} <= {line["apiName"] for line in shown}


def test_errors_are_chosen_by_name_number_and_presence() -> None:
    """Only responses have errors; none means responses without."""
    errors = _shown("clients", error=("any",))
    assert errors
    assert all(line["direction"] == "response" for line in errors)
    required = _shown("clients", error=("MEMBER_ID_REQUIRED",))
    assert required == _shown("clients", error=("79",))
    assert all(line["body"]["errorCode"] == 79 for line in required)
    fine = _shown("clients", error=("none",))
    assert len(fine) + len(errors) == sum(
        line["direction"] == "response" for line in _shown("clients")
    )
    assert not [
        line
        for line in _shown("clients", error=("any", "!MEMBER_ID_REQUIRED"))
        if line["body"].get("errorCode") == 79
    ]


def test_latency_and_time_are_limits() -> None:
    """For what was slow, and for what happened around an incident."""
    lines = _shown("quorum")
    slow = _shown("quorum", min_latency_ms=100.0)
    assert [line["frame"] for line in slow] == [
        line["frame"] for line in lines if (line["latencyMs"] or 0) >= 100
    ]
    middle = lines[len(lines) // 2]["time"]
    early = _shown("quorum", until=f"{middle:.6f}")
    late = _shown("quorum", since=f"{middle:.6f}")
    assert 0 < len(early) < len(lines)
    assert max(line["time"] for line in early) <= middle <= min(line["time"] for line in late)


def test_times_are_seconds_or_iso_8601() -> None:
    """Without an offset they are UTC, so that a run does not depend on the machine."""
    assert parse_time("1795206142.283554") == 1795206142283554000
    assert parse_time("2026-11-20T20:22:22Z") == parse_time("2026-11-20T21:22:22+01:00")
    assert parse_time("2026-11-20T20:22:22.5") == parse_time("2026-11-20 20:22:22.500")
    with pytest.raises(UsageError, match="not a time"):
        parse_time("noon")


def test_without_options_everything_passes() -> None:
    """The usual case does not check each frame."""
    assert FrameFilter().passes_all
    assert not FrameFilter(FilterOptions(api=("Vote",))).passes_all
