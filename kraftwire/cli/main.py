"""The program `kraftwire`: finds the command, runs it, and prints an error in one line.

A command's module, and click with it, is imported when that command is called, so that ``kraftwire
--help`` and ``kraftwire message`` start at once.
"""

from __future__ import annotations

import gc
import os
import sys

from kraftwire import __version__
from kraftwire.cli.commands import COMMANDS, HELP_OPTIONS, load
from kraftwire.cli.output import drop_output, is_output_stuck, put, replace_closed, say
from kraftwire.errors import ApiError, KraftwireError, SecurityError, UsageError

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    import click

_EXIT_FAILED = 1
_EXIT_USAGE = 2
# Longer than the line that a group's help has about any command.
_HELP_LINE_MAX = 1000

# The exception of click, since 8.2, for a group without the name of a command; it shows its help.
_NO_ARGUMENTS = "NoArgsIsHelpError"
# The exit codes that a shell reports for a program ended by SIGINT or SIGPIPE.
_EXIT_INTERRUPTED = 130
_EXIT_BROKEN_PIPE = 141

_HELP = """\
Usage: kraftwire COMMAND [OPTIONS] [ARGUMENTS]

Apache Kafka's protocol and its KRaft quorums: captures, logs, messages, nodes.

Commands:
{commands}

Options:
  -h, --help     Show this text; after a command, show that command's options.
  -V, --version  Show the version.

Try:
  kraftwire decode trace.pcapng
  kraftwire story raft node-1/ node-2/ node-3/
  kraftwire schema Fetch 12..17

Completion of commands and options, for bash (zsh and fish likewise):
  eval "$(_KRAFTWIRE_COMPLETE=bash_source kraftwire)"
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if "_KRAFTWIRE_COMPLETE" in os.environ:
        from kraftwire.cli.completion import group

        group().main(prog_name="kraftwire")
    replace_closed()
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        if arguments is None:
            # The process ends: nothing has to be found unused any more.
            gc.freeze()
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        drop_output()
        return _EXIT_BROKEN_PIPE
    except ApiError as error:
        from kraftwire.cli.api_errors import api_error_text

        _say(api_error_text(error))
        return _EXIT_FAILED
    except KraftwireError as error:
        _say(str(error))
        return _EXIT_USAGE if _is_usage(error) else _EXIT_FAILED
    except OSError as error:
        text = _os_text(error)
        drop_output()
        _say(text)
        return _EXIT_FAILED
    return code


def help_text() -> str:
    """Return the text of ``kraftwire --help``."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:{width}}{help_line}" for name, (_, help_line) in COMMANDS.items()]
    return _HELP.format(commands="\n".join(lines))


def _run(arguments: list[str]) -> int:
    first, *rest = arguments or ["--help"]
    if first == "help":
        first, *rest = [*rest, "--help"]
    if first in ("-h", "--help"):
        put(*help_text().splitlines())
        return 0
    if first in ("-V", "--version"):
        from kraftwire import engine

        outdated = " (the one in C was built from other sources: install kraftwire again)"
        note = outdated if engine.is_outdated else ""
        put(f"kraftwire {__version__}", f"engine: {engine.name()}{note}")
        return 0
    if first not in COMMANDS:
        raise UsageError(_unknown(first))
    command = load(first)
    if callable(command) and not hasattr(command, "make_context"):
        return int(command(rest))
    return _run_click(command, f"kraftwire {first}", rest)


def _is_usage(error: KraftwireError) -> bool:
    """Return whether another command, or another file for it, cures an error."""
    if isinstance(error, SecurityError):
        return error.is_usage
    return isinstance(error, UsageError)


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    kind = "option" if name.startswith("-") else "command"
    near = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "see kraftwire --help"
    if os.path.exists(name):
        hint = f"did you mean kraftwire decode {name}?"
    elif instead := _advice("decode", name):
        hint = f"options follow a command. {instead}" if kind == "option" else instead
    return f"there is no {kind} {name!r}; {hint}"


def _run_click(command: object, program: str, arguments: list[str]) -> int:
    import click

    assert isinstance(command, click.Command)
    for each in getattr(command, "commands", {}).values():
        # In full: click cuts what it makes by itself to the width of the terminal.
        each.short_help = each.get_short_help_str(_HELP_LINE_MAX)
    try:
        with command.make_context(program, arguments, help_option_names=HELP_OPTIONS) as context:
            result = command.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        if type(error).__name__ == _NO_ARGUMENTS:
            error.show()
            return _EXIT_USAGE
        place = program if error.ctx is None else error.ctx.command_path
        _say(f"{_usage_text(error, place)} See {place} --help.", place)
        return _EXIT_USAGE
    except click.ClickException as error:
        _say(error.format_message(), program)
        return error.exit_code
    return result if isinstance(result, int) else 0


def _usage_text(error: click.UsageError, place: str) -> str:
    """Return what is wrong with a command line, and what to use for an option of another tool."""
    word = getattr(error, "option_name", None) or getattr(error, "command_name", None)
    instead = _advice(place.partition(" ")[2], word) if word else None
    return f"{error.message.rstrip('.')}. {instead}." if instead else error.format_message()


def _advice(command: str, option: str) -> str | None:
    from kraftwire.cli.foreign_options import advice

    return advice(command, option)


def _say(text: str, program: str = "kraftwire") -> None:
    """Print one line on standard error; unsafe characters are escaped."""
    say(f"{program}: {' '.join(text.split())}")


def _os_text(error: OSError) -> str:
    """Return an error of the operating system, with the file that it is about if known."""
    text = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {text}"
    return f"cannot write: {text}" if is_output_stuck() else text


if __name__ == "__main__":
    raise SystemExit(main())
