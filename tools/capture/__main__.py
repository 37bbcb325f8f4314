"""``python -m tools.capture TARGET... --out FILE``: record a Kafka's traffic with a proxy."""

from __future__ import annotations

import signal
import sys

import click
import trio

from kraftwire.client.addresses import parse_addresses
from kraftwire.errors import UsageError
from kraftwire.protocol.endpoint import Address
from tools.capture.proxy import Proxy


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("targets", nargs=-1, required=True, metavar="[LISTEN=]TARGET...")
@click.option("--out", "path", required=True, metavar="FILE", help="The capture, in pcapng.")
@click.option("--follow", is_flag=True, help="Route clients to advertised addresses, too.")
def main(targets: tuple[str, ...], path: str, follow: bool) -> None:
    """Listen on loopback for each TARGET (host:port), pass bytes on, record them.

    Ctrl-C ends it. Where it listens is printed, one line for each target.
    """
    try:
        pairs = [_pair(text) for each in targets for text in each.split(",")]
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    try:
        problem = trio.run(_run, pairs, path, follow)
    except OSError as error:
        raise click.ClickException(str(error)) from error
    if problem:
        raise click.ClickException(problem)


def _pair(text: str) -> tuple[Address, Address]:
    """Parse a target, and the address to listen on for it."""
    listen, has_listen, target = text.rpartition("=")
    where = parse_addresses(listen, "LISTEN")[0] if has_listen else ("127.0.0.1", 0)
    return parse_addresses(target, "TARGET")[0], where


async def _run(pairs: list[tuple[Address, Address]], path: str, follow: bool) -> str:
    """Serve until a signal; returns the problem, if there was one."""
    with (
        open(path, "wb", buffering=0) as file,
        trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
    ):
        async with trio.open_nursery() as nursery:
            proxy = Proxy(file, nursery, is_following=follow)
            try:
                for target, listen in pairs:
                    await proxy.serve(target, listen)
                await anext(signals)
            except OSError as error:
                return str(error)
            finally:
                nursery.cancel_scope.cancel()
    return ""


if __name__ == "__main__":
    sys.exit(main())
