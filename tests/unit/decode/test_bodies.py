"""Payloads that are sound, too new, too long, cut off or damaged."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire import messages
from kraftwire.capture.framing.frames import CAPTURE_FINDINGS
from kraftwire.decode.body.bodies import Payload, decode_payload
from kraftwire.decode.body.findings import FINDINGS, LOSSES, json_path
from kraftwire.decode.body.ordinary import ordinary_payload
from kraftwire.decode.body.scan import error_codes, groups, topics, unknown_tags
from kraftwire.messages import produce_request
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.vote_response import VoteResponse
from tests.support.captures.decoded import GOLDEN, ROOT, decoded_frames, golden
from tests.support.captures.payloads import api_key, request, response, view

VOTE = {"clusterId": "c", "voterId": 3, "topics": []}
PARTITION = {
    "partitionIndex": 0,
    "errorCode": 0,
    "highWatermark": 5,
    "lastStableOffset": 5,
    "logStartOffset": 0,
    "abortedTransactions": None,
    "preferredReadReplica": -1,
    "records": "",
}
METADATA_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def _fetched(count: int, **changes: Any) -> dict[str, Any]:
    partitions = [{**PARTITION, "partitionIndex": n, **changes} for n in range(count)]
    return {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "sessionId": 0,
        "responses": [{"topicId": METADATA_ID, "partitions": partitions}],
    }


def _ids(findings: list[Any]) -> list[str]:
    return [each.id for each in findings]


def test_a_whole_request_is_shown_as_kafka_prints_it() -> None:
    """The ordinary case: header, body, nothing left, no findings."""
    shown = view(request("Vote", 2, VOTE, 7))
    assert shown.payload.header_json() == {
        "requestApiKey": 52,
        "requestApiVersion": 2,
        "correlationId": 7,
        "clientId": "tester",
    }
    assert shown.body_json == VOTE
    assert (shown.payload.remaining, shown.findings) == (0, [])


def test_a_version_without_schema_is_tried_with_the_nearest() -> None:
    """Versions add fields at the end, so most of a newer message can be read."""
    # Kafka has removed this API, so it gets no other version.
    shutdown = {"brokerId": 1, "brokerEpoch": 2}
    payload = bytearray(request("ControlledShutdown", 3, shutdown))
    payload[3] = 9
    shown = view(bytes(payload) + b"\x07new")
    assert shown.payload.is_assumed
    assert shown.body_json == shutdown
    assert shown.payload.remaining == 4
    assert [each.to_json(show_bytes=True) for each in shown.findings] == [
        {
            "id": "unknown-version",
            "offset": 17,
            "path": "",
            "detail": "ControlledShutdownRequest v9 has no schema (known: 0-3), read as v3; bytes "
            + bytes(payload[17:]).hex()
            + b"\x07new".hex(),
        },
        {
            "id": "trailing-bytes",
            "offset": len(payload),
            "path": "",
            "detail": "4 bytes after ControlledShutdownRequest; bytes 076e6577",
        },
    ]


def test_an_api_without_schema_keeps_its_header() -> None:
    """The header identifies the client and the request."""
    payload = bytearray(request("Vote", 0, {"clusterId": None, "topics": []}))
    payload[0:2] = (999).to_bytes(2, "big")
    shown = view(bytes(payload))
    assert shown.payload.api_key == 999
    assert shown.payload.header is not None
    assert shown.body_json is None
    assert shown.payload.remaining == len(payload) - shown.payload.header_end
    assert _ids(shown.findings) == ["unknown-api"]


def test_a_response_to_nobody_shows_its_correlation_id() -> None:
    """A capture that starts in the middle has such responses."""
    payload = response("Vote", 2, VoteResponse(error_code=41), 77)
    decoded = decode_payload(payload, is_request=False)
    assert decoded.header_json() == {"correlationId": 77}
    assert (decoded.api_key, decoded.body) == (None, None)
    assert decoded.remaining == len(payload) - 4
    assert _ids(decoded.findings) == ["unmatched-response"]


def test_an_answer_in_version_0_keeps_the_version_asked_for() -> None:
    """An older server answers ApiVersions in the one layout that every client can read."""
    body = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 2}]}
    shown = view(response("ApiVersions", 0, body), ("ApiVersions", 4))
    assert shown.body_json == body
    assert shown.payload.api_version == 4
    assert _ids(shown.findings) == ["api-versions-v0"]
    assert not shown.findings[0].is_loss


@pytest.mark.parametrize("version", [6, 7, 30])
def test_an_answer_in_version_0_is_read_whatever_was_asked_for(version: int) -> None:
    """A client newer than the schemas gets its first answer in version 0 as well."""
    body = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]}
    shown = view(response("ApiVersions", 0, body), ("ApiVersions", version))
    assert (shown.body_json, shown.payload.remaining) == (body, 0)
    assert _ids(shown.findings) == ["api-versions-v0"]
    newer = {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0}
    shown = view(response("ApiVersions", 5, newer), ("ApiVersions", version))
    assert (shown.body_json, shown.payload.remaining) == (newer, 0)
    assert _ids(shown.findings) == ["api-versions-newer"]
    assert not shown.findings[0].is_loss


@pytest.mark.parametrize(
    "added",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x00" + b"\xff" * 4, id="a null and a number"),
        pytest.param(b"\x17" + b"A" * 22 + b"\x00\x00\x00\x03", id="a text and a number"),
    ],
)
def test_what_a_newer_client_says_about_itself_is_read(added: bytes) -> None:
    """The length of a field that a version adds must not be taken for a number of tags."""
    named = {"clientSoftwareName": "x", "clientSoftwareVersion": "1"}
    asked = {**named, "clusterId": None, "nodeId": -1}
    payload = bytearray(request("ApiVersions", 5, asked))
    payload[3] = 6
    shown = view(bytes(payload[:-1]) + added + b"\x00")
    assert shown.body_json == asked
    assert shown.payload.remaining == len(added) + 1
    assert _ids(shown.findings) == ["api-versions-newer", "trailing-bytes"]
    assert not any(each.is_loss for each in shown.findings)
    assert shown.part.stop()[1] == shown.payload.end


def test_a_newer_client_whose_name_is_cut_short_is_undecoded() -> None:
    """Only what a newer version may add is skipped."""
    payload = bytearray(request("ApiVersions", 4, {"clientSoftwareName": "x" * 9,
                                                   "clientSoftwareVersion": "1"}))  # fmt: skip
    payload[3] = 6
    shown = view(bytes(payload[:-6]))
    assert shown.payload.body is None
    assert _ids(shown.findings) == ["api-versions-newer", "undecoded"]


def test_bytes_after_a_message_are_counted_and_shown() -> None:
    """At least one client really sends such a byte."""
    shown = view(request("Vote", 2, VOTE) + b"\x00")
    assert shown.payload.remaining == 1
    assert shown.findings[0].text(show_bytes=True) == "1 byte after VoteRequest; bytes 00"
    assert not shown.findings[0].is_loss


def test_unknown_tagged_fields_are_found_wherever_they_are() -> None:
    """They are the first sign of a newer peer."""
    body = messages.find("FetchResponse").from_json(_fetched(3), 17)
    body.unknown_tagged_fields = {9: b"ab"}  # type: ignore[attr-defined]
    body.responses[0].partitions[2].unknown_tagged_fields = {100: b"xyz"}  # type: ignore[attr-defined]
    shown = view(response("Fetch", 17, body), ("Fetch", 17))
    found = [(each.id, each.path, each.detail) for each in shown.findings]
    assert found == [
        ("unknown-tag", "", "tag 9 with 2 bytes"),
        ("unknown-tag", "responses[0].partitions[2]", "tag 100 with 3 bytes"),
    ]


def test_a_longer_form_of_a_number_is_found() -> None:
    """The bytes mean the same, but no Kafka client writes them: another encoder did."""
    payload = request("Vote", 2, VOTE)
    at = payload.index(b"\x02c")
    shown = view(payload[:at] + b"\x82\x00c" + payload[at + 2 :])
    assert shown.body_json == VOTE
    (finding,) = shown.findings
    assert (finding.id, finding.path, finding.offset) == ("not-canonical", "clusterId", at)
    assert not finding.is_loss


def test_a_stop_names_field_offset_and_bytes() -> None:
    """The fields before the stop are shown, none of those after it."""
    payload = request("Vote", 2, VOTE)
    bad = payload[:-2] + b"\xff\xff"
    shown = view(bad)
    assert shown.body_json == {"clusterId": "c", "voterId": 3}
    finding = shown.findings[0]
    assert (finding.id, finding.path, finding.is_loss) == ("undecoded", "topics", True)
    assert finding.offset == len(payload) - 2
    assert finding.rest == b"\xff\xff"
    assert shown.payload.remaining == 2


def test_a_header_that_cannot_be_read_is_reported() -> None:
    """Its client id is longer than the frame."""
    shown = view(b"\x00\x34\x00\x02\x00\x00\x00\x01\x7f\xff")
    assert shown.payload.header is None
    assert _ids(shown.findings) == ["header-undecoded"]
    assert _ids(view(b"\x00").findings) == ["header-undecoded"]


@pytest.mark.parametrize("length", [9, 20, 40, 60, 75, 95, 110])
def test_a_frame_with_missing_bytes_shows_what_precedes_them(length: int) -> None:
    """No field is invented, and no complete one is lost, even in the middle of an array."""
    whole = response("Fetch", 17, _fetched(3))
    everything = view(whole, ("Fetch", 17)).body_json
    shown = view(whole[:length], ("Fetch", 17), size=len(whole))
    assert _ids(shown.findings) == ["incomplete"]
    assert not shown.findings[0].is_loss
    assert shown.payload.remaining == len(whole) - (shown.findings[0].offset or 0)
    assert _is_part(shown.body_json, everything)


def test_elements_of_an_array_that_is_cut_are_shown() -> None:
    """The count before them claims more than there is, which must not discard them."""
    whole = response("Fetch", 17, _fetched(100))
    shown = view(whole[:500], ("Fetch", 17), size=len(whole))
    assert shown.body_json is not None
    count = len(shown.body_json["responses"][0]["partitions"])
    assert count > 10
    assert shown.findings[0].path.startswith(f"responses[0].partitions[{count - 1}]")


def _is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return all(key in whole and _is_part(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return all(_is_part(*both) for both in zip(part, whole, strict=False))
    return bool(part == whole)


def test_nothing_is_shown_of_a_body_that_is_not_there() -> None:
    """Null stands for unknown, an empty object would look like an empty message."""
    whole = response("Fetch", 17, _fetched(1))
    assert view(whole[:5], ("Fetch", 17), size=len(whole)).body_json is None


def test_error_codes_are_found_at_every_level() -> None:
    """One line per frame has to show them without printing the whole body."""
    body = messages.find("FetchResponse").from_json(
        {**_fetched(3, errorCode=6), "errorCode": 70}, 17
    )
    assert error_codes(body, 17) == [70, 6]
    assert error_codes(VoteResponse(), 2) == []


def test_topics_come_with_their_partitions() -> None:
    """A filter for a partition means that of the topic, not of another one in the frame."""
    body = FetchRequest.from_json(
        {
            "replicaId": -1,
            "maxWaitMs": 0,
            "minBytes": 0,
            "maxBytes": 0,
            "isolationLevel": 0,
            "sessionId": 0,
            "sessionEpoch": -1,
            "topics": [
                {"topic": "a", "partitions": [_asked(1), _asked(4)]},
                {"topic": "b", "partitions": []},
            ],
            "forgottenTopicsData": [{"topic": "c", "partitions": [7]}],
            "rackId": "",
        },
        12,
    )
    found = [(each.name, sorted(each.partitions)) for each in topics(body, 12)]
    assert found == [("a", [1, 4]), ("b", []), ("c", [7])]


def _asked(partition: int) -> dict[str, Any]:
    return {
        "partition": partition,
        "currentLeaderEpoch": 0,
        "fetchOffset": 0,
        "lastFetchedEpoch": -1,
        "logStartOffset": 0,
        "partitionMaxBytes": 0,
    }


def test_topics_are_known_by_id_where_versions_have_no_names() -> None:
    """Fetch lost the names in version 13."""
    body = messages.find("FetchResponse").from_json(_fetched(2), 17)
    (found,) = topics(body, 17)
    assert (found.name, found.id, found.partitions) == (None, bytes(15) + b"\x01", {0, 1})


def test_groups_are_found_in_fields_and_lists() -> None:
    """Some requests name one group, some a list of them."""
    heartbeat = messages.find("HeartbeatRequest")(group_id="g1")  # type: ignore[call-arg]
    assert groups(heartbeat, 4) == ["g1"]
    deletion = messages.find("DeleteGroupsRequest")(groups_names=["a", "b"])  # type: ignore[call-arg]
    assert groups(deletion, 2) == ["a", "b"]


def test_versions_without_tagged_fields_have_no_unknown_ones() -> None:
    """The check costs nothing where nothing can be found."""
    body = FetchRequest()
    body.unknown_tagged_fields = {1: b"x"}
    assert unknown_tags(body, 11) == []
    assert len(unknown_tags(body, 12)) == 1


def test_paths_of_findings_are_those_of_the_json_form() -> None:
    """A reader of the JSON looks for its own names."""
    assert json_path("topics[0].partitions[2].high_watermark") == (
        "topics[0].partitions[2].highWatermark"
    )
    assert json_path("v3_and_below_topics") == "v3AndBelowTopics"


def test_losses_are_findings_with_a_meaning() -> None:
    """The exit code depends on these ids."""
    assert {*FINDINGS, *CAPTURE_FINDINGS} >= LOSSES
    assert list(FINDINGS) == sorted(FINDINGS)


def test_every_schema_can_be_scanned() -> None:
    """Plans are made from facts, so one odd schema would break only one API."""
    for name in messages.API_NAMES.values():
        for kind in ("Request", "Response"):
            cls = messages.find(f"{name}{kind}")
            for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
                body = cls()
                assert unknown_tags(body, version) == []
                list(topics(body, version))
                groups(body, version)
                error_codes(body, version)
    assert api_key("Vote") == 52


def test_the_page_explains_every_finding() -> None:
    """People look up ids there."""
    page = (ROOT / "docs" / "findings.md").read_text()
    for id, meaning in {**CAPTURE_FINDINGS, **FINDINGS}.items():
        assert f"| `{id}` | {'yes' if id in LOSSES else ''} | {meaning} |" in page


def test_a_produce_request_names_its_partitions() -> None:
    """Its schema calls a partition's number index, as those of no other client do."""
    parts = [
        produce_request.PartitionProduceData(index=each, records=None) for each in (4, 0)
    ]
    body = produce_request.ProduceRequest(
        topic_data=[produce_request.TopicProduceData(name="orders", partition_data=parts)]
    )
    (found,) = topics(body, 9)
    assert (found.name, found.partitions) == ("orders", frozenset({0, 4}))


@pytest.mark.parametrize("data", [b"", bytes(3), bytes([0, 1, 0, 4, 0, 0, 0, 7, 0x7F, 0xFF])])
def test_a_body_that_begins_after_the_end_is_none(data: bytes) -> None:
    """A header may claim a client id that is longer than the frame."""
    for is_request in (True, False):
        found = ordinary_payload(data, (1, 4), is_request=is_request, input_bytes=len(data))
        assert found is None


@pytest.mark.parametrize("name", GOLDEN)
def test_ordinary_frames_are_decoded_as_by_the_full_decoder(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The fast path leaves nothing out that the other one finds."""
    quick = [(f.payload, f.findings, f.error_codes) for f in decoded_frames(golden(name))]
    monkeypatch.setattr("kraftwire.decode.body.bodies.ordinary_payload", lambda *_, **__: None)
    full = [(f.payload, f.findings, f.error_codes) for f in decoded_frames(golden(name))]
    for one, other in zip(quick, full, strict=True):
        for field in Payload.__slots__:
            assert getattr(one[0], field) == getattr(other[0], field), field
        assert one[1:] == other[1:]
