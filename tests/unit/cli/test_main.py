"""The program's front: help, versions, wrong commands, quiet ends, quick starts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kraftwire import __version__, engine
from kraftwire.cli import main as cli
from kraftwire.cli.commands import COMMANDS
from kraftwire.errors import StorageError, UsageError
from tests.support.captures.decoded import ROOT

PROGRAM = [
    sys.executable,
    "-c",
    "import sys; from kraftwire.cli.main import main; sys.exit(main())",
]
SLOW_TO_IMPORT = {"click", "rich", "trio", "construct", "cramjam", "inspect"}


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Start the program as a shell would."""
    return subprocess.run([*PROGRAM, *arguments], input=stdin, capture_output=True, text=True)


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a run inside this process."""
    code = cli.main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_console_script_is_main() -> None:
    """The wheel promises a program of this name."""
    scripts = [each for each in entry_points(group="console_scripts") if each.name == "kraftwire"]
    assert [each.value for each in scripts] in ([], ["kraftwire.cli.main:main"])


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The first thing that a newcomer types."""
    code, out, err = say(capsys, *arguments)
    assert (code, err) == (0, "")
    for name, (_, text) in COMMANDS.items():
        assert f"  {name}" in out
        assert text in out
    assert "_KRAFTWIRE_COMPLETE=bash_source" in out


@pytest.mark.parametrize("name", ["message", "schema"])
def test_every_command_has_its_own_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both ways to ask for it are common."""
    asked_behind = say(capsys, name, "--help")
    asked_before = say(capsys, "help", name)
    assert asked_behind == asked_before
    assert asked_behind[0] == 0
    assert asked_behind[1].startswith(f"Usage: kraftwire {name}")


@pytest.mark.parametrize("name", ["cluster", "metadata"])
def test_a_group_of_commands_alone_shows_its_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In lines, as when it is asked for; it is wrong usage all the same."""
    code, _, errors = say(capsys, name)
    assert (code, errors.splitlines()) == (2, say(capsys, name, "--help")[1].splitlines())


def test_wrong_usage_names_the_command_whose_help_to_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A group's help does not have the options of its commands."""
    code, _, errors = say(capsys, "metadata", "show", "--at", "x")
    assert code == 2
    assert errors.startswith("kraftwire metadata show: Invalid value for '--at'")
    assert errors.endswith("See kraftwire metadata show --help.\n")


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """It goes into every report of a fault."""
    said = f"kraftwire {__version__}\nengine: {engine.name()}\n"
    assert say(capsys, "--version") == (0, said, "")


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("mesage", "there is no command 'mesage'; did you mean message?"),
        ("shema", "there is no command 'shema'; did you mean schema?"),
        ("qqq", "there is no command 'qqq'; see kraftwire --help"),
        ("--verbose", "there is no option '--verbose'; see kraftwire --help"),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest_command(
    word: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line is enough to continue."""
    assert say(capsys, word) == (2, "", f"kraftwire: {text}\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["schema", "--nope"], "No such option"),
        (["schema", "Fetch", "1", "2"], "unexpected extra argument"),
        (["schema", "Fetsh"], "did you mean Fetch"),
        (["message"], "message wants decode or encode, found nothing"),
        (["message", "decode", "encode"], "found 'decode encode'"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts check the code, people read the line."""
    code, out, err = say(capsys, *arguments)
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1
    assert err.startswith("kraftwire")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such thing"), 2),
        (StorageError("bad magic", file="00.log", position=7), 1),
        (FileNotFoundError(2, "No such file or directory", "a.log"), 1),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
)
def test_errors_end_the_program_without_a_traceback(
    error: BaseException,
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A traceback is for bugs; interruption and closed pipes do not even need a line."""

    def fail(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    got, out, err = say(capsys)
    assert (got, out) == (code, "")
    expected = {
        2: "kraftwire: no such thing\n",
        130: "",
        141: "",
        1: "kraftwire: a.log: No such file or directory\n"
        if isinstance(error, OSError)
        else "kraftwire: 00.log at byte 7: bad magic\n",
    }
    assert err == expected[code]


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hiding it would help nobody."""

    def fail(_: list[str]) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_run", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main([])


def test_a_reader_that_leaves_ends_the_program_quietly() -> None:
    """`kraftwire schema | head` is how people look at long output."""
    with subprocess.Popen(
        [*PROGRAM, "message", "decode"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdin
        assert program.stdout
        assert program.stderr
        program.stdin.write(b"{}\n")
        program.stdin.flush()
        assert program.stdout.readline()
        program.stdout.close()
        program.stdin.write(b"{}\n")
        program.stdin.close()
        assert program.stderr.read() == b""
        assert program.wait() == 141


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/full")
def test_a_full_disk_is_reported_once() -> None:
    """The interpreter flushes again when it exits, and would report the error a second time."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left" in done.stderr


DECODE = ["decode", "--quiet", "tests/golden/captures/quorum.pcap.xz"]
PRINTING = [["--help"], ["message", "--help"], ["message", "decode"], ["schema"], DECODE]


def closing(redirection: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run it from a shell that closes a stream; only a shell does that."""
    command = f"{shlex.join([*PROGRAM, *arguments])} {redirection}"
    return subprocess.run(["sh", "-c", command], input="{}\n", capture_output=True, text=True)


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_closed_standard_output_is_one_line_and_exit_code_1(arguments: list[str]) -> None:
    """As with cat: the task was not done, and a traceback would not help."""
    done = closing(">&-", arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "kraftwire: cannot write: Bad file descriptor\n"


def test_a_closed_standard_input_is_one_line_and_exit_code_1() -> None:
    """An answer of no lines would look like success."""
    done = closing("<&-", ["message", "decode"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "kraftwire: standard input: cannot read: Bad file descriptor\n"
    done = closing("<&-", ["decode", "--quiet", "-"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "kraftwire: -: cannot open: Bad file descriptor\n"


@pytest.mark.parametrize("arguments", [["--help"], ["schema", "Vote"], DECODE], ids=" ".join)
def test_a_closed_stream_that_is_not_needed_changes_nothing(arguments: list[str]) -> None:
    """Programs that run others often close what they do not use."""
    done = run(*arguments)
    for redirection in ("<&-", "2>&-"):
        less = closing(redirection, arguments)
        assert (less.returncode, less.stdout, less.stderr) == (0, done.stdout, "")


def test_messages_to_a_closed_standard_error_do_not_land_in_the_output() -> None:
    """Printing to a stream that is None prints to standard output."""
    done = closing("2>&-", ["message"])
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_the_package_can_be_run() -> None:
    """`python -m kraftwire` works where no console script is on the path."""
    command = [sys.executable, "-m", "kraftwire", "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    said = f"kraftwire {__version__}\nengine: {engine.name()}\n"
    assert (done.returncode, done.stdout) == (0, said)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["message", "decode"]])
def test_what_must_start_at_once_imports_nothing_slow(arguments: list[str]) -> None:
    """A coprocess is started often, and help should appear at once."""
    code = (
        "import sys; from kraftwire.cli.main import main; code = main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], input="", capture_output=True, text=True
    )
    assert done.returncode == 0
    assert not SLOW_TO_IMPORT & set(done.stderr.split())


def complete(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What bash completes when Tab is pressed at the end of a line."""
    words = line.split(" ")
    monkeypatch.setenv("_KRAFTWIRE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    with pytest.raises(SystemExit):
        cli.main()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kraftwire ", list(COMMANDS)),
        ("kraftwire m", ["metadata", "message"]),
        ("kraftwire message ", ["decode", "encode"]),
        ("kraftwire schema --k", ["--kind"]),
        ("kraftwire schema voters", ["VotersRecord"]),
        ("kraftwire decode --api vote", ["Vote"]),
        ("kraftwire decode --api Fetch,!vote", ["Fetch,!Vote"]),
        ("kraftwire story raft --error not_l", ["NOT_LEADER_OR_FOLLOWER"]),
        ("kraftwire decode -o time,co", ["time,connection", "time,correlation"]),
        ("kraftwire story ", ["clients", "groups", "raft", "topics", "transactions"]),
        ("kraftwire metadata show log to", ["topics", "tokens"]),
        ("kraftwire metadata diff a b br", ["brokers"]),
        ("kraftwire pipeline tables vote_req", ["vote_request"]),
        ("kraftwire pipeline run log --tables frames,vote_res", ["frames,vote_response"]),
        ("kraftwire pipeline run --api produce", ["Produce"]),
    ],
)
def test_shells_complete_commands_and_options(
    line: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nobody wants to type the names of 280 messages."""
    if "pipeline" in line and "--api" not in line:
        pytest.importorskip("pyarrow")
    offered = complete(line, monkeypatch, capsys)
    assert [each.partition(",")[2] for each in offered.split()] == words


@pytest.mark.parametrize(
    "line",
    [
        "kraftwire decode tr",
        "kraftwire decode --keylog ",
        "kraftwire story raft a b",
        "kraftwire diff a",
        "kraftwire metadata show ",
        "kraftwire metadata show zz",
        "kraftwire node start no",
        "kraftwire storage format --config ",
        "kraftwire pipeline run in",
    ],
)
def test_shells_complete_files(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most words after a command are names of files; the shell knows these best."""
    offered = complete(line, monkeypatch, capsys)
    assert offered == f"file,{line.rpartition(' ')[2]}\n"


# Shell -> how it completes the line `kraftwire decode --api vote` after the script in $SCRIPT.
SHELLS = {
    "bash": """eval "$SCRIPT"; COMP_WORDS=(kraftwire decode --api vote) COMP_CWORD=3
        _kraftwire_completion kraftwire; printf '%s\\n' "${COMPREPLY[@]}" """,
    "fish": "echo $SCRIPT | source; complete -C 'kraftwire decode --api vote'",
    "zsh": """compdef() { :; }; compadd() { print -l -- $completions; }; eval "$SCRIPT"
        words=(kraftwire decode --api vote) CURRENT=4; _kraftwire_completion""",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_works_in_the_shell(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its syntax, and what it makes of the program's answers, are the shell's."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "kraftwire"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m kraftwire "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    script = subprocess.run(
        [program], env={**os.environ, "_KRAFTWIRE_COMPLETE": f"{shell}_source"},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    done = subprocess.run(
        [found, "-c", SHELLS[shell]], env={**os.environ, "SCRIPT": script},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (["Vote"], "")


@pytest.mark.parametrize("arguments", [["a.properties"], ["--config", "a.properties"]])
def test_a_node_is_started_by_its_properties_file(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an argument, as of Kafka's script, or as an option."""
    monkeypatch.setattr("kraftwire.node.config.load", lambda *given: given)
    monkeypatch.setattr(
        "kraftwire.node.app.run", lambda given: int(given == ("a.properties", ("node.id=7",)))
    )
    assert cli.main(["node", "start", *arguments, "--override", "node.id=7"]) == 1


@pytest.mark.parametrize(
    ("arguments", "found"),
    [([], "found nothing"), (["a", "--config", "b"], "found a and --config b")],
)
def test_a_node_has_one_properties_file(
    arguments: list[str], found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two would leave open which one counts."""
    code, _, errors = say(capsys, "node", "start", *arguments)
    assert (code, errors.count("\n")) == (2, 1)
    assert found in errors


def test_completion_keeps_the_types_of_paths(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A command that ran in the same process after a completion got text for a path."""
    with monkeypatch.context() as during:
        complete("kraftwire cluster down --dir x", during, capsys)
    (tmp_path / "cluster.json").touch()
    assert cli.main(["cluster", "down", "--dir", str(tmp_path)]) == 1
