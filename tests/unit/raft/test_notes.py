"""Lines for the log: each has a key for its kind, by which a node limits them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.plain import data_batch
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import begin, fetched

PACKAGE = Path(__file__).resolve().parents[3] / "kraftwire" / "raft"


def notes(found: list[effects.Effect]) -> list[effects.Note]:
    """The lines among effects."""
    return [one for one in found if isinstance(one, effects.Note)]


def written_notes() -> list[tuple[str, ast.Call]]:
    """Every call in the package that writes a line, with its place."""
    found = []
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "note"
            ):
                found.append((f"{path.name}:{node.lineno}", node))
    return found


def test_every_line_has_a_key_that_does_not_depend_on_its_text() -> None:
    """A key made of peers' values would let them write any number of lines."""
    calls = written_notes()
    assert len(calls) > 20
    for place, call in calls:
        keys = [word.value for word in call.keywords if word.arg == "key"]
        assert len(keys) == 1, place
        assert isinstance(keys[0], ast.Constant), place
        assert keys[0].value, place


def test_a_key_stands_for_one_level() -> None:
    """Otherwise an error could be suppressed because of an unimportant line."""
    levels: dict[str, set[str]] = {}
    for _, call in written_notes():
        key = next(ast.unparse(word.value) for word in call.keywords if word.arg == "key")
        positional = [ast.unparse(one) for one in call.args[1:2]]
        named = [ast.unparse(word.value) for word in call.keywords if word.arg == "level"]
        levels.setdefault(key, set()).add((positional or named or ["'info'"])[0])
    assert {key: found for key, found in levels.items() if len(found) > 1} == {}


def test_lines_of_a_kind_have_one_key_whatever_they_say() -> None:
    """Each of these names another offset, claim or error."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(1))
    lone.follow(2, 3)
    before = len(lone.effects)
    for offset in (5, 6, 7):
        lone.fetch_gets(fetched(2, 3, data_batch(offset, 3, 0, [b"x"])))
        lone.wait(20)
        lone.fetch_gets(fetched(2, 3, error=6))
    for leader in (4, 5):
        lone.request(begin(leader, 3))
    found = notes(lone.effects[before:])
    assert len({one.text for one in found}) == 5
    assert Counter(one.key for one in found) == {"fetched": 3, "claim": 2}


def test_another_cluster_is_logged_with_the_remedy() -> None:
    """A wrong address, or a directory of another cluster: the code alone does not help."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(1))
    lone.follow(2, 3)
    foreign = FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    [note] = notes(lone.fetch_gets(foreign))
    assert (note.level, note.key) == ("warning", "answered")
    assert f"it is not of cluster {lone.config.cluster_id}" in note.text
    assert "format an empty directory" in note.text


def test_what_a_person_has_to_look_at_is_an_error() -> None:
    """A leader that asks to truncate committed records is a serious problem."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(1))
    lone.follow(2, 3)
    lone.fetch_gets(fetched(2, 3, high_watermark=4))
    [note] = notes(lone.fetch_gets(fetched(2, 3, diverging=(1, 2))))
    assert (note.level, note.key) == ("error", "cut-refused")
    lone.wait(20)
    lone.fetch_gets(fetched(2, 3, error=6))
    [note] = notes(lone.fetch_gets(fetched(2, 3, snapshot=OffsetAndEpoch(3, 1))))
    assert (note.level, note.key) == ("warning", "snapshot-claim")
