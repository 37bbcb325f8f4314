"""Decisions about security are those of Kafka's own classes, on random input.

`KRAFTWIRE_ROUNDS` (4) scales the counts: 100 rounds are 5,000 sets of ACLs, 2,000 lists of mapping
rules and 1,000 SCRAM users of each kind.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509

from kraftwire.errors import UsageError
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.node.handlers.cluster_changes import has_interface
from kraftwire.security.acl_filter import AclFilter
from kraftwire.security.acls import Acl, AclIndex, Authorizer, parse_super_users
from kraftwire.security.credentials import SCRAM_SHA_256, SCRAM_SHA_512, PasswordCredentials
from kraftwire.security.errors import Refused
from kraftwire.security.host_ranges import HostRange, host_address, parse_range
from kraftwire.security.jaas import JaasEntry, JaasError, parse_entry
from kraftwire.security.local_names import LocalNames
from kraftwire.security.mapping import NoRuleError, PrincipalMapper
from kraftwire.security.names import subject_text
from kraftwire.security.principal import Principal, decode_principal, encode_principal, host_text
from kraftwire.security.scram import (
    ScramClient,
    ScramCredential,
    ScramServer,
    ScramUser,
    salted_password,
)
from tests.support.kafka.java import JavaPeer
from tests.support.kafka.java_cases import ROUNDS
from tests.support.security.scram_decoys import decoys

REQUESTS = 20


@pytest.fixture(scope="module")
def security() -> Iterator[JavaPeer]:
    """Kafka's classes that decide about security."""
    with JavaPeer(folder="security", program="Security") as peer:
        yield peer


NAMES = ["a", "ab", "abc", "abcd", "b", "ba", "*", "*a", "a*", "ä", "𝄞x", "kafka-cluster"]
PRINCIPALS = ["User:alice", "User:al", "User:*", "Group:alice", "User:a:b", "User:ALICE"]
HOSTS = ["*", "1.2.3.4", "0:0:0:0:0:0:0:1", "::1", "1.2.3.0"]
HOSTS += ["1.2.3.4/24", "1.2.3.0/31", "1.2.3.4/32", "0.0.0.0/0", "::/0", "::1/64", "1.2.3.0/33"]


def acl_set(source: random.Random) -> list[list[Any]]:
    """Some ACLs; a small world, so that many of them meet."""
    count = source.choice([0, 1, 3, 10, 40])
    rows = {
        (
            source.choice([2, 2, 2, 3, 4, 7]),
            source.choice(NAMES),
            source.choice([3, 4]),
            source.choice(PRINCIPALS),
            source.choice(HOSTS),
            source.randint(2, 15),
            source.choice([2, 3, 3]),
        )
        for _ in range(count)
    }
    return [list(row) for row in sorted(rows)]


def acl_request(source: random.Random) -> list[Any]:
    """Who asks, from where, and for what."""
    kind, _, name = source.choice([*PRINCIPALS[:2], *PRINCIPALS[3:]]).partition(":")
    host = source.choice(["1.2.3.4", "1.2.3.0", "::1", "::ffff:1.2.3.4"])
    operation = source.randint(3, 15)
    return [kind, name, host, operation, source.choice([2, 2, 2, 3, 4, 7]), source.choice(NAMES)]


def acl_filter(source: random.Random) -> list[Any]:
    """A filter as DescribeAcls has it; many say nothing."""

    def some(*values: Any) -> Any:
        return source.choice([values[0], *values])

    return [
        some(1, 2, 3),
        some(None, *NAMES),
        some(1, 2, 3, 4),
        some(None, None, *PRINCIPALS),
        some(None, None, *HOSTS),
        some(1, 1, *range(2, 16)),
        some(1, 2, 3),
    ]


def test_access_control(security: JavaPeer, seed: int) -> None:
    """Sets of ACLs and requests, against StandardAuthorizer (SEC-A2, SEC-A3)."""
    source = random.Random(f"{seed}/acls")
    questions = [
        {
            "op": "acls",
            "superUsers": source.choice(["", "User:al; Group:alice"]),
            "allowEveryone": source.choice(["true", "false", "false"]),
            "acls": acl_set(source),
            "requests": [acl_request(source) for _ in range(REQUESTS)],
            "filters": [acl_filter(source) for _ in range(5)],
        }
        for _ in range(50 * ROUNDS)
    ]
    allowed = 0
    for question, answer in zip(questions, security.ask(questions), strict=True):
        index = AclIndex()
        for number, row in enumerate(question["acls"]):
            index.add(number.to_bytes(16), Acl.of(acl_record(row)))
        authorizer = Authorizer(
            parse_super_users(question["superUsers"]),
            lambda index=index: index,
            allow_if_no_acl=question["allowEveryone"] == "true",
        )
        assert "error" not in answer, answer
        for row, count in zip(question["filters"], answer["described"], strict=True):
            assert len(AclFilter(*row).passing(index.items())) == count, (question["acls"], row)
        for request, expected in zip(question["requests"], answer["results"], strict=True):
            kind, name, host, operation, resource_type, resource = request
            principal = Principal(kind, name)
            place = (resource_type, resource)
            decision = authorizer.authorize(principal, host_text(host), operation, place)
            assert decision is not None
            allowed += expected
            # Stricter than Kafka: `*` denies names that begin with it, too.
            is_stricter = resource == "*a" and not decision.is_allowed
            assert decision.is_allowed == expected or is_stricter, (question["acls"], request)
    assert allowed > len(questions)


def acl_record(row: list[Any]) -> AccessControlEntryRecord:
    """The record of an ACL."""
    return AccessControlEntryRecord(
        resource_type=row[0],
        resource_name=row[1],
        pattern_type=row[2],
        principal=row[3],
        host=row[4],
        operation=row[5],
        permission_type=row[6],
    )


# Without names that are those of interfaces of some machine.
ZONES = ("%1", "%", "%02147483647", "%2147483648", "%51c:6819", "%1:1", "%no such", "%nope", "%1%1")


def new_range(text: str) -> HostRange | None:
    """The range of a new ACL; None if it is refused."""
    try:
        return parse_range(text, has_interface)
    except UsageError:
        return None


def host_range_text(source: random.Random) -> str:
    """A range of addresses, often not quite."""

    def some(*values: str) -> str:
        return source.choice([*values[:1] * 8, *values])

    ipv4 = ".".join(some("1", "10", "010", "255", "256", "1234", "", "x") for _ in range(4))
    groups = [some("0", "1", "fe80", "FFFF", "00001", "12345", "") for _ in range(8)]
    if source.random() < 0.7:
        groups[source.randint(0, 6) : 8] = source.choice([["", ""], ["", "1"], ["", "1", "2"]])
    end = some("", ":1.2.3.4", ":ffff:1.2.3.4", source.choice(ZONES), "%1")
    ipv6 = some("", "", ":") + ":".join(groups) + end
    ipv6 = some(ipv6, f"[{ipv6}]", f"[{ipv6}", "::1", "::ffff:1.2.3.4", "::2:1.2.3.4")
    length = some("8", "0", "24", "32", "33", "64", "128", "129", "+8", "08", "-0", "-1", "", "٨")
    return f"{source.choice([ipv4, ipv6, ipv6])}/{length}" + some("", "/8", " ", "\n")


def is_inside(host: str, among: HostRange) -> bool:
    """Whether a client's address is in a range."""
    address = host_address(host)
    is_alike = address is not None and address.kind == among.kind
    return is_alike and address.within(among.length) == among


def test_ranges_of_hosts(security: JavaPeer, seed: int) -> None:
    """Texts, good and bad, and the addresses in them, against CidrUtils (SEC-A16)."""
    source = random.Random(f"{seed}/ranges")
    hosts = ["10.1.2.3", "10.0.0.1", "0.0.0.0", "255.255.255.255", "1.10.255.0", "0.0.0.1"]
    hosts += ["::1", "fe80::1", "fe80::1%1", "::", "1::", "1:1:ffff::1", "::ffff:ffff:ffff:ffff"]
    hosts = [host_text(host) for host in hosts]
    ranges = [host_range_text(source) for _ in range(300 * ROUNDS)]
    (answer,) = security.ask([{"op": "ranges", "ranges": ranges, "hosts": hosts}])
    taken = 0
    for text, expected in zip(ranges, answer["found"], strict=True):
        found = new_range(text)
        assert (found is None) == (expected is None), text
        if found is None:
            continue
        taken += 1
        assert [is_inside(host, found) for host in hosts] == expected, text
    assert len(ranges) / 6 < taken < len(ranges) * 5 / 6


SUBJECTS = [
    "CN=alice,OU=dev,O=Acme,L=Bonn,C=DE",
    "CN=alice\\, bob,OU=a/b",
    "O=Acme,CN=Alice",
    "CN=x",
    "",
    "1.2.840.113549.1.9.1=#1603614062,CN=a+OU=b",
    "CN=Zoë,O=Ünïcode",
    "CN=a\nb,O=c",
]
PATTERNS = [
    "^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),C=(.*?)$",
    "^CN=(.*?)$",
    ".*CN=([a-zA-Z]+).*",
    "CN=(?<who>[^,]+).*",
    "(?i)cn=(.*)",
    "^(.*)$",
    ".*",
    "(C|O)(N|U)?=.*",
    "CN=\\w+(,.*)?",
    "CN=([^,]{1,5}),?.*",
    ".*,OU=a\\/b",
    "(?:CN|O)=([^,]*+).*",
    "x*",
    "",
]
# Kafka takes these, or some of them; Python would read them differently.
UNPORTABLE = [
    "\\p{Lu}.*",
    "[a-z&&[^x]]+",
    "(?s)CN=.*",
    "\\bCN.*",
    "a{",
    "(",
    "(?<=a*)b",
    "\\QCN\\E.*",
]
# No pattern lacks a group that the first ones name; of the others many do.
WITHOUT_GROUPS = ["$0", "", "admin", "a\\/b", "\\$1"]
REPLACEMENTS = [*WITHOUT_GROUPS, "$1", "$1@$2", "$2", "$12", "$3", "${who}", "$9$8"]


def mapping_rules(source: random.Random) -> str:
    """A list of rules, some of them broken."""
    parts = []
    for _ in range(source.randint(1, 3)):
        pattern = source.choice(PATTERNS if source.random() < 0.9 else UNPORTABLE)
        replacement = source.choice(REPLACEMENTS if source.random() < 0.2 else WITHOUT_GROUPS)
        rule = f"RULE:{pattern}/{replacement}/{source.choice(['', '', 'L', 'U'])}"
        parts.append(source.choice([rule, rule, rule, rule, "DEFAULT", "DEFAULTS", "RULE:a/b", ""]))
    return source.choice([",", ", ", " ,\t"]).join(parts)


def test_mapping_rules(security: JavaPeer, seed: int) -> None:
    """Names and rules, against SslPrincipalMapper (SEC-T24)."""
    source = random.Random(f"{seed}/mapper")
    texts = ["DEFAULT", *(mapping_rules(source) for _ in range(20 * ROUNDS))]
    questions = [{"op": "mapper", "rules": text, "names": SUBJECTS} for text in texts]
    accepted = 0
    for text, answer in zip(texts, security.ask(questions), strict=True):
        try:
            mapper = PrincipalMapper(text)
        except UsageError:
            # Kafka finds a bad reference only when a certificate fits the pattern.
            assert "error" in answer or "$" in text or any(one in text for one in UNPORTABLE), text
            continue
        accepted += 1
        assert "error" not in answer, text
        for name, expected in zip(SUBJECTS, answer["names"], strict=True):
            try:
                found = mapper.name(name)
            except NoRuleError:
                found = None
            assert found == expected, (text, name)
    assert accepted > len(texts) // 4


KERBEROS_NAMES = [
    *("alice@R", "alice@Q", "kafka/host@R", "kafka/host@Q", "alice", "a/b/c@R", "@R", "/@R"),
    *("Alice/Admin@r", "a b@R", "x/@R", "a/b", "alice@", "$1@R", "a\\@b@R", "aaa@R", ""),
]
FORMS = ["$1", "$1@$0", "$2", "$1/$2", "$0", "x$1y", "$3", "$", "$1$1", "", "a"]


def local_rules(source: random.Random) -> list[str]:
    """Rules of Kerberos, some of them broken."""
    rules = []
    for _ in range(source.randint(1, 3)):
        rule = f"RULE:[{source.choice(['1', '1', '2', '2', '3', ''])}:{source.choice(FORMS)}]"
        rule += source.choice(["", "", "(.*@R)", "(a.*)", "([a-z]+)", "(kafka)", "(x", "()"])
        change = f"s/{source.choice(['a', '@.*', '(a)(l)?', '[@/]', '.*', 'z*'])}/"
        change += f"{source.choice(['', 'b', '$1', '$0x', '$3', '@'])}/{source.choice(['', 'g'])}"
        rule += source.choice(["", change, change]) + source.choice(["", "", "/L", "L", "/U", "x"])
        rules.append(source.choice([rule, rule, rule, "DEFAULT", "default"]))
    return rules


def test_local_names(security: JavaPeer, seed: int) -> None:
    """Principals and rules, against KerberosShortNamer (SEC-S52)."""
    source = random.Random(f"{seed}/kerberos")
    texts = [["DEFAULT"], *(local_rules(source) for _ in range(100 * ROUNDS))]
    questions = [{"op": "localNames", "rules": text, "names": KERBEROS_NAMES} for text in texts]
    found = 0
    for text, answer in zip(texts, security.ask(questions), strict=True):
        try:
            names = LocalNames(text, lambda: "R")
        except UsageError:
            # Kafka finds a bad reference only when a principal gets to it.
            assert "error" in answer or any("$" in one or "[3:" in one for one in text), text
            continue
        assert "error" not in answer, text
        for principal, expected in zip(KERBEROS_NAMES, answer["names"], strict=True):
            try:
                name = names.name(principal)
            except Refused:
                name = None
            assert name == expected, (text, principal)
            found += name is not None
    assert found > len(texts)


WORDS = ["M", "org.Plain", "a-b", "$x_", "required", "OPTIONAL", "sufficient", "user_ä", "*", "x.9"]
OTHERS = [
    *("=", "=", "=", ";", ";", " ", "\n", "\t", "'s q'", '"d \\" q"', '"\\101\\7x"', '""', '"o'),
    *(
        "// c\n",
        "/* c */",
        "/ c\n",
        "12",
        "-",
        "-3",
        ".",
        "1a",
        ",",
        "{",
        "}",
        "\\",
        "a=b",
        "'\\\n'",
    ),
    *("\x7f", "\x85", "\xa0", "𝄞", "\x0b", "\r", "-.5", "'\\400'", "#"),
]


def jaas_text(source: random.Random) -> str:
    """An entry that is right, or nearly, or not at all."""
    if source.random() < 0.3:
        return "".join(source.choice(WORDS + OTHERS) for _ in range(source.randint(1, 12)))
    values = ["x", '"y z"', "'w;'", "a.b-c", '"\\n\\t\\q"', "1", "é", source.choice(OTHERS)]
    options = "".join(
        f"{source.choice([' ', chr(10), '/**/'])}{source.choice(WORDS)}={source.choice(values)}"
        for _ in range(source.randint(0, 4))
    )
    entry = f"{source.choice(WORDS)} {source.choice(['required', 'Optional', 'x'])}{options};"
    return entry if source.random() < 0.8 else entry + source.choice(OTHERS)


def shown(entry: JaasEntry) -> dict[str, Any]:
    """An entry as the Java program prints it."""
    return {"module": entry.module, "flag": entry.flag, "options": dict(entry.options)}


def test_jaas_properties(security: JavaPeer, seed: int) -> None:
    """Texts of `sasl.jaas.config`, against JaasContext (SEC-S60)."""
    source = random.Random(f"{seed}/jaas")
    texts = [jaas_text(source) for _ in range(125 * ROUNDS)]
    accepted = 0
    for text, answer in zip(
        texts, security.ask({"op": "jaas", "text": text} for text in texts), strict=True
    ):
        is_nameless = answer.pop("nameless", False)
        try:
            found = shown(parse_entry(text))
        except JaasError:
            assert "error" in answer or is_nameless, text
            continue
        assert found == answer, text
        accepted += 1
    assert accepted > len(texts) // 10


def scram_user(source: random.Random) -> tuple[str, str, str, int, bytes]:
    """Mechanism, name, password, iterations and salt."""
    letters = "ab,=\"' \xad①ﬁ\u0301𝄞\x01"
    name = "".join(source.choice("ab,=\"' ~\x7f;") for _ in range(source.randint(1, 6)))
    password = "".join(source.choice(letters) for _ in range(source.randint(1, 8)))
    mechanism = source.choice([SCRAM_SHA_256, SCRAM_SHA_512])
    return mechanism, name, password, source.choice([4096, 4097, 5000]), source.randbytes(16)


def base64_of(data: bytes) -> str:
    """Bytes as the Java program wants them."""
    return base64.b64encode(data).decode()


def test_scram_keys_and_logins_at_kafkas_server(security: JavaPeer, seed: int) -> None:
    """Keys of ScramFormatter; our client logs in at ScramSaslServer, or fails there."""
    source = random.Random(f"{seed}/server")
    users = [scram_user(source) for _ in range(10 * ROUNDS)]
    keys = security.ask(
        {"op": "keys", "mechanism": m, "password": p, "salt": base64_of(s), "iterations": i}
        for m, _, p, i, s in users
    )
    clients, firsts = [], []
    for number, ((mechanism, name, password, iterations, salt), key) in enumerate(
        zip(users, keys, strict=True)
    ):
        salted = salted_password(mechanism, password, salt, iterations)
        made = ScramCredential.of(mechanism, salted, salt, iterations)
        assert (base64_of(salted), base64_of(made.stored_key), base64_of(made.server_key)) == (
            key["salted"],
            key["storedKey"],
            key["serverKey"],
        )
        wrong = "x" if number % 5 == 4 else ""
        credentials = PasswordCredentials(name, password + wrong, is_token=number % 7 == 6)
        clients.append(ScramClient(mechanism, credentials, f"nonce{number}"))
        question = {"op": "server", "id": number, "mechanism": mechanism, "iterations": iterations}
        question |= {"salt": base64_of(salt), **key, "token": base64_of(clients[-1].first())}
        firsts.append(question)
    finals = []
    for number, answer in enumerate(security.ask(firsts)):
        proof = clients[number].answer(base64.b64decode(answer["token"]))
        assert proof is not None
        finals.append({"op": "server", "id": number, "token": base64_of(proof)})
    for number, answer in enumerate(security.ask(finals)):
        if number % 5 == 4:
            assert "error" in answer
            continue
        assert clients[number].answer(base64.b64decode(answer["token"])) is None
        assert clients[number].is_complete
        assert answer["name"] == ("owner" if number % 7 == 6 else users[number][1])


def test_scram_logins_of_kafkas_client(security: JavaPeer, seed: int) -> None:
    """ScramSaslClient logs in at our server, or fails there."""
    source = random.Random(f"{seed}/client")
    users = [scram_user(source) for _ in range(10 * ROUNDS)]
    servers = []
    questions = []
    for number, (mechanism, name, password, iterations, salt) in enumerate(users):
        salted = salted_password(mechanism, password, salt, iterations)
        user = ScramUser(name, ScramCredential.of(mechanism, salted, salt, iterations))
        known = {(name, number % 7 == 6): user}
        servers.append(
            ScramServer(
                mechanism,
                lambda name, is_token, known=known: known.get((name, is_token)),
                nonce=f"server{number}",
                decoy_of=decoys(mechanism),
            )
        )
        wrong = "x" if number % 5 == 4 else ""
        question = {"op": "client", "id": number, "mechanism": mechanism, "name": name}
        questions.append(
            question | {"password": password + wrong, "token": "", "isToken": number % 7 == 6}
        )
    for step in range(2):
        answers = security.ask(questions)
        questions = []
        for number, answer in enumerate(answers):
            token = base64.b64decode(answer["token"])
            if step and number % 5 == 4:
                with pytest.raises(Refused):
                    servers[number].answer(token)
                continue
            reply = base64_of(servers[number].answer(token))
            questions.append({"op": "client", "id": number, "token": reply})
    assert all(answer["complete"] for answer in security.ask(questions))
    names = [server.name for number, server in enumerate(servers) if number % 5 != 4]
    assert names == [user[1] for number, user in enumerate(users) if number % 5 != 4]


OIDS = [
    *("2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.10", "2.5.4.11", "2.5.4.9", "2.5.4.5"),
    *("0.9.2342.19200300.100.1.25", "0.9.2342.19200300.100.1.1", "1.2.840.113549.1.9.1"),
    *("2.5.4.12", "2.5.4.4", "2.5.4.42"),
]


@pytest.mark.filterwarnings("ignore:Attribute's length")
def test_subjects_of_certificates(security: JavaPeer, seed: int) -> None:
    """Names of all kinds, against X500Principal (SEC-T22)."""
    source = random.Random(f"{seed}/subjects")
    letters = "aB1 ,+\"\\<>;#=\r\néß漢\t/'."
    names = []
    for _ in range(50 * ROUNDS):
        parts = []
        for _ in range(source.randint(1, 4)):
            texts = [
                "".join(source.choice(letters) for _ in range(source.randint(1, 6))) for _ in "ab"
            ]
            attributes = [
                x509.NameAttribute(x509.ObjectIdentifier(oid), text, _validate=False)
                for oid, text in zip(source.sample(OIDS, 2), texts, strict=True)
            ]
            parts.append(x509.RelativeDistinguishedName(attributes[: source.choice([1, 1, 1, 2])]))
        names.append(x509.Name(parts).public_bytes())
    questions = [{"op": "subject", "bytes": name.hex()} for name in names]
    for name, answer in zip(names, security.ask(questions), strict=True):
        assert subject_text(name) == answer["name"], name.hex()


def test_principals_of_envelopes(security: JavaPeer) -> None:
    """As DefaultKafkaPrincipalBuilder writes and reads them (SEC-A13)."""
    principals = [Principal("User", "alice"), Principal("T:x", "ä", is_token=True)]
    questions = [{"op": "principal", "bytes": encode_principal(one).hex()} for one in principals]
    for principal, answer in zip(principals, security.ask(questions), strict=True):
        assert (answer["type"], answer["name"]) == (principal.type, principal.name)
        read = decode_principal(bytes.fromhex(answer["bytes"]))
        assert (read, read.is_token) == (principal, answer["token"])
