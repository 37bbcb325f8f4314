"""Secrets stay out of sight: which fields they are in, and what is shown instead."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.decode.body.sasl_tokens import sasl_token
from kraftwire.decode.body.secrets import (
    REDACTED,
    redact,
    redact_batch,
    secret_paths,
)
from kraftwire.security.secret_names import is_secret_config


@pytest.mark.parametrize(
    "name",
    [
        "ssl.key.password",
        "listener.name.external.ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.certificates",
        "sasl.jaas.config",
        "listener.name.sasl.plain.sasl.jaas.config",
        "delegation.token.secret.key",
        "delegation.token.master.key",
        "password.encoder.secret",
        "password.encoder.old.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "my.plugin.api.key",
        "my.plugin.auth_token",
        "aws.secret.access.key",
    ],
)
def test_keys_that_hold_secrets_are_known(name: str) -> None:
    """Kafka's keys of type PASSWORD, and the usual names in plugins."""
    assert is_secret_config(name)


@pytest.mark.parametrize(
    "name",
    [
        "retention.ms",
        "compression.type",
        "key.deserializer",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "password.encoder.key.length",
        "password.encoder.iterations",
        "password.encoder.cipher.algorithm",
        "password.encoder.keyfactory.algorithm",
        "delegation.token.expiry.time.ms",
        "delegation.token.max.lifetime.ms",
        "sasl.oauthbearer.token.endpoint.url",
        "cleanup.policy",
        "min.insync.replicas",
    ],
)
def test_keys_about_secrets_are_shown(name: str) -> None:
    """People switch off a tool that hides half of a configuration."""
    assert not is_secret_config(name)


@pytest.mark.parametrize(
    ("name", "is_hidden"),
    [
        ("my.plugin.pin", True),
        ("rsm.config.storage.endpoint", True),
        ("listener.name.x.my.plugin.pin", True),
        ("log.retention.ms", False),
        ("retention.ms", False),
        ("leader.replication.throttled.rate", False),
        ("listener.name.x.ssl.client.auth", False),
        ("listener.name.x.scram-sha-256.sasl.server.callback.handler.class", False),
    ],
)
def test_keys_of_brokers_that_kafka_does_not_know_may_be_passwords(
    name: str, is_hidden: bool
) -> None:
    """Plugins have their own, which Kafka neither logs nor returns."""
    record = {"resourceType": 4, "resourceName": "", "name": name, "value": "hunter2"}
    assert redact("ConfigRecord", dict(record)) == ["value"] * is_hidden
    for request in ("AlterConfigsRequest", "IncrementalAlterConfigsRequest"):
        resource = {"resourceType": 4, "resourceName": "1", "configs": [_config(name, "hunter2")]}
        found = redact(request, {"resources": [resource]})
        assert found == ["resources[0].configs[0].value"] * is_hidden
    assert redact("ConfigRecord", {**record, "resourceType": 2}) == []


def test_the_word_of_a_server_decides_on_its_keys_and_their_synonyms() -> None:
    """It knows the keys of its plugins."""
    for is_sensitive in (True, False):
        synonym = {"name": "my.pin", "value": "hunter2", "source": 4}
        config = {"name": "my.pin", "value": "hunter2", "isSensitive": is_sensitive}
        config["synonyms"] = [synonym]
        result = {"resourceType": 4, "resourceName": "1", "configs": [config]}
        redact("DescribeConfigsResponse", {"results": [result]})
        assert (config["value"] == REDACTED) is is_sensitive
        assert (synonym["value"] == REDACTED) is is_sensitive


def _config(name: str, value: str | None) -> dict[str, Any]:
    return {"name": name, "configOperation": 0, "value": value}


def test_only_the_secret_values_of_a_request_are_replaced() -> None:
    """People need the names and harmless values of such a request."""
    configs = [_config("ssl.key.password", "hunter2"), _config("retention.ms", "5")]
    data = {"resources": [{"resourceType": 4, "resourceName": "1", "configs": configs}]}
    assert redact("IncrementalAlterConfigsRequest", data) == ["resources[0].configs[0].value"]
    assert [each["value"] for each in configs] == [REDACTED, "5"]


def test_what_the_server_calls_sensitive_is_hidden_whatever_its_name() -> None:
    """The server knows the types of its keys better than a list of words."""
    config = {"name": "x", "value": "hunter2", "isSensitive": True, "synonyms": []}
    data = {"results": [{"configs": [config]}]}
    assert secret_paths("DescribeConfigsResponse", data) == ["results[0].configs[0].value"]


def test_empty_values_are_not_secrets() -> None:
    """Showing an empty token helps, and leaks nothing."""
    assert secret_paths("SaslAuthenticateResponse", {"authBytes": ""}) == []
    data = {"resources": [{"configs": [_config("sasl.jaas.config", None)]}]}
    assert secret_paths("AlterConfigsRequest", data) == []


def test_parts_of_a_message_can_be_redacted() -> None:
    """A message that was cut off lacks keys, and still holds secrets."""
    data: dict[str, Any] = {"upsertions": [{"name": "a", "salt": "c2FsdA=="}, {"name": "b"}]}
    assert redact("AlterUserScramCredentialsRequest", data) == ["upsertions[0].salt"]


def test_every_rule_fits_its_schema() -> None:
    """A renamed field would silently end its protection."""
    from kraftwire.decode.body import secrets as module

    for name, rules in module._RULES.items():
        for path, _ in rules:
            struct = messages.find(name).facts().root
            for step in path.split("."):
                fields = {each.name: each for each in struct.fields}
                assert step.removesuffix("[]") in fields, f"{name}: {path}"
                struct = fields[step.removesuffix("[]")].struct or struct


def test_binary_fields_of_all_schemas_were_considered() -> None:
    """A new message with a field of type bytes needs a decision about it."""
    known = {
        *("JoinGroup", "SyncGroup", "DescribeGroups", "SaslAuthenticate", "Envelope"),
        *("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"),
        *("DescribeDelegationToken", "AlterUserScramCredentials", "PushTelemetry"),
    }
    found = set()
    for key, name in messages.API_NAMES.items():
        for cls in (messages.request_class(key), messages.response_class(key)):
            stack = [cls.facts().root]
            while stack:
                for each in stack.pop().fields:
                    if each.type == "bytes":
                        found.add(name)
                    if each.struct:
                        stack.append(each.struct)
    assert found == known


def _record(value: bytes, decoded: dict[str, Any] | None) -> dict[str, Any]:
    return {"value": base64.b64encode(value).decode(), "decoded": decoded}


def test_a_secret_record_loses_its_value_too() -> None:
    """The value holds the same bytes as the decoded fields."""
    data = {"name": "bob", "salt": "AQI=", "storedKey": "AwQ=", "serverKey": "BQY="}
    secret = _record(
        b"\x01\x0b\x00bob", {"type": "UserScramCredentialRecord", "version": 0, "data": data}
    )
    plain = _record(b"\x01\x02\x00abc", {"type": "TopicRecord", "version": 0, "data": {}})
    before = dict(plain)
    assert redact_batch({"records": [secret, plain]}, is_metadata=True)
    assert secret["value"] == data["salt"] == data["storedKey"] == data["serverKey"] == REDACTED
    assert plain == before


def test_an_unreadable_record_of_a_secret_type_is_hidden_in_the_metadata_log() -> None:
    """A later version of the record holds the same secrets."""
    record = _record(b"\x01\x0b\x63secret", None)
    assert not redact_batch({"records": [record]}, is_metadata=False)
    assert redact_batch({"records": [record]}, is_metadata=True)
    assert record["value"] == REDACTED


def test_batches_without_records_are_left_alone() -> None:
    """With fewer details there is nothing to hide."""
    assert not redact_batch({"records": None}, is_metadata=True)


def test_a_plain_token_shows_the_user_only() -> None:
    """The user matters; the password must not be shown."""
    token = b"\0alice\0hunter2"
    shown = sasl_token("PLAIN", token, is_request=True, show_secrets=False)
    expected = {
        "mechanism": "PLAIN",
        "authorizationId": "",
        "username": "alice",
        "password": REDACTED,
    }
    assert shown == expected
    shown = sasl_token("PLAIN", token, is_request=True, show_secrets=True)
    assert shown == {**expected, "password": "hunter2"}


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (
            b"n,a=bob,n=al=2Cice,r=abc,tokenauth=true",
            {
                "step": "client-first",
                "authorizationId": "bob",
                "username": "al,ice",
                "nonce": "abc",
                "extensions": {"tokenauth": "true"},
            },
        ),
        (
            b"r=abcdef,s=c2FsdA==,i=4096",
            {"step": "server-first", "nonce": "abcdef", "salt": REDACTED, "iterations": 4096},
        ),
        # More digits than Python reads.
        (
            b"r=abcdef,i=" + b"9" * 5000,
            {"step": "server-first", "nonce": "abcdef", "iterations": "9" * 5000},
        ),
        (
            b"c=biws,r=abcdef,p=cHJvb2Y=",
            {
                "step": "client-final",
                "channelBinding": "biws",
                "nonce": "abcdef",
                "proof": REDACTED,
            },
        ),
        (b"v=c2ln", {"step": "server-final", "serverSignature": REDACTED}),
        (b"e=invalid-proof", {"step": "server-final", "error": "invalid-proof"}),
    ],
)
def test_scram_tokens_show_their_step(token: bytes, expected: dict[str, Any]) -> None:
    """Salt and proof together are enough to try passwords offline."""
    shown = sasl_token("SCRAM-SHA-256", token, is_request=True, show_secrets=False)
    assert shown == {"mechanism": "SCRAM-SHA-256", **expected}


def test_a_bearer_token_is_hidden() -> None:
    """The token is enough to act as the user."""
    token = b"n,a=me,\x01auth=Bearer eyJhbGciOi\x01cluster=c1\x01\x01"
    assert sasl_token("OAUTHBEARER", token, is_request=True, show_secrets=False) == {
        "mechanism": "OAUTHBEARER",
        "authorizationId": "me",
        "token": REDACTED,
        "extensions": {"cluster": "c1"},
    }
    error = b'{"status":"invalid_token"}'
    shown = sasl_token("OAUTHBEARER", error, is_request=False, show_secrets=False)
    assert shown == {"mechanism": "OAUTHBEARER", "error": error.decode()}
    for other in (b"eyJhbGciOi", b"[1]", b'{"token":"eyJhbGciOi"}'):
        shown = sasl_token("OAUTHBEARER", other, is_request=False, show_secrets=False)
        assert shown == {"mechanism": "OAUTHBEARER", "size": len(other)}


@pytest.mark.parametrize(
    ("mechanism", "token"),
    [("GSSAPI", b"\x60\x82secret"), ("PLAIN", b"no zeros: secret"), ("SCRAM-SHA-512", b"secret")],
)
def test_tokens_that_are_not_understood_show_their_size(mechanism: str, token: bytes) -> None:
    """Bytes that fit no rule may be anything, so none of them are shown."""
    shown = sasl_token(mechanism, token, is_request=True, show_secrets=False)
    assert shown == {"mechanism": mechanism, "size": len(token)}


def test_an_empty_token_is_nothing() -> None:
    """PLAIN ends with an empty answer."""
    assert sasl_token("PLAIN", b"", is_request=False, show_secrets=False) is None
