"""SEC-SECRETS: secrets under names and in places that no list contains."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.cli.main import main
from kraftwire.decode.body.secrets import (
    REDACTED,
    is_secret_record,
    redact,
    redact_batch,
)
from kraftwire.messages.config_record import ConfigRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.metadata import encode_metadata
from kraftwire.security.secret_names import is_secret_config, is_secret_value
from tests.support.captures.builder import Session, frame, pcap_of
from tests.support.captures.payloads import request, response

SECRET = b"hunter2-hunter2"
STORED_KEY = bytes(range(0x61, 0x81))
_WHOLE = bytes(range(0x41, 0x5B))

VIEWS = (
    ("decode",),
    ("decode", "-vv",),
    ("decode", "--bytes",),
    ("decode", "-v", "--bytes"),
    ("decode", "--bytes", "--records", "none"),
    ("decode", "--format", "jsonl"),
    ("decode", "--format", "jsonl", "--records", "summary"),
    ("story", "raft",),
    ("story", "raft", "--json"),
)


@pytest.mark.parametrize(
    "name",
    [
        "dbPassword", "DB_PASSWORD", "connection.dbpassword", "clientSecret", "awsSecretAccessKey",
        "aws.secret.access.key", "AWSSecretAccessKey", "basic.auth.user.info", "authToken",
        "schema.registry.basic.auth.user.info", "sasl.oauthbearer.jwt.assertion",
        "azure.storage.sas", "sasToken", "azure.sharedAccessKey", "azure.connection.string",
        "connectionString", "accountKey", "s3.apikey", "gcs.credentials.json", "bearer",
        "http.authorization", "db.pass", "confluent.license", "ssl.key.pem", "keyPassphrase",
        "oauth2ClientSecret", "privateKey", "userinfo", "awsCreds", "db.pw", "pass-phrase",
        "pass_word", "licenseKey", "sessionKey", "tls.key", "AESKey", "storedKey", "basicAuth",
        "gcp.service.account.json", "keyfile.json", "slack.webhook.url", "login.otp", "hmac",
    ],
)  # fmt: skip
def test_names_of_secrets_are_known_by_their_shape(name: str) -> None:
    """Every system spells such names differently."""
    assert is_secret_config(name)


@pytest.mark.parametrize(
    "name",
    [
        "password.encoder.iterations", "ssl.keystore.type", "ssl.keystore.location",
        "key.converter", "monkey", "keyConverter", "partition.key", "group.key.field", "hockey",
        "compass", "bypass", "message.key.columns", "sasl.mechanism", "sasl.login.class",
        "sasl.oauthbearer.client.credentials.client.id", "basic.auth.credentials.source",
        "sasl.oauthbearer.assertion.claim.iss", "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class", "delegation.token.max.lifetime.ms", "tokenizer",
        "passwordFile", "secret.provider", "cassandra.keyspace", "signature.algorithm",
        "auth.type", "basic.auth.type", "hash.key", "routing.key", "ssl.key.algorithm",
        "transforms.unwrap.type", "primary.key.fields", "",
    ],
)  # fmt: skip
def test_names_that_only_look_like_it_are_shown(name: str) -> None:
    """People switch off a tool that hides half of a configuration."""
    assert not is_secret_config(name)


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII", True),
        ("jdbc:postgresql://db/orders?user=a&password=hunter2", True),
        ("postgres://bob:hunter2@db:5432/orders", True),
        ("Endpoint=sb://x/;SharedAccessKeyName=a;SharedAccessKey=abc=", True),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.x", True),
        ("org.example.PlainLoginModule required username=a password=b;", True),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nMII", True),
        ('{"user":"bob","password":"hunter2"}', True),
        ("{'client_secret': 'hunter2'}", True),
        ("https://blob.example/c?sv=2020&sig=abc%3D", True),
        ("https://example.org/hook?token=abcdef", True),
        ("https://example.org/hook?api_key=abcdef", True),
        ("jdbc:oracle:thin:bob/hunter2@//db:1521/x", True),
        ("Basic Ym9iOmh1bnRlcjI=", True),
        ("Accept:*/*,Authorization:Bearer abcdefgh12345678", True),
        ("ghp_" + "a1" * 18, True),
        ("xoxb-123456789012-1234567890123-abc", True),
        ("jdbc:oracle:thin:@db:1521/x", False),
        ("basic", False),
        ("token", False),
        ("key=value,compass=north", False),
        ("https://idp/oauth2/token?grant=x", False),
        ("-----BEGIN CERTIFICATE-----\nMII", False),
        ("https://idp/oauth2/token", False),
        ("1000", False),
        ("PLAINTEXT://host:9092,SSL://host:9093", False),
        (None, False),
    ],
)
def test_values_that_are_secret_by_their_shape(value: str | None, is_secret: bool) -> None:
    """Their keys may have any name."""
    assert is_secret_value(value) == is_secret
    data = {"resources": [{"configs": [{"name": "x", "configOperation": 0, "value": value}]}]}
    assert bool(redact("IncrementalAlterConfigsRequest", data)) == is_secret


@pytest.mark.parametrize(
    ("text", "is_secret"),
    [
        ("Invalid value hunter2 for configuration sasl.jaas.config: no such module", True),
        ("Invalid value jdbc:x?password=hunter2 for configuration url: no", True),
        ("Invalid value -5 for configuration retention.ms: Value must be at least -1", False),
        (None, False),
    ],
)
@pytest.mark.parametrize(
    ("name", "where"),
    [
        *(("AlterConfigsResponse", "responses"), ("IncrementalAlterConfigsResponse", "responses")),
        *(("CreateTopicsResponse", "topics"), ("DescribeConfigsResponse", "results")),
    ],
)
def test_an_error_text_does_not_quote_a_secret(
    name: str, where: str, text: str | None, is_secret: bool
) -> None:
    """Kafka tells the administrator the value that it refuses."""
    data = {where: [{"errorMessage": text}]}
    assert bool(redact(name, data)) is is_secret
    assert "hunter2" not in str(data)


def test_names_of_any_length_cost_little() -> None:
    """A name may have 32 KiB, and a request thousands of them."""
    assert not is_secret_config("aB" * 20_000)
    assert is_secret_config("a." * 20_000 + "dbPassword")
    assert not is_secret_value("://" + "a" * 200_000)
    assert not is_secret_value(":thin:" * 30_000 + "basic  " * 30_000)


def _values() -> list[bytes]:
    scram = UserScramCredentialRecord(
        name="bob", mechanism=1, salt=SECRET, stored_key=STORED_KEY, server_key=_WHOLE,
        iterations=4096,
    )  # fmt: skip
    config = ConfigRecord(
        resource_type=4, resource_name="1", name="dbPassword", value=SECRET.decode()
    )
    topic = TopicRecord(name="orders", topic_id=bytes(15) + b"\x07")
    return [encode_metadata(each, 0) for each in (topic, scram, config)]


def _batch(*, codec: str = "none") -> bytes:
    return build_columns(
        [1_700_000_000_000] * 3, [None] * 3, _values(),
        header=BatchHeader(base_offset=5, partition_leader_epoch=1, compression=codec),
    )  # fmt: skip


def _assert_hidden(output: str) -> None:
    rows = re.findall(r"^ +(?:\[ *-?\d+, *\d+\))? {2}((?:[0-9a-f]{2} )+) ", output, re.MULTILINE)
    data = output.encode() + bytes.fromhex("".join(rows))
    for secret in (SECRET, STORED_KEY, _WHOLE):
        for form in (secret[:12], secret[:12].hex().encode()):
            assert form not in data
        for shift, spoilt in ((0, 0), (1, 2), (2, 3)):
            assert base64.b64encode(bytes(shift) + secret).rstrip(b"=")[spoilt:-1] not in data


def _read(path: Path, view: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> str:
    main([*view, str(path)])
    out, err = capfd.readouterr()
    _assert_hidden(out + err)
    return out + err


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("place", ["copy.log", "backup-0/00000000000000000005.log"])
def test_a_metadata_segment_that_was_copied_elsewhere(
    place: str, codec: str, view: tuple[str, ...], tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Neither its name nor its first record says which log it belongs to."""
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_batch(codec=codec))
    assert _read(path, view, capfd)


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
@pytest.mark.parametrize("family", ["none", "group", "transaction", "remote-log"])
def test_a_segment_that_is_read_as_another_family(
    family: str, view: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The option is for files in an unusual place, and may be wrong itself."""
    path = tmp_path / "00000000000000000005.log"
    path.write_bytes(_batch())
    _read(path, (*view, "--family", family), capfd)


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_damage_shows_no_bytes_of_unknown_records(
    view: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Findings show the first bytes that they refer to."""
    batch = _batch()
    path = tmp_path / "copy.log"
    at = batch.index(SECRET)
    path.write_bytes(batch[at:] + batch + batch[at:] + batch + batch[: at + 8])
    _read(path, view, capfd)


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
@pytest.mark.parametrize("cut", [0, 3])
def test_records_of_a_topic_id_that_nobody_has_named(
    cut: int, view: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A mirror of the metadata log has an id of its own, and a capture may start late."""
    partition = {
        "partitionIndex": 0, "errorCode": 0, "highWatermark": 8, "lastStableOffset": 8,
        "logStartOffset": 0, "abortedTransactions": None, "preferredReadReplica": -1,
        "records": base64.b64encode(_batch()).decode(),
    }  # fmt: skip
    topic = {"topicId": "AAAAAAAAAAAAAAAAAAAACQ", "partitions": [partition]}
    body = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": [topic]}
    fetch = messages.find("FetchRequest")(max_wait_ms=1, min_bytes=1)
    session = Session().open().client(frame(request("Fetch", 16, fetch)))
    answer = response("Fetch", 16, body)
    session.server(frame(answer[: len(answer) - cut]))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(session.close().segments))
    assert "Fetch" in _read(path, view, capfd) or "raft" in view


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
@pytest.mark.parametrize(
    "name", ["CreateTopics", "DescribeConfigs", "IncrementalAlterConfigs", "SaslAuthenticate"]
)
def test_a_response_that_is_paired_with_the_request_of_another_api(
    name: str, view: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A wrong correlation id must not show what the right one hides."""
    config: dict[str, Any] = {
        "name": "sasl.jaas.config", "value": SECRET.decode(), "readOnly": False,
        "configSource": 5, "isSensitive": False,
    }  # fmt: skip
    described = config | {"synonyms": [], "configType": 0, "documentation": None}
    text = f"Invalid value {SECRET.decode()} for configuration sasl.jaas.config: no such module"
    told = {"errorCode": 40, "errorMessage": text, "resourceType": 4, "resourceName": "1"}
    bodies: dict[str, tuple[int, dict[str, Any]]] = {
        "CreateTopics": (5, {"throttleTimeMs": 0, "topics": [
            {"name": "t", "errorCode": 0, "errorMessage": None, "numPartitions": 1,
             "replicationFactor": 1, "configs": [config]}]}),
        "DescribeConfigs": (4, {"throttleTimeMs": 0, "results": [
            told | {"errorCode": 0, "errorMessage": None, "configs": [described]}]}),
        "IncrementalAlterConfigs": (1, {"throttleTimeMs": 0, "responses": [told]}),
        "SaslAuthenticate": (1, {"errorCode": 0, "errorMessage": None, "sessionLifetimeMs": 0,
                                 "authBytes": base64.b64encode(SECRET).decode()}),
    }  # fmt: skip
    version, body = bodies[name]
    asked = request("Metadata", 1, messages.find("MetadataRequest")())
    session = Session().open().client(frame(asked))
    session.server(frame(response(name, version, body)))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(session.close().segments))
    assert "Metadata" in _read(path, view, capfd) or "raft" in view


def test_records_of_users_stay_as_they_are() -> None:
    """Keys of records are not configuration, and values rarely begin like a secret."""
    rows = [
        b"password=hunter2",
        b'{"dbPassword":"x"}',
        b"\x00\x00\x00\x00\x04avro",
        b"\x01\x04",
        b"",
    ]
    records: list[dict[str, Any]] = [
        {"key": "cGFzc3dvcmQ=", "value": base64.b64encode(row).decode(), "decoded": None}
        for row in rows
    ]
    before = json.dumps(records)
    assert not redact_batch({"records": records}, is_metadata=False)
    assert json.dumps(records) == before


def test_only_records_with_secrets_are_hidden() -> None:
    """Neither a topic's record nor a harmless configuration is a secret."""
    topic, scram, config = _values()
    assert not is_secret_record(topic, is_metadata=False)
    assert is_secret_record(scram, is_metadata=False)
    assert is_secret_record(config, is_metadata=False)
    harmless = ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="5")
    assert not is_secret_record(encode_metadata(harmless, 0), is_metadata=False)


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("meta.properties", b"version=1\ncluster.id=a\nnode.id=1\nunknown.thing=%b\n"),
        ("meta.properties", b"version=9\ncluster.id=a\nnode.id=1\ndbPassword=%b\n"),
        ("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAACQ\nextra: %b\n"),
        ("quorum-state", b'{"data_version":1,"leaderId":1,"leaderEpoch":1,"votedId":1,'
                         b'"votedDirectoryId":"a","extra":"%b"}'),
        ("server.properties", b"password=%b\n"),
    ],
)  # fmt: skip
def test_unknown_keys_of_small_files(
    name: str, content: bytes, view: tuple[str, ...], tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The meaning of a key that no version defines is unknown."""
    path = tmp_path / name
    path.write_bytes(content % SECRET)
    _read(path, view, capfd)


def test_what_is_hidden_says_so_and_the_rest_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An output without anything would pass all the tests above."""
    path = tmp_path / "meta.properties"
    path.write_bytes(b"version=1\ncluster.id=shown\nnode.id=1\nextra=" + SECRET + b"\n")
    assert f'"extra":"{REDACTED}"' in _read(path, ("decode", "--format", "jsonl"), capfd)
    assert '"cluster.id":"shown"' in _read(path, ("decode", "--format", "jsonl"), capfd)
    path = tmp_path / "copy.log"
    path.write_bytes(_batch())
    (line,) = _read(path, ("decode", "--format", "jsonl"), capfd).splitlines()[:1]
    values = [each["value"] for each in json.loads(line)["records"]]
    assert values[1:] == [REDACTED, REDACTED]
    assert base64.b64decode(values[0]) == _values()[0]
    main(["decode", "--show-secrets", "--format", "jsonl", str(path)])
    assert base64.b64encode(_values()[1]).decode() in capfd.readouterr().out


def test_tables_hide_what_decode_hides(tmp_path: Path) -> None:
    """The tables of a pipeline are passed on like any other output."""
    pytest.importorskip("pyarrow")
    from kraftwire.spark.logs import LogOptions, decode_tables

    path = tmp_path / "backup-0" / "00000000000000000005.log"
    path.parent.mkdir()
    path.write_bytes(_batch())
    tables = decode_tables(path, records=True)
    _assert_hidden(repr({name: table.to_pylist() for name, table in tables.items()}))
    shown = decode_tables(path, records=True, options=LogOptions(show_secrets=True))
    assert SECRET in repr(shown["records"].to_pylist()).encode()
