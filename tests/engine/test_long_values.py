"""Long values, which the engine copies only when it knows the length of the whole message."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftwire import engine
from kraftwire.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from tests.engine.twins import FellBack, compare_encoding, plan_of

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

VERSION = 12
# Sizes around the one from which values are left in place, and around those of length fields.
SIZES = (127, 128, 1023, 1024, 1025, 16_383, 16_384, 300_000)
HOLDERS: tuple[Callable[[bytes], object], ...] = (bytes, bytearray, memoryview)


def _response(*partitions: PartitionData) -> FetchResponse:
    topic = FetchableTopicResponse(topic="topic", partitions=list(partitions))
    return FetchResponse(responses=[topic])


def _pattern(size: int) -> bytes:
    """Bytes of which no part looks like its neighbour."""
    return b"".join(number.to_bytes(3, "big") for number in range(size // 3 + 1))[:size]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_long_value_stands_where_it_belongs(
    holder: Callable[[bytes], object], size: int
) -> None:
    """Bytes, bytearrays and memoryviews."""
    records = holder(_pattern(size))
    message = _response(PartitionData(records=records, high_watermark=7))  # type: ignore[arg-type]
    assert compare_encoding(message, VERSION) is not None


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 100])
def test_long_and_short_values_alternate(count: int) -> None:
    """More of them than there is room for at first; some share their bytes."""
    long, sizes = _pattern(5000), (1024, 3, 70_000, 0)
    partitions = [
        PartitionData(records=_pattern(sizes[n % 4]) if n % 5 else long, partition_index=n)
        for n in range(count)
    ]
    assert compare_encoding(_response(*partitions), VERSION) is not None


@pytest.mark.parametrize("size", SIZES)
def test_long_values_in_tagged_fields_move_with_them(size: int) -> None:
    """The length of a tagged field stands before it, but is known after it, at every depth."""
    tags = {900: _pattern(size), 901: b"short", 902: _pattern(2 * size)}
    partition = PartitionData(
        records=_pattern(size),
        diverging_epoch=EpochEndOffset(epoch=3),
        current_leader=LeaderIdAndEpoch(leader_id=1),
        snapshot_id=SnapshotId(end_offset=5),
    )
    message = _response(partition, PartitionData(records=_pattern(1)), partition)
    for holder in (partition.diverging_epoch, partition.snapshot_id, partition, message):
        holder.unknown_tagged_fields = tags
    data = compare_encoding(message, VERSION)
    assert data is not None
    decoded, end = FetchResponse.decode(data, VERSION)
    assert (decoded.encode(VERSION), end) == (data, len(data))


def test_what_is_encoded_keeps_nothing_of_the_message() -> None:
    """A buffer can be changed or resized as soon as the call returns."""
    records = bytearray(_pattern(5000))
    message = _response(PartitionData(records=memoryview(records)))
    data = plan_of(FetchResponse, VERSION).encode(message)
    before = bytes(data)
    records[:] = bytes(5000)
    assert data == before
    message.responses[0].partitions[0].records = b""
    records.clear()


def test_a_message_that_breaks_off_after_a_long_value_is_left_to_python() -> None:
    """Nothing of what was written by then is used."""
    message = _response(PartitionData(records=_pattern(5000)), PartitionData(partition_index=2**40))
    with pytest.raises(FellBack):
        plan_of(FetchResponse, VERSION).encode(message)
