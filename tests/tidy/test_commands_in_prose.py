"""Commands that prose names exist: in Markdown, docstrings, comments and texts of the program.

The command line itself decides: each word up to the first argument has to be a command of the group
before it, each option one of that command. ``a|b`` stands for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain, product, takewhile
from pathlib import Path

import click
import pytest

from kraftwire.cli.commands import HELP_OPTIONS
from kraftwire.cli.completion import group
from tests.tidy.sources import ROOT, project_files, show

PROGRAM = r"(?:\.venv/bin/)?(?:kraftwire|make|python -m) "
SPAN = re.compile(rf"(`+)(?P<command>{PROGRAM}[^`]+?)\1")
# A line of a block that is not run: its explanation stands behind two blanks.
LINE = re.compile(rf"^ *(?P<command>{PROGRAM}.*?)(?:  .*)?$", re.MULTILINE)
TEXT_BLOCK = re.compile(r"^```text\n.*?^```$", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"^([\w-]+):", re.MULTILINE)
OPTION = re.compile(r"--?[A-Za-z][\w-]*")
MADE_UP = re.compile(r"[a-z.]*[A-Z]+|\.\.\.|[<\[].*")
# What stands for the name of a command in general.
ANY = {"COMMAND", "...", "SUBCOMMAND"}


def _spans(text: str) -> Iterator[tuple[int, str]]:
    blocks = (LINE.finditer(text, *block.span()) for block in TEXT_BLOCK.finditer(text))
    for match in chain(SPAN.finditer(text), *blocks):
        command = re.sub(r"\s*\n[\s#>]*", " ", match["command"]).replace("\\|", "|")
        yield text.count("\n", 0, match.start()) + 1, command.removeprefix(".venv/bin/")


def _problem(command: str) -> str | None:
    """Return what is wrong with a command, None if it can be typed."""
    program, *words = command.split()
    if program == "make":
        targets = TARGET.findall((ROOT / "Makefile").read_text())
        unknown = [w for w in words if re.fullmatch(r"[a-z-]+", w) and w not in targets]
        return f"no target {unknown[0]}" if unknown else None
    if program == "python":
        module = words[1].strip(".,")
        return None if MADE_UP.fullmatch(module) or find_spec(module) else f"no module {module}"
    variants = product(*(word.split("|") if "[" not in word else [word] for word in words))
    return next(filter(None, map(_unknown_word, variants)), None)


def _unknown_word(words: tuple[str, ...]) -> str | None:
    command: click.Command = group()
    context = click.Context(command, info_name="kraftwire", help_option_names=HELP_OPTIONS)
    for number, word in enumerate(words):
        if not isinstance(command, click.Group) or word.startswith("-"):
            return _unknown_option(command, context, words[number:])
        if word in ANY or MADE_UP.fullmatch(word):
            return None
        found = command.get_command(context, word)
        if found is None:
            return f"no command {word}"
        command, context = found, click.Context(found, info_name=word, parent=context)
    return None


def _unknown_option(
    command: click.Command, context: click.Context, words: tuple[str, ...]
) -> str | None:
    known = {"-h", "--help", "-V", "--version"}
    for parameter in command.get_params(context):
        known.update(parameter.opts, parameter.secondary_opts)
    for word in takewhile(lambda word: word != "--" and not word.startswith("<"), words):
        option = OPTION.match(word.strip("[]"))
        if option and option[0] not in known and word[:2] not in known:
            return f"no option {option[0]}"
    return None


def _files() -> Iterator[Path]:
    for path in project_files():
        if path.suffix in (".md", ".py") and "messages" not in path.parts:
            yield path


def test_commands_in_prose_can_be_typed() -> None:
    """A command that was renamed is renamed everywhere."""
    wrong = [
        f"{show(path, line)}: `{command}`: {problem}"
        for path in _files()
        for line, command in _spans(path.read_text(encoding="utf-8"))
        if (problem := _problem(command))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("kraftwire sim timeless --seeds 0-9", "no command timeless"),
        ("kraftwire decode --no-such-option", "no option --no-such-option"),
        ("kraftwire story raft|cats DIR", "no command cats"),
        ("make no-such-target", "no target no-such-target"),
        ("python -m tests.no_such_module", "no module tests.no_such_module"),
        ("kraftwire decode FILE --api Vote", None),
        ("kraftwire COMMAND --help", None),
    ],
)
def test_an_unknown_command_is_found(command: str, problem: str | None) -> None:
    """The check looks at commands, options, targets and modules."""
    assert _problem(command) == problem

