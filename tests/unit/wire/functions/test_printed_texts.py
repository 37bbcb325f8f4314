"""The texts that printers make of values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from kraftwire.wire.functions.printing import texts


def test_texts_that_are_kept_do_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as many as peers choose to send."""
    monkeypatch.setattr(texts, "_KEPT_COUNT", 8)
    texts.TEXTS.clear()
    for at in range(100):
        assert texts.TEXTS[b"%d" % at] == f'"{at}"'
        assert len(texts.TEXTS) <= 8
    texts.TEXTS.clear()
    assert texts.TEXTS[b"x" * 10_000] == f'"{"x" * 10_000}"'
    assert not texts.TEXTS


@pytest.mark.parametrize(
    ("helper", "data", "text"),
    [
        (texts.compact_strings, b"\x02a\x01\x82\x01" + b"x" * 129, f'["a","","{"x" * 129}"]'),
        (texts.plain_strings, b"\0\1a\0\0\0\2bc", '["a","","bc"]'),
        (texts.compact_blobs, b"\x02a\x01\x03bc", '["YQ==","","YmM="]'),
        (texts.plain_blobs, b"\0\0\0\1a\0\0\0\0\0\0\0\2bc", '["YQ==","","YmM="]'),
        (texts.uuids, bytes(32) + b"\xff" * 16, f'["{"A" * 22}","{"A" * 22}","{"_" * 21}w"]'),
    ],
)
def test_arrays_of_values_with_lengths(helper: Any, data: bytes, text: str) -> None:
    """No message of Kafka has an array of byte strings yet."""
    assert helper(b"ab" + data + b"c", 2, 3) == (text, 2 + len(data))
    for cut in range(len(data)):
        with suppress(*texts.BAD_BYTES):
            assert helper(data[:cut], 0, 3)[1] > cut


@pytest.mark.parametrize(
    ("helper", "data"),
    [
        (texts.compact_strings, b"\0"),
        (texts.compact_strings, b"\x82\0a"),
        (texts.plain_strings, b"\xff\xff"),
        (texts.compact_blobs, b"\0"),
        (texts.compact_blobs, b"\x82\0a"),
        (texts.plain_blobs, b"\xff\xff\xff\xff"),
    ],
)
def test_an_element_is_never_null(helper: Any, data: bytes) -> None:
    """Nor is its length longer than it has to be."""
    with pytest.raises(texts.BAD_BYTES):
        helper(data + bytes(20), 0, 1)


def test_arrays_of_bools_hold_0_and_1() -> None:
    """No message of Kafka has one yet."""
    assert texts.NUMBERS["bool"][b"\1\0"] == "[true,false]"
    with pytest.raises(IndexError):
        texts.NUMBERS["bool"][b"\2"]
