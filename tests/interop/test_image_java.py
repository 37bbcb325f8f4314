"""The image of metadata records compared with Kafka's: what both would write into a snapshot."""

from __future__ import annotations

from kraftwire.controller.image import MetadataImage
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.java import java_images
from tests.support.metadata_history import History
from tests.support.metadata_snapshots import metadata, type_order
from tests.support.node_stub import raw_batch

HISTORIES = 300


def _histories(seed: int) -> list[list[list[bytes]]]:
    histories = (History(seed + number) for number in range(HISTORIES))
    return [[history.batch() for _ in range(15)] for history in histories]


def _image_of(batches: list[list[bytes]]) -> MetadataImage:
    image = MetadataImage()
    for batch in batches:
        image.replay(raw_batch(batch, image.next_offset))
    return image


def test_a_snapshot_says_what_kafkas_would_say(seed: int) -> None:
    """A Java node that starts from our snapshot would never learn what is missing in it."""
    histories = _histories(seed)
    for number, (history, theirs) in enumerate(zip(histories, java_images(histories), strict=True)):
        place = f"history {seed + number}"
        assert not isinstance(theirs, str), f"{place}: {theirs}"
        ours = list(_image_of(history).freeze())
        assert metadata(ours) == metadata(theirs), place
        assert type_order(ours) == type_order(theirs), place


def test_kafka_reads_our_snapshots_as_the_log_they_replace(seed: int) -> None:
    """An image loaded from a snapshot, ours or Kafka's, writes the same snapshot again."""
    histories = _histories(seed)
    frozen = [list(_image_of(history).freeze()) for history in histories]
    of_logs = java_images(histories)
    of_snapshots = java_images([[snapshot] for snapshot in frozen])
    for number, (log, snapshot) in enumerate(zip(of_logs, of_snapshots, strict=True)):
        assert not isinstance(snapshot, str), f"history {seed + number}: {snapshot}"
        assert metadata(snapshot) == metadata(log), f"history {seed + number}"
        for source in (frozen[number], snapshot):
            end = OffsetAndEpoch(1000, 3)
            image = MetadataImage.load(end, [raw_batch(source, 0)])
            assert metadata(image.freeze()) == metadata(log), f"history {seed + number}"
