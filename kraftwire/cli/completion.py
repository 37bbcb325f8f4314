"""Shell completion: the table of commands as a click group, loaded only for that.

Owns what is offered for values: names of APIs, errors, columns, tables and subjects, and files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from kraftwire.cli.commands import COMMANDS, HELP_OPTIONS, load
from kraftwire.errors import UsageError

# Before a name in a list of filters, one of them excludes it.
_EXCLUSION = ("!", "^")
# The words for a file or a folder in the help of a command.
_FILES = re.compile(r"\[?(FILE|DIR|INPUT|A|B)\b.*")


class _Names(StringParamType):
    """Completes the last of some names with commas between them, whatever their case."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the whole lists, each with another name at its end."""
        before, comma, last = incomplete.rpartition(",")
        sign = last[:1] if last.startswith(_EXCLUSION) else ""
        begun = last.removeprefix(sign).lower()
        return [
            CompletionItem(f"{before}{comma}{sign}{name}")
            for name in self._names()
            if name.lower().startswith(begun)
        ]


class _FilesOrNames(_Names):
    """Completes files, and after the first one names."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names; without any, or at the beginning, what lets the shell complete files.
        """
        has_source = any(map(ctx.params.get, (param.name, "first", "bootstrap_controller")))
        found = super().shell_complete(ctx, param, incomplete)
        if found and (incomplete or has_source):
            return found
        return [CompletionItem(incomplete, type="file")]


def _apis() -> Iterable[str]:
    from kraftwire.messages import API_NAMES

    return API_NAMES.values()


def _errors() -> Iterable[str]:
    from kraftwire.protocol.error_codes import ErrorCode

    return ("any", "none", *(each.name for each in ErrorCode))


def _columns() -> Iterable[str]:
    from kraftwire.inspect.lines.line import COLUMNS

    return COLUMNS


def _subjects() -> Iterable[str]:
    from kraftwire.story.metadata.rows import SUBJECTS

    return SUBJECTS


def _tables() -> Iterable[str]:
    try:
        from kraftwire.spark.tables import TABLES
        from kraftwire.spark.tables.apis import TYPED_TABLES
    except ModuleNotFoundError:
        return ()  # the extra is not installed
    return ("all", *TABLES, *TYPED_TABLES)


# Name of an option or argument in the functions of commands -> what completes it.
_TYPES: dict[str, _Names] = {
    "api": _Names(_apis),
    "error": _Names(_errors),
    "columns": _Names(_columns),
    "wanted": _Names(_tables),
    "names": _Names(_tables),
    "arguments": _FilesOrNames(_subjects),
    "subjects": _FilesOrNames(_subjects),
}


def _completed(command: click.Command) -> click.Command:
    """Return a command whose values are completed."""
    for each in command.params:
        if each.name in _TYPES:
            each.type = _TYPES[each.name]
        elif isinstance(each.type, click.Path):
            continue
        elif _FILES.fullmatch(getattr(each, "metavar", None) or ""):
            each.type = click.Path(readable=False)
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _completed(inner)
    return command


class _LazyGroup(click.Group):
    """Completes names from the table; imports a command when its own words are completed."""

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        return [
            CompletionItem(name, help=help_line)
            for name, (_, help_line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        try:
            command = load(cmd_name)
        except UsageError:
            return None  # it is not installed
        if isinstance(command, click.Command):
            return _completed(command)
        # A plain function takes one of the words that it lists.
        choice = click.Choice(getattr(command, "actions", ()))
        return click.Command(cmd_name, params=[click.Argument(["action"], type=choice)])


def group() -> click.Group:
    """The whole command line as one click group."""
    return _LazyGroup("kraftwire", context_settings={"help_option_names": HELP_OPTIONS})
