"""What a Raft core answers about its log, compared with the rules and with a naive model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire.errors import InvariantError
from kraftwire.raft.log_view import LogView, PositionKind
from kraftwire.raft.ports import LogImage, StoredSnapshot
from kraftwire.records.offsets import OffsetAndEpoch as At

VALID, DIVERGING, SNAPSHOT = PositionKind


def image(
    end: int, *batches: tuple[int, int], start: int = 0, snapshots: tuple[At, ...] = ()
) -> LogImage:
    """A log with batches at (base offset, epoch)."""
    return LogImage(
        start_offset=start,
        end_offset=end,
        batches=[At(*batch) for batch in batches],
        snapshots=[StoredSnapshot(one, 100) for one in snapshots],
    )


def log() -> LogView:
    """Epoch 1 at 0..9 in batches of 5, epoch 3 at 10..19 in one, epoch 4 at 20..24."""
    return LogView(image(25, (0, 1), (5, 1), (10, 3), (20, 4)))


def test_a_log_found_on_disk_is_durable_and_knows_its_epochs() -> None:
    """The image at the start is everything synced, and its batches give the epochs."""
    picture = log()
    assert (picture.start_offset, picture.end_offset, picture.flushed_offset) == (0, 25, 25)
    assert picture.registered_epochs == ((0, 1), (10, 3), (20, 4))
    assert picture.last_epoch == 4


@pytest.mark.parametrize(
    ("found", "epoch"),
    [
        (LogImage(), 0),
        (image(7, start=7, snapshots=(At(7, 3),)), 3),
        (image(5, (0, 2), snapshots=(At(3, 1),)), 2),
    ],
)
def test_the_last_epoch_comes_from_the_log_then_the_snapshot(found: LogImage, epoch: int) -> None:
    """R-START-5: votes and fetches carry it, so an empty log needs one as well."""
    assert LogView(found).last_epoch == epoch


@pytest.mark.parametrize(
    ("epoch", "end"),
    [(0, (0, 0)), (1, (10, 1)), (2, (10, 1)), (3, (20, 3)), (4, (25, 4)), (9, (25, 4))],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next(epoch: int, end: tuple[int, int]) -> None:
    """R-FET-8, in each of its branches."""
    assert log().end_of_epoch(epoch) == end


def test_an_empty_log_ends_every_epoch_where_it_ends() -> None:
    """R-FET-8 with an empty cache."""
    assert LogView(LogImage()).end_of_epoch(5) == (0, 0)


def test_registering_an_epoch_forgets_what_it_contradicts() -> None:
    """R-FET-9: entries of the same or a later epoch, or not below the offset, are wrong now."""
    picture = log()
    picture.register_epoch(6, 25)
    assert list(picture.registered_epochs) == [(0, 1), (10, 3), (20, 4), (25, 6)]
    assert picture.last_epoch == 6
    picture.register_epoch(4, 15)
    assert list(picture.registered_epochs) == [(0, 1), (10, 3), (15, 4)]


def test_an_epoch_without_records_is_replaced_by_the_next() -> None:
    """R-FET-9: its leader wrote nothing, and led again before any other node did."""
    picture = log()
    picture.register_epoch(6, 25)
    picture.register_epoch(8, 25)
    assert list(picture.registered_epochs) == [(0, 1), (10, 3), (20, 4), (25, 8)]
    assert picture.end_of_epoch(6) == (25, 4)


def test_cutting_at_the_end_takes_back_an_epoch_without_records() -> None:
    """A leader that wrote nothing must not keep claiming its epoch against the next leader."""
    picture = log()
    picture.register_epoch(6, 25)
    assert picture.truncate(25) == 25
    assert picture.last_epoch == 4


@pytest.mark.parametrize(
    ("offset", "base"), [(0, 0), (4, 0), (5, 5), (12, 10), (24, 20), (25, 25), (99, 99)]
)
def test_an_offset_is_traced_to_its_batch(offset: int, base: int) -> None:
    """R-FET-11: a fetch inside a batch acknowledges only what precedes the batch."""
    assert log().batch_base(offset) == base


@pytest.mark.parametrize(
    ("offset", "epoch", "judgement"),
    [
        (0, 9, (VALID, (-1, -1))),
        (10, 1, (VALID, (-1, -1))),
        (7, 1, (VALID, (-1, -1))),
        (25, 4, (VALID, (-1, -1))),
        (11, 1, (DIVERGING, (10, 1))),
        (10, 2, (DIVERGING, (10, 1))),
        (26, 4, (DIVERGING, (25, 4))),
        (25, 7, (DIVERGING, (25, 4))),
        (3, 0, (DIVERGING, (0, 0))),
    ],
)
def test_a_position_is_valid_or_gets_a_place_to_continue(
    offset: int, epoch: int, judgement: tuple[PositionKind, int, int]
) -> None:
    """R-FET-7 on a log from offset 0."""
    assert log().check_position(offset, epoch) == judgement


@pytest.mark.parametrize(
    ("offset", "epoch", "kind"),
    [(0, 0, SNAPSHOT), (9, 3, SNAPSHOT), (10, 3, VALID), (10, 2, SNAPSHOT), (12, 2, SNAPSHOT)],
)
def test_a_log_without_its_beginning_sends_to_the_snapshot(
    offset: int, epoch: int, kind: PositionKind
) -> None:
    """R-FET-7: what was below the start is only in the snapshot."""
    found = image(20, (10, 3), start=10, snapshots=(At(10, 3),))
    position = LogView(found).check_position(offset, epoch)
    assert position.kind is kind
    if kind is SNAPSHOT:
        assert position.at == (10, 3)


def test_a_fetch_at_0_is_sent_to_the_snapshot_even_if_the_log_is_whole() -> None:
    """KAFKA-15078: loading a snapshot is faster than replaying what it holds."""
    picture = LogView(image(20, (0, 1), (10, 3), snapshots=(At(5, 1), At(10, 1))))
    assert picture.check_position(0, 0) == (SNAPSHOT, (10, 1))
    assert picture.check_position(20, 3).kind is VALID


def test_the_bootstrap_checkpoint_is_never_announced() -> None:
    """R-SNAP-1: a quorum's first voters are in the log as well."""
    picture = LogView(image(20, (0, 1), snapshots=(At(0, 0),)))
    assert picture.snapshots == []
    assert picture.check_position(0, 0).kind is VALID


def test_a_dropped_prefix_keeps_the_epoch_that_reaches_beyond_it() -> None:
    """R-SNAP-6: followers within that epoch can still be judged."""
    picture = log()
    picture.add_snapshot(At(8, 1), 100)
    picture.add_snapshot(At(15, 3), 100)
    picture.raise_start(15)
    picture.forget_snapshots([At(8, 1)])
    assert (picture.start_offset, picture.snapshots) == (15, [(15, 3)])
    assert picture.registered_epochs == ((15, 3), (20, 4))
    assert picture.batch_base(15) == 10
    assert picture.check_position(15, 3).kind is VALID
    assert picture.check_position(15, 1) == (SNAPSHOT, (15, 3))
    assert picture.check_position(8, 1) == (SNAPSHOT, (15, 3))


def test_a_reset_log_is_empty_where_the_snapshot_ends() -> None:
    """R-FSN-4: the next fetch continues from there, in the snapshot's epoch."""
    picture = log()
    picture.add_snapshot(At(8, 1), 100)
    picture.add_snapshot(At(90, 6), 100)
    picture.reset(At(90, 6))
    assert (picture.start_offset, picture.end_offset, picture.flushed_offset) == (90, 90, 90)
    assert (picture.last_epoch, picture.snapshots) == (6, [(90, 6)])
    picture.append([At(90, 7)], 95)
    assert picture.end == (95, 7)


@pytest.mark.parametrize(("offset", "epoch"), [(1, 1), (10, 1), (11, 3), (20, 3), (25, 4)])
def test_the_epoch_before_an_offset_names_a_snapshot(offset: int, epoch: int) -> None:
    """R-SNAP-1: a snapshot has the epoch of the last record that it contains."""
    assert log().epoch_before(offset) == epoch


@pytest.mark.parametrize(
    ("epoch", "end", "cut"),
    [
        (0, 12, 10),
        (0, 99, 25),
        (3, 15, 10),
        (3, 10, 10),
        (4, 99, 25),
        (2, 18, 10),
        (2, 5, 10),
        (9, 99, 25),
        (3, -5, 0),
    ],
)
def test_a_divergence_cuts_at_the_last_common_batch(epoch: int, end: int, cut: int) -> None:
    """R-FET-20 in its three branches, never inside a batch and never below the start."""
    assert log().truncation_offset(At(end, epoch)) == cut


def test_cutting_inside_a_batch_cuts_the_whole_batch() -> None:
    """A log cannot hold half a batch."""
    picture = log()
    assert picture.truncate(14) == 10
    assert (picture.end_offset, picture.flushed_offset, picture.last_epoch) == (10, 10, 1)


def test_batches_must_continue_the_log() -> None:
    """An append below the end would be a bug of the caller."""
    with pytest.raises(InvariantError, match="from 24 to 30"):
        log().append([At(24, 4)], 30)


class Naive:
    """The epoch and the batch of every offset, in a list."""

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.bases: list[int] = []

    def append(self, count: int, epoch: int) -> None:
        base = len(self.epochs)
        self.epochs += [epoch] * count
        self.bases += [base] * count

    def truncate(self, end: int) -> None:
        if end < len(self.bases):
            end = self.bases[end]
        del self.epochs[end:], self.bases[end:]

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        if not self.epochs or epoch >= self.epochs[-1]:
            return (self.epochs[-1] if self.epochs else 0), len(self.epochs)
        end = sum(own <= epoch for own in self.epochs)
        return (self.epochs[end - 1] if end else epoch), end


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 2)),
        st.tuples(st.just("truncate"), st.integers(0, 40), st.just(0)),
    ),
    max_size=30,
)


@pytest.mark.slow
@given(STEPS, st.integers(0, 50), st.integers(0, 30))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_picture_agrees_with_a_list_of_epochs(
    steps: list[tuple[str, int, int]], offset: int, epoch: int
) -> None:
    """Whatever was appended and cut, it answers like a log that keeps every epoch."""
    picture, naive, newest = LogView(LogImage()), Naive(), 0
    for kind, number, rise in steps:
        if kind == "append":
            newest += rise
            base = picture.end_offset
            naive.append(number, newest)
            picture.append([At(base, newest)], base + number)
        else:
            naive.truncate(number)
            assert picture.truncate(number) == len(naive.epochs)
        assert picture.end_offset == len(naive.epochs)
        assert picture.last_epoch == (naive.epochs[-1] if naive.epochs else 0)
    own, end = naive.end_of_epoch(epoch)
    assert picture.end_of_epoch(epoch) == (end, own)
    expected = naive.bases[offset] if offset < len(naive.bases) else offset
    assert picture.batch_base(offset) == expected
    valid = offset == 0 or (own == epoch and end >= offset)
    assert (picture.check_position(offset, epoch).kind is VALID) == valid
    stored = LogImage(
        end_offset=picture.end_offset,
        batches=[At(base, naive.epochs[base]) for base in dict.fromkeys(naive.bases)],
    )
    assert LogView(stored).registered_epochs == picture.registered_epochs


@pytest.mark.parametrize(
    ("offset", "epoch", "kind"),
    [(10, 3, VALID), (10, 4, SNAPSHOT), (10, 5, SNAPSHOT), (10, 2, SNAPSHOT), (12, 4, VALID)],
)
def test_a_follower_at_the_start_has_the_epoch_of_the_snapshot(
    offset: int, epoch: int, kind: PositionKind
) -> None:
    """R-FET-7: its last record is the snapshot's last one, or another one, which is not in this log
    any more; also if its epoch is one that begins here."""
    found = LogView(image(20, (10, 4), start=10, snapshots=(At(10, 3), At(15, 4))))
    assert found.check_position(offset, epoch).kind is kind
    if kind is SNAPSHOT:
        assert found.check_position(offset, epoch).at == (15, 4)


def test_a_follower_of_an_empty_log_has_the_epoch_of_the_snapshot() -> None:
    """R-FET-7: its leader has begun an epoch there and written nothing yet."""
    picture = LogView(image(10, start=10, snapshots=(At(10, 3),)))
    picture.register_epoch(5, 10)
    assert picture.check_position(10, 3).kind is VALID
    for epoch in (4, 5, 6):
        assert picture.check_position(10, epoch) == (SNAPSHOT, (10, 3)), epoch


def test_the_largest_snapshot_is_remembered() -> None:
    """Also after a smaller one, and after it is deleted."""
    view = LogView(LogImage())
    view.add_snapshot(At(10, 1), 100)
    view.add_snapshot(At(20, 1), 50)
    view.forget_snapshots([At(10, 1)])
    assert view.largest_snapshot == 100
