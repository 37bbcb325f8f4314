"""Snapshots in the middle of a script's log: with what follows, they say the same as the log.

Owns the comparison, of Kafka's image and ours: each of both, of the log and of a snapshot of ours
with the rest of the log, would write the same snapshot at the end.
"""

from __future__ import annotations

import json

from kraftwire.controller.cluster import ELR_VERSION
from kraftwire.controller.image import MetadataImage
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import decode_metadata
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import read_batches
from tests.support.java import JavaPeer
from tests.support.metadata_snapshots import metadata
from tests.support.node_stub import raw_batch


def differences(peer: JavaPeer, log: bytes) -> list[str]:
    """Return how the images of a log differ, if they do. `peer` has Kafka's images."""
    batches = [batch for batch in read_batches(log) if isinstance(batch, RecordBatch)]
    middle = len(batches) // 2
    first = MetadataImage()
    _replay(first, batches[:middle])
    if first.metadata_version is None or first.transaction_offset >= 0:
        return []  # no snapshot can be made yet
    snapshot = list(first.freeze())
    loaded = MetadataImage.load(OffsetAndEpoch(first.next_offset, 1), [raw_batch(snapshot, 0)])
    _replay(loaded, batches[middle:])
    _replay(first, batches[middle:])
    values = [_values(batch) for batch in batches if not batch.is_control]
    later = [_values(batch) for batch in batches[middle:] if not batch.is_control]
    of_log, of_snapshot = peer.ask([_question(values), _question([snapshot, *later])])
    images = {
        "of ours": list(first.freeze()),
        "of ours from a snapshot": list(loaded.freeze()),
        "of Kafka": _answer(of_log),
        "of Kafka from a snapshot": _answer(of_snapshot),
    }
    has_elr = bool(first.features.get(ELR_VERSION))
    said = {
        name: {line if has_elr else _without_elr(line) for line in metadata(image)}
        for name, image in images.items()
    }
    everything = set().union(*said.values())
    return [
        f"the image {name} at offset {first.next_offset} lacks {record}"
        for name, records in said.items()
        for record in sorted(everything - records)
    ]


def _without_elr(line: str) -> str:
    """Return a record without what Kafka leaves out where ELR has been switched off (C-IMG-2)."""
    record = json.loads(line)
    for name in ("eligibleLeaderReplicas", "lastKnownElr"):
        record["data"].pop(name, None)
    return json.dumps(record, sort_keys=True)


def _replay(image: MetadataImage, batches: list[RecordBatch]) -> None:
    for batch in batches:
        image.replay(batch)


def _values(batch: RecordBatch) -> list[bytes]:
    values = [record.value or b"" for record in batch.records()]
    return [value for value in values if not _is_mark(value)]


def _is_mark(value: bytes) -> bool:
    """Return whether a record begins or ends a transaction, which Kafka's loader resolves."""
    return decode_metadata(value).type.endswith("TransactionRecord")


def _question(batches: list[list[bytes]]) -> dict[str, object]:
    return {"batches": [[value.hex() for value in batch] for batch in batches]}


def _answer(answer: dict[str, list[str]]) -> list[bytes]:
    assert "error" not in answer, answer
    return [bytes.fromhex(text) for text in answer["records"]]
