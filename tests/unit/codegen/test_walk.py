"""The README follows a field from its schema to its bytes; every block of it is true."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from codegen.__main__ import main
from tests.tidy.sources import ROOT


def blocks() -> Iterator[tuple[str, str]]:
    """The fenced blocks of the walk: kind and text."""
    readme = (ROOT / "codegen" / "README.md").read_text("utf-8")
    walk = readme.split("## From a schema line to a byte\n")[1].split("\n## ")[0]
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", walk, re.DOTALL | re.MULTILINE):
        yield match[1], match[2]


def text_of(path: str) -> str:
    """A file of the project."""
    return (ROOT / path).read_text("utf-8")


def explained(name: str) -> str:
    """The plan of a message."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["--explain", name]) == 0
    return out.getvalue()


def test_the_walk_is_true() -> None:
    """Schema, plan, template, module, program and its output, in this order."""
    schema, plan, template, reads, writes, program, output = blocks()
    assert schema[1] in text_of("schemas/rpc/VoteRequest.json")
    assert plan[1] in explained("VoteRequest")
    assert template[1].splitlines()[0] in text_of("codegen/templates/codec.j2")
    assert template[1].splitlines()[1] in text_of("codegen/templates/codec.j2")
    module = text_of("kraftwire/messages/vote_request.py")
    assert reads[1] in module
    assert writes[1] in module
    code = program[1].removeprefix("python - <<'EOF'\n").removesuffix("EOF\n")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == output[1]


@pytest.mark.parametrize("name", ["codec.py", "branches.py", "templates/codec.j2"])
def test_the_walk_names_what_exists(name: str) -> None:
    """A file that moves takes its name in the walk with it."""
    assert (ROOT / "codegen" / name).is_file()
