"""`pipeline tail` without Spark: rounds over what grows give the tables of one run over all."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from kraftwire.client.metadata_log import Position, QuorumReader
from kraftwire.errors import LogMovedError, SecurityError, UsageError
from kraftwire.spark.quorum import log_rows
from kraftwire.spark.run import (
    LocalRunner,
    RoundSchedule,
    RunOptions,
    RunOutcome,
    quorum_source,
    run,
    tail,
)
from kraftwire.spark.run.manifest import Manifest
from kraftwire.testing import quorum
from tests.spark.run.folders import captures, rows_of, tables_of
from tests.spark.tail.growing import Partition, batch
from tests.support.captures.decoded import rotated
from tests.support.nodes.secured import secured_client, secured_quorum
from tests.support.security.kafka import USER_PASSWORD

LIVELY = {"metadata.max.idle.interval.ms": 100}
PATIENCE_S = 60


class _Killed(BaseException):
    """Stands for the end of the process."""


class _Dying(LocalRunner):
    """Dies after this many pieces of work."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def map(self, task: Callable[[Any], Any], work: Sequence[Any]) -> list[Any]:
        return [self._do(task, each) for each in work]

    def _do(self, task: Callable[[Any], Any], work: Any) -> Any:
        if not self.left:
            raise _Killed
        self.left -= 1
        return task(work)


class _Deriving(LocalRunner):
    """Counts how often derived tables are made, and dies instead the first time if it shall."""

    def __init__(self, *, dies: bool = False) -> None:
        super().__init__()
        self.count = 0
        self._dies = dies

    def derive(self, _folder: Path, _wanted: object, _tags: object) -> None:
        if self._dies:
            raise _Killed
        self.count += 1


def silent(_text: str) -> None:
    """Say nothing."""


def one_round(
    source: Path | None, folder: Path, runner: LocalRunner | None = None, **more: Any
) -> RunOutcome:
    """What `--once` does."""
    rhythm = RoundSchedule(0, lambda _seconds: False, is_once=True)
    options = RunOptions(folder, with_records=True)
    inputs = [] if source is None else [str(source)]
    return tail(inputs, options, runner or LocalRunner(), rhythm, **({"warn": silent} | more))


def one_run(source: Path, folder: Path) -> dict[str, list[str]]:
    """The tables of a run over everything."""
    run([str(source)], RunOptions(folder, with_records=True), LocalRunner(), warn=silent)
    return tables_of(folder)


@pytest.mark.parametrize("seed", range(8))
def test_rounds_over_growing_logs_give_the_tables_of_one_run(seed: int, tmp_path: Path) -> None:
    """Batches in pieces, rolls, damage, torn tails, and rounds that are killed."""
    print("seed", seed)
    chance = random.Random(seed)
    source, out = tmp_path / "in", tmp_path / "out"
    logs = [Partition(source, "orders-0"), Partition(source, "orders-1")]
    rest = {0: b"", 1: b""}
    for number in range(14):
        for which, log in enumerate(logs):
            data = rest[which]
            for _ in range(chance.randrange(6)):
                count = chance.randrange(1, 30)
                data += batch(log.next_offset, count)
                log.next_offset += count
            if chance.random() < 0.05:
                data += chance.randbytes(90)
            cut = chance.choice([len(data), chance.randrange(len(data) + 1)])
            log.write(data[:cut])
            rest[which] = data[cut:]
            if chance.random() < 0.2 and not rest[which] and log.segment.stat().st_size:
                log.roll()
        try:
            dies = chance.random() < 0.3
            outcome = one_round(source, out, _Dying(chance.randrange(3)) if dies else None)
            assert outcome.unbalanced == []
        except _Killed:
            continue
        if number % 4 == 3:
            assert tables_of(out) == one_run(source, tmp_path / f"whole-{number}")
    one_round(source, out)
    assert tables_of(out) == one_run(source, tmp_path / "whole")


def test_no_byte_of_a_growing_log_is_read_twice(tmp_path: Path) -> None:
    """Except for a batch that was half written; and many rounds do not make as many files."""
    source, out = tmp_path / "in", tmp_path / "out"
    log = Partition(source)
    read = 0
    for _ in range(20):
        log.append(50)
        read += one_round(source, out).size
    assert read == log.segment.stat().st_size
    assert len(list((out / "records").glob("*.parquet"))) == 20
    half = batch(log.next_offset)
    log.write(half[:40])
    assert one_round(source, out).size == 40
    assert [row["id"] for row in rows_of(out, "bad_input")] == ["batch-cut"]
    log.write(half[40:])
    assert one_round(source, out).size == len(half)
    assert rows_of(out, "bad_input") == []
    for _ in range(60):
        log.next_offset += 10
        log.append()
        one_round(source, out)
    assert len(list((out / "records").glob("*.parquet"))) < 66
    assert tables_of(out) == one_run(source, tmp_path / "whole")


@pytest.mark.parametrize("is_longer", [False, True])
def test_a_log_that_was_rewritten_is_read_again(is_longer: bool, tmp_path: Path) -> None:
    """The tables reflect what is there; a position in another file is useless."""
    source, out = tmp_path / "in", tmp_path / "out"
    log = Partition(source)
    log.append(100, value=b"old")
    log.append(100, value=b"old")
    one_round(source, out)
    log.truncate(0)
    log.next_offset = 0
    log.append(200 if not is_longer else 2000, epoch=2, value=b"new")
    one_round(source, out)
    assert {row["value"] for row in rows_of(out, "records")} == {b"new"}
    assert tables_of(out) == one_run(source, tmp_path / "whole")


def test_a_segment_that_is_deleted_stays_in_the_tables(tmp_path: Path) -> None:
    """Once, though its file has another name for a minute."""
    source, out = tmp_path / "in", tmp_path / "out"
    log = Partition(source)
    log.append()
    old = log.segment
    log.roll()
    one_round(source, out)
    old.rename(old.with_suffix(".log.deleted"))
    log.append()
    one_round(source, out)
    assert sorted(row["offset"] for row in rows_of(out, "records")) == list(range(20))


def test_a_segment_that_is_deleted_before_it_is_read_is_not_damage(tmp_path: Path) -> None:
    """Retention may come between the listing of a folder and the reading of its files."""
    source, out = tmp_path / "in", tmp_path / "out"
    log = Partition(source)
    log.append()
    one_round(source, out)
    log.append()
    one_round(source, out, _Writing(lambda: log.segment.unlink(missing_ok=True)))
    assert rows_of(out, "bad_input") == []
    assert [row["offset"] for row in rows_of(out, "records")] == list(range(10))
    assert len(rows_of(out, "files")) == 1


def test_a_growing_capture_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Cut anywhere; in the end the tables have all of it, once."""
    whole = captures(tmp_path / "whole", "clients") / "clients.pcap"
    data = whole.read_bytes()
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    chance = random.Random(5)
    counts = []
    for cut in [*sorted(chance.sample(range(len(data)), 4)), len(data)]:
        (source / "clients.pcap").write_bytes(data[:cut])
        outcome = one_round(source, out)
        assert outcome.unbalanced == []
        counts.append(len(rows_of(out, "exchanges")))
    assert counts == sorted(counts)
    assert tables_of(out) == one_run(source, tmp_path / "tables")


def test_a_rotated_recording_is_one_in_every_round(tmp_path: Path) -> None:
    """Requests at the end of a file have their responses in the next one, which comes later."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for path in rotated(tmp_path / "aside", 3):
        data = path.read_bytes()
        target = source / path.name
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            with target.open("ab") as file:
                file.write(part)
            assert one_round(source, out).unbalanced == []
    assert tables_of(out) == one_run(source, tmp_path / "whole")


def test_files_that_appear_are_added_and_nothing_need_be_there(tmp_path: Path) -> None:
    """A folder is followed from the day it is made; a mistyped path is reported."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    assert one_round(source, out).files == 0
    captures(source, "sasl")
    assert one_round(source, out).files == 1
    captures(source, "sasl", "clients")
    assert one_round(source, out).files == 1
    assert tables_of(out) == one_run(source, tmp_path / "whole")
    with pytest.raises(UsageError, match="no such file or folder"):
        one_round(tmp_path / "nowhere", out)


def test_derived_tables_are_made_when_something_is_new(tmp_path: Path) -> None:
    """They are made again after a kill between the decoding and the end of the stages."""
    source, out = captures(tmp_path / "in", "sasl"), tmp_path / "out"
    with pytest.raises(_Killed):
        one_round(source, out, _Deriving(dies=True))
    runner = _Deriving()
    one_round(source, out, runner)
    assert runner.count == 1
    one_round(source, out, runner)
    assert runner.count == 1
    captures(source, "clients")
    one_round(source, out, runner)
    assert runner.count == 2


def test_rounds_continue_until_the_wait_says_no(tmp_path: Path) -> None:
    """Each reads what came since; the sum is printed at the end."""
    source, out = tmp_path / "in", tmp_path / "out"
    log = Partition(source)
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        log.append()
        return len(waits) < 3

    rhythm = RoundSchedule(1000, wait)
    outcome = tail([str(source)], RunOptions(out), LocalRunner(), rhythm, warn=silent)
    assert len(waits) == 3
    assert all(900 < each <= 1000 for each in waits)
    assert outcome.rows["batches"] == 2
    assert outcome.seconds > 0


def test_a_live_quorum_is_followed(tmp_path: Path) -> None:
    """Every committed record once; another quorum is not taken for it."""
    out = tmp_path / "out"
    with quorum(nodes=1, properties=LIVELY, folder=tmp_path / "nodes") as nodes:
        place = {"quorums": [nodes.bootstrap_controllers]}
        counts: list[int] = []
        deadline = time.monotonic() + PATIENCE_S
        # A record comes at intervals; rounds may be quicker.
        while len(set(counts)) < 3:
            assert time.monotonic() < deadline, f"the log does not grow: {counts}"
            one_round(None, out, **place)
            offsets = sorted(row["offset"] for row in rows_of(out, "metadata_records"))
            assert offsets == list(range(len(offsets)))
            counts.append(len(offsets))
        assert counts == sorted(counts)
        manifest = Manifest.load(out)
        assert manifest is not None
        (quorum_source,) = manifest.sources.values()
        quorum_source.state["next_offset"] += 100_000
        manifest.save(out)
        with pytest.raises(LogMovedError, match="it was truncated before offset"):
            one_round(None, out, **place)


def test_a_round_goes_on_when_its_session_would_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It logs in again on its connection, which the node would close, as often as it takes."""
    more = {"connections_max_reauth_ms": 1300, "kraftwire_log_level": "debug"}
    out = tmp_path / "out"
    with secured_quorum(tmp_path, 1, **more, metadata_max_idle_interval_ms=100) as nodes:
        logins: Counter[str] = Counter()

        def slowly(reader: QuorumReader, start: Position, end: Position) -> Iterator[Any]:
            deadline = time.monotonic() + PATIENCE_S
            while max(logins.values(), default=0) < 3:
                assert time.monotonic() < deadline, logins
                assert reader.high_watermark(start) >= 0
                found = re.findall(r"logged-in principal=User:alice peer=(\S+)", nodes.log(1))
                logins.clear()
                logins.update(found)
            yield from log_rows(reader, start, end)

        monkeypatch.setattr(quorum_source, "log_rows", slowly)
        place = {"quorums": [nodes.bootstrap_controllers], "security": secured_client(tmp_path)}
        outcome = one_round(None, out, **place)
    assert (outcome.unread, outcome.unreachable) == ([], [])
    offsets = sorted(row["offset"] for row in rows_of(out, "metadata_records"))
    assert offsets == list(range(len(offsets)))
    assert offsets


class _Never(LocalRunner):
    """Stands for what takes seconds to start."""

    def begin(self) -> None:
        raise AssertionError("Spark was started")


def test_a_wrong_password_ends_it_before_spark_starts(tmp_path: Path) -> None:
    """It was told after Spark's start, whose seconds were for nothing."""
    source, out = tmp_path / "in", tmp_path / "out"
    Partition(source).append()
    with secured_quorum(tmp_path, 1) as nodes:
        login = secured_client(tmp_path)
        login["sasl.jaas.config"] = login["sasl.jaas.config"].replace(USER_PASSWORD, "wrong")
        options, rhythm = RunOptions(out), RoundSchedule(0, lambda _: False, True)
        place = {"quorums": [nodes.bootstrap_controllers], "security": login}
        with pytest.raises(SecurityError, match="login of user 'alice' by PLAIN was refused"):
            tail([str(source)], options, _Never(), rhythm, **place)


def test_an_unreachable_quorum_does_not_hold_up_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported in every round, and tried again in the next one."""
    for name in ("_PATIENCE_S", "_LOOK_S"):
        monkeypatch.setattr(quorum_source, name, 0.3)
    source, out = tmp_path / "in", tmp_path / "out"
    Partition(source).append()
    told: list[str] = []
    outcome = one_round(source, out, quorums=["127.0.0.1:1"], warn=told.append)
    assert outcome.rows["batches"] == 1
    assert len(told) == len(outcome.unreachable) == 1
    assert told[0].startswith("127.0.0.1:1: describing the cluster took more than 0.3 s")


class _Writing(LocalRunner):
    """Lets files grow between the plan and the work, and during it."""

    def __init__(self, grow: Callable[[], None]) -> None:
        super().__init__()
        self._grow = grow

    def map(self, task: Callable[[Any], Any], work: Sequence[Any]) -> list[Any]:
        done = []
        for each in work:
            self._grow()
            done.append(task(each))
        return done


def test_files_may_grow_while_they_are_read(tmp_path: Path) -> None:
    """What comes after a round was planned is left to the next one, even the end of a cut batch."""
    whole = captures(tmp_path / "whole", "clients") / "clients.pcap"
    data, at = whole.read_bytes(), 100
    source, out = tmp_path / "in", tmp_path / "out"
    log = Partition(source)
    (source / "clients.pcap").write_bytes(data[:at])
    halves = [b""]

    def grow() -> None:
        nonlocal at
        made = batch(log.next_offset)
        log.next_offset += 10
        log.write(halves.pop() + made[:50])
        halves.append(made[50:])
        with (source / "clients.pcap").open("ab") as file:
            file.write(data[at : at + 3001])
        at += 3001

    for _ in range(5):
        assert one_round(source, out, _Writing(grow)).unbalanced == []
        for row in rows_of(out, "files"):
            assert row["size"] == row["kafka_bytes"] + row["bad_bytes"] + row["header_bytes"] + (
                row["other_bytes"] or 0
            ) + (row["tls_bytes"] or 0) + (row["duplicate_bytes"] or 0)
    log.write(halves.pop())
    one_round(source, out)
    assert tables_of(out) == one_run(source, tmp_path / "tables")
