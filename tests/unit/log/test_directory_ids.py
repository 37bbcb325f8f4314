"""Directory ids are unique, or two replicas would be mistaken for one."""

from __future__ import annotations

import os

import pytest

from kraftwire.log.uuids import random_uuid

_COUNT = 5_000


def test_directory_ids_do_not_repeat() -> None:
    """Not even among thousands."""
    assert len({random_uuid() for _ in range(_COUNT)}) == _COUNT


def test_all_free_bits_are_random() -> None:
    """Version and variant take six of 128 bits; each other bit is seen both ways."""
    ones, zeros = 0, 0
    for _ in range(200):
        value = int.from_bytes(random_uuid(), "big")
        ones |= value
        zeros |= ~value & (1 << 128) - 1
    assert (ones & zeros).bit_count() == 122


def test_reserved_ids_are_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator is asked again if its answer has a special meaning."""
    answers = [b"\xf8" + bytes(15), b"\x01" * 16]
    monkeypatch.setattr(os, "urandom", lambda _: answers.pop(0))
    assert random_uuid()[0] == 1
    assert answers == []
