"""Typed tables: every random message fits, and reads as Kafka's converters print it."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftwire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.spark.tables import TABLES, find_table, matching
from kraftwire.spark.tables.apis import TYPED_TABLES, column_name, message_array, typed_table
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message
from tests.support.messages.random_messages import random_message

NAMES = sorted(
    cls.NAME
    for key in messages.API_NAMES
    for cls in (messages.request_class(key), messages.response_class(key))
)


def versions_of(cls: type[Message]) -> range:
    """All versions of a message."""
    return range(cls.VERSIONS.low, cls.VERSIONS.high + 1)


def expected(facts: StructFacts, data: Any, version: int) -> Any:
    """What a row must hold, by the JSON form."""
    if data is None:
        return None
    return {
        column_name(each): (
            value_of(each, _renamed(facts, each, data, version), version)
            if version in each.versions
            else None
        )
        for each in facts.fields
    }


def _renamed(facts: StructFacts, field: FieldFacts, data: Any, version: int) -> Any:
    """The JSON with the current name of a field that older releases call otherwise."""
    names = (name for name in facts.names_of(field, version) if name in data)
    name = next(names, field.name)
    return data if name == field.name else data | {field.name: data[name]}


def value_of(field: FieldFacts, data: dict[str, Any], version: int) -> Any:
    """A field's value; a tag at its default is not in the JSON, a struct then is null."""
    if field.name not in data and field.struct and not field.is_array:
        return None
    value = data.get(field.name, field.default)
    if field.name not in data and field.is_array and value is not None:
        value = list(value)
    if value is None:
        return None
    values = value if field.is_array else [value]
    done = [one_of(field, each, version, is_default=field.name not in data) for each in values]
    return done if field.is_array else done[0]


def one_of(field: FieldFacts, value: Any, version: int, *, is_default: bool) -> Any:
    """One value, or one element."""
    if field.struct:
        return expected(field.struct, value.to_json(version) if is_default else value, version)
    if field.type in ("bytes", "records"):
        data = bytes(value) if is_default else base64.b64decode(value)
        return len(data) if field.type == "records" else data
    if field.type == "uuid" and is_default:
        return base64.urlsafe_b64encode(value)[:22].decode()
    return value


def test_there_is_a_table_for_each_message() -> None:
    """By the name that people expect."""
    assert len(NAMES) == 2 * len(messages.API_NAMES)
    assert sorted(TYPED_TABLES.values()) == NAMES
    assert typed_table("begin_quorum_epoch_request").message == "BeginQuorumEpochRequest"
    assert typed_table("fetch_response").api_key == 1
    assert not typed_table("fetch_response").is_request
    with pytest.raises(UsageError, match="has a table 'fetch'"):
        typed_table("fetch")


def test_no_field_has_the_name_of_a_column_before_it() -> None:
    """Evidence is next to the fields of a message, so no name may occur twice."""
    for name in TYPED_TABLES:
        names = typed_table(name).arrow.names
        assert len(set(names)) == len(names)


def test_columns_name_every_field_with_its_versions() -> None:
    """Nested ones by their path, as a query spells it."""
    columns = {each.name: each for each in typed_table("vote_request").columns}
    assert columns["topics"].type == "array<struct>"
    assert columns["topics.partitions.last_offset"].type == "bigint"
    assert columns["topics.partitions.pre_vote"].about.endswith("(version 2)")
    assert columns["voter_id"].about.endswith("(versions 1 to 2)")
    assert "version" not in columns["cluster_id"].about
    for name in TYPED_TABLES:
        table = typed_table(name)
        described = [each.name for each in table.columns if "." not in each.name]
        assert described == table.arrow.names
        assert all(each.type for each in table.columns)


def test_names_and_patterns_choose_tables() -> None:
    """In the order of the tables, each once; the error for a wrong name lists them."""
    assert matching(["vote_*", "exchanges"]) == ["exchanges", "vote_request", "vote_response"]
    assert matching(["*_lag", "replica_lag"]) == ["replica_lag", "group_lag"]
    assert matching(["all"], ["mine"]) == [*TABLES, "mine", *TYPED_TABLES]
    assert len(matching(["*_response"])) == len(messages.API_NAMES)
    with pytest.raises(UsageError, match="did you mean fetch_response"):
        matching(["fetch_reponse"])
    for wrong in ("nothing", "x*", ""):
        with pytest.raises(UsageError, match=r"there are frames, exchanges, .* fetch_request"):
            matching([wrong])
    assert find_table("exchanges") is TABLES["exchanges"]
    assert find_table("vote_request") is typed_table("vote_request")


@pytest.mark.parametrize("name", NAMES)
def test_every_version_reads_as_its_json(name: str) -> None:
    """Random messages of every version, many in one array, with nulls between them."""
    cls = messages.find(name)
    source = random.Random(name)
    held: list[Any] = [None]
    for version in versions_of(cls):
        for _ in range(2):
            held.append((random_message(cls, version, source, unknown_tags=True), version))
    source.shuffle(held)
    array = message_array(name, held)
    array.validate(full=True)
    root = cls.facts().root
    assert array.to_pylist() == [
        None if one is None else expected(root, one[0].to_json(one[1]), one[1]) for one in held
    ]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(name=st.sampled_from(NAMES), seed=st.integers(0, 2**32), data=st.data())
def test_whatever_is_drawn_is_taken(name: str, seed: int, data: st.DataObject) -> None:
    """After encoding and decoding, as in captures."""
    source = random.Random(seed)
    cls = messages.find(name)
    versions = data.draw(st.lists(st.sampled_from(versions_of(cls)), max_size=4))
    held = []
    for version in versions:
        message, _ = cls.decode(random_message(cls, version, source).encode(version), version)
        held.append((message, version))
    array = message_array(name, held)
    array.validate(full=True)
    assert len(array) == len(held)


EVIDENCE = ("f", 7, 1, 1_500, "a:1-b:2", 2, 3, "me")


def test_rows_have_evidence_and_fields() -> None:
    """Evidence first, in the order of its columns."""
    table = typed_table("vote_request")
    rows = table.rows([EVIDENCE], [(VoteRequest(cluster_id="c"), 2)])
    assert rows.schema == table.arrow
    (row,) = rows.to_pylist()
    assert list(row)[:8] == [
        "file", "position", "time", "time_ns", "connection", "api_version", "correlation_id",
        "client_id",
    ]  # fmt: skip
    assert (row["file"], row["position"], row["time_ns"]) == ("f", 7, 1_500)
    assert row["time"].microsecond == 1
    assert (row["connection"], row["client_id"]) == ("a:1-b:2", "me")
    assert row["cluster_id"] == "c"
    assert table.rows([], []).schema == table.arrow


def test_secrets_are_hidden() -> None:
    """In the table; the message is left as it was."""
    configs = [AlterableConfig(name=name, value="hush") for name in ("ssl.key.password", "a.b")]
    alter = IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(configs=configs)])
    sasl = SaslAuthenticateRequest(auth_bytes=b"hush")
    envelope = EnvelopeRequest(request_data=b"hush", client_host_address=b"\x7f")
    shown = []
    for message in (alter, sasl, envelope):
        name = next(name for name, each in TYPED_TABLES.items() if each == message.NAME)
        table = typed_table(name)
        held = [(message, message.VERSIONS.high)]
        shown.append(table.rows([EVIDENCE], held).to_pylist()[0])
        assert b"hush" in message.encode(message.VERSIONS.high)
        assert "hush" in str(table.rows([EVIDENCE], held, show_secrets=True).to_pylist())
    values = [one["value"] for one in shown[0]["resources"][0]["configs"]]
    assert values == ["[redacted]", "hush"]
    assert shown[1]["auth_bytes"] == shown[2]["request_data"] == b"[redacted]"


def test_spark_takes_every_schema() -> None:
    """And gives the same Arrow schema back, which its sources must return exactly."""
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    from pyspark.sql.pandas.types import to_arrow_schema

    for name in TYPED_TABLES:
        table = typed_table(name)
        assert to_arrow_schema(table.spark, timezone="UTC") == table.arrow
