"""`kraftwire proxy`: a proxy in front of a cluster, in the foreground.

Owns the arguments; `kraftwire.proxy` does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftwire.cli.output import put, say
from kraftwire.errors import UsageError

if TYPE_CHECKING:
    from kraftwire.faults.rules import FaultRule

_LISTEN = "127.0.0.1:0"


class _BadRules(click.ClickException):
    """A file of rules that cannot be used, in one line."""

    exit_code = 1


@click.command()
@click.option("--upstream", required=True, metavar="HOST:PORT,...",
              help="Brokers, or controllers, of the cluster; one that answers is enough.")
@click.option("--listen", default=_LISTEN, show_default=True, metavar="HOST:PORT",
              help="Where clients connect first. Each broker gets a port after it, or a free one.")
@click.option("--advertised-host", metavar="HOST",
              help="The host by which clients reach the proxy, if it is another one.")
@click.option("--rules", metavar="FILE", help="Faults from the start, in JSON or TOML.")
@click.option("--capture", metavar="FILE",
              help="Write what passes, on both sides, there as pcapng.")
@click.option("--command-config", metavar="FILE",
              help="Kafka's client properties for connections to the cluster. With a login in them "
              "all clients are that user; without, clients log in themselves.")
@click.option("--listener-config", metavar="FILE",
              help="Kafka's properties of TLS for the proxy's own listeners.")
@click.option("--control", metavar="HOST:PORT",
              help="Serve rules, requests and the capture over HTTP there, as JSON.")
@click.option("--control-token-file", metavar="FILE",
              help="What clients of --control have to know; required if others than this machine "
              "reach it.")
def proxy(
    upstream: str,
    listen: str,
    advertised_host: str | None,
    rules: str | None,
    capture: str | None,
    command_config: str | None,
    listener_config: str | None,
    control: str | None,
    control_token_file: str | None,
) -> int:
    """Stand between clients and a cluster, and let requests fail as rules say.

    Prints the address to use as bootstrap server, and one for each broker. Clients
    see no other addresses. It runs until Ctrl-C or SIGTERM, then says what was
    requested and what each rule did.
    """
    from kraftwire.client.addresses import parse_addresses
    from kraftwire.properties import Properties
    from kraftwire.proxy.app import run
    from kraftwire.proxy.settings import (
        ProxySettings,
        listen_address,
        listener_tls,
        upstream_security,
    )

    faults = _rules(rules)
    security = tls = None
    if command_config is not None:
        security = upstream_security(Properties.given(command_config, "--command-config"))
    if listener_config is not None:
        tls = listener_tls(Properties.given(listener_config, "--listener-config"))
    settings = ProxySettings(
        upstream=parse_addresses(upstream, "--upstream"),
        listen=listen_address(listen),
        advertised_host=advertised_host,
        upstream_security=security,
        listener_tls=tls,
        capture=capture,
        control=None if control is None else listen_address(control, "--control"),
        control_token=None if control_token_file is None else _token(control_token_file),
    )
    for line in security.warnings if security else ():
        _say(line)
    return run(settings, faults, announce=put, say=_say)


def _rules(path: str | None) -> list[FaultRule]:
    """Read a file of rules. Raises: _BadRules; OSError."""
    if path is None:
        return []
    from kraftwire.faults.rules_file import read_rules

    try:
        return read_rules(path)
    except UsageError as error:
        raise _BadRules(str(error)) from None


def _token(path: str) -> str:
    """Read the token of a control interface. Raises: UsageError; OSError."""
    from kraftwire.control.access import read_token

    return read_token(path)


def _say(text: str) -> None:
    say(f"kraftwire proxy: {text}")
