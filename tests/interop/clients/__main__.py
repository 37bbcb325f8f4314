"""``make interop``: every client on three kraftwire nodes, or on brokers, and what worked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.table import Table

from kraftwire.testing import quorum
from tests.interop.clients import brokers as on_brokers
from tests.interop.clients.matrix import CLIENTS, STEPS, Client, Outcome, probe, probe_login
from tests.support.kafka.mixed_quorum import JAVA, OURS
from tests.support.nodes.secured import MECHANISMS, secured_quorum

__all__ = ["main"]


Outcomes = Mapping[str, Outcome]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per client.")
@click.option("--markdown", is_flag=True, help="Print a table for a README.")
@click.option("--sasl", type=click.Choice(MECHANISMS), help="Over SASL_SSL, by this mechanism.")
@click.option("--brokers", is_flag=True, help="On brokers, with our controllers and Kafka's.")
def main(
    names: tuple[str, ...], as_json: bool, markdown: bool, sasl: str | None, brokers: bool
) -> None:
    """Run the clients, all by default; the exit code is 1 if one that ran failed.

    On brokers it is 1 if one fails or sees anything else than with Kafka's controllers.
    """
    if brokers and sasl:
        raise click.UsageError("--brokers is without --sasl")
    clients = _present(names)
    show = _print_json if as_json else _print_markdown if markdown else _print_table
    if not brokers:
        outcomes = _on_nodes(clients, sasl)
        show(outcomes, STEPS)
        raise SystemExit(not all(each.is_ok for each in outcomes.values()))
    tables = {kind: _on_brokers(kind, clients) for kind in (OURS, JAVA)}
    for kind, outcomes in tables.items():
        click.echo(f"controllers: {kind}", err=as_json)
        show(outcomes, on_brokers.STEPS)
    raise SystemExit(_differ(tables[OURS], tables[JAVA]))


def _present(names: Sequence[str]) -> list[Client]:
    """The clients with these names that the machine has; names the others."""
    known = {client.name for client in CLIENTS}
    if unknown := set(names) - known:
        raise click.UsageError(f"no client {', '.join(unknown)}; there are {', '.join(known)}")
    found = []
    for client in CLIENTS:
        if names and client.name not in names:
            continue
        if missing := client.missing():
            click.echo(f"{client.name} is skipped: it needs {missing}", err=True)
        else:
            found.append(client)
    return found


def _on_nodes(clients: Sequence[Client], sasl: str | None) -> Outcomes:
    """What the clients' probes do on three nodes."""
    with ExitStack() as stack:
        login = None
        if sasl is None:
            nodes = stack.enter_context(quorum(capture=True))
        else:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="clients-")))
            nodes = stack.enter_context(secured_quorum(folder))
            login = probe_login(folder, sasl)
        return _run(clients, lambda client: probe(client, nodes, login))


def _on_brokers(kind: str, clients: Sequence[Client]) -> Outcomes:
    """What the clients' traffic does on two brokers with controllers of a kind."""
    with (
        TemporaryDirectory(prefix="clients-") as folder,
        on_brokers.brokers_on(kind, Path(folder)) as servers,
    ):
        return _run(clients, lambda client: on_brokers.use(client, servers))


def _run(clients: Sequence[Client], run: Callable[[Client], Outcome]) -> Outcomes:
    outcomes = {}
    for client in clients:
        click.echo(f"{client.name} ...", err=True)
        outcomes[client.name] = run(client)
    return outcomes


def _differ(ours: Outcomes, theirs: Outcomes) -> bool:
    """Print what differs between our controllers and Kafka's; returns whether anything does."""
    found = [
        f"{name}: {difference}"
        for name in ours
        for difference in on_brokers.differences(ours[name], theirs[name])
    ]
    for line in found:
        click.echo(line, err=True)
    return bool(found)


def _cell(outcome: Outcome, step: str) -> str:
    found = outcome.steps.get(step)
    if found is None:
        return "-"
    return found.detail if found.is_ok else f"FAILED: {found.detail}"


def _print_table(outcomes: Outcomes, steps: Sequence[str]) -> None:
    table = Table("client", "version", *steps, show_lines=True)
    for name, outcome in outcomes.items():
        style = "" if outcome.is_ok else "red"
        table.add_row(name, outcome.version, *(_cell(outcome, s) for s in steps), style=style)
    Console().print(table)


def _print_markdown(outcomes: Outcomes, steps: Sequence[str]) -> None:
    click.echo(f"| client | version | {' | '.join(steps)} |")
    click.echo("|---" * (2 + len(steps)) + "|")
    for name, outcome in outcomes.items():
        cells = " | ".join(_cell(outcome, step) for step in steps)
        click.echo(f"| {name} | {outcome.version} | {cells} |")


def _print_json(outcomes: Outcomes, _: Sequence[str]) -> None:
    for name, outcome in outcomes.items():
        taken = {s: {"ok": each.is_ok, "detail": each.detail} for s, each in outcome.steps.items()}
        click.echo(json.dumps({"client": name, "version": outcome.version, "steps": taken}))


if __name__ == "__main__":
    main()
