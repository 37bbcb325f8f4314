"""The story of transactions: where each begins, how it ends, and who ended it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.cli.main import main
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stories.transactions import TransactionsWriter
from kraftwire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kraftwire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kraftwire.messages.end_txn_request import EndTxnRequest
from kraftwire.messages.end_txn_response import EndTxnResponse
from kraftwire.story import transactions as story_module
from tests.support.captures.frames import FrameMaker

GROUPS = Path(__file__).resolve().parents[2] / "golden" / "captures" / "groups.pcapng.xz"
MS = 1_000_000


def _recorded(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["story", "transactions", str(GROUPS), "-q", *options]) == 0
    return capsys.readouterr().out


def _written(frames: list[RawFrame]) -> dict[str, Any]:
    stream = io.StringIO()
    settings = Settings()
    writer = TransactionsWriter(stream, topics=settings.topics, as_json=True)
    decoder = FrameDecoder(settings)
    for frame in decoder.decode_bodies(frames, 0):
        writer.frame(frame)
    writer.finish()
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def test_real_transactions_end_as_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    """A commit with offsets, an abort, one that fencing aborted, and one of the new producer."""
    found = json.loads(_recorded(capsys, "--json"))
    assert [
        (each["producerEpoch"], each["ending"], each["records"]) for each in found["transactions"]
    ] == [
        (0, "committed", 1),
        (1, "aborted", 1),
        (2, "aborted by the coordinator", 1),
        (4, "committed", 1),
    ]
    first = found["transactions"][0]
    assert {"topic": "payments", "partition": 0} in first["partitions"]
    assert first["groups"] == ["ledger"]
    assert 0.3 < first["seconds"] < 0.4
    (known,) = found["transactionalIds"]
    assert known["ended"] == {"committed": 2, "aborted": 1, "aborted by the coordinator": 1}


def test_the_fenced_producer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else shows so clearly that two programs share a transactional id."""
    text = _recorded(capsys)
    assert "till-1  EndTxn to commit is refused: PRODUCER_FENCED" in text


def _transaction(maker: FrameMaker, id: str, seconds: float, *, is_commit: bool) -> list[RawFrame]:
    """A transaction of an old client; `is_commit` says how it ends."""
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=id,
        v3_and_below_producer_id=7,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0, 1])],
    )
    results = [AddPartitionsToTxnPartitionResult(partition_index=n) for n in range(2)]
    answered = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(name="t", results_by_partition=results)
        ]
    )
    frames = [maker.request(add, 3), maker.response(answered)]
    maker.wait(seconds)
    end = EndTxnRequest(transactional_id=id, producer_id=7, committed=is_commit)
    return [*frames, maker.request(end, 3), maker.response(EndTxnResponse())]


def test_commits_in_a_row_are_one_line() -> None:
    """A busy producer commits ten times a second."""
    maker = FrameMaker()
    frames = [
        frame
        for is_commit in [True] * 20 + [False] + [True]
        for frame in _transaction(maker, "busy", 0.1, is_commit=is_commit)
    ]
    texts = [each["text"] for each in _written(frames)["events"]]
    assert texts == [
        "commits 20 transactions in 2.1 s",
        "aborts after 105 ms (t-0, t-1)",
        "commits after 105 ms (t-0, t-1)",
    ]


def test_what_is_open_at_the_end_is_reported() -> None:
    """A transaction without an end keeps readers waiting."""
    found = _written(_transaction(FrameMaker(), "left", 1, is_commit=True)[:2])
    assert [each["text"] for each in found["events"]] == [
        "has a transaction open when the recording ends (t-0, t-1)"
    ]
    assert found["transactions"][0]["ending"] == "open"


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture with a million transactional ids must not fill the memory."""
    monkeypatch.setattr(story_module, "TRANSACTIONAL_IDS_MAX", 3)
    monkeypatch.setattr(story_module, "TRANSACTIONS_MAX", 4)
    monkeypatch.setattr(story_module, "TRANSACTION_PARTITIONS_MAX", 5)
    maker = FrameMaker()
    frames = [
        frame
        for n in range(12)
        for frame in _transaction(maker, f"id-{n % 6}", 0.01, is_commit=True)
    ]
    found = _written(frames)
    assert len(found["transactionalIds"]) == 3
    assert len(found["transactions"]) == 4
    assert sum(len(each["partitions"]) for each in found["transactions"]) == 5


def test_empty_results_are_not_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no table without rows."""
    quorum = GROUPS.with_name("quorum.pcap.xz")
    assert main(["story", "transactions", str(quorum), "-q"]) == 0
    assert capsys.readouterr().out == "Transactions: none was seen\n"
