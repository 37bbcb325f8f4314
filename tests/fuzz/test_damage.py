"""Cut and changed messages: a `WireError` or a message, never anything else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire.messages import find
from kraftwire.wire.message import Message
from tests.fuzz.outcome import (
    decode_fast,
    decode_slow,
    naming,
    refuse_slowly,
    same,
    samples,
    seed,
    survive,
)
from tests.support.messages.mutations import mutated
from tests.support.messages.vectors import vectors

# Every place of a short message; of a long one the start, the end and an even choice between.
CUTS_MAX = 24
MUTATIONS = 8
EXAMPLES = 200


def _cuts(size: int) -> list[int]:
    if size <= CUTS_MAX:
        return list(range(size))
    return sorted({size * number // CUTS_MAX for number in range(CUTS_MAX)} | {size - 1})


def test_cut_messages_are_refused_or_still_a_message() -> None:
    """A connection may break anywhere; the reader must notice at every byte."""
    for cls, version, data in samples():
        for cut in _cuts(len(data)):
            with naming(cls, version, data[:cut]):
                assert survive(cls, version, data[:cut]).message is None, "accepted a part"


def test_changed_messages_are_refused_or_still_a_message() -> None:
    """Any bytes of a peer give an error that names a place, or a message."""
    source = random.Random(seed())
    for cls, version, data in samples():
        for _ in range(MUTATIONS):
            damaged = mutated(data, source)
            with naming(cls, version, damaged):
                survive(cls, version, damaged)


def test_the_fast_decoder_accepts_nothing_that_the_slow_reader_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Either of them may be the first to read the bytes, so both have to find every error.

    The other way round is harmless: forms that no real peer writes, such as a length in more bytes
    than it needs, are handed over to the slow reader, which decides.
    """
    monkeypatch.setattr(Message, "_decode_slowly", refuse_slowly)
    source = random.Random(seed() + 1)
    for cls, version, data in samples():
        for _ in range(MUTATIONS):
            damaged = mutated(data, source)
            fast = decode_fast(cls, version, damaged)
            slow = decode_slow(cls, version, damaged)
            with naming(cls, version, damaged):
                is_same = fast.message is None or same(fast, slow, version)
                assert is_same, f"fast: {fast.message}, slow: {slow.message}"


def test_fast_decoder_and_slow_reader_agree_on_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No message of a real peer may need the slow reader, and annotations must be true."""
    monkeypatch.setattr(Message, "_decode_slowly", refuse_slowly)
    for group in vectors().values():
        for vector in group:
            cls = find(vector.name)
            fast = decode_fast(cls, vector.version, vector.data)
            slow = decode_slow(cls, vector.version, vector.data)
            with naming(cls, vector.version, vector.data):
                assert fast.message is not None, "left to the slow reader"
                assert same(fast, slow, vector.version), f"fast: {fast.message}, slow: {slow}"


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(which=st.integers(0, 2**31), data=st.binary(max_size=200))
def test_any_bytes_are_refused_or_a_message(which: int, data: bytes) -> None:
    """Bytes that were never a message reach other branches than damaged messages do."""
    cls, version, _ = samples()[which % len(samples())]
    with naming(cls, version, data):
        survive(cls, version, data)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(
    which=st.integers(0, 2**31),
    edits=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 8), st.binary(max_size=8))),
)
def test_edited_messages_are_refused_or_still_a_message(
    which: int, edits: list[tuple[int, int, bytes]]
) -> None:
    """As above, with many changes at once, and shrunk to the fewest when something is found."""
    cls, version, data = samples()[which % len(samples())]
    for place, removed, inserted in edits:
        at = place % (len(data) + 1)
        data = data[:at] + inserted + data[at + removed :]
    with naming(cls, version, data):
        survive(cls, version, data)
