"""Threads that encode, change and decode messages together get what one alone would, or an error.

With the interpreter's lock that is a matter of course. On a free-threaded interpreter nothing but
the engine's own care keeps an object alive that another thread drops while it is read.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraftwire import decode, engine
from kraftwire.errors import UsageError, WireError
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.records import Record, build_batch, build_columns, read_batches

CAPTURE = Path(__file__).parents[1] / "golden/captures/quorum.pcap.xz"
# The last one that names topics.
VERSION = 12
ROUNDS = 2000

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine is not built"
)


def _partition(index: int) -> PartitionData:
    kinds: tuple[Any, ...] = (b"few", memoryview(bytes(2000)), bytearray(3000), None)
    records = kinds[index % len(kinds)]
    made = PartitionData(partition_index=index, records=records)
    made.unknown_tagged_fields = {900 + index: b"t" * 20, 1000: bytes(2000)}
    return made


def _response() -> FetchResponse:
    partitions = [_partition(index) for index in range(8)]
    topic = FetchableTopicResponse(topic="payments", partitions=partitions)
    return FetchResponse(responses=[topic])


def _together(*works: Callable[[], None]) -> None:
    """Run all at once; what one of them raises is raised here."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def _while_it_changes(
    change: Callable[[int], None], work: Callable[[], None], rounds: int
) -> None:
    """Work in two threads until a third has changed something in so many rounds."""
    is_over = threading.Event()

    def change_often() -> None:
        try:
            for at in range(rounds):
                change(at)
        finally:
            is_over.set()

    def work_on() -> None:
        while not is_over.is_set():
            work()

    _together(work_on, work_on, change_often)


def test_a_message_may_change_while_it_is_encoded() -> None:
    """What comes out has the values of some moment, or is an error as Python's encoder gives it."""
    response = _response()

    def change(at: int) -> None:
        topic = response.responses[0]
        topic.topic = f"{at % 10}" * 500
        partitions = topic.partitions
        partitions[at % len(partitions)] = _partition(at % 8)
        partitions.append(partitions.pop())
        partitions[0].high_watermark = 2**40 + at
        tags = partitions[0].unknown_tagged_fields = {1000: b"t" * 2000}
        del tags[1000]
        topic.partitions = [_partition(index) for index in range(at % 9 + 1)]

    def encode() -> None:
        try:
            data = response.encode(VERSION)
        except WireError:
            return
        (topic,) = FetchResponse.decode(data, VERSION)[0].responses
        assert topic.topic == "payments" or topic.topic == topic.topic[0] * 500
        marks = {each.high_watermark for each in topic.partitions}
        assert all(mark == 0 or mark >> 40 == 1 for mark in marks)

    _while_it_changes(change, encode, 2 * ROUNDS)
    data = response.encode(VERSION)
    assert FetchResponse.decode(data, VERSION)[0].encode(VERSION) == data


def test_threads_decode_the_same_bytes_and_encode_the_same_message() -> None:
    """Each has messages of its own besides, and they share the plan."""
    shared = _response()
    data = shared.encode(VERSION)

    def work() -> None:
        for _ in range(ROUNDS // 2):
            own, _ = FetchResponse.decode(data, VERSION)
            assert own.encode(VERSION) == shared.encode(VERSION) == data

    _together(work, work, work)


def test_threads_read_records_of_one_message() -> None:
    """Each takes those of a partition, in pieces, and drops them before the others are done."""
    data = _response().encode(VERSION)
    for _ in range(ROUNDS // 20):
        message, _ = FetchResponse.decode(data, VERSION)
        views: list[Any] = [each.records for each in message.responses[0].partitions]
        del message

        def work(at: int, views: list[Any] = views) -> None:
            view = views[at]
            views[at] = None
            for begin in range(0, len(view), 50):
                assert not any(view[begin : begin + 50])

        _together(lambda: work(1), lambda: work(2), lambda: work(5), lambda: work(6))


def test_lists_may_change_while_a_batch_is_built_of_them() -> None:
    """Rows are taken as they are at one moment. Of columns nothing is promised but sound memory."""
    rows = [Record(at, at, b"k", b"v" * 20, (), -1) for at in range(50)]
    values = [b"v" * 20] * 50

    def change(at: int) -> None:
        value = b"v" * (at % 90)
        rows[at % 49] = Record(at % 49, at, value, value, (), -1)
        values[at % 49] = value
        rows.append(rows.pop())
        values.append(values.pop())

    def build() -> None:
        try:
            built = build_batch(rows)
            build_columns(range(len(values)), values, values)
        except (UsageError, WireError):
            return
        for batch in read_batches(built):
            assert all(not (record.value or b"").strip(b"v") for record in batch.records())

    _while_it_changes(change, build, 50 * ROUNDS)
    assert build_columns(range(50), values, values)


def test_each_thread_reads_a_capture_of_its_own() -> None:
    """The reader of a capture belongs to one thread, its frames to anybody."""
    expected = [frame.body for frame in decode.open(CAPTURE)]
    frames: list[list[Any]] = [[], []]

    def read(at: int) -> None:
        frames[at].extend(decode.open(CAPTURE))

    _together(lambda: read(0), lambda: read(1))
    for each in frames:
        assert [frame.body for frame in each] == expected


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has its lock"
)
def test_the_engine_does_not_bring_the_lock_back() -> None:
    """An extension that does not declare itself safe would."""
    assert engine.name() == engine.C
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined]
