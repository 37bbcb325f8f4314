"""Properties files of a node: what is accepted, what is refused, and with which errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.controller.group_configs import GROUP_SETTINGS
from kraftwire.controller.topic_keys import SETTINGS
from kraftwire.errors import UsageError
from kraftwire.node.config import NodeConfig, load
from kraftwire.node.config_keys import ALIASES, KEYS
from kraftwire.protocol.kafka_keys import kafka_keys
from kraftwire.security.tokens import TokenSettings

README_FILE = """\
node.id=2
listeners=PLAINTEXT://localhost:9093
controller.quorum.voters=1@localhost:9092,2@localhost:9093,3@localhost:9094
log.dirs=kraft-logs-2
"""

COMBINED_FILE = """\
# A node of both roles.
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://:9192,CONTROLLER://localhost:9193
advertised.listeners=PLAINTEXT://b1.example:9192
controller.listener.names=CONTROLLER
controller.quorum.voters=1@c1.example:9193,2@c2.example:9193
log.dirs=/tmp/kafka-logs/a,/tmp/kafka-logs/b
"""


def write(folder: Path, text: str) -> str:
    path = folder / "node.properties"
    path.write_text(text, encoding="latin-1")
    return str(path)


def combined(folder: Path, *overrides: str) -> NodeConfig:
    return load(write(folder, COMBINED_FILE), overrides)


def test_a_file_of_the_raft_readme_is_taken_as_it_is(tmp_path: Path) -> None:
    """The three files of the raft module's README have to form a quorum unchanged."""
    config = load(write(tmp_path, README_FILE))
    assert config.is_raft_readme
    assert config.node_id == 2
    assert config.is_broker
    assert config.is_controller
    assert config.controller_listeners == ("PLAINTEXT",)
    (listener,) = config.listeners
    assert (listener.host, listener.port) == ("localhost", 9093)
    assert listener.is_controller
    assert listener.is_client
    assert [voter.key.id for voter in config.voters] == [1, 2, 3]
    endpoint = config.voters.endpoint(3, "PLAINTEXT")
    assert endpoint is not None
    assert endpoint.port == 9094
    assert config.metadata_log_dir == "kraft-logs-2"
    assert config.warnings == ()


def test_the_defaults_of_the_table_are_those_of_the_configuration(tmp_path: Path) -> None:
    """Programs make configurations without a file; both have to mean the same."""
    found = load(write(tmp_path, README_FILE))
    given = NodeConfig(
        path=found.path,
        node_id=2,
        roles=found.roles,
        is_raft_readme=True,
        listeners=found.listeners,
        advertised=found.advertised,
        controller_listeners=found.controller_listeners,
        inter_broker_listener="PLAINTEXT",
        voters=found.voters,
        log_dirs=found.log_dirs,
        metadata_log_dir=found.metadata_log_dir,
    )
    assert found == given


def test_a_node_of_both_roles_serves_each_api_on_its_own_listener(tmp_path: Path) -> None:
    """A client must not reach controller APIs through the clients' port."""
    config = combined(tmp_path)
    kinds = {x.name: (x.is_controller, x.is_client) for x in config.listeners}
    assert kinds == {"PLAINTEXT": (False, True), "CONTROLLER": (True, False)}
    assert config.inter_broker_listener == "PLAINTEXT"
    assert config.log_dirs == ("/tmp/kafka-logs/a", "/tmp/kafka-logs/b")
    assert config.metadata_log_dir == "/tmp/kafka-logs/a"


def test_a_wildcard_controller_host_is_advertised_as_in_the_voters(tmp_path: Path) -> None:
    """R-CONF-5: others cannot connect to 0.0.0.0."""
    config = combined(tmp_path, "listeners=PLAINTEXT://:9192,CONTROLLER://0.0.0.0:9193")
    endpoint = config.endpoint("CONTROLLER")
    assert endpoint is not None
    assert endpoint.host == "c1.example"
    client = config.endpoint("PLAINTEXT")
    assert client is not None
    assert client.host == "b1.example"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("node.id=one", "node.id=one: expected a whole number of at least 0"),
        ("node.id=-1", "node.id=-1: expected a whole number of at least 0"),
        ("node.id=2147483648", "expected a whole number of at least 0"),
        ("controller.quorum.fetch.timeout.ms=2s", "expected a whole number of at least 0"),
        ("controller.quorum.fetch.max.bytes=0", "expected a whole number of at least 1"),
        ("metadata.log.segment.bytes=8388607", "expected a whole number of at least 8388608"),
        ("controller.quorum.auto.join.enable=yes", "true or false"),
        ("process.roles=broker,broker", "each item once"),
        ("process.roles=", "expected broker, controller, or broker,controller"),
        ("process.roles=leader", "expected broker, controller, or broker,controller"),
        ("controller.quorum.voters=1@localhost", "id@host:port,..., found '1@localhost'"),
        ("controller.quorum.voters=x@a:1", "id@host:port"),
        ("controller.quorum.voters=1@a:1,1@b:1", "each id once, found 1 twice"),
        ("controller.quorum.voters=1@0.0.0.0:9193", "an address that others can reach"),
        ("controller.quorum.voters=2@a:1", "an entry for this node (1), which is a controller"),
        ("controller.quorum.bootstrap.servers=a", "host:port,..., found 'a'"),
        ("listeners=PLAINTEXT:9192", "NAME://host:port, found 'PLAINTEXT:9192'"),
        ("listeners=PLAINTEXT://:1,PLAINTEXT://:2", "a different name for each listener"),
        ("listeners=PLAINTEXT://:1,CONTROLLER://:1", "a different port for each listener"),
        ("listeners=PLAINTEXT://:9192", "an entry for CONTROLLER of controller.listener.names"),
        ("listeners=CONTROLLER://:9193", "a listener for clients besides the controller's"),
        ("advertised.listeners=OTHER://a:1", "only names that listeners has too"),
        ("advertised.listeners=PLAINTEXT://0.0.0.0:1", "an address that others can reach"),
        ("inter.broker.listener.name=CONTROLLER", "a listener that is not the controller's"),
        ("controller.listener.names=", "the names of the controller listeners"),
        ("log.dirs=", "at least one directory"),
        ("log.dirs=a,,b", "no empty items"),
        ("max.connections.per.ip.overrides=10.0.0.1", "address:count,..."),
        ("kraftwire.leader.handover=sometimes", "auto or always or never"),
        ("kraftwire.prometheus.listener=9100", "host:port"),
        ("process.roles=broker", "no controller listener on a broker (CONTROLLER)"),
        ("process.roles=controller", "only controller listeners on a controller"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_allowed(
    tmp_path: Path, override: str, expected: str
) -> None:
    """A node that starts with other values than the configured ones causes surprises later."""
    with pytest.raises(UsageError) as caught:
        combined(tmp_path, override)
    assert expected in str(caught.value)


@pytest.mark.parametrize("digits", [20, 5000])
def test_numbers_that_no_key_can_have_are_refused(tmp_path: Path, digits: int) -> None:
    """Python alone ends with an error of its own for more than 4,300 digits."""
    keys = {key.name: "{}" for key in KEYS.values() if key.kind == "int"}
    names = {"group.streams.assignors", "group.streams.rack.aware.assignment.tags"}
    keys |= dict.fromkeys((SETTINGS | GROUP_SETTINGS) - names, "{}")
    keys |= {
        "max.connections.per.ip.overrides": "10.0.0.1:{}",
        "controller.quorum.voters": "{}@a:1",
        "controller.quorum.bootstrap.servers": "a:{}",
        "listeners": "PLAINTEXT://:{}",
    }
    unread = []
    for key, text in keys.items():
        try:
            combined(tmp_path, f"{key}={text.format('9' * digits)}")
        except UsageError:
            continue
        unread.append(key)
    needs_more = ("delegation.token.", "connections.max.reauth.", "sasl.")
    assert all(key.startswith(needs_more) for key in unread), "there are no secret and no logins"


def test_a_refusal_names_file_and_line(tmp_path: Path) -> None:
    """Files are long; people look for the line first."""
    path = write(tmp_path, "node.id=1\n\n# a comment\nlisteners=nowhere\n")
    with pytest.raises(UsageError, match=rf"{path}:4: listeners=nowhere: expected NAME://"):
        load(path)


def test_a_listener_without_a_protocol(tmp_path: Path) -> None:
    """It must not be served in plain text because of a mistyped name."""
    for protocols, expected in (
        ("PLAINTEXT:PLAINTEXT", "for listener CONTROLLER"),
        ("PLAINTEXT", "NAME:PROTOCOL"),
    ):
        with pytest.raises(UsageError, match=expected):
            combined(tmp_path, f"listener.security.protocol.map={protocols}")


def test_a_listener_is_marked_read_only_by_name(tmp_path: Path) -> None:
    """In upper or lower case, as in listener.security.protocol.map."""
    marked = combined(tmp_path, "kraftwire.listener.read.only=plaintext")
    assert {one.name: one.is_read_only for one in marked.listeners} == {
        "PLAINTEXT": True,
        "CONTROLLER": False,
    }
    assert not any(one.is_read_only for one in combined(tmp_path).listeners)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ("PLAINTEXT,OTHER", "names that listeners has too, found OTHER"),
        ("CONTROLLER", "no CONTROLLER, because the voters use it"),
    ],
)
def test_a_listener_that_cannot_be_read_only_is_refused(
    tmp_path: Path, names: str, problem: str
) -> None:
    """A mark without effect would be trusted; voters without a way to vote are no quorum."""
    with pytest.raises(UsageError, match=problem):
        combined(tmp_path, f"kraftwire.listener.read.only={names}")
    with pytest.raises(UsageError, match="because the voters use it"):
        load(write(tmp_path, README_FILE), ["kraftwire.listener.read.only=PLAINTEXT"])


def test_a_broker_may_not_be_a_voter(tmp_path: Path) -> None:
    """R-CONF-2: a node without the controller role would vote although it is not meant to."""
    with pytest.raises(UsageError, match="no entry for this node"):
        combined(tmp_path, "process.roles=broker", "listeners=PLAINTEXT://:9192")


def test_a_quorum_has_to_be_named(tmp_path: Path) -> None:
    """R-CONF-1: without voters or bootstrap servers a node would wait for ever."""
    path = write(
        tmp_path, "node.id=1\nlisteners=A://:1\nlistener.security.protocol.map=A:PLAINTEXT"
    )
    with pytest.raises(UsageError, match=r"controller\.quorum\.voters is not set"):
        load(path)


def test_draft_names_are_taken_with_a_warning(tmp_path: Path) -> None:
    """KIP-595 documents names that no release has; people copy them."""
    text = (
        "broker.id=1\nlisteners=PLAINTEXT://localhost:9092\nlog.dirs=kraft-logs\n"
        "quorum.voters=1@localhost:9092\nquorum.fetch.timeout.ms=300\n"
        "quorum.election.timeout.ms=301\nquorum.election.jitterbackoff.max.ms=302\n"
        "quorum.request.timeout.ms=303\nquorum.retry.backoff.ms=30\n"
        "quorum.retry.backoff.max.ms=305\nbootstrap.servers=localhost:1\n"
    )
    config = load(write(tmp_path, text))
    timers = config.timers
    assert config.node_id == 1
    assert len(config.voters) == 1
    assert (timers.fetch_timeout_ms, timers.election_timeout_ms) == (300, 301)
    assert (timers.election_backoff_max_ms, timers.request_timeout_ms) == (302, 303)
    assert (timers.retry_backoff_ms, timers.retry_backoff_max_ms) == (30, 305)
    assert [server.port for server in config.bootstrap_servers] == [1]
    assert len(config.warnings) == 8
    assert "quorum.voters is another name of controller.quorum.voters" in config.warnings[1]


def test_the_longest_back_off_is_no_shorter_than_the_first(tmp_path: Path) -> None:
    """A back-off of zero is raised, and its maximum with it: retries must not spin."""
    timers = combined(tmp_path, "controller.quorum.retry.backoff.ms=0").timers
    assert timers.retry_backoff_max_ms == timers.retry_backoff_ms > 0


def test_a_released_name_wins_over_a_draft_name(tmp_path: Path) -> None:
    """Two values for one thing: the documented one counts, and the other is not silently lost."""
    text = README_FILE + "quorum.fetch.timeout.ms=100\ncontroller.quorum.fetch.timeout.ms=200\n"
    config = load(write(tmp_path, text))
    assert config.timers.fetch_timeout_ms == 200
    (warning,) = config.warnings
    assert "quorum.fetch.timeout.ms is overruled" in warning


def test_tokens_need_a_secret(tmp_path: Path) -> None:
    """By its own name or by that of older brokers; it is in no warning (C-TOK-1)."""
    life = "delegation.token.max.lifetime.ms=5000"
    assert combined(tmp_path, life, "delegation.token.secret.key=").security.tokens is None
    config = combined(tmp_path, life, "delegation.token.master.key=hush")
    assert config.security.tokens == TokenSettings(b"hush", 5000, 86_400_000, 3_600_000)
    assert "hush" not in repr(config)
    (warning,) = config.warnings
    assert warning.endswith("master.key is another name of delegation.token.secret.key")


def test_two_different_ids_are_refused(tmp_path: Path) -> None:
    """Kafka takes broker.id only if it agrees with node.id."""
    with pytest.raises(UsageError, match=r"expected the value of node\.id, 1"):
        combined(tmp_path, "broker.id=2")


@pytest.mark.parametrize("verb", ["create.topic", "alter.config"])
def test_a_policy_of_java_is_refused(tmp_path: Path, verb: str) -> None:
    """A node that ignored it would allow what the policy forbids; an empty one is none."""
    key = f"{verb}.policy.class.name"
    with pytest.raises(UsageError, match=f"{key}=org.example.Policy: expected none, as Java's"):
        combined(tmp_path, f"{key}=org.example.Policy")
    assert combined(tmp_path, f"{key}=").warnings == ()


def test_keys_of_kafka_without_effect_are_named_once(tmp_path: Path) -> None:
    """A whole server.properties can be used, and users still learn which keys have no effect."""
    config = combined(tmp_path, "num.io.threads=3", "num.partitions=3", "log.retention.hours=1")
    (warning,) = config.warnings
    assert warning.endswith("without effect here: num.io.threads")


def test_an_unknown_key_is_a_warning_with_the_nearest_name(tmp_path: Path) -> None:
    """Kafka silently ignores misspelt keys."""
    config = combined(tmp_path, "controller.quorum.fetch.timeout=1", "zzz=1")
    first, second = config.warnings
    assert "did you mean controller.quorum.fetch.timeout.ms?" in first
    assert second.endswith("zzz is not a known key")


def test_an_override_wins_and_the_last_line_too(tmp_path: Path) -> None:
    """Java's properties keep the last value of a key; overrides come after the file."""
    path = write(tmp_path, README_FILE + "node.id=3\n")
    assert load(path).node_id == 3
    assert load(path, ["node.id = 1"]).node_id == 1
    with pytest.raises(UsageError, match="expected key=value"):
        load(path, ["node.id"])


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    """The most common mistake deserves a clean line."""
    with pytest.raises(UsageError, match="No such file"):
        load(str(tmp_path / "none.properties"))


def test_the_list_of_kafkas_keys_holds_every_key_that_is_used() -> None:
    """A key of ours is Kafka's, begins with our prefix, or is a draft name; nothing else."""
    known = kafka_keys()
    own = {key for key in KEYS if key not in known}
    assert own == {key for key in KEYS if key.startswith("kraftwire.")} | {
        "quorum.retry.backoff.max.ms",
        # Kafka's authorizer reads these; no class of the broker knows them.
        "allow.everyone.if.no.acl.found",
        "super.users",
    }
    assert set(ALIASES.values()) <= set(KEYS)
    assert len(known) > 300
