"""Snapshots in the middle of a script's log: with what follows, they say the same as the log.

Owns the comparison, of Kafka's image and ours: each of both, of the log and of a snapshot of ours
with the rest of the log, would write the same snapshot at the end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from kraftwire.controller.image import MetadataImage
from kraftwire.controller.versions import ELR_VERSION
from kraftwire.records.batch import RecordBatch
from kraftwire.records.metadata import decode_metadata
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import read_batches
from tests.support.kafka.java import JavaPeer
from tests.support.metadata.snapshots import metadata
from tests.support.nodes.stub import raw_batch

_REMOVAL = "RemoveUserScramCredentialRecord"


@dataclass(frozen=True)
class Cut:
    """A log as a snapshot that ends somewhere in it, and the batches that follow."""

    end: OffsetAndEpoch
    snapshot: list[bytes]
    rest: bytes


def cut(log: bytes) -> Cut | None:
    """Return a log with a snapshot of ours until its middle, if one can be made there."""
    batches = _batches(log)
    middle = len(batches) // 2
    image = MetadataImage()
    _replay(image, batches[:middle])
    if not _is_whole(image):
        return None
    end = OffsetAndEpoch(image.next_offset, batches[middle - 1].partition_leader_epoch)
    rest = b"".join(bytes(batch.raw) for batch in batches[middle:])
    return Cut(end, list(image.freeze()), rest)


def differences(peer: JavaPeer, log: bytes) -> list[str]:
    """Return how the images of a log differ, if they do. `peer` has Kafka's images."""
    batches = _batches(log)
    middle = len(batches) // 2
    first = MetadataImage()
    _replay(first, batches[:middle])
    if not _is_whole(first):
        return []
    snapshot = list(first.freeze())
    loaded = MetadataImage.load(OffsetAndEpoch(first.next_offset, 1), [raw_batch(snapshot, 0)])
    _replay(loaded, batches[middle:])
    _replay(first, batches[middle:])
    later = [_deltas(batch) for batch in batches[middle:] if not batch.is_control]
    earlier = [_deltas(batch) for batch in batches[:middle] if not batch.is_control]
    of_log, of_snapshot = peer.ask([_question(earlier + later), _question([[snapshot], *later])])
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


def _batches(log: bytes) -> list[RecordBatch]:
    return [batch for batch in read_batches(log) if isinstance(batch, RecordBatch)]


def _is_whole(image: MetadataImage) -> bool:
    """Return whether a snapshot can be made."""
    return image.metadata_version is not None and image.transaction_offset < 0


def _without_elr(line: str) -> str:
    """Return a record without what Kafka leaves out where ELR has been switched off (C-IMG-2)."""
    record = json.loads(line)
    for name in ("eligibleLeaderReplicas", "lastKnownElr"):
        record["data"].pop(name, None)
    return json.dumps(record, sort_keys=True)


def _replay(image: MetadataImage, batches: list[RecordBatch]) -> None:
    for batch in batches:
        image.replay(batch)


def _deltas(batch: RecordBatch) -> list[list[bytes]]:
    """Return the records of a batch as Kafka's image is to learn them.

    Its loader resolves transactions. Its image loses users who are added together with the removal
    of the last other one of their mechanism (`ScramDelta`), so that these come one by one.
    """
    values = [record.value or b"" for record in batch.records()]
    types = [decode_metadata(value).type for value in values]
    kept = [
        value
        for value, name in zip(values, types, strict=True)
        if not name.endswith("TransactionRecord")
    ]
    return [[value] for value in kept] if _REMOVAL in types else [kept]


def _question(batches: list[list[list[bytes]]]) -> dict[str, object]:
    deltas = [delta for batch in batches for delta in batch]
    return {"batches": [[value.hex() for value in delta] for delta in deltas]}


def _answer(answer: dict[str, list[str]]) -> list[bytes]:
    assert "error" not in answer, answer
    return [bytes.fromhex(text) for text in answer["records"]]
