"""Tables by API: every message that can be drawn fits, and reads as Kafka's converters print it."""

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
from kraftwire.spark.tables.apis import API_TABLES, ApiExchange, api_tables
from kraftwire.spark.tables.apis.arrays import message_array
from kraftwire.spark.tables.apis.types import column_name
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message
from tests.support.random_messages import random_message

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
        column_name(each): value_of(each, data, version) if version in each.versions else None
        for each in facts.fields
    }


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


def test_there_is_a_table_for_each_api() -> None:
    """By its own name and by the API's."""
    assert len(NAMES) == 186
    assert len(API_TABLES) == 93
    assert api_tables("api_begin_quorum_epoch") is not None
    assert api_tables("Fetch") == api_tables("api_fetch")
    assert api_tables("api_sasl_handshake").api == "SaslHandshake"
    with pytest.raises(UsageError, match="no API has a table 'api_nothing'"):
        api_tables("api_nothing")


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
    """After a way over the wire, as captures have them."""
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


def test_rows_have_evidence_and_both_sides() -> None:
    """A response that was not captured is null."""
    table = api_tables("Vote")
    request = VoteRequest(cluster_id="c")
    rows = table.rows(
        [ApiExchange("f", 7, 1_500, 2, correlation_id=3, request=(request, 2)),
         ApiExchange("f", 9, 2_500, 2)]
    )  # fmt: skip
    assert rows.schema == table.arrow
    first, second = rows.to_pylist()
    assert (first["file"], first["position"], first["time_ns"]) == ("f", 7, 1_500)
    assert first["time"].microsecond == 1
    assert first["request"]["cluster_id"] == "c"
    assert first["response"] is None
    assert second["request"] is None
    assert len(table.rows([])) == 0


def test_secrets_are_hidden() -> None:
    """In the table; the message is left as it was."""
    configs = [AlterableConfig(name=name, value="hush") for name in ("ssl.key.password", "a.b")]
    alter = IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(configs=configs)])
    sasl = SaslAuthenticateRequest(auth_bytes=b"hush")
    envelope = EnvelopeRequest(request_data=b"hush", client_host_address=b"\x7f")
    shown = []
    for message in (alter, sasl, envelope):
        table = api_tables(message.NAME.removesuffix("Request"))
        version = message.VERSIONS.high
        exchange = ApiExchange("f", 0, 0, version, request=(message, version))
        shown.append(table.rows([exchange]).to_pylist()[0]["request"])
        assert b"hush" in message.encode(version)
        open_rows = table.rows([exchange], show_secrets=True).to_pylist()
        assert "hush" in str(open_rows)
    values = [one["value"] for one in shown[0]["resources"][0]["configs"]]
    assert values == ["[redacted]", "hush"]
    assert shown[1]["auth_bytes"] == shown[2]["request_data"] == b"[redacted]"


def test_spark_takes_every_schema() -> None:
    """And gives the same Arrow schema back, which its sources must return exactly."""
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    from pyspark.sql.pandas.types import to_arrow_schema

    for name in API_TABLES:
        table = api_tables(name)
        assert to_arrow_schema(table.spark, timezone="UTC") == table.arrow
