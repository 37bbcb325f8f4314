"""The image of metadata records compared with Kafka's: what both would write into a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kraftwire.controller.image import MetadataImage
from kraftwire.records.offsets import OffsetAndEpoch
from tests.support.kafka.java import java_images
from tests.support.metadata.history import History
from tests.support.metadata.snapshots import metadata, type_order
from tests.support.nodes.stub import raw_batch

HISTORIES = 300


def _histories(seed: int) -> list[list[list[bytes]]]:
    histories = (History(seed + number) for number in range(HISTORIES))
    return [[history.batch() for _ in range(15)] for history in histories]


def _image_of(batches: list[list[bytes]]) -> MetadataImage:
    image = MetadataImage()
    for batch in batches:
        image.replay(raw_batch(batch, image.next_offset))
    return image


@dataclass(frozen=True)
class Written:
    """What is written into a snapshot of a history: by us, by Kafka, and by Kafka from ours."""

    place: str
    ours: list[bytes]
    theirs: list[bytes]
    again: list[bytes]


@pytest.fixture(scope="module")
def written(seed: int) -> list[Written]:
    """All histories, Kafka's part by one JVM."""
    histories = _histories(seed)
    ours = [list(_image_of(history).freeze()) for history in histories]
    places = [f"history {seed + number}" for number in range(len(ours))]
    answers = java_images([*histories, *([snapshot] for snapshot in ours)])
    read = [_values(*each) for each in zip([*places, *places], answers, strict=True)]
    theirs, again = read[: len(ours)], read[len(ours) :]
    return [Written(*each) for each in zip(places, ours, theirs, again, strict=True)]


def _values(place: str, answer: list[bytes] | str) -> list[bytes]:
    """What Kafka wrote, unless it refused a record."""
    assert not isinstance(answer, str), f"{place}: {answer}"
    return answer


def test_a_snapshot_says_what_kafkas_would_say(written: list[Written]) -> None:
    """A Java node that starts from our snapshot would never learn what is missing in it."""
    for each in written:
        assert metadata(each.ours) == metadata(each.theirs), each.place
        assert type_order(each.ours) == type_order(each.theirs), each.place


def test_kafka_reads_our_snapshots_as_the_log_they_replace(written: list[Written]) -> None:
    """An image loaded from a snapshot, ours or Kafka's, writes the same snapshot again."""
    for each in written:
        expected = metadata(each.theirs)
        assert metadata(each.again) == expected, each.place
        for source in (each.ours, each.again):
            image = MetadataImage.load(OffsetAndEpoch(1000, 3), [raw_batch(source, 0)])
            assert metadata(image.freeze()) == expected, each.place
