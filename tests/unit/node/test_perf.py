"""The load of the raft test server: its rate, its bounds, and the figures, on virtual time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from kraftwire.errors import InvariantError, UsageError
from kraftwire.node.app import Node
from kraftwire.node.config import NodeConfig, load
from kraftwire.node.driver import AppendDone
from kraftwire.node.perf import PERF_APPEND_BYTES, PERF_IN_FLIGHT_BYTES, Figures, Load, Workload
from kraftwire.raft.effects import AppendAccepted, AppendRefused
from kraftwire.records.batch import RecordBatch
from kraftwire.records.plain import data_batch

_EPOCH = 4
_ME, _OTHER = 1, 2
_COMMIT_SECONDS = 0.03


class _Node:
    """Stands for node and driver: assigns offsets, and commits when told to."""

    def __init__(self) -> None:
        self.ready = trio.Event()
        self.ready.set()
        self.driver = self
        self.appended: list[tuple[float, int]] = []
        self.end_offset = 1
        self.committed = 1
        self.is_leader = True

    def append_nowait(self, values: Sequence[bytes], epoch: int, done: AppendDone) -> None:
        """Accept records as a leader, or refuse them as any other node."""
        if not self.is_leader:
            done(AppendRefused(0, "NotLeader", ""))
            return
        base = self.end_offset
        self.end_offset += len(values)
        self.appended.append((trio.current_time(), len(values)))
        done(AppendAccepted(0, base, self.end_offset - 1, epoch))

    def commit(self) -> list[RecordBatch]:
        """Commit one batch of everything not committed yet."""
        base, self.committed = self.committed, self.end_offset
        return [_batch(base, self.end_offset)]

    @property
    def count(self) -> int:
        """How many records were appended."""
        return sum(count for _, count in self.appended)


def _batch(base: int, end: int, epoch: int = _EPOCH) -> RecordBatch:
    return RecordBatch(data_batch(base, epoch, 0, [b"v"] * (end - base)))


def _config(folder: Path) -> NodeConfig:
    path = folder / "node.properties"
    path.write_text(
        "node.id=1\nlisteners=CONTROLLER://127.0.0.1:9\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.voters=1@127.0.0.1:9\nlog.dirs={folder / 'log'}\n"
    )
    return load(str(path))


class _Bench:
    """A workload on a stub, and the figures that it reports."""

    def __init__(self, folder: Path, load_: Load) -> None:
        self.figures: list[Figures] = []
        self.workload = Workload(_config(folder), load_, self.figures.append)
        self.stop = trio.Event()

    def run(self, script: Callable[[_Node], Awaitable[None]]) -> None:
        """Let the workload lead while a script acts as the rest of the node."""

        async def main() -> None:
            node = _Node()
            self.workload.node = cast("Node", node)
            self.workload.leadership(_ME, _EPOCH, 1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.workload.run, self.stop)
                await script(node)
                self.stop.set()

        trio.run(main, clock=MockClock(autojump_threshold=0))

    async def commit_regularly(self, node: _Node, seconds: float) -> None:
        """Commit as a quorum would, some time after the appends."""
        end = trio.current_time() + seconds
        while trio.current_time() < end:
            await trio.sleep(_COMMIT_SECONDS)
            if node.end_offset > node.committed:
                self.workload.apply(node.commit())


def test_records_come_at_the_given_rate(tmp_path: Path) -> None:
    """Two programs are compared at one rate only if both keep it."""
    bench = _Bench(tmp_path, Load(throughput=5000))

    async def script(node: _Node) -> None:
        await bench.commit_regularly(node, 10.0)
        assert node.count == pytest.approx(50_000, rel=0.005)
        total = 0
        for at, count in node.appended:
            total += count
            assert total <= (at - node.appended[0][0]) * 5000 + 1, "a record came before its time"

    bench.run(script)


def test_another_throughput_begins_a_new_schedule(tmp_path: Path) -> None:
    """What was offered at the old rate neither delays nor speeds up what is offered now."""
    bench = _Bench(tmp_path, Load(throughput=100_000))

    async def script(node: _Node) -> None:
        await bench.commit_regularly(node, 2.0)
        for throughput in (1000, 10_000):
            bench.workload.throughput = throughput
            before = node.count
            await bench.commit_regularly(node, 2.0)
            assert node.count - before == pytest.approx(2 * throughput, rel=0.02)

    bench.run(script)


def test_lines_of_standard_input_set_the_throughput(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that are not numbers of records change nothing; the end of input ends the node."""
    bench = _Bench(tmp_path, Load(throughput=1000, follows_input=True))
    reader, writer = os.pipe()

    async def script(_: _Node) -> None:
        assert os.write(writer, b"none\n0\n-5\n" + b"9" * 1000 + b"\n20")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert bench.workload.throughput == 1000
        assert os.write(writer, b"00\n7")
        while bench.workload.throughput == 1000:
            await trio.sleep(1.0)
        assert bench.workload.throughput == 2000
        os.close(writer)
        await bench.stop.wait()
        assert bench.workload.throughput == 2000

    with open(reader, "rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        bench.run(script)


def test_a_report_every_five_seconds_has_rate_and_latencies(tmp_path: Path) -> None:
    """What is committed counts, not what was appended."""
    bench = _Bench(tmp_path, Load(throughput=1000, record_size=100))

    async def script(node: _Node) -> None:
        await bench.commit_regularly(node, 11.0)

    bench.run(script)
    first, second, _rest = bench.figures
    assert second.seconds == pytest.approx(5.0)
    assert second.records_per_second == pytest.approx(1000, rel=0.01)
    assert second.megabytes_per_second == pytest.approx(0.1, rel=0.01)
    assert 0 < second.latency_ms(0.5) <= second.latency_ms(0.99) <= _COMMIT_SECONDS * 1000
    assert first.epoch == _EPOCH


def test_what_is_not_committed_is_bounded(tmp_path: Path) -> None:
    """An unthrottled load on a stalled quorum must not fill the memory."""
    bench = _Bench(tmp_path, Load(throughput=1_000_000_000, record_size=1024))
    bound = PERF_IN_FLIGHT_BYTES // 1024

    async def script(node: _Node) -> None:
        await trio.sleep(5.0)
        before = node.count
        assert bound - PERF_APPEND_BYTES // 1024 <= before <= bound
        bench.workload.apply(node.commit())
        await trio.sleep(1.0)
        assert bound - PERF_APPEND_BYTES // 1024 <= node.count - before <= bound

    bench.run(script)


def test_a_refused_append_is_not_tried_again_at_once(tmp_path: Path) -> None:
    """A resigned leader refuses until there is another one: retrying would only waste time."""
    bench = _Bench(tmp_path, Load(throughput=1_000_000_000))
    refusals: list[float] = []

    async def script(node: _Node) -> None:
        node.is_leader = False
        ask = node.append_nowait

        def append_nowait(values: Sequence[bytes], epoch: int, done: AppendDone) -> None:
            refusals.append(trio.current_time())
            ask(values, epoch, done)

        node.append_nowait = append_nowait  # type: ignore[method-assign]
        await trio.sleep(1.0)

    bench.run(script)
    assert 50 <= len(refusals) <= 110


def test_another_leader_ends_the_load(tmp_path: Path) -> None:
    """Only the leader appends, and a new leadership starts over."""
    bench = _Bench(tmp_path, Load(throughput=1000))

    async def script(node: _Node) -> None:
        await trio.sleep(1.0)
        bench.workload.leadership(_OTHER, _EPOCH + 1, 50)
        await trio.sleep(0.01)
        before = node.count
        await trio.sleep(5.0)
        assert node.count == before
        bench.workload.leadership(_ME, _EPOCH + 2, 60)
        await trio.sleep(1.0)
        assert node.count > before

    bench.run(script)


def test_a_commit_of_records_that_were_not_appended_is_an_error(tmp_path: Path) -> None:
    """The test server also checks the core: offsets must be the promised ones."""
    bench = _Bench(tmp_path, Load(throughput=1))

    async def script(node: _Node) -> None:
        await trio.sleep(0.5)
        with pytest.raises(InvariantError, match="nobody appended"):
            bench.workload.apply([_batch(node.end_offset - 1, node.end_offset + 1)])

    bench.run(script)


def test_batches_of_older_epochs_are_ignored(tmp_path: Path) -> None:
    """What another leader appended has no latency here."""
    bench = _Bench(tmp_path, Load(throughput=1))

    async def script(node: _Node) -> None:
        await trio.sleep(0.5)
        waiting = list(bench.workload._pending)
        assert waiting
        bench.workload.apply([_batch(1, 9, epoch=_EPOCH - 1)])
        assert list(bench.workload._pending) == waiting
        bench.workload.apply(node.commit())
        assert not bench.workload._pending

    bench.run(script)


def test_the_duration_ends_the_node(tmp_path: Path) -> None:
    """A measurement in a script has to end by itself."""
    bench = _Bench(tmp_path, Load(duration=3.0))

    async def script(_: _Node) -> None:
        await bench.stop.wait()
        assert trio.current_time() == pytest.approx(3.0, abs=0.1)

    bench.run(script)


def test_records_longer_than_half_a_batch_are_refused(tmp_path: Path) -> None:
    """They would fail one by one later, in the leader."""
    with pytest.raises(UsageError, match="at most 4194304"):
        Workload(_config(tmp_path), Load(record_size=4194305), lambda _: None)


def test_percentiles_are_those_of_records() -> None:
    """The slowest of a hundred records is above the 99th percentile."""
    figures = Figures(
        epoch=1, seconds=1.0, record_size=1, latencies=Counter({10: 50, 20: 49, 90: 1})
    )
    assert [figures.latency_ms(share) for share in (0.5, 0.75, 0.99, 0.999)] == [10, 20, 20, 90]
