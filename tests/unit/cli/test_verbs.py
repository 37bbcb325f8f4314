"""`kraftwire stats`, `story` and `records`: their options, and what they have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click
import pytest

from kraftwire.cli.commands import COMMANDS, load
from kraftwire.cli.main import main
from tests.support.captures.decoded import ROOT, golden

GROUPS = ROOT / "tests" / "golden" / "captures" / "groups.pcapng.xz"
LOGS = ROOT / "tests" / "golden" / "logs"
CLEAN, NOTHING, USAGE = 0, 1, 2
WIDTH = 80
VERBS = (
    "stats", "story raft", "story groups", "story transactions", "story topics", "story clients",
    "records",
)  # fmt: skip
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_prints_text_and_json(verb: str, capsys: Captured) -> None:
    """People read the one, programs the other."""
    path = golden("quorum") if verb == "story raft" else GROUPS
    assert main([*verb.split(), str(path), "-q"]) == CLEAN
    assert capsys.readouterr().out.strip()
    assert main([*verb.split(), str(path), "-q", "--json"]) == CLEAN
    lines = capsys.readouterr().out.splitlines()
    assert lines
    for line in lines:
        assert isinstance(json.loads(line), dict)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_filters_and_reports_empty_output(verb: str, capsys: Captured) -> None:
    """The filters of decode are those of all."""
    assert main([*verb.split(), str(GROUPS), "--api", "Vote"]) == CLEAN
    assert "kraftwire: nothing passes the filters\n" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["decode", *VERBS])
def test_every_verb_has_the_exit_codes_of_decode(verb: str, capsys: Captured) -> None:
    """A file that is missing is 1, a filter that makes no sense is 2."""
    assert main([*verb.split(), "/nowhere/at.all"]) == NOTHING
    assert "/nowhere/at.all: no such file" in capsys.readouterr().err
    assert main([*verb.split(), str(GROUPS), "--api", "Fetsch"]) == USAGE
    assert "did you mean Fetch" in capsys.readouterr().err


def test_a_story_is_told_from_several_directories(capsys: Captured) -> None:
    """The nodes of a quorum each have a log."""
    paths = [str(LOGS / name) for name in ("controller", "observer")]
    assert main(["story", "raft", *paths, "--json", "-q"]) == CLEAN
    assert json.loads(capsys.readouterr().out)["events"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "--stats"),
        ("decode", "--raft"),
        ("decode", "--print-data"),
        ("stats", "-v"),
        ("stats", "--follow"),
        ("story", "transactions", "--offset", "3"),
        ("records", "--bytes"),
    ],
    ids=" ".join,
)
def test_an_option_of_another_verb_is_unknown(
    arguments: tuple[str, ...], capsys: Captured
) -> None:
    """Every command has only the options that mean something to it."""
    assert main([*arguments, str(GROUPS)]) == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert "No such option" in line


def test_a_template_is_not_json(capsys: Captured) -> None:
    """A line cannot be both."""
    assert main(["records", str(GROUPS), "--json", "--template", "%k"]) == USAGE
    assert "--json and --template exclude each other" in capsys.readouterr().err


def _commands(name: str, command: object) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Command):
        yield name, command
    if isinstance(command, click.Group):
        for inner, each in command.commands.items():
            yield from _commands(f"{name} {inner}", each)


def test_every_help_fits_a_terminal(capsys: Captured) -> None:
    """80 columns are what a new terminal has; text that is not wrapped must fit by itself.

    A line about a command is a whole sentence, and -h is --help everywhere.
    """
    helps = ["", "message"]
    for name in COMMANDS:
        helps += [words for words, _ in _commands(name, load(name))]
    wrong = []
    for words in helps:
        assert main([*words.split(), "--help"]) == CLEAN
        text = capsys.readouterr().out
        assert (main([*words.split(), "-h"]), capsys.readouterr().out) == (CLEAN, text)
        assert (main(["help", *words.split()]), capsys.readouterr().out) == (CLEAN, text)
        commands = text.partition("\nCommands:\n")[2].splitlines()
        wrong += [f"{words}: {line}" for line in commands if line.endswith("...")]
        wrong += [f"{words}: {line}" for line in text.splitlines() if len(line) > WIDTH]
    assert len(helps) > 40
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_narrow_terminal_wraps_what_a_group_says_of_its_commands(
    name: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every sentence is whole, over as many lines as it needs."""
    monkeypatch.setenv("COLUMNS", "50")
    assert main([name, "--help"]) == CLEAN
    shown = capsys.readouterr().out.partition("\nCommands:\n")[2]
    inner = list(_commands(name, load(name)))[1:]
    assert "..." not in shown
    assert shown.count(".\n") == len(inner) == len(set(re.findall(r"^  (\S+)", shown, re.M)))
