"""How listeners are secured, from properties; what restricts is understood or ends the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import UsageError
from kraftwire.node.config import NodeConfig, load
from kraftwire.security.jwks import TokenChecks
from kraftwire.security.principal import Principal

BASE = """process.roles=controller
node.id=1
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:9093
log.dirs={folder}
"""
SASL = """listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT
sasl.mechanism.controller.protocol=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.controller.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.\\
PlainLoginModule required username="c" password="hunter2" user_c="hunter2";
"""
STANDARD = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def config(folder: Path, text: str) -> NodeConfig:
    """The configuration of a controller with these lines."""
    path = folder / "node.properties"
    path.write_text(BASE.format(folder=folder) + text)
    return load(str(path))


def test_a_listener_with_logins(tmp_path: Path) -> None:
    """Its own keys win, and its repr has no secret."""
    found = config(
        tmp_path,
        SASL + "connections.max.reauth.ms=5000\nsasl.server.max.receive.size=1000\n"
        "listener.name.controller.plain.connections.max.reauth.ms=7000\n"
        "connection.failed.authentication.delay.ms=50\n",
    )
    security = found.security.listeners["CONTROLLER"]
    assert (security.protocol, list(security.mechanisms)) == ("SASL_PLAINTEXT", ["PLAIN"])
    assert (security.max_lifetime_ms, security.receive_max_bytes) == ({"PLAIN": 7000}, 1000)
    assert found.limits.failed_login_delay_ms == 50
    assert found.security.client is not None
    assert found.security.client.mechanism == "PLAIN"
    assert not found.security.is_plain
    assert "hunter2" not in repr(found)
    assert [line for line in found.warnings if "without effect" in line] == []


def test_nothing_is_secured_by_default(tmp_path: Path) -> None:
    """Then nothing more is loaded, and everybody may do everything."""
    security = config(tmp_path, "").security
    assert security.is_plain
    assert security.authorizer is None


def test_signed_tokens(tmp_path: Path) -> None:
    """The provider's keys and what claims have to say."""
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    text = (
        SASL.replace("PLAIN\n", "OAUTHBEARER\n")
        .replace(".plain.s", ".oauthbearer.s")
        .replace("plain.\\\nPlainLogin", "oauthbearer.\\\nOAuthBearerLogin")
        + f"listener.name.controller.oauthbearer.sasl.server.callback.handler.class={handler}\n"
        "sasl.oauthbearer.expected.audience=kafka,x\nsasl.oauthbearer.sub.claim.name=user\n"
    )
    with pytest.raises(UsageError, match=r"jwks\.endpoint\.url: missing"):
        config(tmp_path, text)
    for url in ("http://idp/keys", "/keys", "https", "file://", "http://[::1/keys", "https://a:b/"):
        with pytest.raises(UsageError, match=r"expected file:///PATH or https://\.\.\. of"):
            config(tmp_path, f"{text}sasl.oauthbearer.jwks.endpoint.url={url}\n")
    place = "sasl.oauthbearer.jwks.endpoint.url=https://idp/keys\n"
    with pytest.raises(UsageError, match=r"expected\.issuer: missing: .*allow\.unverified\.issuer"):
        config(tmp_path, text + place)
    allowed = "sasl.oauthbearer.allow.unverified.issuer="
    with pytest.raises(UsageError, match="issuer=yes: expected true or false"):
        config(tmp_path, f"{text}{place}{allowed}yes\n")
    text += f"{allowed}TRUE\n"
    with pytest.raises(UsageError, match=r"expected\.audience: missing"):
        config(tmp_path, text.replace("expected.audience=kafka,x", "expected.issuer=x") + place)
    more = "sasl.oauthbearer.jwks.endpoint.refresh.ms=60000\n"
    for url in ("https://idp/keys", "http://localhost:1/keys"):
        found = config(tmp_path, f"{text}{more}sasl.oauthbearer.jwks.endpoint.url={url}\n")
        tokens = found.security.listeners["CONTROLLER"].tokens
        assert tokens is not None
        assert (tokens.path, tokens.url) == ("", url)
        times = [tokens.refresh.seconds(failures) for failures in (0, 1, 2, 99)]
        assert times == [60, 0.1, 0.2, 10]
    found = config(tmp_path, f"{text}sasl.oauthbearer.jwks.endpoint.url=file:///a%20b\n")
    tokens = found.security.listeners["CONTROLLER"].tokens
    assert tokens is not None
    assert tokens.path == "/a b"
    assert tokens.checks == TokenChecks(frozenset({"kafka", "x"}), None, "user")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            SASL.replace("PLAIN\n", "GSSAPI\n"),
            "controller.gssapi.sasl.jaas.config is not set, and GSSAPI of the listener needs it",
        ),
        (SASL.replace("sasl.enabled.mechanisms=PLAIN", ""), "GSSAPI, the default mech"),
        (
            SASL.replace("controller.plain.sasl", "controller.sasl"),
            "listener.name.controller.plain.sasl.jaas.config is not set.*without the mechanism",
        ),
        (SASL.replace("required", "maybe"), r":10: .*jaas.config: at character \d+: expected one"),
        (SASL.replace("PlainLogin", "OtherLogin"), "expected org.apache.*PlainLoginModule for"),
        (
            SASL.replace("PLAIN\n", "OAUTHBEARER\n").replace(".plain.s", ".oauthbearer.s"),
            "sasl.server.callback.handler.class: not set, so Kafka would take tokens without a",
        ),
        (
            SASL + "listener.name.controller.plain.sasl.server.callback.handler.class=com.x.Y\n",
            r":12: .*handler.class: Java's class com.x.Y is not supported",
        ),
        (SASL + "connections.max.reauth.ms=-1\n", r":12: connections.max.reauth.ms=-1: expected a"),
        (SASL + "principal.builder.class=com.x.Y\n", r":12: principal.builder.class: Java's class"),
        (SASL + "kraftwire.capture.file=x\n", "kraftwire.capture.file=x: expected no file where"),
        ("super.users=User:a\n", r":7: super.users: without authorizer.class.name everybody may"),
        ("allow.everyone.if.no.acl.found=true\n", "without authorizer.class.name everybody"),
        (
            "authorizer.class.name=com.x.Y\n",
            r":7: authorizer.class.name: Java's class com.x.Y is not supported: expected "
            r"org.apache.kafka.metadata.authorizer.StandardAuthorizer$",
        ),
        (f"{STANDARD}\nsuper.users=User:a,User:b\n", r":8: super.users: expected ';' between"),
        ("kraftwire.voter.principals=1:User:a, 2:User:b\n", r"expected ';' between principals"),
        ("listener.name.controller.super.users=User:a\n", "no listener has its own: set super.us"),
        (f"{STANDARD}\nsuper.users=a\n", r":8: super.users: 'a' is no principal"),
        (f"{STANDARD}\nallow.everyone.if.no.acl.found=yes\n", "expected true or false"),
        (
            # Its mechanisms are not read, and the default one needs what nobody wants.
            SASL.replace("sasl.enabled", "listener.name.CONTROLLER.sasl.enabled"),
            r":9: listener.name.CONTROLLER.sasl.enabled.mechanisms: .*: write controller, in low",
        ),
        ("kraftwire.voter.principals=1\n", "expected ID:TYPE:NAME"),
        ("kraftwire.voter.principals=1:User:a;1:User:b\n", "each id once"),
        ("kraftwire.voter.principals=x:User:a\n", "expected a voter's id"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """With file, line and key, and without any password."""
    with pytest.raises(UsageError, match=problem) as caught:
        config(tmp_path, text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("line", ["super.users={}", "kraftwire.voter.principals=7:{}"])
@pytest.mark.parametrize(
    ("principal", "why"),
    [
        ("User: alice", "neither type nor name begins or ends with a blank"),
        ("User :alice", "neither type nor name begins or ends with a blank"),
        ("User:CN=a, OU=b", "the name of a certificate has no blank after a comma"),
        ("User:O=a b,OU=b", ""),
        ("User:CN=Last\\\\, First,OU=b", ""),
        ("User:a b", ""),
    ],
)
def test_principals_that_nobody_can_be_are_a_warning(
    tmp_path: Path, line: str, principal: str, why: str
) -> None:
    """The quorum would never start, or an administrator would not be one."""
    text = f"{STANDARD}\n{line.format(principal)}\n"
    found = [each for each in config(tmp_path, text).warnings if "matches nobody" in each]
    key = line.partition("=")[0]
    wanted = f"{tmp_path}/node.properties:8: {key}: {principal!r} matches nobody: {why}"
    assert found == ([wanted] if why else [])
    rules = "listener.name.controller.ssl.principal.mapping.rules=RULE:(.*)/CN=a, OU=b/\n"
    found = [each for each in config(tmp_path, text + rules).warnings if "matches" in each]
    assert found == ([wanted] if "type" in why else [])


def test_an_override_is_named_as_the_place(tmp_path: Path) -> None:
    """The file does not have what the error is about."""
    path = tmp_path / "node.properties"
    path.write_text(BASE.format(folder=tmp_path))
    with pytest.raises(UsageError, match=r"^--override: principal\.builder\.class: Java's class x"):
        load(str(path), ["principal.builder.class=x"])


def test_an_empty_flag_of_the_authorizer_is_false(tmp_path: Path) -> None:
    """As in Kafka, whose authorizer reads it itself."""
    found = config(tmp_path, f"{STANDARD}\nallow.everyone.if.no.acl.found=\n").security.authorizer
    assert found is not None
    assert not found.allow_if_no_acl


def test_listeners_need_roles(tmp_path: Path) -> None:
    """A node that formats its own directory has no listener to be told apart from others."""
    path = tmp_path / "node.properties"
    path.write_text(
        "node.id=1\nlisteners=SASL_PLAINTEXT://127.0.0.1:9093\nlog.dirs=x\n"
        "controller.quorum.voters=1@127.0.0.1:9093\n"
    )
    with pytest.raises(UsageError, match=r"which needs process\.roles"):
        load(str(path))


def test_the_authorizer(tmp_path: Path) -> None:
    """By its full name or the short one; an empty one is none."""
    for name in ("StandardAuthorizer", STANDARD.partition("=")[2]):
        text = f"authorizer.class.name={name}\nsuper.users=User:a;User:b\n"
        found = config(tmp_path, text).security.authorizer
        assert found is not None
        assert (found.super_users, found.allow_if_no_acl) == ({"User:a", "User:b"}, False)
    assert config(tmp_path, "authorizer.class.name=\nsuper.users=\n").security.authorizer is None


def test_pins_of_voters(tmp_path: Path) -> None:
    """Names may contain colons, commas and equals signs."""
    text = "kraftwire.voter.principals=1:User:CN=a,O=b; 2:User:x:y;\n"
    assert config(tmp_path, text).security.voter_principals == {
        1: Principal("User", "CN=a,O=b"),
        2: Principal("User", "x:y"),
    }


@pytest.mark.parametrize(
    "key",
    ["ssl.keystore.location", "ssl.client.auth", "sasl.enabled.mechanisms",
     "listener.name.controller.ssl.truststore.location"],
)  # fmt: skip
def test_a_node_that_only_looks_secured_says_so(tmp_path: Path, key: str) -> None:
    """Its listeners are all in clear; a node with one that is not says nothing."""
    (warning,) = config(tmp_path, f"{key}=x\n").warnings
    assert warning.endswith(f":7: {key}: no listener is SSL or SASL, so nothing uses this key")
    assert not config(tmp_path, SASL).warnings
    assert not config(tmp_path, "").warnings


@pytest.mark.parametrize(
    ("key", "warning"),
    [
        ("ssl.client.aut", "ssl.client.aut is not a known key; did you mean ssl.client.auth?"),
        ("listener.name.controller.ssl.client.aut", "did you mean ssl.client.auth?"),
        ("sasl.enabled.mechanism", "did you mean sasl.enabled.mechanisms?"),
        ("listener.name.controllers.ssl.client.auth", "no listener is named controllers; did you"),
        ("listener.name.controller.PLAIN.sasl.jaas.config", "write plain, in lower case"),
        ("listener.name.controller.plian.sasl.jaas.config", "plian is no mechanism"),
    ],
)
def test_a_mistyped_key_of_security_is_named(tmp_path: Path, key: str, warning: str) -> None:
    """It was ignored without a word, and the listener was not what its file seemed to say."""
    (found,) = config(tmp_path, f"{SASL}{key}=required\n").warnings
    assert found.startswith(f"{tmp_path}/node.properties:")
    assert warning in found


def test_keys_of_security_that_may_have_an_effect(tmp_path: Path) -> None:
    """Also for the listener of brokers, which a file for all nodes has."""
    text = SASL.replace("map=", "map=BROKER:SSL,") + (
        "listener.name.broker.ssl.client.auth=required\n"
        "listener.name.controller.scram-sha-512.sasl.jaas.config=x\n"
        "listener.name.controller.plain.connections.max.reauth.ms=1\n"
    )
    assert config(tmp_path, text).warnings == ()
