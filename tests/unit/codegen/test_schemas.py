"""The files in schemas/: their form, their completeness, their texts.

tests/interop compares their facts with Kafka's jars.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.messages.vectors import vectors
from tools.import_schemas.__main__ import main
from tools.import_schemas.render import render_schema
from tools.import_schemas.texts import collect_texts
from tools.import_schemas.tree import FOLDERS, read_tree
from tools.import_schemas.versions import EMPTY

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas"


def test_every_file_in_schemas_is_as_the_import_writes_it() -> None:
    """A hand-edited file keeps the layout, so that the next import shows only facts."""
    messages = read_tree(SCHEMAS)
    for path in [path for folder in FOLDERS for path in (SCHEMAS / folder).glob("*.json")]:
        is_as_written = path.read_text(encoding="utf-8") == render_schema(messages[path.stem])
        assert is_as_written, f"python -m tools.import_schemas --layout mends {path.name}"


def test_the_layout_of_an_edited_file_is_mended(tmp_path: Path) -> None:
    """Nobody has to find out by trial where a line ends."""
    schemas = tmp_path / "schemas"
    shutil.copytree(SCHEMAS, schemas)
    path = schemas / "rpc" / "HeartbeatRequest.json"
    text = path.read_text("utf-8")
    edited = text.replace(",\n      ", ", ")
    assert edited != text
    path.write_text(edited, "utf-8")
    assert main(["--layout", "--check", "--out", str(schemas)]) == 1
    assert path.read_text("utf-8") == edited
    assert main(["--layout", "--out", str(schemas)]) == 0
    assert path.read_text("utf-8") == text
    assert main(["--layout", "--check", "--out", str(schemas)]) == 0


def test_a_missing_folder_has_no_layout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong path is not taken for a folder without schemas."""
    assert main(["--layout", "--out", str(tmp_path / "shemas")]) == 2
    assert "is not a folder of schemas" in capsys.readouterr().err


def test_schemas_have_exactly_the_versions_that_kafka_can_write() -> None:
    """The vectors hold every message in every version of both releases."""
    ours = {
        (name, version)
        for name, message in read_tree(SCHEMAS).items()
        for version in message.valid.without(EMPTY)
    }
    theirs = {(name, vector.version) for name, rows in vectors().items() for vector in rows}
    assert ours == theirs


def test_every_message_says_what_it_is_for() -> None:
    """`kraftwire schema` shows these lines; one that is too long would wrap."""
    for name, message in read_tree(SCHEMAS).items():
        texts = collect_texts(message)
        assert texts.get(""), name
        assert not [text for text in texts.values() if len(text) > 90 or "\n" in text], name
