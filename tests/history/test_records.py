"""Bugs of fetched records: what a follower must not append, and what must not end it."""

from __future__ import annotations

import struct
from random import Random

from kraftwire.errors import WireError
from kraftwire.raft.effects import ElectionState
from kraftwire.records.plain import data_batch
from tests.history.putting_back import Edit, history
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import fetched

_HEADER_PROBLEM = "kraftwire.raft.batches:_header_problem"


def _follower() -> Lone:
    """A follower of node 2 in epoch 3, with offsets 0 to 4."""
    lone = Lone(log=stored_log((2, 5)), election=ElectionState(2))
    lone.follow(2, 3)
    return lone


def _refuses(lone: Lone, records: bytes) -> bool:
    """Whether nothing of these records is appended, and the leader is asked again."""
    count = len(lone.requests)
    lone.fetch_gets(fetched(2, 3, records))
    lone.wait(100)
    return lone.core.end_offset == 5 and len(lone.requests) > count


@history(
    70,
    "KAFKA-18723",
    "R-FET-23",
    Edit(
        "kraftwire.raft.batches:read_fetched",
        "crc32c(view[position + CRC_START : end]) != crc",
        "False",
    ),
    red="appended a damaged batch",
)
def test_a_batch_with_a_wrong_crc_is_not_appended() -> None:
    """It would be served to others and end every reader."""
    damaged = bytearray(data_batch(5, 3, 0, [b"value"]))
    damaged[-2] ^= 1
    lone = _follower()
    assert _refuses(lone, bytes(damaged)), "appended a damaged batch"
    lone.fetch_gets(fetched(2, 3, data_batch(5, 3, 0, [b"value"])))
    assert lone.core.end_offset == 6


@history(
    70,
    "KAFKA-18723",
    "R-FET-23, S13",
    Edit(_HEADER_PROBLEM, "last_epoch <= batch_epoch <= epoch", "last_epoch <= batch_epoch"),
    red="appended a batch of the future",
)
def test_a_batch_of_a_higher_epoch_than_the_leaders_is_not_appended() -> None:
    """The answer was meant for another epoch: its records may not be committed in this one."""
    assert _refuses(_follower(), data_batch(5, 4, 0, [b"x"])), "appended a batch of the future"


@history(
    70,
    "KAFKA-18723",
    "R-FET-23, S13",
    Edit(_HEADER_PROBLEM, "if base != next_offset:", "if base < next_offset:"),
    red="left a gap in its log",
)
def test_a_batch_after_a_gap_is_not_appended() -> None:
    """The records between would be missing for ever, without anyone noticing."""
    assert _refuses(_follower(), data_batch(7, 3, 0, [b"x"])), "left a gap in its log"


@history(
    70,
    "KAFKA-18723",
    "R-FET-23",
    Edit(_HEADER_PROBLEM, "if length < LENGTH_MIN:", "if False:"),
    red="no batch begins here",
    fails_with=WireError,
)
def test_a_batch_with_an_impossible_length_is_not_appended() -> None:
    """The next reader would look for the following batch inside this one, or loop."""
    batch = bytearray(data_batch(5, 3, 0, [b"value"]))
    # The checksum covers only what the length leaves, which is nothing, so it can be correct.
    struct.pack_into(">i", batch, 8, 21 - 12)
    struct.pack_into(">I", batch, 17, 0)
    assert _refuses(_follower(), bytes(batch))


@history(
    71,
    "KAFKA-18838",
    "R-FET-23",
    Edit(
        "kraftwire.raft.batches:read_fetched",
        "if size - position < HEADER_SIZE:",
        "if False:",
    ),
    red="unpack_from requires a buffer",
    fails_with=struct.error,
)
def test_arbitrary_bytes_as_records_do_not_end_a_follower() -> None:
    """A peer's memory may be damaged, or the sender may not be a peer at all."""
    source = Random(71)
    whole = data_batch(5, 3, 0, [b"value"])
    for length in range(1, 120):
        cut = bytearray(whole[:length])
        cut[source.randrange(len(cut))] ^= 1 << source.randrange(8)
        for records in (source.randbytes(length), bytes(cut)):
            assert _refuses(_follower(), records)
