"""Rules in files: both formats say the same, and a mistake is found in its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.errors import UsageError
from kraftwire.faults.rows import rule_json
from kraftwire.faults.rules_file import read_rules

JSON = """{"rules": [
  {"api": "Produce", "refuse": "NOT_ENOUGH_REPLICAS", "topic": ["orders", "audit*"],
   "times": 2},
  {"api": ["Fetch", "ListOffsets"], "delay": [0.1, 0.5], "seed": 3, "client_id": "app-*"},
  {"api": "Metadata", "falsify": {"topics[*].partitions[0].errorCode": "LEADER_NOT_AVAILABLE"}}
]}
"""
TOML = """# three rules
[[rules]]
api = "Produce"
refuse = "NOT_ENOUGH_REPLICAS"
topic = ["orders", "audit*"]
times = 2

[[rules]]
api = ["Fetch", "ListOffsets"]
delay = [0.1, 0.5]
seed = 3
client_id = "app-*"

[[rules]]
api = "Metadata"
falsify = { "topics[*].partitions[0].errorCode" = "LEADER_NOT_AVAILABLE" }
"""


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file; returns its path."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_both_formats_say_the_same(tmp_path: Path) -> None:
    """And the rules show as JSON what was written."""
    found = [
        [rule_json(rule) for rule in read_rules(written(tmp_path, name, text))]
        for name, text in (("a.json", JSON), ("a.toml", TOML))
    ]
    assert found[0] == found[1]
    assert found[0][0] == {
        "id": 0,
        "api": "Produce",
        "refuse": "NOT_ENOUGH_REPLICAS",
        "topic": ["orders", "audit*"],
        "times": 2,
        "count": 0,
        "not_carried": {},
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("times", "tims", {"json": 3, "toml": 6}, "tims: no such key; did you mean times"),
        ("2", '"2"', {"json": 3, "toml": 6}, "times: expected a whole number"),
        ("ListOffsets", "ListOffset", {"json": 4, "toml": 9}, "no API 'ListOffset' here; did you"),
        ("NOT_ENOUGH_", "NOT_", {"json": 2, "toml": 4}, "refuse: there is no error 'NOT_REPLICAS'"),
        ("errorCode", "errorCod", {"json": 5, "toml": 16}, "has no errorCod; it has errorCode, p"),
        ("LEADER_NOT", "NOT_LEADER", {"json": 5, "toml": 16}, "there is no error 'NOT_LEADER_AV"),
        ("[0].", ".", {"json": 5, "toml": 16}, r"is an array: write partitions\[\*\] or"),
        ("app-*", "", {"json": 4, "toml": 12}, "client_id: expected a text"),
    ],
)
def test_a_mistake_is_found_in_its_line(
    tmp_path: Path, old: str, new: str, line: dict[str, int], problem: str
) -> None:
    """With what was found and what was expected."""
    for kind, text in (("json", JSON), ("toml", TOML)):
        path = written(tmp_path, f"a.{kind}", text.replace(old, new))
        if new == "":
            path = written(tmp_path, f"a.{kind}", text.replace(f'"{old}"', "7"))
        with pytest.raises(UsageError, match=f"^{path}:{line[kind]}: .*{problem}"):
            read_rules(path)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.yaml", "", "a.yaml: a file of rules ends with .json or .toml"),
        ("a.json", '{\n"rules": [\n}', "a.json:3: Expecting value"),
        ("a.toml", "[[rules]]\napi = \n", "a.toml:2: Invalid value"),
        ("a.json", "[]", r"a.json:1: expected a list rules, found \[\]"),
        ("a.json", '{"rules": [],\n"rule": []}', "expected rules alone, found 'rule'"),
        ("a.json", '{"rules": [\n7]}', "a.json:2: expected a rule, found 7"),
        ("a.json", '{"rules": [{"api": "Fetch",\n"api": "Vote"}]}', "a.json:2: api is there twice"),
        ("a.toml", "rules = [{api = 'Vote'}]", "a.toml:1: a rule has one of refuse"),
        ("a.json", '{"a":' * 100_000, "a.json: it is nested too deeply"),
        ("a.json", '{"rules":\n' + "1" * 5000 + "}", "a.json:2: expected a number, found more"),
        ("a.toml", "\nrules = " + "1" * 5000, "a.toml:2: expected a number, found more"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, name: str, text: str, problem: str) -> None:
    """One line, which names the place as well as it is known."""
    with pytest.raises(UsageError, match=problem):
        read_rules(written(tmp_path, name, text))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """Files of editors may have any encoding."""
    (tmp_path / "a.json").write_bytes(b'{"rules": "\xff"}')
    with pytest.raises(UsageError, match=r"no UTF-8: .* at byte 11"):
        read_rules(tmp_path / "a.json")
