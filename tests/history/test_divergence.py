"""Bugs of diverging logs: what is truncated, where, and what a crash during that leaves."""

from __future__ import annotations

import contextlib
from random import Random

from kraftwire.errors import StorageError
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.names import EPOCHS_FILE, join, partition_directory
from kraftwire.log.partition_files import read_epochs
from kraftwire.log.settings import LogSettings
from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from kraftwire.sim.disk import PowerCut, SimFiles
from tests.history.putting_back import Edit, history
from tests.support.logs.batches import TOPIC, TOPIC_ID, append
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import fetched

_SETTINGS = LogSettings(segment_bytes=2500, index_interval_bytes=300, index_bytes=600)


@history(
    36,
    "KAFKA-12460",
    "R-FET-20, S11",
    Edit(
        "kraftwire.raft.following:_truncate",
        "if end < max(state.committed, state.log.start_offset):",
        "if end < 0:",
    ),
    red="cut what is committed",
)
def test_a_follower_does_not_cut_below_its_high_watermark() -> None:
    """A leader without what is committed is wrong, whatever it says."""
    lone = Lone(log=stored_log((1, 6)), election=ElectionState(2))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=5))
    lone.fetch_gets(fetched(2, 3, diverging=(1, 3), high_watermark=5))
    assert lone.core.end_offset >= 5, "cut what is committed"
    assert not lone.all_of(effects.TruncateLog)


@history(
    37,
    "KAFKA-10706",
    "R-FET-9, L2",
    Edit(
        "kraftwire.raft.log_view:LogView.truncate",
        "keep = bisect_left(starts, end)",
        "keep = bisect_right(starts, end)",
    ),
    red="never caught up",
)
def test_a_node_that_led_its_own_epochs_catches_up() -> None:
    """The epochs of elections that wrote nothing begin where its log is cut: they must go too, or
    it names them in every fetch and is told to cut the same again."""
    cluster = Cluster([1, 2, 3], seed=3)
    cluster.start(1, 2, 3)
    cluster.run(4000)
    [first] = cluster.leaders()
    others = [one for one in (1, 2, 3) if one != first]
    cluster.drop = lambda sender, _t, message: (
        message.NAME == "FetchRequest" and sender in others
    )
    cluster.stop(first)
    assert cluster.run_until(lambda: bool(set(cluster.leaders()) - {first}))
    [second] = set(cluster.leaders()) - {first}
    cluster.run(1)
    if first in cluster.nodes:
        cluster.kill(first)
    # It leads an epoch that no other node has a record of.
    cluster.kill(second)
    cluster.heal()
    [third] = {1, 2, 3} - {first, second}
    cluster.start(first)
    assert cluster.run_until(lambda: cluster.leaders() in ([first], [third]))
    [leader] = cluster.leaders()
    cluster.append(leader, b"news")
    cluster.run(500)
    cluster.start(second)
    cluster.run(3000)
    ends = {one: cluster.core(one).end_offset for one in (leader, second)}
    assert ends[second] == ends[leader], "never caught up"


@history(
    38,
    "KAFKA-15510",
    "R-FET-1",
    Edit(
        "kraftwire.raft.following:_apply_fetched",
        "_follow_high_watermark(state, data.high_watermark)",
        "_follow_high_watermark(state, data.high_watermark)\n"
        "state.log.last_epoch = state.log.last_epoch if data.records else 0",
    ),
    red="forgot the epoch of its last record",
)
def test_an_empty_answer_leaves_the_last_fetched_epoch_alone() -> None:
    """With epoch 0 in its next fetch the leader would find another log, and have it cut."""
    lone = Lone(log=stored_log((2, 3)), election=ElectionState(2))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3))
    asked = lone.last_request.message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert asked.last_fetched_epoch == 2, "forgot the epoch of its last record"
    assert asked.fetch_offset == 3


@history(
    39,
    "KAFKA-10487",
    "R-FET-20",
    Edit(
        "kraftwire.raft.log_view:LogView.truncation_offset",
        "if not diverging.epoch:",
        "if True:",
    ),
    red="kept records that the leader cannot have",
)
def test_a_follower_cuts_by_epoch_and_not_by_offset_alone() -> None:
    """The leader's end of an epoch that the follower has never seen says nothing about offsets."""
    lone = Lone(log=stored_log((1, 5), (2, 3), (4, 4)), election=ElectionState(4))
    lone.follow(2, 5)
    lone.fetch_gets(fetched(2, 5, diverging=(3, 20)))
    assert lone.core.end_offset == 8, "kept records that the leader cannot have"
    lone.fetch_gets(fetched(2, 5, diverging=(1, 5)))
    assert lone.core.end_offset == 5


def _open(files: SimFiles) -> MetadataLog:
    files.mkdir("/log")
    return MetadataLog.open(files, "/log", _SETTINGS, TOPIC, TOPIC_ID)


@history(
    40,
    "KAFKA-16541",
    "R-START-5, D5",
    Edit(
        "kraftwire.log.metadata_log:MetadataLog.__init__",
        "epochs_of(found.segments)",
        "list(found.epochs_stored or ())",
    ),
    red="the epochs are those of an older log",
)
def test_epochs_come_from_the_log_and_not_from_an_older_checkpoint() -> None:
    """The checkpoint may be older than the log after a crash: then an epoch would be missing, and
    with it the place where followers have to cut."""
    files = SimFiles()
    log = _open(files)
    append(log, epoch=1)
    log.flush()
    append(log, epoch=4)
    files.kill()
    stored = read_epochs(files, join(partition_directory("/log", TOPIC), EPOCHS_FILE))
    assert stored == [(1, 0)]
    again = _open(files)
    assert again.epochs() == [(1, 0), (4, 1)], "the epochs are those of an older log"


_TRUNCATE = "kraftwire.log.metadata_log:MetadataLog._truncate"


@history(
    41,
    "redpanda 9711",
    "D5, D11, S12",
    Edit(_TRUNCATE, "self._mark.set(self._mark_at(end))", "pass"),
    Edit(
        _TRUNCATE,
        "segment.cut(number)",
        "segment.cut(number)\nself._mark.set(self._mark_at(end))",
    ),
    red="refuses its own log",
)
def test_a_crash_in_the_middle_of_a_truncation_leaves_a_log_that_opens() -> None:
    """The file that records the log's length must never state more than there is: that looks like
    lost records, and the node refuses to start."""
    for steps in range(1, 40):
        files = SimFiles()
        log = _open(files)
        for epoch in (1, 2, 3):
            append(log, 3, epoch=epoch, size=300)
            log.flush()
        files.plan_cut(steps)
        with contextlib.suppress(PowerCut):
            log.truncate(3)
        files.lose_power(Random(steps), "none")
        again = None
        with contextlib.suppress(StorageError):
            again = _open(files)
        assert again is not None, "refuses its own log"
        assert again.end_offset in (3, 6, 9)
