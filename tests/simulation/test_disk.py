"""The simulated disk: what survives a crash, and that the shipped log copes with it."""

from __future__ import annotations

from random import Random

import pytest

from kraftwire.errors import StorageError
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.settings import LogSettings
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.records.builder import BatchBuilder, BatchHeader
from kraftwire.sim.crash_model import CRASH_POLICIES
from kraftwire.sim.disk import PowerCut, SimFiles

SETTINGS = LogSettings(segment_bytes=2000, index_bytes=240)


def batch(base: int, epoch: int = 1) -> bytes:
    """A batch of two records."""
    builder = BatchBuilder(BatchHeader(base_offset=base, partition_leader_epoch=epoch))
    builder.append(1000 + base, None, b"x" * 100)
    builder.append(1001 + base, None, b"y")
    return builder.build()


def opened(files: SimFiles) -> MetadataLog:
    """The log on a disk."""
    files.mkdir("/d")
    return MetadataLog.open(files, "/d", SETTINGS, METADATA_TOPIC, METADATA_TOPIC_ID)


def test_what_is_not_flushed_may_be_lost() -> None:
    """The worst case that the core must expect."""
    files = SimFiles()
    file = files.open("/a", create=True)
    file.pwrite(b"kept", 0)
    file.fdatasync()
    files.fsync_dir("/")
    file.pwrite(b"lost", 4)
    assert files.read_bytes("/a") == b"keptlost"
    files.lose_power(Random(1), "none")
    assert files.read_bytes("/a") == b"kept"


def test_a_new_file_is_lost_unless_its_directory_is_flushed() -> None:
    """Flushing the file alone makes bytes durable that no start finds (D1, D7)."""
    files = SimFiles()
    files.open("/a", create=True).fdatasync()
    files.lose_power(Random(1), "none")
    assert not files.exists("/a")


@pytest.mark.parametrize("is_inside_flushed", [True, False], ids=["names flushed", "names lost"])
@pytest.mark.parametrize("is_flushed", [True, False], ids=["rename flushed", "rename lost"])
def test_a_directory_is_renamed_with_what_is_durable_in_it(
    is_flushed: bool, is_inside_flushed: bool
) -> None:
    """Flushing the parent makes its new name durable, not the names inside."""
    files = SimFiles()
    files.mkdir("/p/old")
    files.open("/p/old/a", create=True).fdatasync()
    if is_inside_flushed:
        files.fsync_dir("/p/old")
    files.rename("/p/old", "/p/new")
    assert (files.exists("/p/old"), files.listdir("/p/new")) == (False, ["a"])
    if is_flushed:
        files.fsync_dir("/p")
    files.lose_power(Random(1), "none")
    where = "/p/new/a" if is_flushed else "/p/old/a"
    found = [path for path in ("/p/old/a", "/p/new/a") if files.exists(path)]
    assert found == ([where] if is_inside_flushed else [])


def test_a_rename_is_undone_unless_its_directory_is_flushed() -> None:
    """The quorum-state file is replaced that way."""
    files = SimFiles()
    for name, content in (("/old", b"1"), ("/new", b"2")):
        file = files.open(name, create=True)
        file.pwrite(content, 0)
        file.fdatasync()
    files.fsync_dir("/")
    files.rename("/new", "/old")
    assert files.read_bytes("/old") == b"2"
    files.lose_power(Random(1), "none")
    assert files.read_bytes("/old") == b"1"


def test_a_killed_process_leaves_its_writes_to_the_next_one() -> None:
    """They are in the machine's memory, and still not durable."""
    files = SimFiles()
    files.open("/a.log", create=True).pwrite(b"x", 0)
    files.kill()
    assert files.read_bytes("/a.log") == b"x"
    assert files.unflushed(".log") == ["/a.log"]


def test_a_failed_flush_loses_what_it_was_to_make_durable() -> None:
    """As Linux does: a second try would succeed and make nothing durable (D9)."""
    files = SimFiles()
    file = files.open("/a", create=True)
    file.pwrite(b"x", 0)
    files.break_next_sync()
    with pytest.raises(StorageError) as error:
        file.fdatasync()
    assert error.value.fatal
    file.fdatasync()
    assert file.size() == 0


def test_a_full_disk_writes_a_part() -> None:
    """A node that continues after that has a torn log."""
    files = SimFiles()
    file = files.open("/a", create=True)
    files.fill(True, Random(3))
    with pytest.raises(StorageError):
        file.pwrite(bytes(100), 0)
    assert file.size() < 100


def test_power_can_fail_within_a_write() -> None:
    """Batches are longer than what a disk writes at once."""
    files = SimFiles()
    file = files.open("/a", create=True)
    files.plan_cut(1)
    with pytest.raises(PowerCut):
        file.pwrite(bytes(100), 0)
    assert 0 <= file.size() < 100


def test_a_lock_is_held_until_its_process_ends() -> None:
    """Two processes on a directory would ruin it (D10)."""
    files = SimFiles()
    files.lock("/.lock")
    with pytest.raises(StorageError):
        files.lock("/.lock")
    files.kill()
    files.lock("/.lock").close()


@pytest.mark.parametrize("policy", [policy for policy in CRASH_POLICIES if policy != "sectors"])
@pytest.mark.parametrize("seed", range(20))
def test_the_log_keeps_what_it_flushed(policy: str, seed: int) -> None:
    """Recovery cuts off what a crash damages, and no more."""
    print(f"seed {seed}, {policy}")
    random = Random(seed)
    files = SimFiles()
    log = opened(files)
    end, durable = 0, 0
    for _ in range(random.randint(1, 30)):
        log.append(batch(end), end, end + 2)
        end += 2
        if random.random() < 0.5:
            durable = log.flush()
    files.lose_power(random, policy)
    again = opened(files)
    assert durable <= again.end_offset <= end
    assert not files.unflushed(".log")
    again.append(batch(again.end_offset), again.end_offset, again.end_offset + 2)


@pytest.mark.parametrize("step", range(1, 60))
def test_the_log_opens_after_a_power_cut_at_any_step(step: int) -> None:
    """Segments are rolled, indexes and epochs written in between: any step may be the last."""
    files = SimFiles()
    files.plan_cut(step)
    durable, end = 0, 0
    try:
        log = opened(files)
        for epoch in range(1, 40):
            log.append(batch(end, epoch // 3), end, end + 2)
            end += 2
            durable = log.flush()
    except PowerCut:
        pass
    files.lose_power(Random(step), "none")
    assert opened(files).end_offset >= durable
