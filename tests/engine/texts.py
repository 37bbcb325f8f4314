"""Compares JSON that the engine writes from bytes with that of decoded messages and batches.

The engine may fall back, but never write differently.
"""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from crc32c import crc32c

from kraftwire import engine
from kraftwire.decode.body.scan import records_fields
from kraftwire.errors import WireError
from kraftwire.limits import ELEMENT_FREE_COUNT
from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.records.json_form import batch_to_json
from kraftwire.records.reader import BatchReader
from kraftwire.wire.json_form import json_plan
from kraftwire.wire.message import Message
from tests.engine.search import versions
from tests.support.messages.mutations import mutated
from tests.support.messages.random_messages import random_message

_DAMAGED = 10
# Letters that the engine writes itself; all others it leaves to Python.
_PLAIN = ["a", "Z", "0", "-", "_", ".", " ", '"', "\\", "/", "~"]


@cache
def _plan_of(cls: type[Message], version: int) -> Any:
    """What writes a version; None if nothing does."""
    return json_plan(cls.facts(), version)


def compare_json(cls: type[Message], version: int, data: bytes) -> bool:
    """Return whether the engine writes a message's JSON. Raises: AssertionError if it is not that
    of the decoded message, or if Kafka would not write these bytes.
    """
    plan = _plan_of(cls, version)
    written = plan and plan.write(data, 0, ELEMENT_FREE_COUNT)
    if written is None:
        return False
    try:
        message, expected_end = cls.decode(data, version)
    except WireError as error:
        raise AssertionError(f"only the engine accepts it: {error}") from None
    assert message.encode(version) == data[:expected_end], "Kafka would write other bytes"
    expected, held = _expected(message, version)
    text, end, gaps = written
    assert end == expected_end, f"end {end}, not {expected_end}"
    assert [(data[begin:stop], *topic) for _, begin, stop, *topic in gaps or ()] == held
    assert _with_records(text, data, gaps or ()).decode("ascii") == expected
    return True


def _with_records(text: bytes, data: bytes, gaps: Sequence[tuple[Any, ...]]) -> bytes:
    """Fill gaps with the base64 of their records."""
    for at, begin, stop, *_ in reversed(gaps):
        text = b'%s"%s"%s' % (text[:at], base64.b64encode(data[begin:stop]), text[at:])
    return text


def _expected(message: Message, version: int) -> tuple[str, list[tuple[Any, ...]]]:
    """Python's text, and its records with their topics; those without bytes are not batches."""
    form = message.to_json(version)
    held = []
    for where in records_fields(message, version):
        data = getattr(where.holder, where.attribute)
        if data:
            held.append((bytes(data), where.topic, where.topic_id))
        holder: Any = form
        for step in where.steps:
            holder = holder[step]
        if data is not None and not len(data):
            holder[where.name] = []
    return json.dumps(form, separators=(",", ":")), held


def compare_json_batches(data: bytes) -> bool:
    """Return whether the engine writes batches. Raises: AssertionError if readers find others."""
    padded = b"ab" + data + b"c"
    head = b'{"file":"f","position":'
    written = engine.core.json_batches(padded, 2, 2 + len(data), head)
    if written is None:
        return False
    try:
        batches = list(reader := BatchReader(data))
    except WireError as error:
        raise AssertionError(f"only the engine accepts it: {error}") from None
    assert not reader.remaining
    assert all(not batch.is_control for batch in batches)
    forms = [batch_to_json(batch, records="none")[0] for batch in batches]
    expected = [{"file": "f", **form, "isValid": True} for form in forms]
    text, crcs = written
    checked = [crc32c(padded[begin:stop]) == crc for crc, begin, stop in crcs]
    assert checked == [form["isValid"] for form in forms]
    assert text.decode("ascii") == json.dumps(expected, separators=(",", ":"))
    return True


def search_texts(source: random.Random) -> Counter[str]:
    """Compare once on every message-version, and on some batches.

    Returns counts as `search_messages` does, of what the engine kept. Raises: AssertionError at
    the first difference.
    """
    counts: Counter[str] = Counter()
    for cls, version in versions():
        has_tags = source.random() < 0.1
        message = random_message(cls, version, source, unknown_tags=has_tags, letters=_PLAIN)
        data = message.encode(version)
        with_damage = [(data, "texts"), *_damaged(data, source, "damaged texts")]
        for each, kind in with_damage:
            counts[kind] += 1
            try:
                counts[f"{kind} kept"] += compare_json(cls, version, each)
            except BaseException as error:
                error.add_note(f"{cls.NAME} v{version} {each[:4000].hex()}")
                raise
    for _ in range(40):
        data = b"".join(_batch(source) for _ in range(source.randint(1, 3)))
        for each, kind in [(data, "heads"), *_damaged(data, source, "damaged heads")]:
            counts[kind] += 1
            counts[f"{kind} kept"] += compare_json_batches(each)
    return counts


def _damaged(data: bytes, source: random.Random, kind: str) -> list[tuple[bytes, str]]:
    return [(mutated(data[:2000], source), kind) for _ in range(_DAMAGED)]


def _batch(source: random.Random) -> bytes:
    offset = source.choice((0, 5, 2**40, -(2**40)))
    rows = [Record(offset + at, at, None, b"value") for at in range(source.randint(1, 3))]
    header = BatchHeader(
        append_time=source.choice((None, 77)),
        base_sequence=source.choice((-1, 0, 2**31 - 2)),
        producer_id=source.choice((-1, 2**62)),
        is_transactional=source.random() < 0.3,
        delete_horizon_ms=source.choice((None, None, 123)),
        compression=source.choice(("none", "lz4", "zstd")),
    )
    return build_batch(rows, header)
