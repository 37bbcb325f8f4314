"""Options that people know from other tools: the error says what to use here."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from kraftwire.cli.commands import load
from kraftwire.cli.foreign_options import _ROWS
from kraftwire.cli.main import main
from tests.support.captures.decoded import ROOT

Captured = pytest.CaptureFixture[str]
USAGE = 2


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("decode -r trace.pcapng", "Name the file without an option: kraftwire decode FILE."),
        ("decode -n trace.pcapng", "addresses are never turned into names."),
        ("decode -nn trace.pcapng", "addresses are never turned into names."),
        ("stats -Y kafka trace.pcapng", "Filter with --api,"),
        ("decode -w out.pcap", "tcpdump -w FILE port 9092"),
        ("story raft -r trace.pcapng", "kraftwire story raft FILE."),
        ("records -b localhost:9092 -t orders -C", "Files are read, not brokers"),
        ("records -t orders", "Use --topic NAME."),
        ("decode --files 0.log --print-data-log", "Name the file without an option"),
        ("decode --cluster-metadata-decoder 0.log", "--family"),
        ("decode --deep-iteration 0.log", "Leave it out"),
        ("records --from-beginning", "Leave it out"),
        ("metadata -s 0.checkpoint", "kraftwire metadata show FILE."),
        ("metadata show --snapshot 0.checkpoint", "kraftwire metadata show FILE."),
        ("quorum --endpoints localhost:9093", "Use --bootstrap-controller HOST:PORT."),
        ("quorum describe -w table", "Use --json."),
        ("-r trace.pcapng", "kraftwire decode FILE"),
        ("-L -b localhost:9092", "kraftwire metadata show topics brokers --bootstrap-controller"),
        ("metadata show -b localhost:9092", "Use --bootstrap-controller HOST:PORT."),
    ],
)
def test_the_error_names_what_to_use(line: str, text: str, capsys: Captured) -> None:
    """It is one line, as of any wrong option."""
    assert main(shlex.split(line)) == USAGE
    (said,) = capsys.readouterr().err.splitlines()
    assert text in said
    assert "o such option" in said or "there is no option" in said


def test_a_command_of_another_tool_is_answered(capsys: Captured) -> None:
    """Such as etcdctl's `member list`."""
    assert main(["quorum", "member", "list"]) == USAGE
    (said,) = capsys.readouterr().err.splitlines()
    assert "No such command 'member'" in said


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("tshark", "kraftwire decode FILE"),
        ("kcat", "kraftwire records FILE"),
        ("kafka-dump-log.sh", "kraftwire decode FILE"),
        ("kafka-metadata-shell.sh", "kraftwire metadata show FOLDER"),
        ("etcdctl", "kraftwire quorum describe"),
        ("member", "kraftwire quorum describe"),
    ],
)
def test_a_program_typed_after_kraftwire_is_answered(
    program: str, text: str, capsys: Captured
) -> None:
    """Not with the command whose letters are nearest."""
    assert main([program, "list"]) == USAGE
    (said,) = capsys.readouterr().err.splitlines()
    assert f"there is no command '{program}'; {text}" in said


def _names(command: click.Command) -> set[str]:
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    own = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    return own.union(*map(_names, inner))


def test_each_advice_is_for_an_option_that_does_not_exist() -> None:
    """Otherwise it would never be shown."""
    for options, commands, text in _ROWS:
        known = []
        for name in commands:
            command = load(name)
            assert isinstance(command, click.Command)
            known.append(_names(command))
        for option in options.split():
            assert not all(option in names for names in known), (option, text)
        assert not text.endswith("."), text


@pytest.mark.parametrize("arguments", [("%k %s\\n",), ("%k", "trace.pcap"), ("trace.pcap", "%k")])
@pytest.mark.parametrize("command", ["records", "decode"])
def test_the_format_of_kcat_is_a_template(
    command: str, arguments: tuple[str, ...], tmp_path: Path, capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here -f follows a file, and the format would be taken for one."""
    monkeypatch.chdir(tmp_path)
    Path("trace.pcap").touch()
    assert main([command, "-f", *arguments]) == USAGE
    (said,) = capsys.readouterr().err.splitlines()
    (form,) = (each for each in arguments if "%" in each)
    text = f"for kcat's -f: kraftwire records --template {shlex.quote(form)}"
    assert said.endswith(text)


def test_following_takes_no_value(capsys: Captured) -> None:
    """Such as tshark's capture filter, or a file that is not there."""
    assert main(["decode", "-f", "tcp port 9092", str(ROOT)]) == USAGE
    assert "there is no file 'tcp port 9092'" in capsys.readouterr().err


def test_a_file_in_place_of_a_command_is_decoded_by_one(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `tshark -r` would, without a command."""
    monkeypatch.chdir(tmp_path)
    Path("trace.pcap").touch()
    assert main(["trace.pcap"]) == USAGE
    text = "there is no command 'trace.pcap'; did you mean kraftwire decode trace.pcap?"
    assert text in capsys.readouterr().err
