"""Java properties files: what `java.util.Properties` reads from the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import UsageError
from kraftwire.properties_file import Property, escape_property, parse_properties, read_properties


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(entry.key, entry.value) for entry in parse_properties(text, "x.properties")]


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1\nb:2\nc 3\n", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("  a  =  1  \n", [("a", "1  ")]),
        ("a\n", [("a", "")]),
        ("a==1\n", [("a", "=1")]),
        ("a : = 1", [("a", "= 1")]),
        ("a\t\f1", [("a", "1")]),
        ("=1", [("", "1")]),
        ("# x\n! y\n  # z\n\n  \na=#1", [("a", "#1")]),
        ("a=1,\\\n   2,\\\r\n\t3\rb=4", [("a", "1,2,3"), ("b", "4")]),
        ("a=1\\\\\nb=2", [("a", "1\\"), ("b", "2")]),
        ("# x\\\na=1", [("a", "1")]),
        ("a=1\\\n# 2", [("a", "1# 2")]),
        ("a=1\\\n\nb=2", [("a", "1"), ("b", "2")]),
        ("\\\n#x\na=1", [("a", "1")]),
        ("a=1\\", [("a", "1")]),
        ("a\\ b\\:c\\=d=e", [("a b:c=d", "e")]),
        (r"a=\t\n\r\f\q\"\u00e9\\", [("a", '\t\n\r\fq"\u00e9\\')]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
        ("a=x\x0by\u2028z", [("a", "x\x0by\u2028z")]),
        ("", []),
    ],
)
def test_entries_are_those_java_reads(text: str, pairs: list[tuple[str, str]]) -> None:
    """A server.properties must mean the same here as in Kafka."""
    assert _pairs(text) == pairs


def test_an_entry_knows_the_line_of_its_key() -> None:
    """Errors about a bad value name the line, even after continuation lines."""
    text = "# c\na=1,\\\n  2\n\nb=3"
    assert parse_properties(text, "f") == [Property("a", "1,2", 2), Property("b", "3", 5)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u", "\\uzzzz=1"])
def test_a_broken_unicode_escape_is_refused_with_file_and_line(text: str) -> None:
    """Java refuses the whole file as well, but does not say where."""
    with pytest.raises(UsageError, match=r"^f:2: '\\\\u.*four hex digits"):
        parse_properties("# first\n" + text, "f")


@pytest.mark.parametrize("text", ["", " a b", "a=b:c#d!e\\", "\t\n\r\f", "caf\u00e9 \U0001f600"])
def test_escapes_read_back(text: str) -> None:
    """What is written must be read as the same key and value, by Java too."""
    line = escape_property(text, is_key=True) + "=" + escape_property(text)
    entries = parse_properties(line, "f")
    got = [part.encode("utf-16", "surrogatepass") for e in entries for part in (e.key, e.value)]
    assert got == [text.encode("utf-16")] * 2


def test_values_escape_only_a_leading_space() -> None:
    """`Properties.store` does so, and the files are compared byte for byte."""
    assert escape_property(" a b") == "\\ a b"
    assert escape_property("a b", is_key=True) == "a\\ b"


def test_a_byte_order_mark_is_named(tmp_path: Path) -> None:
    """Editors write it, and Java takes it for a part of the first key, which then is missing."""
    path = tmp_path / "f"
    path.write_bytes(b"\xef\xbb\xbfsecurity.protocol=SSL\n")
    with pytest.raises(UsageError, match=r"f:1: begins with a byte order mark.*without it"):
        read_properties(str(path))


def test_a_value_that_a_provider_knows_is_refused(tmp_path: Path) -> None:
    """It would be the password, as it stands."""
    path = tmp_path / "f"
    text = "a=1\nssl.key.password=${vault:secret/x:key}\n"
    path.write_text(text)
    assert read_properties(str(path))[1].value == "${vault:secret/x:key}"
    path.write_text(f"{text}config.providers=file, vault\n")
    with pytest.raises(UsageError, match=r"f:2: ssl\.key\.password: config\.providers are Java's"):
        read_properties(str(path))
