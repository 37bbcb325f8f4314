"""Long lists of records that are made during iteration, and plain lists of them."""

from __future__ import annotations

import json

import pytest

from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import build_batch
from kraftwire.records.json_form import RecordRows, batch_to_json, plain
from kraftwire.records.reader import BatchReader
from kraftwire.records.record import Record


def test_a_long_list_without_meaning_is_walked_through_only_once() -> None:
    """Its records are counted without being made; where they are damaged, those before it count."""
    sound = build_batch([Record(offset, 0, None, b"v") for offset in range(5)])
    for end, count in ((b"", 5), (b"\xff\xff", 4)):
        data = sound[: len(sound) - len(end)] + end
        (batch,) = BatchReader(data)
        assert isinstance(batch, RecordBatch)
        shown, problems = batch_to_json(batch, rows_max=1)
        assert isinstance(shown["records"], RecordRows)
        assert len(shown["records"]) == len(list(shown["records"])) == count
        inside = [problem for problem in problems if problem.path != "crc"]
        assert bool(inside) == bool(end)


def test_a_long_list_is_made_plain_where_a_program_asks_for_it() -> None:
    """The objects are the same as those of a short list, wherever it is."""
    data = build_batch([Record(offset, 0, None, b"v") for offset in range(5)])
    (batch,) = BatchReader(data)
    short, _ = batch_to_json(batch)
    long, _ = batch_to_json(batch, rows_max=1)
    assert isinstance(long["records"], RecordRows)
    with pytest.raises(TypeError):
        json.dumps(long)
    assert plain({"topics": [{"batches": [long]}], "name": "t"}) == {
        "topics": [{"batches": [short]}],
        "name": "t",
    }
