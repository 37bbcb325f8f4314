"""Random changes of ACLs, users, quotas, configurations and so on, at Kafka's and ours.

Owns the requests and what makes two answers comparable: without texts, and in one order, as Kafka's
has that of hash tables (C-ORD-2). Values are few, so that requests meet what earlier ones wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import trio

from kraftwire.node.config_security import AuthorizerSettings, NodeSecurity
from kraftwire.security.principal import ANONYMOUS, Principal
from kraftwire.security.tokens import TokenSettings
from tests.oracle import clusters
from tests.oracle.comparison import Comparison, Difference, Step
from tests.oracle.forwarded_tokens import TokenSender
from tests.oracle.our_controller import Connection, our_controller
from tests.oracle.shared_scripts import Tools

# Name, version and body of a request; then, perhaps, another way to ask, and the user who does.
Question = tuple[Any, ...]

# How many requests are forwarded in another version than the newest.
_ANOTHER_WAY = 0.3

# Of those, most come from the super user; others have the rights that ACLs give them.
_USERS = ("ANONYMOUS", "ANONYMOUS", "a", "b")

# With these, a group's session may be as short as the interval of its heartbeats.
_SETTINGS = {"group.consumer.min.session.timeout.ms": "5000"}

# No sum of some moves of the clock.
_CHECK_MS = 3_490_000

# The only broker tells that it is there before this is over.
_SESSION_MS = 2_000_000_000
_MOVES_MS = (1, 999, 1000, 3000, 20_000, 1_000_000, 1_000_000_000)

# What the Java controller runs with.
PROPERTIES: Mapping[str, str] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "secret",
    "delegation.token.expiry.check.interval.ms": str(_CHECK_MS),
    "broker.session.timeout.ms": str(_SESSION_MS),
    "auto.leader.rebalance.enable": "false",
    **_SETTINGS,
}
_DAY_MS = 24 * 3600 * 1000
_TOKENS = TokenSettings(b"secret", 7 * _DAY_MS, _DAY_MS, _CHECK_MS)
_UNTOLD = ("ErrorMessage",)
_CHARGED = ("CreateTopics", "DeleteTopics", "CreatePartitions")
# Lists of answers that are in the order of the request.
_IN_ORDER = {"CreateAcls": ["Results"], "DeleteAcls": ["FilterResults"]}
_USER_RESOURCE = 7
_RANGES = ("10.0.0.0/8", "10.0.0.9/28", "1.2.3.4/24", "::/0")
_WRONG_RANGES = ("1.2.3.4/33", "::/129", "h/8", "/")
_UNKNOWN_TOPIC, _NO_RIGHT_TO_TOPIC = 3, 29
_TOPIC, _BROKER, _UNKNOWN, _LOGGER, _METRICS, _GROUP = 2, 4, 7, 8, 16, 32


class Script:
    """A seeded sequence of requests."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._tokens_made = 0
        self._kinds: Mapping[Callable[[], Question], float] = {
            self._create_acls: 3,
            self._delete_acls: 2,
            self._users: 3,
            self._quotas: 4,
            self._configs: 4,
            self._whole_configs: 1,
            # Kafka's nodes work out a key of SCRAM for each token.
            self._tokens: 2,
            self._levels: 0.5,
            self._controllers: 1,
            self._topics: 3,
            self._time: 1.5,
        }

    def questions(self, count: int) -> Iterator[Question]:
        """Make so many requests."""
        for _ in range(count):
            (make,) = self._random.choices(list(self._kinds), list(self._kinds.values()))
            question = make()
            # Kafka does not read on from who has changed too much; a broker is told to wait.
            if self._random.random() < _ANOTHER_WAY or question[0] in _CHARGED:
                user = self._random.choice(_USERS)
                if user != _USERS[0]:
                    _keep_to_rights(question[2])
                yield *question, self._random.getrandbits(8), user
            else:
                yield question

    def _one(self, usual: list[Any], rare: list[Any]) -> Any:
        return self._random.choice(rare if self._random.random() < 0.08 else usual)

    def _some(self, make: Callable[[], Any], most: int) -> list[Any]:
        return [make() for _ in range(self._random.randint(0, most))]

    def _create_acls(self) -> Question:
        def creation() -> dict[str, Any]:
            kind = self._one([2, 2, 3, 4, 4, 5, 6, 7], [99])
            named = self._one(["t", "u", "t.", "*"], ["", "kafka-cluster"])
            if kind == _USER_RESOURCE:
                named = self._one(["User:a", "User:b", "*"], ["Group:g", "a"])
            is_right = named != "" and self._random.random() < 0.8
            return {
                "ResourceType": kind,
                "ResourceName": "kafka-cluster" if kind == 4 and is_right else named,
                "ResourcePatternType": self._one([3, 4], [9]),
                "Principal": self._one(["User:a", "User:b", "Group:g:h"], ["User:", "x"]),
                "Host": self._one(["*", "1.2.3.4", *_RANGES], ["", "nowhere", *_WRONG_RANGES]),
                "Operation": self._one([2, *range(2, 9), 11, 13, 15], [99]),
                "PermissionType": self._one([2, 2, 3], [9]),
            }

        times = self._one([1], [2])
        return "CreateAcls", 3, {"Creations": self._some(creation, 3) * times}

    def _delete_acls(self) -> Question:
        def passing() -> dict[str, Any]:
            return {
                "ResourceTypeFilter": self._one([1, 2, 3, 4, 5], [99]),
                "ResourceNameFilter": self._one([None, "t", "t.u", "kafka-cluster"], [""]),
                "PatternTypeFilter": self._one([1, 2, 3, 4], [9]),
                "PrincipalFilter": self._one([None, "User:a", "User:b"], ["User:"]),
                "HostFilter": self._one([None, None, "*", "1.2.3.4", _RANGES[0]], [""]),
                "Operation": self._one([1, 1, 2, 3, 4], [99]),
                "PermissionType": self._one([1, 2, 3], [9]),
            }

        return "DeleteAcls", 3, {"Filters": self._some(passing, 2)}

    def _users(self) -> Question:
        def named() -> dict[str, Any]:
            name, mechanism = self._one(["a", "b", "c"], [""]), self._one([1, 2], [0, 3])
            return {"Name": name, "Mechanism": mechanism}

        def upsertion() -> dict[str, Any]:
            return named() | {
                "Salt": self._random.randbytes(4),
                "SaltedPassword": self._random.randbytes(9),
                "Iterations": self._one([4096, 9000], [4095, 16384, 16385]),
            }

        changes = {"Deletions": self._some(named, 1), "Upsertions": self._some(upsertion, 2)}
        return "AlterUserScramCredentials", 0, changes

    def _quotas(self) -> Question:
        def entry() -> dict[str, Any]:
            kinds = self._one(
                [["user"], ["client-id"], ["user", "client-id"], ["ip"]],
                [[], ["x"], ["ip", "user"]],
            )
            entity = [
                {
                    "EntityType": kind,
                    "EntityName": self._one(["1.2.3.4", "::1", None], [""])
                    if kind == "ip"
                    else self._one(["a", "b", None, *["client"] * (kind != "user")], [""]),
                }
                for kind in kinds
            ]
            return {"Entity": entity, "Ops": self._some(lambda: change("ip" in kinds), 3)}

        def change(is_address: bool) -> dict[str, Any]:
            rates, others = ["producer_byte_rate", "consumer_byte_rate"], ["request_percentage"]
            own = ["connection_creation_rate"]
            changes = ["controller_mutation_rate"] * 2
            usual = own if is_address else rates + others + changes
            key = self._one(usual, own + others + ["nope"])
            if key == changes[0]:
                return {
                    "Key": key,
                    "Value": self._random.choice([0.3, 0.5, 1.0, 2.5]),
                    "Remove": self._random.random() < 0.2,
                }
            values = [0.0, -1.0, 99_999.5, 99_999.0000001, 2.0**31, 2.0**63, 2.0**64]
            # Few connections a second would be too few for the script itself.
            return {
                "Key": key,
                "Value": self._random.choice([100_000.0, 200_000.0] * 10 + values),
                "Remove": self._random.random() < 0.3,
            }

        entries = {_text(each["Entity"]): each for each in self._some(entry, 2)}
        body = {"Entries": list(entries.values()), "ValidateOnly": self._random.random() < 0.1}
        return "AlterClientQuotas", 1, body

    def _tokens(self) -> Question:
        create, renew, expire = (f"{verb}DelegationToken" for verb in ("Create", "Renew", "Expire"))
        name = self._one([create, renew, renew, expire], [expire])
        who = self._one(["a", "b", "ANONYMOUS"], ["c"])
        body = {"principal": who, "by_token": self._one([False], [True])}
        if name != create:
            period = "RenewPeriodMs" if name == renew else "ExpiryTimePeriodMs"
            # Of the older tokens some have expired.
            number = self._random.randrange(self._tokens_made + 1)
            periods = [10**9, 10**9, 1_000_000, 1, -1]
            return name, 2, body | {"Hmac": number, period: self._one(periods, [0])}
        self._tokens_made += 1
        owner = self._one([None, None, "a", "b"], ["c"])
        renewers = self._some(
            lambda: {
                "PrincipalType": self._one(["User"], ["Group"]),
                "PrincipalName": self._one(["a", "b"], [""]),
            },
            2,
        )
        body |= {
            "OwnerPrincipalType": owner and "User",
            "OwnerPrincipalName": owner,
            "Renewers": renewers,
            "MaxLifetimeMs": self._one([-1, 10**9, 10**6], [0]),
        }
        return name, 3, body

    def _topics(self) -> Question:
        count = self._random.randint(1, 6)
        name = self._one(["t", "u", "t.u", "v", "w"], ["", "x y"])
        kind = self._one(["CreateTopics", "DeleteTopics"], ["CreatePartitions"])
        wait = {"TimeoutMs": 9000}
        if kind == "DeleteTopics":
            # Kafka deletes them in the order of a hash table of random ids, and a quota may be used
            # up in between: so one of them exists at most.
            names = [name, *self._some(lambda: "?", 1)]
            topics: list[Any] = [{"Name": each, "TopicId": bytes(16)} for each in names]
            return kind, 6, {"Topics": topics} | wait
        if kind == "CreatePartitions":
            more = {"Name": name, "Count": count, "Assignments": None}
            return kind, 3, {"Topics": [more], "ValidateOnly": False} | wait
        topics = [
            {
                "Name": each,
                "NumPartitions": self._one([count, count, -1], [0]),
                "ReplicationFactor": self._one([1, -1], [2]),
                "Assignments": [],
                "Configs": [],
            }
            for each in dict.fromkeys([name, *self._some(lambda: self._one(["t", "w"], ["v"]), 1)])
        ]
        return kind, 7, {"Topics": topics, "timeoutMs": 9000, "validateOnly": False}

    def _time(self) -> Question:
        return "time", 0, {"ms": self._random.choice(_MOVES_MS)}

    def _levels(self) -> Question:
        name = self._one(["metadata.version", "share.version"], ["nope"])
        low, high = (6, 34) if name == "metadata.version" else (0, 3)
        update = {
            "Feature": name,
            "MaxVersionLevel": self._random.randint(low, high),
            "UpgradeType": self._one([1], [2, 3]),
        }
        body = {"timeoutMs": 9000, "ValidateOnly": False, "FeatureUpdates": [update]}
        return "UpdateFeatures", 2, body

    def _controllers(self) -> Question:
        # The active controller is 1. Kafka writes an unchanged registration again (C-CREG).
        id = self._one([8, 9, 8, 9, 1], [-1])
        if self._random.random() < 0.5:
            return "UnregisterController", 0, {"ControllerId": id}
        ranges = {"MinSupportedVersion": 0, "MaxSupportedVersion": 99}
        names = ("metadata.version", "kraft.version", "share.version")
        body = {
            "ControllerId": max(id, 8),
            "IncarnationId": self._random.randbytes(16),
            "ZkMigrationReady": False,
            "Listeners": [{"Name": "CONTROLLER", "Host": "h", "Port": 9, "SecurityProtocol": 0}],
            "Features": [{"Name": name} | ranges for name in names],
        }
        return "ControllerRegistration", 0, body

    def _resource(self) -> tuple[int, str]:
        kind = self._one([_METRICS, _GROUP], [_TOPIC, _BROKER, _LOGGER, _UNKNOWN])
        name = self._one(["1", "a"], ["", "b c"])
        return kind, name

    def _config(self, kind: int) -> tuple[str, str]:
        keys = _VALUES.get(kind, _OTHER_VALUES)
        key = self._one(list(keys), ["nope", "cleanup.policy"])
        return key, self._random.choice(keys.get(key, ["1", "x"]))

    def _configs(self) -> Question:
        def change() -> dict[str, Any]:
            key, value = self._config(kind)
            operation = self._one([0, 0, 1], [2, 3])
            return {"Name": key, "ConfigOperation": operation, "Value": value}

        kind, name = self._resource()
        configs = self._some(change, 3)
        resource = {"ResourceType": kind, "ResourceName": name, "Configs": configs}
        return "IncrementalAlterConfigs", 1, self._of_resources(resource)

    def _whole_configs(self) -> Question:
        kind, name = self._resource()
        values = dict(self._some(lambda: self._config(kind), 3))
        configs = [{"Name": key, "Value": value} for key, value in values.items()]
        resource = {"ResourceType": kind, "ResourceName": name, "Configs": configs}
        return "AlterConfigs", 2, self._of_resources(resource)

    def _of_resources(self, resource: dict[str, Any]) -> dict[str, Any]:
        # Kafka's controller never answers to an unknown type twice.
        times = 1 if resource["ResourceType"] == _UNKNOWN else self._one([1], [2])
        return {"Resources": [resource] * times, "ValidateOnly": self._random.random() < 0.1}


def _keep_to_rights(body: dict[str, Any]) -> None:
    """Let a request name nothing twice, and no type that has no configurations: Kafka says so to
    who has no right, ours does not (C-ERR-5)."""
    if "Resources" in body:
        del body["Resources"][1:]
        for resource in body["Resources"]:
            if resource["ResourceType"] in (_UNKNOWN, _LOGGER):
                resource["ResourceType"] = _METRICS
    if "Upsertions" in body:
        named = {each["Name"] for each in body["Deletions"]}
        users = {each["Name"]: each for each in body["Upsertions"] if each["Name"] not in named}
        body["Upsertions"] = list(users.values())


def _hide_existence(told: dict[str, Any]) -> None:
    """Let topics that are not there be answered as those that may not be deleted (C-DEL)."""
    for topic in told["Responses"]:
        if topic["ErrorCode"] == _UNKNOWN_TOPIC:
            topic["ErrorCode"] = _NO_RIGHT_TO_TOPIC


_NUMBERS = ["0", "1", "2", "3", "5", "99", "1000", "5000", "15000", "45000", "50000", "60001", "x"]
_PERIODS = ["5000", "5001", "15000", "45000", "60001"]
_VALUES: Mapping[int, Mapping[str, list[str]]] = {
    _METRICS: {
        "interval.ms": ["99", "100", " 500 ", "3600000", "3600001", "x", ""],
        "metrics": ["a", "a,b", "a, a", "", "*", "a,,b"],
        "match": ["client_id=a.*", "client_id = b", "x=y", "client_id=", "client_id=(", "a"],
    },
    _GROUP: {
        **{
            f"{kind}.{key}": values
            for kind in ("consumer", "share", "streams")
            for key, values in (
                ("session.timeout.ms", _PERIODS),
                ("heartbeat.interval.ms", _PERIODS),
                ("assignment.interval.ms", _NUMBERS),
            )
        },
        "share.record.lock.duration.ms": _NUMBERS,
        "share.delivery.count.limit": _NUMBERS,
        "share.partition.max.record.locks": _NUMBERS,
        "share.auto.offset.reset": ["latest", "EARLIEST", "by_duration:PT1H", "by_duration:x"],
        "share.isolation.level": ["read_committed", "none"],
        "share.renew.acknowledge.enable": ["TRUE", "no"],
        "streams.num.standby.replicas": _NUMBERS,
        "streams.initial.rebalance.delay.ms": _NUMBERS,
        "streams.assignor.name": ["sticky", "x"],
        "streams.rack.aware.assignment.tags": ["a", "a, b", "a,a", "a,,b", ""],
        "errors.deadletterqueue.topic.name": ["t", "__t", ""],
        "errors.deadletterqueue.copy.record.enable": ["TRUE", "no"],
    },
}
_OTHER_VALUES: Mapping[str, list[str]] = {"no.such.thing": ["1", "DEBUG"]}


def operations(tools: Tools, seed: int, count: int) -> list[Question]:
    """A cluster, and so many requests."""
    del tools
    return [tuple(clusters.drawn(Random(seed))), *Script(seed).questions(count)]


def java_steps(tools: Tools, connection: Any, end: int, script: Sequence[Question]) -> list[Step]:
    """What a fresh Java controller does, whose log ends at an offset."""
    return list(_steps(tools, connection, end, script))


def compare(tools: Tools, script: Sequence[Question], java: list[Step]) -> Comparison:
    """Send a script to our controller; ends at the first difference."""
    return trio.run(_compare, tools, clusters.level_of(script), script, java)


async def _compare(
    tools: Tools, level: int, script: Sequence[Question], java: list[Step]
) -> Comparison:
    authorizer = AuthorizerSettings(frozenset((str(ANONYMOUS),)), False)
    security = NodeSecurity(authorizer=authorizer, tokens=_TOKENS)
    # Nothing is written while it is idle, as at the Java controller.
    config = {
        "security": security,
        "idle_interval_ms": 0,
        "session_timeout_ms": _SESSION_MS,
        "rebalance_interval_ms": 0,
        "resource_settings": _SETTINGS,
    }
    async with our_controller(tools, level, **config) as (node, comparison):
        connection = Connection(tools, node, comparison)
        ours = _steps(tools, connection, node.raft.end_offset, script)
        await trio.to_thread.run_sync(_compare_steps, comparison, java, ours)
    return comparison


def _compare_steps(comparison: Comparison, java: list[Step], ours: Iterator[Step]) -> None:
    for theirs, own in zip(java, ours, strict=True):
        comparison.operations += 1
        comparison.records += len(theirs["rec"])
        if theirs != own:
            comparison.difference = Difference(theirs, own)
            return


def _steps(
    tools: Tools, connection: Any, offset: int, script: Sequence[Question]
) -> Iterator[Step]:
    ids: dict[bytes, str] = {}
    sender = tools.sender(connection)
    tokens = TokenSender(sender)
    broker = tools.oracle.Broker(connection, 1)
    is_changed = True
    for number, (name, version, *asked) in enumerate(script):
        if is_changed:
            connection.published(offset)
        body, *way = asked
        sender.way, sender.principal = None, ANONYMOUS
        if way:
            sender.way, sender.principal = way[0], Principal("User", way[1])
        if name == "cluster":
            answer: Any = broker.up()
        elif name == "time":
            connection.move(body["ms"])
            answer = broker.hb()
        else:
            send = tokens.ask if "DelegationToken" in name else sender.call
            answer = send(name, version, body)
        found = [one for one in connection.dump(offset, raw=True) if one[0] >= offset]
        for _, _, _, _, fields in found:
            if "TokenId" in fields:
                fields["TokenId"] = tokens.number(fields["TokenId"])
        records = [
            [record, form, _plain(tokens.timed(fields), ids)]
            for _, _, record, form, fields in found
            # Scripts of brokers compare them.
            if record not in ("FeatureLevelRecord", "RegisterControllerRecord")
        ]
        offset, is_changed = offset + len(found), bool(found)
        told = _plain(answer, None)
        if name == "DeleteTopics" and way[1] != _USERS[0]:
            _hide_existence(told)
        if name in _IN_ORDER:
            told = {key: [_sorted(each) for each in told[key]] for key in _IN_ORDER[name]}
        else:
            told = _sorted(told)
        yield {
            "i": number,
            "op": [name, version, _plain(body, None), *way],
            "re": told,
            "rec": _sorted(records),
        }


def _plain(value: Any, ids: dict[bytes, str] | None) -> Any:
    """Return a value without texts, ids by order of appearance, other bytes as text.

    Without `ids`, they are not told apart: answers have them in the order of a hash table.
    """
    if isinstance(value, bytes):
        if len(value) != 16 or value == bytes(16):
            return value.hex()
        return "id" if ids is None else ids.setdefault(value, f"id{len(ids)}")
    if isinstance(value, dict):
        return {key: _plain(each, ids) for key, each in value.items() if key not in _UNTOLD}
    return [_plain(each, ids) for each in value] if isinstance(value, list | tuple) else value


def _sorted(value: Any) -> Any:
    """Return a value with all lists but those of numbers in the order of their texts."""
    if isinstance(value, dict):
        return {key: _sorted(each) for key, each in value.items()}
    return sorted(map(_sorted, value), key=_text) if isinstance(value, list) else value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
