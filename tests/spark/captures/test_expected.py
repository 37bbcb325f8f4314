"""Typed tables of whole recordings hold what Kafka's own readers have printed, field by field."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire import messages
from kraftwire.spark.captures import decode_tables
from kraftwire.spark.tables.apis import TYPED_TABLES
from kraftwire.wire.facts import StructFacts
from tests.spark.tables.test_typed_tables import expected as row_of_json
from tests.support.captures.decoded import expected, shared

RECORDINGS = ("a_kraft_quorum", "b_mixed_clients", "e_sasl")
REDACTED = ("[redacted]", b"[redacted]")
# What tables show in place of a secret; it is not compared.
SECRET = "a secret"


def _told(name: str) -> Counter[tuple[Any, ...]]:
    """Every frame of a recording by its message, correlation id, version and fields."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in expected(shared("captures", "expected", f"{name}.jsonl.xz")):
        if row.get("body") is None:
            continue
        of = messages.request_class if row["dir"] == "Q" else messages.response_class
        cls = of(row["key"])
        fields = row_of_json(cls.facts().root, row["body"], row["version"])
        id = row["header"]["correlationId"]
        found[cls.NAME, id, row["version"], _text(cls.facts().root, fields)] += 1
    return found


def _text(facts: StructFacts, fields: dict[str, Any] | None) -> str:
    """The fields of a struct in one form, without record batches, which Kafka does not print."""
    if fields is None:
        return "null"
    parts = []
    for field, value in zip(facts.fields, fields.values(), strict=True):
        if field.type == "records":
            continue
        values = value if isinstance(value, list) else [value]
        told = [_text(field.struct, one) if field.struct else repr(one) for one in values]
        parts.append(f"{field.name}={SECRET if value in REDACTED else ' '.join(told)}")
    return f"({', '.join(parts)})"


@pytest.mark.parametrize("name", RECORDINGS)
def test_fields_are_those_of_kafkas_own_readers(name: str) -> None:
    """Every request and response, in every field but secrets and record batches."""
    path = shared("captures", f"{name}.pcapng.xz")
    found: Counter[tuple[Any, ...]] = Counter()
    for table, made in decode_tables(path, tables=list(TYPED_TABLES)).items():
        cls = messages.find(TYPED_TABLES[table])
        for row in made.to_pylist():
            fields = {key: row[key] for key in list(row)[-len(cls.facts().root.fields) :]}
            text = _text(cls.facts().root, fields)
            found[cls.NAME, row["correlation_id"], row["api_version"], text] += 1
    told = _told(name)
    secret = Counter({each: n for each, n in found.items() if SECRET in each[3]})
    assert found - secret == told - (told - found)
    # Those with secrets differ in these alone.
    assert Counter(each[:3] for each in (told - found).elements()) == Counter(
        each[:3] for each in secret.elements()
    )
    assert found.total() == told.total() > 300
    if name == "e_sasl":
        assert secret
