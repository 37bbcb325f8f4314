"""What is inside fields of type bytes, and record batches inside bodies."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire import messages
from kraftwire.decode.body.context import FrameContext
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.body.hidden_bytes import hidden_ranges
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kraftwire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    PartitionSnapshot,
    TopicSnapshot,
)
from kraftwire.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.messages.sync_group_response import SyncGroupResponse
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.records.builder import BatchHeader, build_batch
from kraftwire.records.metadata import encode_metadata
from kraftwire.records.record import Record
from tests.support.captures.payloads import api_key, request, response, view

PLAIN = build_batch([Record(n, 5, b"k", b"value-%d" % n) for n in range(3)])
SCRAM = UserScramCredentialRecord(
    name="alice", mechanism=1, salt=b"saltsalt", stored_key=b"stored-key", server_key=b"server-key"
)
SECRET = build_batch([Record(0, 5, None, encode_metadata(SCRAM, 0))], BatchHeader())
METADATA = "__cluster_metadata"


def _ids(shown: Frame) -> list[str]:
    return [each.id for each in shown.findings]


def _subscription(*topics: str) -> bytes:
    return b"\x00\x01" + ConsumerProtocolSubscription(topics=list(topics)).encode(1)


def _join(metadata: bytes, protocol_type: str = "consumer") -> Frame:
    protocol = JoinGroupRequestProtocol(name="range", metadata=metadata)
    body = JoinGroupRequest(group_id="g", protocol_type=protocol_type, protocols=[protocol])
    return view(request("JoinGroup", 9, body))


def test_a_subscription_is_shown_with_its_version() -> None:
    """Which topics a member wants decides how a group is balanced."""
    shown = _join(_subscription("a", "b"))
    assert shown.nested == {
        "protocols[0].metadata": {
            "type": "ConsumerProtocolSubscription",
            "version": 1,
            "data": {"topics": ["a", "b"], "userData": None, "ownedPartitions": []},
        }
    }
    assert shown.body_json is not None
    assert shown.body_json["protocols"][0]["metadata"]
    assert _ids(shown) == []


def test_a_later_version_of_a_subscription_is_read_as_the_latest_known() -> None:
    """As Kafka does; the version that was sent is shown."""
    newer = b"\x00\x09" + ConsumerProtocolSubscription(topics=["a"]).encode(3) + b"more"
    shown = _join(newer)
    (value,) = shown.nested.values()
    assert (value["version"], value["data"]["topics"]) == (9, ["a"])
    assert _ids(shown) == ["nested-undecoded"]


def test_a_subscription_without_the_fields_of_its_version_is_a_finding() -> None:
    """Some clients say version 1 and end as version 0 does; Kafka's consumers refuse that."""
    shown = _join(b"\x00\x01" + ConsumerProtocolSubscription(topics=["a"]).encode(0))
    assert shown.nested == {}
    assert [(each.id, each.path) for each in shown.findings] == [
        ("nested-undecoded", "protocols[0].metadata.ownedPartitions")
    ]


def test_metadata_of_other_protocols_stays_opaque() -> None:
    """Members of Kafka Connect send something else in the same field."""
    shown = _join(_subscription("a"), "connect")
    assert (shown.nested, _ids(shown)) == ({}, [])


def test_metadata_that_is_not_a_subscription_is_a_finding_with_its_place() -> None:
    """Its offset leads to the bytes in the frame."""
    shown = _join(b"\x00\x01\x00\x00\x00\x05abc")
    (finding,) = shown.findings
    assert (finding.id, finding.path) == ("nested-undecoded", "protocols[0].metadata.topics")
    assert finding.offset == shown.payload.data.index(b"\x00\x00\x00\x05abc")
    assert not finding.is_loss


def test_an_old_response_takes_the_protocol_from_its_request() -> None:
    """Before version 5 a SyncGroup response does not say what its assignment is."""
    body = SyncGroupResponse(assignment=b"\x00\x01" + ConsumerProtocolAssignment().encode(1))
    payload = response("SyncGroup", 3, body)
    other = view(payload, ("SyncGroup", 3), context=FrameContext(protocol_type="connect"))
    assert other.nested == {}
    told = view(payload, ("SyncGroup", 3), context=FrameContext(protocol_type="consumer"))
    assert list(told.nested) == ["assignment"]


def _envelope(data: bytes) -> Frame:
    body = EnvelopeRequest(
        request_data=data,
        request_principal=b"\x00\x00" + messages.find("DefaultPrincipalData")().encode(0),
        client_host_address=bytes((10, 0, 0, 1)),
    )
    return view(request("Envelope", 0, body))


def test_an_envelope_holds_a_request_with_header_and_body() -> None:
    """The inner request is shown like an outer one."""
    shown = _envelope(request("Vote", 2, VoteRequest(cluster_id="c"), 42))
    inner = shown.nested["requestData"]
    assert (inner["apiName"], inner["apiVersion"], inner["correlationId"]) == ("Vote", 2, 42)
    assert inner["body"] == {"clusterId": "c", "voterId": -1, "topics": []}
    assert shown.nested["clientHostAddress"] == {"address": "10.0.0.1"}
    assert shown.nested["requestPrincipal"]["type"] == "DefaultPrincipalData"


def test_an_envelope_with_damaged_contents_names_the_place_in_the_frame() -> None:
    """Path and offset lead through both layers."""
    inner = request("Vote", 2, VoteRequest(cluster_id="c"))[:-2]
    shown = _envelope(inner)
    (finding,) = shown.findings
    assert (finding.id, finding.path) == ("undecoded", "requestData.topics")
    assert finding.offset == shown.payload.data.index(inner) + len(inner)


def test_an_answer_in_an_envelope_needs_its_request() -> None:
    """Only the request's envelope says which API it answers."""
    inner = response("Vote", 2, {"errorCode": 41, "topics": []}, 42)
    payload = response("Envelope", 0, EnvelopeResponse(response_data=inner))
    context = FrameContext(embedded_api=(api_key("Vote"), 2))
    told = view(payload, ("Envelope", 0), context=context)
    assert told.nested["responseData"]["body"] == {"errorCode": 41, "topics": []}
    untold = view(payload, ("Envelope", 0))
    assert untold.nested["responseData"]["body"] is None
    assert _ids(untold) == ["unmatched-response"]
    assert untold.body_json is not None
    # What it answers may be a request for a token.
    assert untold.body_json["responseData"] == REDACTED


def test_envelopes_in_envelopes_are_not_opened() -> None:
    """Kafka refuses them, and bytes that claim it could nest without end."""
    vote = request("Vote", 2, VoteRequest())
    data = vote
    for _ in range(50):
        data = request("Envelope", 0, EnvelopeRequest(request_data=data))
    second = _envelope(data).nested["requestData"]
    third = second["nested"]["requestData"]
    assert (third["apiName"], third["body"], third["nested"]) == ("Envelope", None, {})


# -- records ------------------------------------------------------------------------------------


def _produce(topic: str, records: bytes | None, **form: Any) -> Frame:
    partition = PartitionProduceData(index=4, records=records)
    body = ProduceRequest(topic_data=[TopicProduceData(name=topic, partition_data=[partition])])
    return view(request("Produce", 9, body), **form)


def _records(shown: Frame) -> Any:
    assert shown.body_json is not None
    return shown.body_json["topicData"][0]["partitionData"][0]["records"]


def test_records_are_lists_of_batches() -> None:
    """They have everything: bytes as base64, the meaning where it is known."""
    shown = _produce("t", PLAIN + PLAIN)
    first, second = _records(shown)
    assert (first["position"], second["position"]) == (0, len(PLAIN))
    assert (first["baseOffset"], first["count"], first["isValid"]) == (0, 3, True)
    assert first["records"][1] == {
        "offset": 1,
        "timestamp": 5,
        "key": "aw==",
        "value": "dmFsdWUtMQ==",
        "headers": [],
        "decoded": None,
    }


def test_null_records_stay_null_and_empty_ones_are_no_batches() -> None:
    """Both occur, and mean different things."""
    assert _records(_produce("t", None)) is None
    assert _records(_produce("t", b"")) == []


def test_a_summary_names_the_types_of_kafkas_own_records() -> None:
    """Users' records are counted by their batch."""
    assert _records(_produce("t", PLAIN, detail="summary"))[0]["records"] is None
    (batch,) = _records(_produce(METADATA, SECRET, detail="summary"))
    assert [each["type"] for each in batch["records"]] == ["UserScramCredentialRecord"]


def test_a_wrong_crc_is_found_with_its_offset() -> None:
    """The offset is that of the batch's field in the frame."""
    bad = bytearray(PLAIN)
    bad[PLAIN.index(b"value-1")] ^= 1
    shown = _produce("t", PLAIN + bytes(bad))
    (finding,) = shown.findings
    assert finding.id == "batch-crc"
    assert finding.path == "topicData[0].partitionData[0].records[1].crc"
    start = shown.payload.data.index(bytes(bad))
    assert finding.offset == start + 17
    assert [each["isValid"] for each in _records(shown)] == [True, False]


def test_a_batch_that_is_cut_off_is_a_finding_and_no_loss() -> None:
    """Servers cut the last batch of a response at the requested size."""
    shown = _produce("t", PLAIN + PLAIN[:30])
    (finding,) = shown.findings
    assert (finding.id, finding.is_loss) == ("batch-cut", False)
    assert finding.offset == shown.payload.data.index(PLAIN + PLAIN[:30]) + len(PLAIN)
    assert len(_records(shown)) == 1


def test_garbage_between_batches_is_skipped() -> None:
    """One bad length must not hide all the batches after it."""
    shown = _produce("t", PLAIN + b"\xff" * 40 + PLAIN)
    assert _ids(shown) == ["batch-damaged"]
    assert [each["position"] for each in _records(shown)] == [0, len(PLAIN) + 40]


@pytest.mark.parametrize("topic", ["t", METADATA])
def test_records_that_do_not_decompress_are_found(topic: str) -> None:
    """The header of their batch is still shown."""
    bad = bytearray(build_batch([Record(0, 0, None, b"x" * 99)], BatchHeader(compression="gzip")))
    bad[62] ^= 0xFF
    shown = _produce(topic, bytes(bad))
    assert _ids(shown) == ["batch-crc", "batch-damaged"]
    assert len(_records(shown)) == 1


def test_secrets_in_metadata_records_are_hidden_in_json_and_bytes() -> None:
    """SCRAM keys are in the metadata log."""
    shown = _produce(METADATA, SECRET)
    (record,) = _records(shown)[0]["records"]
    assert record["value"] == REDACTED
    assert record["decoded"]["data"]["storedKey"] == REDACTED
    assert record["decoded"]["data"]["name"] == "alice"
    ((start, end),) = hidden_ranges(shown)
    assert shown.payload.data[start:end] == SECRET[61:]


def test_the_same_bytes_in_a_users_topic_are_hidden_too() -> None:
    """A copy of the metadata log may have any name, and nothing else looks like its secrets."""
    shown = _produce("t", SECRET)
    assert _records(shown)[0]["records"][0]["value"] == REDACTED
    assert len(hidden_ranges(shown)) == 1


def _snapshot(data: bytes, position: int) -> Frame:
    partition = PartitionSnapshot(unaligned_records=data, position=position, size=10_000)
    body = FetchSnapshotResponse(topics=[TopicSnapshot(name=METADATA, partitions=[partition])])
    return view(response("FetchSnapshot", 1, body), ("FetchSnapshot", 1))


def test_a_slice_of_a_snapshot_begins_and_ends_inside_batches() -> None:
    """What belongs to other slices is noted, what is whole is shown, and nothing is a failure."""
    shown = _snapshot(PLAIN[20:] + SECRET + PLAIN[:70], 20)
    assert shown.body_json is not None
    (batch,) = shown.body_json["topics"][0]["partitions"][0]["unalignedRecords"]
    assert batch["position"] == len(PLAIN) - 20
    assert _ids(shown) == ["batch-unaligned", "batch-unaligned"]
    assert not any(each.is_loss for each in shown.findings)
    # Half a batch may hold half a secret.
    starts = [start for start, _ in hidden_ranges(shown)]
    assert len(starts) == 3


def test_batches_before_a_hole_are_shown() -> None:
    """A lost packet in a large response must not cost all its batches."""
    partition = PartitionProduceData(index=4, records=PLAIN * 3)
    body = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    whole = request("Produce", 9, body)
    shown = view(whole[:-100], size=len(whole))
    assert len(_records(shown)) == 2
    assert _ids(shown) == ["incomplete"]
    assert shown.findings[0].path == "topicData[0].partitionData[0].records"
