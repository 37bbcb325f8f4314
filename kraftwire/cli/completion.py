"""Shell completion: the table of commands as a click group, loaded only for that."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from kraftwire.cli.commands import COMMANDS, load
from kraftwire.errors import UsageError


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
            return command
        # A plain function takes one word, of those it lists.
        choice = click.Choice(getattr(command, "actions", ()))
        return click.Command(cmd_name, params=[click.Argument(["action"], type=choice)])


def group() -> click.Group:
    """The whole command line as one click group."""
    return _LazyGroup("kraftwire")
