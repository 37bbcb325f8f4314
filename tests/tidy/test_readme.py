"""What the READMEs and the pages for users tell people to type works.

Every ```sh block of every README.md, and of every page in docs, is run from the root of a copy of
the project, so that it may write files there. A block that cannot run says so in the line before
it, as a comment ``<!-- not run: reason -->``; only few of those are allowed. Commands that start
the whole gate or pytest are recognised and checked for what they name instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tidy.recipes import NOT_RUN, copy_project, run
from tests.tidy.sources import ROOT, project_files, show

NOT_RUN_MAX = 12
# Their commands are run by tests/unit/examples, on a quorum and beside a proxy.
OF_THEIR_OWN = {ROOT / "docs" / name for name in ("plaintext-to-sasl-ssl.md", "control.md")}
BLOCK = re.compile(r"^```sh\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
PYTEST = re.compile(r"(?:^|/|\s)(?:python -m )?pytest\b(?P<arguments>.*)")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of commands."""

    path: Path
    line: int
    code: str
    reason_not_run: str

    def __str__(self) -> str:
        return show(self.path, self.line)


def _blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    blocks = []
    for match in BLOCK.finditer(text):
        before = text[: match.start()].rstrip("\n")
        mark = NOT_RUN.search(before.rpartition("\n")[2])
        line = before.count("\n") + 2
        blocks.append(Block(path, line, match["code"], mark["reason"] if mark else ""))
    return blocks


READMES = [
    path
    for path in project_files()
    if path.name == "README.md" or (path.parent == ROOT / "docs" and path.suffix == ".md")
    if path not in OF_THEIR_OWN
]
BLOCKS = [block for path in READMES for block in _blocks(path)]


def _recognised(command: str) -> bool:
    """Whether a command would run this very test again; what it names must exist."""
    words = command.split()
    if words[:1] == ["make"]:
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        missing = [w for w in words[1:] if "=" not in w and not w.startswith("-")]
        assert set(missing) <= set(targets), f"{command}: no such target in the Makefile"
        return True
    match = PYTEST.search(command)
    if match:
        named = [word.partition("::")[0] for word in match["arguments"].split()]
        missing = [w for w in named if w.startswith("tests") and not (ROOT / w).exists()]
        assert not missing, f"{command}: there is no {missing}"
        return True
    return words[:1] == [".ci/run"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project whose `.venv` is the environment of this run."""
    root = tmp_path_factory.mktemp("checkout") / "kraftwire"
    copy_project(root)
    if (ROOT / ".cache").is_dir():
        (root / ".cache").symlink_to(ROOT / ".cache")
    return root


@pytest.mark.parametrize("block", [b for b in BLOCKS if not b.reason_not_run], ids=str)
def test_commands_of_the_readme_run(block: Block, checkout: Path) -> None:
    """A command that fails for a newcomer is worse than none."""
    lines = [line for line in block.code.splitlines() if not _recognised(line)]
    script = "\n".join(lines)
    if script.strip():
        run(script, checkout)


def test_the_readme_shows_what_its_first_command_prints(checkout: Path) -> None:
    """Three dots stand for lines that are left out."""
    text = (ROOT / "README.md").read_text()
    first = re.search(r"(?ms)^(kraftwire .*?)\n```\n\n```text\n(.*?)^```$", text)
    assert first
    command, shown = first.groups()
    printed = run(f"COLUMNS=80 {command}", checkout).splitlines()
    assert [line for line in shown.splitlines() if line not in [*printed, "..."]] == []


def test_few_commands_are_not_run() -> None:
    """Exceptions stay exceptions."""
    excused = [f"{block}: {block.reason_not_run}" for block in BLOCKS if block.reason_not_run]
    assert len(excused) <= NOT_RUN_MAX, "\n".join(excused)


def test_commands_stand_in_blocks_that_are_run() -> None:
    """A block marked as bash or shell would escape the test above."""
    wrong = [
        show(path, number)
        for path in READMES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.match(r"```(bash|shell|console|zsh)\b", line)
    ]
    assert not wrong, "\n".join(wrong)


def test_links_of_the_documents_lead_somewhere() -> None:
    """A moved file takes its links along."""
    wrong = []
    for path in (path for path in project_files() if path.suffix == ".md"):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            if "://" not in target and not (path.parent / target).exists():
                wrong.append(f"{show(path)}: {target}")
    assert not wrong, "\n".join(wrong)
