"""JAAS texts are read as Kafka and Java read them (SEC-S60)."""

from __future__ import annotations

import pytest

from kraftwire.security.credentials import (
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_512,
    PlainUsers,
    password_credentials,
)
from kraftwire.security.jaas import JaasError, parse_entry

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("username=alice password=secret", {"username": "alice", "password": "secret"}),
        ('password="with \\" and \\\\"', {"password": 'with " and \\'}),
        ("password='single; quoted'", {"password": "single; quoted"}),
        ('"user_a b"="x"', {"user_a b": "x"}),
        ('password="\\101\\60\\x\\t"', {"password": "A0x\t"}),
        ('password="1\\477"', {"password": "1'7"}),
        ("a=b /* c=d */ // e=f\n g=h", {"a": "b", "g": "h"}),
        ("a=b / to the line's end\n c=d", {"a": "b", "c": "d"}),
        ("a-b_c$=d1.2", {"a-b_c$": "d1.2"}),
        ("a=b a=c", {"a": "c"}),
        ("user_ä=ö", {"user_ä": "ö"}),
        ('a="\n=b', None),
        ("a=1", None),
        ("a=.5", None),
        ("a=-5", None),
        ("a=-x", None),
        ("a", None),
        ("a b", None),
        ("a=", None),
        ("=b", None),
        ('a="x', None),
        ('a="x\\', None),
    ],
)
def test_options(text: str, options: dict[str, str] | None) -> None:
    """Comments, quotes and escapes are those of Java's tokenizer; numbers need quotes."""
    whole = f"{MODULE} required {text};"
    if options is None:
        with pytest.raises(JaasError):
            parse_entry(whole)
    else:
        entry = parse_entry(whole)
        assert (entry.module, entry.flag, entry.options) == (MODULE, "required", options)
        assert entry.name == "PlainLoginModule"


@pytest.mark.parametrize("form", ['"{}"', "'{}'", "KafkaClient {{ {} }};"])
def test_an_entry_with_something_around_it(form: str) -> None:
    """People quote it, or copy it from a JAAS file; the error does not show it."""
    text = form.format(f"{MODULE} required username=alice password=secret;")
    with pytest.raises(JaasError, match=r"neither quotes nor KafkaClient \{ \}") as failed:
        parse_entry(text)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", '"optional"'])
def test_flags_in_any_case(flag: str) -> None:
    """Four flags, however they are written."""
    assert parse_entry(f"M {flag};").flag == flag.strip('"').lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  // nothing",
        "M",
        "M required",
        "M needed;",
        "M required; N required;",
        "; M required;",
        "com.sun.security.auth.module.JndiLoginModule required;",
        '" com.sun.security.auth.module.LdapLoginModule" required;',
    ],
)
def test_refused(text: str) -> None:
    """Exactly one entry, ended by a semicolon, and none that Kafka forbids."""
    with pytest.raises(JaasError):
        parse_entry(text)


@pytest.mark.parametrize(
    "text",
    [
        f'{MODULE} required password="hunter"2" x;',
        f"{MODULE} hunter2;",
        f"{MODULE} required password=hunter2",
        f"{MODULE} required hunter2 hunter2=hunter2;",
        "hunter2",
    ],
)
def test_errors_do_not_quote(text: str) -> None:
    """What stands at the wrong place may be a password."""
    with pytest.raises(JaasError) as caught:
        parse_entry(text)
    assert "hunter" not in str(caught.value)
    assert "hunter" not in repr(parse_entry(f"{MODULE} required password=hunter2;"))


@pytest.mark.parametrize("value", ["1x", "a#b", "a@b", "a/b", "a=b", "-x", "a+b/c==", "!"])
def test_values_that_need_quotes_are_said_to(value: str) -> None:
    """Passwords have such characters; with quotes all of them are taken."""
    with pytest.raises(JaasError, match="a value needs quotes if it begins with a digit, or has"):
        parse_entry(f"{MODULE} required password={value};")
    quoted = parse_entry(f'{MODULE} required password="{value}";')
    assert quoted.options == {"password": value}


def test_credentials() -> None:
    """The module decides the mechanism; options say who logs in, and who may."""
    entry = parse_entry(f'{MODULE} required username=a password=b user_x="secret1" user_=q;')
    found = password_credentials(entry, PLAIN)
    assert (found.username, found.password, found.is_token) == ("a", "b", False)
    assert "'b'" not in repr(found)
    users = PlainUsers(entry)
    assert (users.password("x"), users.password(""), users.password("a")) == ("secret1", "q", None)
    assert "secret1" not in repr(users)
    others = {SCRAM_SHA_512: "expected org", "GSSAPI": "expected com.sun", "X": "not supported"}
    for mechanism, text in others.items():
        with pytest.raises(JaasError, match=text):
            password_credentials(entry, mechanism)
    for password, problem in ("", "is missing"), ('password=""', "is empty, and nobody"):
        with pytest.raises(JaasError, match=f"option password {problem}"):
            password_credentials(parse_entry(f"{MODULE} required username=a {password};"), PLAIN)
    scram = MODULE.replace("plain.Plain", "scram.Scram")
    token = parse_entry(f"{scram} required username=a password=b tokenauth=TRUE;")
    assert password_credentials(token, SCRAM_SHA_512).is_token
    with pytest.raises(JaasError):
        PlainUsers(parse_entry(f"{MODULE.replace('plain.Plain', OAUTHBEARER)} required;"))
