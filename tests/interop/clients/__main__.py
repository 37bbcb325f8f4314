"""``make interop``: every client against three kraftwire nodes, and a table of what worked."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.table import Table

from kraftwire.testing import quorum
from tests.interop.clients.matrix import CLIENTS, STEPS, Outcome, probe, probe_login
from tests.support.secured_nodes import MECHANISMS, secured_quorum

__all__ = ["main"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per client.")
@click.option("--markdown", is_flag=True, help="Print a table for a README.")
@click.option("--sasl", type=click.Choice(MECHANISMS), help="Over SASL_SSL, by this mechanism.")
def main(names: tuple[str, ...], as_json: bool, markdown: bool, sasl: str | None) -> None:
    """Run the clients, all by default; the exit code is 1 if one that ran failed."""
    known = {client.name for client in CLIENTS}
    if unknown := set(names) - known:
        raise click.UsageError(f"no client {', '.join(unknown)}; there are {', '.join(known)}")
    outcomes: dict[str, Outcome] = {}
    skipped: dict[str, str] = {}
    with ExitStack() as stack:
        login = None
        if sasl is None:
            nodes = stack.enter_context(quorum(capture=True))
        else:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="clients-")))
            nodes = stack.enter_context(secured_quorum(folder))
            login = probe_login(folder, sasl)
        for client in CLIENTS:
            if names and client.name not in names:
                continue
            if missing := client.missing():
                skipped[client.name] = missing
                continue
            click.echo(f"{client.name} ...", err=True)
            outcomes[client.name] = probe(client, nodes, login)
    if as_json:
        _print_json(outcomes)
    elif markdown:
        _print_markdown(outcomes)
    else:
        _print_table(outcomes)
    for name, missing in skipped.items():
        click.echo(f"{name} is skipped: it needs {missing}", err=True)
    raise SystemExit(0 if all(each.is_ok for each in outcomes.values()) else 1)


def _cell(outcome: Outcome, step: str) -> str:
    found = outcome.steps.get(step)
    if found is None:
        return "-"
    return found.detail if found.is_ok else f"FAILED: {found.detail}"


def _print_table(outcomes: dict[str, Outcome]) -> None:
    table = Table("client", "version", *STEPS, show_lines=True)
    for name, outcome in outcomes.items():
        style = "" if outcome.is_ok else "red"
        table.add_row(name, outcome.version, *(_cell(outcome, s) for s in STEPS), style=style)
    Console().print(table)


def _print_markdown(outcomes: dict[str, Outcome]) -> None:
    click.echo(f"| client | version | {' | '.join(STEPS)} |")
    click.echo("|---" * (2 + len(STEPS)) + "|")
    for name, outcome in outcomes.items():
        cells = " | ".join(_cell(outcome, step) for step in STEPS)
        click.echo(f"| {name} | {outcome.version} | {cells} |")


def _print_json(outcomes: dict[str, Outcome]) -> None:
    for name, outcome in outcomes.items():
        steps = {s: {"ok": each.is_ok, "detail": each.detail} for s, each in outcome.steps.items()}
        click.echo(json.dumps({"client": name, "version": outcome.version, "steps": steps}))


if __name__ == "__main__":
    main()
